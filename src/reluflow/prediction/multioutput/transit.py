"""The fast phase of a jump, from an infinitesimal group to the next critical point."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.optimize import brentq

from reluflow.arrays import Array
from reluflow.prediction.multioutput.phase import Phase, doubled_step
from reluflow.prediction.multioutput.rest import (
    Rest,
    critical_point,
    fade,
    nearly_at_rest,
    runaway,
)
from reluflow.prediction.multioutput.smooth import smooth_leg
from reluflow.prediction.spending import ARRIVAL, LEG, Tick, step_work

CALM, CALM_AT_MOST = 12, 150  # steps without a kink after which the stretch ahead is smooth
LARGE = 1e5  # n d K beyond which steps are coarse: kinks are many there, and each is small
FINE, COARSE = 1e-5, 1e-3  # error of a step in directions, growths and the pull
LOOK = 20  # steps between two looks at the budget
DRIFTS = 5e-3  # share of its fall by which a loss still falls, in 2 / rate, as a coarse phase ends
LONG = 150  # steps of a phase after which it is asked whether it goes to infinity
LATER = 10.0  # or when the last kink was met in this part of the time
FOREVER = 1e6  # time, over that of the start: what takes longer does not come to rest
DRIFT = 1e4  # for which the way out is recorded, likewise
TAIL = 20.0  # relaxation times for which neurons are followed on their way to a critical point
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
    course: Array  # (T, 2) clock times of the steps and the loss then


def transit(
    phase: Phase, start: float, rate: float, tick: Tick, max_steps: int = 20_000
) -> Transit:
    """Follow neurons from the clock time ``start`` to the next critical point, or far out.

    ``rate`` is that at which the jumping group grows at first; ``tick``, called now and then with
    the work since the last call, gives up where it is true.
    """
    problem = phase.problem
    unit = problem.total_pull
    tol = FINE if problem.X.size * problem.K <= LARGE else COARSE
    t, h, C = start, 0.05 / unit, phase.pull()
    trail, tried = [(t, float(problem.value(phase.outputs())))], np.inf
    calm, patience, sides, since = 0, CALM, phase.U[: phase.n_active], np.inf
    each, steps = step_work(problem, len(phase.log)), 0  # work, in steps, since the last look
    for step in range(1, max_steps + 1):
        if step % LOOK == 0:
            if tick(steps * each):
                return _stopped(phase, t, C, STOPPED)
            steps = 0
        if calm >= patience and tol == FINE:
            steps += LEG
            leg = smooth_leg(phase, 3.0 * (t - start))
            calm, patience = 0, min(2 * patience, CALM_AT_MOST)
            if leg is not None:
                way, phase = leg
                if way[-1][0] > 10.0 * h:
                    patience = 3
                trail += [(t + passed, loss) for passed, loss in way]
                t, C, tried = t + way[-1][0], phase.pull(), np.inf
        while True:
            new, error = doubled_step(phase, C, h)
            steps += 1
            if error <= tol or h < 1e-12 / unit:
                break
            h *= max(0.2, 0.9 * (tol / error) ** (1 / 3)) if np.isfinite(error) else 0.1
        k = phase.n_active
        moved = max(
            np.abs(new.V[:k] - phase.V[:k]).max(), np.abs(new.log[:k] - phase.log[:k]).max()
        )
        phase, t, C = new, t + h, new.pull()
        if (sides != phase.U[:k]).any():
            calm, sides, since = 0, phase.U[:k], t
        else:
            calm, since = calm + 1, min(since, t)
        trail.append((t, float(problem.value(phase.outputs()))))
        speed = moved / h
        h *= min(3.0, max(0.3, 0.9 * (tol / max(error, 1e-300)) ** (1 / 3)))
        if (speed < 0.1 * unit and speed < 0.7 * tried) or step % 100 == 0:
            tried = speed
            rest = critical_point(phase.part(slice(k), k))
            steps += ARRIVAL
            if rest is not None:
                steps += LEG
                phase, t, done = _tail(phase, t, rest, trail)
                if done is not None:
                    return _arrive(phase, t, done, trail)
                C, tried, calm = phase.pull(), np.inf, 0
                continue
            late = step > LONG or t - start > LATER * (since - start)
            if problem.loss.margin and late:
                away = runaway(phase.part(slice(k), k), 0.1 * rate)
                if away is not None:
                    return _leave(phase, t, *away, trail)
            if t - start > FOREVER / unit:
                now = fade(problem, C) if problem.loss.margin else C
                return _leave(phase, t, phase.part(slice(k), k), now, trail)
        if tol == COARSE and step % LOOK == 0 and _only_drifts(trail, 2.0 / rate):
            # among many kinks the last stretch leads over one after the other, and little happens
            return _arrive(phase, t, nearly_at_rest(phase.part(slice(k), k)), trail)
    return _stopped(phase, t, C, f"no critical point within {max_steps} steps")


def _tail(
    phase: Phase, t: float, rest: Rest, trail: list[tuple[float, float]]
) -> tuple[Phase, float, Rest | None]:
    """Follow the way that is left to a critical point: where it ends, None if a kink is met on it.

    Riders feel it, and along flat directions (neurons of one cone) it decides where neurons end.
    """
    if rest.relaxation > FOREVER / phase.problem.total_pull:
        return phase, t, rest
    span = TAIL * rest.relaxation
    leg = smooth_leg(phase, span)
    if leg is None:
        return phase, t, rest
    way, phase = leg
    trail += [(t + passed, loss) for passed, loss in way]
    t += way[-1][0]
    if way[-1][0] < span * (1.0 - 1e-9):
        return phase, t, None
    k = phase.n_active
    return phase, t, critical_point(phase.part(slice(k), k)) or rest


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
    if phase.problem.loss.margin and rest.relaxation > FOREVER / unit:
        return _leave(phase, t, rest.phase, fade(phase.problem, C), trail)
    new = _with_active(phase, rest.phase)
    return Transit(new, t, C, rest.residual, slow, half, False, "", np.array(trail))


def _leave(
    phase: Phase, t: float, away: Phase, C: Array, trail: list[tuple[float, float]]
) -> Transit:
    """Put the active neurons far out, where the pull that has faded is taken to vanish.

    This is for losses without a minimum, and for the square loss where neurons that nearly cancel
    grow for ever: its infimum need not be attained.
    """
    half = _half_time(trail, float(phase.problem.value(away.outputs())))
    k = phase.n_active
    leg = smooth_leg(phase.part(slice(k), k), DRIFT / phase.problem.total_pull)
    if leg is not None:  # for the record: neurons are on their way out for long
        trail = trail + [(t + passed, loss) for passed, loss in leg[0]]
    new = _with_active(phase, away)
    return Transit(new, t, C, np.nan, np.inf, half, True, "", np.array(trail))


def _with_active(phase: Phase, active: Phase) -> Phase:
    """The phase with its active neurons replaced."""
    k = phase.n_active
    return phase._replace(
        V=np.vstack([active.V, phase.V[k:]]),
        B=np.vstack([active.B, phase.B[k:]]),
        log=np.concatenate([active.log, phase.log[k:]]),
    )


def _stopped(phase: Phase, t: float, C: Array, why: str) -> Transit:
    return Transit(phase, t, C, np.nan, np.nan, np.nan, False, why, np.empty((0, 2)))


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
