"""The fast phase of a jump, from an infinitesimal group to the next critical point."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.optimize import brentq

from reluflow.arrays import Array
from reluflow.prediction.multioutput.phase import Phase, doubled_step
from reluflow.prediction.multioutput.rest import Rest, critical_point, nearly_at_rest, runaway

LARGE = 1e5  # n d K beyond which steps are coarse: kinks are many there, and each is small
FINE, COARSE = 1e-5, 1e-3  # error of a step in directions, growths and the pull
LOOK = 20  # steps between two looks at the budget
DRIFTS = (
    5e-3  # share of its fall by which the loss still falls, in 2 / rate, when a coarse phase ends
)
LONG = 150  # steps of a phase after which it is asked whether it goes to infinity
NEARLY = 1e-3  # share of its fall that is left when a loss has settled
RESTED = 3.0  # relaxation times after which `JumpProcess.doubts_at` takes a plateau to rest
STOPPED = "stopped before the next critical point"


class Transit(NamedTuple):
    """What a fast phase did; times are on the clock of the jumping group."""

    phase: Phase  # active neurons at the end, then the riders
    end: float
    pull: Array
    residual: float
    relaxation: float
    half: float
    far: bool
    trouble: str


def transit(
    phase: Phase, start: float, rate: float, tick: Callable[[], bool], max_steps: int = 20_000
) -> Transit:
    """Follow neurons from the clock time ``start`` to the next critical point, or far out.

    ``rate`` is that at which the jumping group grows at first.
    """
    problem = phase.problem
    unit = problem.total_pull
    tol = FINE if problem.X.size * problem.K <= LARGE else COARSE
    t, h, C = start, 0.05 / unit, phase.pull()
    trail, tried = [(t, float(problem.value(phase.outputs())))], np.inf
    for step in range(1, max_steps + 1):
        if step % LOOK == 0 and tick():
            return _stopped(phase, t, C, STOPPED)
        while True:
            new, error = doubled_step(phase, C, h)
            if error <= tol or h < 1e-12 / unit:
                break
            h *= max(0.2, 0.9 * (tol / error) ** (1 / 3)) if np.isfinite(error) else 0.1
        k = phase.n_active
        moved = max(
            np.abs(new.V[:k] - phase.V[:k]).max(), np.abs(new.log[:k] - phase.log[:k]).max()
        )
        phase, t, C = new, t + h, new.pull()
        trail.append((t, float(problem.value(phase.outputs()))))
        speed = moved / h
        h *= min(3.0, max(0.3, 0.9 * (tol / max(error, 1e-300)) ** (1 / 3)))
        if (speed < 0.1 * unit and speed < 0.7 * tried) or step % 100 == 0:
            tried = speed
            rest = critical_point(phase.part(slice(k), k))
            if rest is not None:
                return _arrive(phase, t, rest, trail)
            if problem.loss.margin and step > LONG:
                away = runaway(phase.part(slice(k), k), 0.1 * rate)
                if away is not None:
                    return _leave(phase, t, *away, trail)
        if tol == COARSE and step % LOOK == 0 and _only_drifts(trail, 2.0 / rate):
            # among many kinks the last stretch leads over one after the other, and little happens
            return _arrive(phase, t, nearly_at_rest(phase.part(slice(k), k)), trail)
    return _stopped(phase, t, C, f"no critical point within {max_steps} steps")


def _only_drifts(trail: list[tuple[float, float]], span: float) -> bool:
    """Whether in the last ``span`` the loss has fallen by a small share of its whole fall."""
    t, loss = np.array(trail).T
    fall = loss[0] - loss[-1]
    if t[-1] - t[0] < span or not fall > NEARLY * loss[0]:
        return False
    return bool(np.interp(t[-1] - span, t, loss) - loss[-1] <= DRIFTS * fall)


def _arrive(phase: Phase, t: float, rest: Rest, trail: list[tuple[float, float]]) -> Transit:
    """Put the active neurons to the critical point; riders wait out the tail under its pull."""
    C = rest.phase.pull()
    unit = phase.problem.total_pull
    C[np.abs(C) < 1e-12 * np.abs(phase.problem.pull).max()] = 0.0
    after = float(phase.problem.value(rest.phase.outputs()))
    half = _half_time(trail, after)
    # on the way to a kink a phase may drift for long: a plateau as short as that is no rest
    drift = np.nan_to_num(_settled_time(trail, after) - half) / RESTED
    slow = max(rest.relaxation, 1.0 / unit, float(drift))
    return Transit(_with_active(phase, rest.phase), t, C, rest.residual, slow, half, False, "")


def _leave(
    phase: Phase, t: float, away: Phase, C: Array, trail: list[tuple[float, float]]
) -> Transit:
    """Put the active neurons far out, where the pull that has faded is taken to vanish."""
    half = _half_time(trail, float(phase.problem.value(away.outputs())))
    return Transit(_with_active(phase, away), t, C, np.nan, np.inf, half, True, "")


def _with_active(phase: Phase, active: Phase) -> Phase:
    """The phase with its active neurons replaced."""
    k = phase.n_active
    return phase._replace(
        V=np.vstack([active.V, phase.V[k:]]),
        B=np.vstack([active.B, phase.B[k:]]),
        log=np.concatenate([active.log, phase.log[k:]]),
    )


def _stopped(phase: Phase, t: float, C: Array, why: str) -> Transit:
    return Transit(phase, t, C, np.nan, np.nan, np.nan, False, why)


def _settled_time(trail: list[tuple[float, float]], after: float) -> float:
    """From when on all but `NEARLY` of the fall of the loss to ``after`` is done."""
    t, loss = np.array(trail).T
    left = np.flatnonzero(loss - after > NEARLY * (loss[0] - after))
    return float(t[min(int(left[-1]) + 1, len(t) - 1)]) if left.size else float(t[0])


def _half_time(trail: list[tuple[float, float]], after: float) -> float:
    """When the loss was half way from that of the first state to ``after``; nan if it never was."""
    t, loss = np.array(trail).T
    middle = 0.5 * (loss[0] + after)
    past = int(np.argmax(loss <= middle))
    if past == 0:
        return float("nan")
    near = slice(max(0, past - 3), past + 3)
    curve = PchipInterpolator(t[near] - t[past], loss[near] - middle)
    return float(t[past] + brentq(curve, t[past - 1] - t[past], 0.0))
