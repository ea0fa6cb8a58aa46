"""Predicted jumps against those of a simulation."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.prediction.process import JumpProcess
from reluflow.trajectory import Trajectory

Array = NDArray[np.float64]

CLOSE = 0.05  # relative difference of times, and share of the whole drop, that counts as agreement
GAP, REST = 0.05, 20.0  # below these the order of the limit need not show at a scale


@dataclass(frozen=True)
class JumpRow:
    """One predicted jump and what the run did: the time at which it is half done, and the loss on
    the plateau after it; None where it is not seen."""

    jump: int
    predicted: float
    simulated: float | None
    loss: float
    simulated_loss: float | None
    gap: float | None
    rest: float | None

    @property
    def difference(self) -> float | None:
        """(simulated - predicted) / predicted."""
        if self.simulated is None or not self.predicted > 0.0:
            return None
        return self.simulated / self.predicted - 1.0


@dataclass(frozen=True)
class Comparison:
    """All jumps; ``fragile`` when gaps or plateaus are too short at this scale to be seen."""

    rows: tuple[JumpRow, ...]
    end_predicted: float
    end_simulated: float
    drop: float
    fragile: bool

    @property
    def agrees(self) -> bool:
        """Whether times, plateaus and end meet."""
        times = all(r.difference is not None and abs(r.difference) <= CLOSE for r in self.rows)
        levels = all(
            r.simulated_loss is not None and abs(r.simulated_loss - r.loss) <= CLOSE * self.drop
            for r in self.rows
        )
        return times and levels and self.ends_meet

    @property
    def ends_meet(self) -> bool:
        """Whether both end at the same loss."""
        return abs(self.end_simulated - self.end_predicted) <= 1e-2 * self.drop

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "jumps": [{**asdict(r), "difference": r.difference} for r in self.rows],
            "end_predicted": self.end_predicted,
            "end_simulated": self.end_simulated,
            "fragile": self.fragile,
            "agrees": self.agrees,
        }


def compare(
    process: JumpProcess, run: Trajectory, times: Array, log_scale: float, end: float
) -> Comparison:
    """Compare the jumps of ``process`` at the scale of the start with the losses of ``run``.

    Parameters
    ----------
    process : JumpProcess
    run : Trajectory
    times : array
        Gradient-flow times of its records.
    log_scale : float
        Logarithm of the largest inner weight at the start.
    end : float
        Loss at the end of the run.
    """
    gaps, rests = process.gaps_at(log_scale=log_scale), process.rests_at(log_scale=log_scale)
    predicted = process.jump_times(log_scale=log_scale)
    losses, loss = process.losses, np.asarray(run.loss, dtype=float)
    drop = float(losses[0] - losses.min())
    found = [_passes(times, loss, _half_way(process, i)) for i in range(process.n_jumps)]
    rows = []
    for i in range(process.n_jumps):
        until = found[i + 1] if i + 1 < len(found) else None
        last = i + 1 == process.n_jumps
        rows.append(
            JumpRow(
                i + 1,
                float(predicted[i]),
                found[i],
                float(losses[i + 1]),
                end if last else _rest(times, loss, found[i], until),
                _known(gaps[i]),
                _known(rests[i]),
            )
        )
    short = bool((gaps < GAP).any() or (rests[1:] < REST).any())
    return Comparison(tuple(rows), float(losses[-1]), end, drop, short)


def _half_way(process: JumpProcess, i: int) -> float:
    """Loss when jump i is half done: outputs half way for square losses, as the prediction has it
    for the group's squared norm; the loss half way where weights diverge."""
    if process.problem.loss.margin:
        return 0.5 * float(process.losses[i] + process.losses[i + 1])
    f = [process.problem.outputs(process.networks[k]) for k in (i, i + 1)]
    return float(process.problem.value(0.5 * (f[0] + f[1])))


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _passes(times: Array, loss: Array, level: float) -> float | None:
    below = np.flatnonzero(loss <= level)
    if not below.size or below[0] == 0:
        return None
    i = int(below[0])
    share = (loss[i - 1] - level) / (loss[i - 1] - loss[i])
    return float(times[i - 1] + share * (times[i] - times[i - 1]))


def _rest(times: Array, loss: Array, start: float | None, stop: float | None) -> float | None:
    """Loss where it falls slowest between two jumps."""
    if start is None or stop is None:
        return None
    inside = np.flatnonzero((times > start) & (times < stop))
    if inside.size < 2:
        return float(np.interp(0.5 * (start + stop), times, loss))
    slope = np.abs(np.diff(loss[inside])) / np.maximum(np.diff(times[inside]), 1e-300)
    return float(loss[inside[int(np.argmin(slope))]])
