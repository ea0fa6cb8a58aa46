"""Predicted jumps against those of a simulation."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from reluflow.arrays import Array, Indices, Mask
from reluflow.prediction.process import JumpProcess
from reluflow.trajectory import Trajectory

CLOSE = 0.05  # relative difference of times, and share of the whole drop, that counts as agreement
SHARE = 0.05  # of the network, held by other neurons than predicted, that counts as agreement
GAP, REST = 0.05, 20.0  # below these the order of the limit need not show at a scale


@dataclass(frozen=True)
class JumpRow:
    """One predicted jump and what the run did; None where it is not seen.

    Attributes
    ----------
    predicted, simulated : times at which half of the fall of the loss is done
    leading : whether the prediction is of leading order only: log(1/scale) times the limit's jump
        time, without the constant that belongs to it at finite scale
    loss, simulated_loss : on the plateau after the jump
    neurons : how many were predicted to jump
    held : share of the network (of sum_j |w_j|^2) that is held on that plateau of the run by the
        neurons predicted to have jumped by then
    new, new_predicted : share of those that jump here, in the run and as predicted
    gap, rest : distance to the next candidate, and length of the plateau before
    doubt : why a run from this scale may show the jump at another time, empty for no reason
    as_one : first and last of the jumps that the run shows as one fall of the loss, this among
        them, since they overlap at this scale; ``simulated`` is the time of that fall
    """

    jump: int
    predicted: float
    simulated: float | None
    leading: bool
    loss: float
    simulated_loss: float | None
    neurons: int
    held: float | None
    new: float | None
    new_predicted: float
    gap: float | None
    rest: float | None
    doubt: str = ""
    as_one: tuple[int, int] | None = None

    @property
    def difference(self) -> float | None:
        """(simulated - predicted) / predicted."""
        if self.simulated is None or not self.predicted > 0.0:
            return None
        return self.simulated / self.predicted - 1.0

    @property
    def close(self) -> bool:
        """Whether the run shows the jump at the predicted time."""
        return self.difference is not None and abs(self.difference) <= CLOSE

    @property
    def who(self) -> bool | None:
        """Whether those who jump are those predicted: the others hold next to nothing, and the
        new ones at least half of what they should; None where sizes were not recorded."""
        if self.held is None or self.new is None:
            return None
        return self.held >= 1.0 - SHARE and self.new >= 0.5 * self.new_predicted


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
        """Whether times, plateaus, the neurons that jump, and the end meet."""
        times = all(r.close for r in self.rows)
        levels = all(
            r.simulated_loss is not None and abs(r.simulated_loss - r.loss) <= CLOSE * self.drop
            for r in self.rows
            if r.as_one is None or r.jump == r.as_one[1]
        )
        return times and levels and self.who is not False and self.ends_meet

    @property
    def who(self) -> bool | None:
        """Whether those who jump are those predicted; None where sizes were not recorded."""
        known = [row.who for row in self.rows if row.who is not None]
        return all(known) if known else None

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
            "same_neurons": self.who,
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
    doubts = process.doubts_at(log_scale=log_scale)
    losses, loss = process.losses, np.asarray(run.loss, dtype=float)
    drop = float(losses[0] - losses.min())
    found, as_one = _seen(times, loss, losses, process.overlaps_at(log_scale=log_scale))
    unknown = np.ones(process.n_jumps, dtype=bool)
    if process.offsets is not None:
        unknown = np.isnan(process.offsets)
    rows = []
    for i in range(process.n_jumps):
        last = i + 1 == process.n_jumps
        one = as_one[i]
        inside = one is not None and i + 1 < one[1]  # no plateau between them
        at = len(loss) - 1 if last else None
        if not (last or inside):
            at = _rest(times, loss, found[i], found[i + 1])
        level = None if at is None else float(loss[at])
        rows.append(
            JumpRow(
                jump=i + 1,
                predicted=float(predicted[i]),
                simulated=found[i],
                leading=bool(unknown[i]),
                loss=float(losses[i + 1]),
                simulated_loss=end if last else level,
                neurons=len(process.neurons[i]),
                held=_held(_sizes(run, at), process.active[i + 1]),
                new=_held(_sizes(run, at), process.neurons[i]),
                new_predicted=_held(process.networks[i + 1].log_norms, process.neurons[i]) or 0.0,
                gap=_finite_or_none(gaps[i]),
                rest=_finite_or_none(rests[i]),
                doubt=doubts[i],
                as_one=one,
            )
        )
    short = bool((gaps < GAP).any() or (rests[1:] < REST).any())
    return Comparison(tuple(rows), float(losses[-1]), end, drop, short)


def _seen(
    times: Array, loss: Array, levels: Array, overlaps: Mask
) -> tuple[list[float | None], list[tuple[int, int] | None]]:
    """When half of each fall between ``levels`` is done, and which jumps are seen as one.

    Jumps that overlap need not show a plateau between them: where one of them is not seen by its
    own half, all of them are one fall, of which half is done once.
    """
    found = [_passes(times, loss, float(half)) for half in 0.5 * (levels[:-1] + levels[1:])]
    as_one: list[tuple[int, int] | None] = [None] * len(found)
    first = 0
    for last in range(len(found)):
        if last + 1 < len(found) and overlaps[last + 1]:
            continue
        if last > first and None in found[first : last + 1]:
            half = _passes(times, loss, 0.5 * float(levels[first] + levels[last + 1]))
            size = last + 1 - first
            found[first : last + 1], as_one[first : last + 1] = (
                [half] * size,
                [(first + 1, last + 1)] * size,
            )
        first = last + 1
    return found, as_one


def _finite_or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _passes(times: Array, values: Array, level: float) -> float | None:
    """When falling values first reach a level."""
    below = np.flatnonzero(values <= level)
    if not below.size or below[0] == 0:
        return None
    i = int(below[0])
    share = (values[i - 1] - level) / (values[i - 1] - values[i])
    return float(times[i - 1] + share * (times[i] - times[i - 1]))


def _rest(times: Array, loss: Array, start: float | None, stop: float | None) -> int | None:
    """Record between two jumps at which the loss falls slowest."""
    if start is None or stop is None:
        return None
    inside = np.flatnonzero((times > start) & (times < stop))
    if inside.size < 2:
        return int(np.argmin(np.abs(times - 0.5 * (start + stop))))
    slope = np.abs(np.diff(loss[inside])) / np.maximum(np.diff(times[inside]), 1e-300)
    return int(inside[int(np.argmin(slope))])


def _sizes(run: Trajectory, at: int | None) -> Array | None:
    """log|w_j| of a record, if it was kept."""
    if at is not None and run.networks is not None:
        return np.asarray(run.networks[at].log_norms)
    if at is not None and "log_norms" in run.observables:
        return np.asarray(run["log_norms"][at])
    return None


def _held(logs: Array | None, neurons: Indices) -> float | None:
    """Share of sum_j |w_j|^2 that belongs to some neurons (starts are balanced)."""
    if logs is None or not np.isfinite(logs.max()):
        return None
    size = np.exp(2.0 * (logs - logs.max()))
    return float(size[neurons].sum() / size.sum())
