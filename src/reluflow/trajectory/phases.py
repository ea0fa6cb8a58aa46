"""Phases of a run read off its records: alignment, plateaus, jumps, convergence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reluflow.arrays import Array
from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.runtime.words import plural
from reluflow.trajectory.trajectory import Trajectory

_TITLES = ("phase", "from", "until", "loss")
_HEAD, _TAIL = 16, 5  # rows shown at the start and end of a long table


@dataclass(frozen=True, repr=False)
class Phases:
    """When a run aligned, rested, jumped and converged; times in the units of the run.

    Attributes
    ----------
    alignment_end : float or None
        First record from which all moving neurons keep within ``angle`` of the direction they
        have when the loss first leaves its plateau; None without recorded networks.
    plateaus : array, shape (P, 3)
        Start, end and loss of each stretch on which the loss rests.
    jumps : array, shape (P - 1,)
        Half-fit times: the loss is half way between two neighbouring plateaus.
    convergence : float or None
        From when on the loss keeps within ``tol`` of its last value; None if it still falls.
    """

    alignment_end: float | None
    plateaus: Array
    jumps: Array
    convergence: float | None

    def table(self) -> list[dict[str, Any]]:
        """One dictionary per plateau and jump, in turn; a jump has one time and no loss."""
        rows: list[dict[str, Any]] = []
        for i, (start, end, loss) in enumerate(self.plateaus.tolist()):
            rows.append({"phase": f"plateau {i + 1}", "from": start, "until": end, "loss": loss})
            if i < len(self.jumps):
                at = float(self.jumps[i])
                rows.append({"phase": f"jump {i + 1}", "from": at, "until": at, "loss": None})
        return rows

    def __repr__(self) -> str:
        rows = [_TITLES, *(_cells(row) for row in self.table())]
        if len(rows) > _HEAD + _TAIL + 1:
            rows[_HEAD + 1 : -_TAIL] = [("...",) * len(_TITLES)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        P, J = len(self.plateaus), len(self.jumps)
        title = f"Phases({P} {plural(P, 'plateau')}, {J} {plural(J, 'jump')})"
        return "\n".join([title, *lines, *self._notes()])

    def _notes(self) -> list[str]:
        aligned = "Alignment is not known: the run has no recorded networks."
        if self.alignment_end is not None:
            aligned = f"Aligned from time {self.alignment_end:.6g} on."
        if self.convergence is None:
            return [aligned, "The loss still falls at the end."]
        return [aligned, f"Converged from time {self.convergence:.6g} on."]


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    """A row as text; a jump has its time once."""
    start, until = f"{row['from']:.6g}", f"{row['until']:.6g}"
    if row["loss"] is None:
        return row["phase"], start, "", ""
    return row["phase"], start, until, f"{row['loss']:.6g}"


@check_arguments
def phases(run: Trajectory, tol: float = 1e-2, angle: float = 0.1, rest: float = 0.02) -> Phases:
    """Phases of a run from its recorded losses (and directions, if networks were kept).

    Parameters
    ----------
    run : Trajectory
        With records dense enough to show what is asked for.
    tol : float
        A stretch is a plateau while the loss keeps within ``tol`` times the whole drop.
    angle : float
        Radians within which a neuron counts as aligned.
    rest : float
        Least share of the recorded time that a plateau lasts (the first and last may be shorter).

    Returns
    -------
    Phases
    """
    if not 0.0 < tol < 1.0:
        raise ReluflowError(f"tol is a share of the drop between 0 and 1, got {tol}: 1e-2 is usual")
    t, loss = np.asarray(run.times, float), np.asarray(run.loss, float)
    if len(t) < 3:
        raise ReluflowError(f"phases needs at least 3 records, got {len(t)}: give save= more times")
    drop = loss[0] - loss[-1]
    if not drop > 0:
        whole = np.array([[t[0], t[-1], loss[0]]])
        return Phases(_alignment_end(run, len(t) - 1, angle), whole, np.empty(0), float(t[0]))
    plateaus = _plateaus(t, loss, tol * drop, rest * (t[-1] - t[0]))
    half = 0.5 * (plateaus[:-1, 2] + plateaus[1:, 2])
    jumps = np.array([_crossing(t, loss, h) for h in half])
    near = loss - loss[-1] <= tol * drop
    last = int(np.flatnonzero(~near)[-1]) + 1
    convergence = float(t[last]) if last < len(t) - 1 else None
    first = int(np.argmax(loss < loss[0] - tol * drop))
    return Phases(_alignment_end(run, first, angle), plateaus, jumps, convergence)


def _plateaus(t: Array, loss: Array, width: float, least: float) -> Array:
    """Maximal stretches on which the loss varies by at most ``width``, longer than ``least``."""
    found: list[tuple[float, float, float]] = []
    i = 0
    while i < len(t):
        j = i
        while j + 1 < len(t) and abs(loss[j + 1] - loss[i]) <= width:
            j += 1
        ends = i == 0 or j == len(t) - 1
        if j > i and (t[j] - t[i] >= least or ends):
            found.append((t[i], t[j], float(loss[(i + j) // 2])))
            i = j + 1
        else:
            i += 1
    merged: list[tuple[float, float, float]] = []
    for item in found:
        if merged and abs(merged[-1][2] - item[2]) <= 2 * width:
            merged[-1] = (merged[-1][0], item[1], item[2])
        else:
            merged.append(item)
    return np.array(merged).reshape(-1, 3)


def _crossing(t: Array, loss: Array, value: float) -> float:
    i = int(np.argmax(loss <= value))
    if i == 0:
        return float(t[0])
    share = (loss[i - 1] - value) / (loss[i - 1] - loss[i])
    return float(t[i - 1] + share * (t[i] - t[i - 1]))


def _alignment_end(run: Trajectory, first: int, angle: float) -> float | None:
    if run.networks is None or first <= 0:
        return None
    target = run.networks[first].directions
    for i in range(first, -1, -1):
        cosine = np.clip(np.sum(run.networks[i].directions * target, axis=1), -1.0, 1.0)
        if np.arccos(cosine).max() > angle:
            return float(run.times[i + 1]) if i < first else float(run.times[first])
    return float(run.times[0])
