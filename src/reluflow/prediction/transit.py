r"""The fast phase between two saddles, in real time.

The active neurons stand at a critical point and a group of dormant ones starts to be felt. One
step freezes the pull at its midpoint value,

.. math:: c_{1/2} = c(z_{1/2}), \quad z_{1/2} = e^{h/2\, M(c_0)} z_0, \qquad
          z_1 = e^{h\, M(c_{1/2})} z_0,

every exponential being the exact frozen-pull path with its kinks, so that crossing and sliding
need no events of their own. Step doubling controls the error and the difference is extrapolated
(order 3 where the path is smooth). Tracers take the same steps under the same pull.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.interpolate import KroghInterpolator
from scipy.optimize import brentq

from reluflow.arrays import Array, Mask
from reluflow.prediction.arrival import (
    FITTED,
    Arrival,
    arrival,
    clean_pull,
    free_to_grow,
    reads,
    ride_tail,
    separated,
    with_large_margin,
)
from reluflow.prediction.crew import Crew, Settled
from reluflow.prediction.infinity import outlook
from reluflow.prediction.large import ENTRIES
from reluflow.prediction.smooth import smooth_leg
from reluflow.prediction.spending import ARRIVAL, LEG, Tick, step_work
from reluflow.problem import Problem

EPS = float(np.finfo(np.float64).eps)
STOPPED = "stopped before the next critical point"
AT_REST = "the active neurons no longer move, where no critical point could be confirmed"
_FINEST = 1e-13  # error of a step below which rounding of the directions would be measured
_CALM, _CALM_AT_MOST = 12, 150  # steps without a kink after which the stretch ahead is smooth
_WINDOW = 150  # steps over which progress is looked for
_LATER, _MUCH_LATER = 3.0, 100.0  # times as late as neurons came apart: they are taken to stay so
_COARSER = 100.0  # tolerance on large data, over the usual one
_PROGRAM = 200_000  # entries of X up to which the largest margin in given cones is computed


@dataclass(frozen=True, eq=False)
class Transit:
    """What a fast phase did.

    Attributes
    ----------
    crew : Crew
        Active neurons at the new critical point, then the tracers as the phase left them.
    end : float
        Clock time at which the active neurons were taken to the critical point.
    settled : Settled
        Where the tracers end under the pull of the new critical point.
    pull : array (n,)
        That pull.
    residual : float
        Largest |D_j| of an active neuron over the first sum of |c_k||x_k|.
    relaxation : float
        Time that active neurons and tracers take to come to rest there.
    gains : array
        For each tracer, the limit of log|w(t)| - rate t after the phase, if log|w(t)| - rate t
        tended to 0 before it, t = 0 being where the group would reach norm 1 unhindered.
    half : float
        When the loss has fallen half of the way across the phase, on that clock.
    diverging : bool
        Whether some samples are fitted only at infinity (margin losses).
    leaving : array (n_active,), bool
        Active neurons that shrink to zero.
    trouble : str
        Empty, or why no critical point was reached (`STOPPED` if ``tick`` asked for that).
    assumed : bool
        Whether samples were taken to go to infinity because their margins had grown for long.
    far : array (n,), bool
        The samples that are fitted only at infinity.
    """

    crew: Crew
    end: float
    settled: Settled
    pull: Array
    residual: float
    relaxation: float
    gains: Array
    half: float
    diverging: bool
    leaving: Mask
    trouble: str
    far: Mask
    assumed: bool = False


class _TooFar(ArithmeticError):
    """A trial step at the end of which outputs are no floats."""


class _Divergence:
    r"""Whether the neurons whose samples all have large margins leave for infinity.

    Let R be the samples that these neurons read. While the loss on R is below that of one sample
    with f = 0 all margins :math:`q_k` on R are positive, and it stays below, since it falls. A
    critical point has :math:`\sum_R |c_k| q_k = 0`: none lies ahead, and the loss on R tends to 0.
    What may still change is R itself, by a sample that is not read and would be fitted: not where
    there is none, nor where the direction these neurons tend to in their cones touches no
    hyperplane but those they slide on. Otherwise divergence is assumed, after a while.
    """

    def __init__(self, n_active: int) -> None:
        self.apart = np.zeros(n_active, dtype=bool)
        self.since = self.asked = 0.0
        self.certain = self.gains = self.lasts = False
        self.wide: Mask | None = None
        self.wide_since = 0.0

    def samples(self, acting: Crew, c: Array, t: float) -> Mask | None:
        """Samples taken to go to infinity although the neurons that read them read others as well.

        Their margins have been large for long, and can grow without a change of other outputs.
        """
        wide = with_large_margin(acting, c)
        if self.wide is None or (wide != self.wide).any():
            self.wide, self.wide_since = wide, t
        if not wide.any() or wide.all() or t <= _MUCH_LATER * self.wide_since:
            return None
        if acting.problem.X.size * len(acting.s) > _PROGRAM:
            return None
        growing = free_to_grow(acting, wide)
        return growing if growing.any() else None

    def look(self, acting: Crew, c: Array, t: float) -> None:
        """Update the verdict at time t of the phase."""
        apart = separated(acting, c)
        if (apart != self.apart).any():
            self.apart, self.since, self.asked, self.certain = apart, t, 0.0, False
        self.lasts = False
        if not apart.any():
            return
        read = np.asarray(reads(acting)[apart].any(axis=0))
        problem = acting.problem
        left = problem.loss.value(acting.outputs(), problem.y)[read].sum()
        if left >= problem.loss.value(np.zeros(1), problem.y[:1])[0]:
            return
        if t > 2.0 * self.asked:
            self.asked = t
            part = acting.rows(np.flatnonzero(apart), int(apart.sum()))
            self._ask(part, read)
        patience = _MUCH_LATER if self.gains else _LATER
        self.lasts = self.certain or t > patience * self.since

    def _ask(self, part: Crew, read: Mask) -> None:
        """Whether the neurons ``part``, which read the samples ``read``, may come to read more."""
        problem = part.problem
        fitted = np.isin(np.sign(problem.y), np.sign(part.s))
        self.certain, self.gains = not (fitted & ~read).any(), False
        if not self.certain and problem.X.size <= _PROGRAM:
            self.certain, self.gains = outlook(problem, part.V, part.s, part.U, read)


def _midpoint(crew: Crew, c: Array, h: float) -> tuple[Crew, Array]:
    """One step of length h and the growth of log norms; c is the pull at its start."""
    half_way = crew.acting.after(c, 0.5 * h).pull() if np.isfinite(c).all() else c
    if not np.isfinite(half_way).all():
        raise _TooFar
    return crew.move(half_way, h)


def _pull_difference(whole: Crew, two: Crew) -> float:
    """Difference of two pulls beyond the rounding of the outputs, in units of the first pull."""
    problem = two.problem
    f = two.outputs()
    with np.errstate(over="ignore", invalid="ignore"):  # a trial step may go too far
        size = np.exp(2.0 * two.acting.log).sum() * problem.norms
        rounding = 4.0 * EPS * problem.weight * problem.loss.bend(f, problem.y) * size
        gap = np.abs(problem.pull_at(f) - whole.pull()) - rounding
    return float(np.maximum(gap, 0.0).max() / np.abs(problem.pull).max())


def _step(crew: Crew, c: Array, h: float) -> tuple[Crew, float]:
    """A doubled step and the size of its error: growth of log norms, directions, and the pull.

    The pull is measured in units of the first: where samples are long beside the differences that
    count (raw columns of a table) outputs are wrong long before directions are. Growths over the
    step are compared, not log norms: a dormant neuron may have a log norm of 1e9 and more, whose
    last digit is worth more than the tolerance. Of a difference only what is above the rounding of
    what is compared counts.
    """
    try:
        whole, growth = _midpoint(crew, c, h)
        first, one = _midpoint(crew, c, 0.5 * h)
        two, other = _midpoint(first, first.pull(), 0.5 * h)
    except _TooFar:
        return crew, np.inf
    turn, grow = two.V - whole.V, one + other - growth
    rounding = 4.0 * EPS * (np.abs(growth) + np.abs(one) + np.abs(other))
    error = max(np.abs(turn).max(), np.maximum(np.abs(grow) - rounding, 0.0).max())
    error = max(error, _pull_difference(whole, two))
    if not np.isfinite(error):
        return two, np.inf
    if (two.U != whole.U).any():
        return two, float(error)
    V = two.V + turn / 3.0
    V /= np.sqrt(np.einsum("ji,ji->j", V, V))[:, None]
    return two.at(V, two.log + grow / 3.0), float(error)


def transit(
    crew: Crew,
    start: float,
    *,
    tol: float = 1e-5,
    max_steps: int = 100_000,
    tick: Tick = lambda _: False,
    quick: bool = False,
) -> Transit:
    """Follow a crew from the clock time ``start`` to its next critical point.

    Parameters
    ----------
    crew : Crew
        Active neurons with the jumping group last among them, then the tracers, whose log norms
        are their rates times ``start``.
    start : float
        Clock time at the start; the group has log norm rate times ``start``.
    tol : float
        Error of one doubled step, before extrapolation; less where the pull is weak, and
        `_COARSER` times as much on large data.
    max_steps : int
        Steps before the phase is given up.
    tick : callable
        Called now and then with the work since the last call; True gives up.
    quick : bool
        Whether neurons on their way to infinity may be left there early (margin losses), see
        `_Divergence`.
    """
    few, of = crew.distinct()
    found = _follow(few, start, tol, max_steps, tick, quick)
    if len(few.s) == len(crew.s):
        return found
    everybody = np.append(np.arange(crew.n_active), crew.n_active + of)
    return replace(
        found,
        crew=found.crew.rows(everybody, crew.n_active),
        settled=found.settled.rows(of),
        gains=found.gains[of],
    )


def _follow(
    crew: Crew, start: float, tol: float, max_steps: int, tick: Tick, quick: bool
) -> Transit:
    """:func:`transit`, every tracer by itself."""
    unit = crew.problem.total_pull
    t, h = start, 0.05 / unit
    c = crew.pull()
    trail = [(t, crew.acting)]
    tried, same, patience, sides = np.inf, 0, _CALM, crew.acting.U
    looks = 20
    if crew.problem.X.size > ENTRIES:
        looks, tol = 2, _COARSER * tol
    divergence = _Divergence(crew.n_active)
    loudest, checked = np.abs(crew.problem.pull).max(), 0
    each, steps = step_work(crew.problem, len(crew.V)), 0  # work, in steps, since the last look
    for step in range(1, max_steps + 1):
        if step % looks == 0:
            if tick(steps * each):
                return _give_up(crew, c, t, STOPPED)
            steps = 0
        if same >= patience:
            steps += LEG
            leg = smooth_leg(crew, 3.0 * (t - start))
            same, patience = 0, min(2 * patience, _CALM_AT_MOST)
            if leg is not None:
                way, crew = leg
                if way[-1][0] > 10 * h:
                    patience = 3
                trail += [(t + passed, acting) for passed, acting in way]
                t, c, tried = t + way[-1][0], crew.pull(), np.inf
        fine = max(_FINEST, tol * min(1.0, max(1e-4, 100.0 * np.abs(c).max() / loudest)))
        while True:
            new, error = _step(crew, c, h)
            steps += 1
            if error <= fine or h < 1e-12 / unit:
                break
            h *= max(0.2, 0.9 * (fine / error) ** (1 / 3)) if np.isfinite(error) else 0.1
        speed = new.acting.change_since(crew.acting) / h
        pull = new.pull()
        if not (np.isfinite(pull).all() and np.isfinite(new.log).all()):
            return _give_up(crew, c, t, "the weights leave the floats")
        crew, t, c = new, t + h, pull
        same = same + 1 if (sides == crew.acting.U).all() else 0
        sides = crew.acting.U
        trail.append((t, crew.acting))
        h *= min(3.0, max(0.3, 0.9 * (fine / max(error, 1e-300)) ** (1 / 3)))
        slow = speed < 0.1 * unit and speed < 0.7 * tried
        if slow or step % 100 == 0:
            tried, growing = speed, None
            if quick and not crew.decay:
                divergence.look(crew.acting, c, t - start)
                growing = divergence.samples(crew.acting, c, t - start)
            steps += ARRIVAL
            done = arrival(crew, c, divergence.lasts, growing)
            if done is not None:
                certain = divergence.certain or not divergence.lasts
                assumed = growing is not None or not certain
                return _finish(crew, t, done, trail, assumed)
            if speed == 0.0:  # every further step would be the same, and longer
                return _give_up(crew, c, t, AT_REST)
            if step >= checked + _WINDOW:
                checked = step
                if _no_progress(trail, tol):  # the error of the steps hides the way that is left
                    tol = max(0.1 * tol, 1e-11)
    return _give_up(crew, c, t, f"no critical point within {max_steps} steps")


def _no_progress(trail: list[tuple[float, Crew]], tol: float) -> bool:
    """Whether no active neuron has moved by much more than the error of a step."""
    old = trail[-min(len(trail), _WINDOW)][1]
    return trail[-1][1].change_since(old) < 10.0 * tol


def _finish(
    crew: Crew,
    t: float,
    done: Arrival,
    trail: list[tuple[float, Crew]],
    assumed: bool,
) -> Transit:
    """Carry the tracers along the tail, let them settle, and find the half-way time."""
    riding, left, found, leaving = crew.riding, t, done.found, done.leaving
    if found is None:
        c, residual = np.zeros(crew.problem.n), 0.0
        acting = _sent_away(crew.acting, done.far)
    else:
        c, residual = found.pull, found.residual
        acting = crew.acting
        V, log = acting.V.copy(), acting.log.copy()
        V[~leaving], log[~leaving] = found.crew.V, found.crew.log
        acting = acting.at(V, log)
        acting = _sent_away(acting, done.far)
        if found.distance > 1e-12 and len(riding.V):
            riding, t = ride_tail(riding, t, found)
    settled = riding.settle(c)
    return Transit(
        crew=crew.with_parts(acting, riding),
        end=left,
        settled=settled,
        pull=c,
        residual=residual,
        relaxation=max(
            np.inf if found is None or done.far.any() else found.linear.relaxation,
            settled.times.max(initial=0.0),
            0.1 * left,  # the phase itself, which comes within e^-10 of its end
        ),
        gains=settled.offsets - settled.rates * t,
        half=_half_time(trail, _loss_after(acting, c, done.far)),
        diverging=bool(done.far.any()),
        leaving=leaving,
        trouble="",
        far=done.far,
        assumed=assumed and bool(done.far.any()),
    )


def _sent_away(acting: Crew, far: Mask) -> Crew:
    """The active neurons with those on their way to infinity so large that they pull no more."""
    if not far.any():
        return acting
    only_far = np.asarray(~(reads(acting) & ~far).any(axis=1))
    least = float((acting.problem.y * acting.outputs())[far].min())
    grown = 0.5 * np.log(max(1.0, FITTED / least)) if least > 0.0 else 0.0
    return replace(acting, log=acting.log + np.where(only_far, grown, 0.0))


def _loss_after(acting: Crew, c: Array, far: Mask) -> float:
    """Loss at the end of the phase; samples on their way to infinity have none left."""
    if far.any():
        return remaining_loss(acting.problem, acting.outputs(), c)
    return float(acting.problem.value(acting.outputs()))


def _half_time(trail: list[tuple[float, Crew]], after: float) -> float:
    """When the loss was half way from that of the first state to ``after``; nan if it never was."""
    problem = trail[0][1].problem
    middle = 0.5 * (float(problem.value(trail[0][1].outputs())) + after)

    def progress(crew: Crew) -> float:
        return middle - float(problem.value(crew.outputs()))

    past = next((i for i, (_, crew) in enumerate(trail) if progress(crew) >= 0.0), 0)
    if past == 0:
        return float("nan")
    near = trail[max(0, past - 3) : past + 3]
    first, t0, t1 = near[0][0], trail[past - 1][0], trail[past][0]
    curve = KroghInterpolator([t - first for t, _ in near], [progress(crew) for _, crew in near])
    return first + float(brentq(curve, t0 - first, t1 - first, xtol=1e-10 * (t1 - t0)))


def remaining_loss(problem: Problem, f: Array, c: Array) -> float:
    """The loss of the samples that still pull: what is left when the others go to infinity."""
    return float(problem.weight * problem.loss.value(f, problem.y)[c != 0.0].sum())


def _give_up(crew: Crew, c: Array, t: float, why: str) -> Transit:
    settled = crew.riding.settle(clean_pull(crew, c))
    return Transit(
        crew=crew,
        end=t,
        settled=settled,
        pull=c,
        residual=float("nan"),
        relaxation=float("nan"),
        gains=settled.offsets - settled.rates * t,
        half=float("nan"),
        diverging=False,
        leaving=np.zeros(crew.n_active, dtype=bool),
        trouble=why,
        far=np.zeros(crew.problem.n, dtype=bool),
    )
