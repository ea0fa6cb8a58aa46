"""Kinks met within a step: which must end it, where exactly, and what the others do to f."""

from __future__ import annotations

import math

import numpy as np

from reluflow.arrays import Array, Indices
from reluflow.gradientflow.trial import Trial

PASSING = 0.1  # error of a neuron's contribution when its kink is met in passing


def must_stop(trial: Trial, which: Indices) -> int:
    """The neuron whose kink must end the step, or -1 when all may be met in passing.

    What neurons met in passing do to f enters by quadrature (:func:`correct`), whose error
    is a part of each one's own contribution and adds up at random.
    """
    rtol = trial.now.rtol
    B = trial.contributions(which)
    K = trial.now.stiffness()[0] * trial.frame.h
    order = np.argsort(trial.theta[which], kind="stable")
    total, spread = np.cumsum(B[order]), np.sqrt(np.cumsum(B[order] ** 2))
    over = (PASSING * K * spread > 0.1 * rtol) | (K * total > math.sqrt(rtol))
    found = np.flatnonzero(over)
    return int(which[order[found[0]]]) if found.size else -1


def land(trial: Trial, j: int, k: int, h: float) -> float:
    """Redo the step so that it ends where neuron j meets its kink; returns its length.

    By Newton's method from dense output's word. That word stands where the neuron is on its way
    back at the end, a crossing within the error of the step, or where Newton's method would leave
    the step that was accepted.
    """
    s = trial.now.state
    g, longest = s.gid[j], trial.frame.h
    start = s.vectors(g, j, s.C)
    side = start[-1] if k < 0 else float(start[:-1] @ s.data.X[k])
    trial.now.cost["landings"] += 1
    for last in (False,) * 5 + (True,):
        trial.attempt(h)
        trial.dense()
        if k >= 0 and s.U[g, k] == 0:
            break  # leaving a face: the velocity is continuous there
        end, D = s.vectors(g, j, trial.new), trial.field_at_end()[1][g]
        if k < 0:
            value, slope, size = end[-1], float(end[:-1] @ D), 1.0
        else:
            value = float(end[:-1] @ s.data.X[k])
            slope = float(end[-1] * (D @ s.data.X[k]))
            size = float(np.linalg.norm(end[:-1]) * s.data.norms[k])
        if abs(value) <= 2e-15 * size or slope * side >= 0.0:
            break
        change = value / slope
        if last or abs(change) > 0.5 * h or h - change > longest:
            break
        h -= change
    return h


def company(trial: Trial, j: int, k: int, C: Array) -> Indices:
    """Neuron j and those that meet the same kink at the same moment, columns at ``C``."""
    s = trial.now.state
    g = s.gid[j]
    same = np.flatnonzero(s.gid == g)
    if same.size == 1 or (k >= 0 and s.U[g, k] == 0):
        return same
    Z = s.vectors(g, same, C)
    value = Z[:, -1] if k < 0 else Z[:, :-1] @ s.data.X[k]
    size = np.linalg.norm(Z, axis=1) * (1.0 if k < 0 else s.data.norms[k])
    close = np.abs(value) <= 1e-13 * size
    close[same == j] = True
    return np.asarray(same[close])


def correct(trial: Trial, which: Indices, h: float) -> bool:
    """Redo the step with what the listed neurons add to f by leaving their cones, if it matters."""
    now = trial.now
    K = now.stiffness()[0] * trial.frame.h
    if float(np.sum(trial.contributions(which))) * K < 1e-3 * now.rtol:
        return False
    trial.sample()
    trial.extra[:] = 0.0
    trial.trace(which, 1.0, record=True)
    trial.attempt(h)
    trial.dense()
    return True
