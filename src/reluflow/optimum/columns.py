"""Column generation: cones are added while the landscape of the multipliers asks for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from reluflow.arrays import Array, generator_of
from reluflow.errors import ReluflowError
from reluflow.landscape import max_G
from reluflow.landscape.bound import MaxG
from reluflow.landscape.canonical import EPS, row_space
from reluflow.network import Network
from reluflow.optimum.own_size import SAME, correction
from reluflow.optimum.pool import (
    LANDSCAPE_TOL,
    NOTHING,
    SHARP,
    Pool,
    best_network,
    directions,
    promising_directions,
    reach,
    sharpen,
)
from reluflow.optimum.program import Point, Task
from reluflow.problem import Problem

Rng = np.random.Generator | int | None

REACHED = 1e-10  # a new cone must promise more than this, relatively
NEAR = 1e-4  # share of its size by which a multiplier may be off in a bound that is nearly 0
TIMED_NODES = 256  # of a search of the landscape when time is short
SOLVED = 1e-9  # a value above it is more than the solver's error
UNREACHABLE = 1e-9  # labels that must change by this share of their size are not fitted


@dataclass(frozen=True, eq=False)
class Outcome:
    """What was found, in the units of the problem.

    v (m, d), s (m,): the neurons, sum |v_j| = 1; value t: what they reach; dual (n,): the pull with
    <dual, y> = 1; bound: on the t of any network; error: the largest |F_k / t - y_k|, 0 for
    margins; own_error: the same relative to each |y_k|; rounds: programs solved; cones: in the
    last of them; fits: False when it is proved that no network of any width has the labels.
    """

    v: Array
    s: Array
    value: float
    dual: Array
    bound: float
    error: float
    own_error: float
    rounds: int
    cones: int
    fits: bool = True

    def network(self, problem: Problem, size: float) -> Network:
        """The balanced network with sum |a_j| |w_j| = size."""
        root = np.sqrt(np.linalg.norm(self.v, axis=1))
        W, a = self.v / root[:, None], self.s * root
        return Network(W * np.sqrt(size), a * np.sqrt(size), leak=problem.leak, bias=problem.bias)


def top(problem: Problem, c: Array, sign: int | None, budget: int | None) -> MaxG:
    """The largest s G_c with its bound, as sharp as rounding allows."""
    return max_G(problem, c, sign, budget=budget, gap=LANDSCAPE_TOL, tol=LANDSCAPE_TOL)


def ratio_bound(problem: Problem, c: Array, sign: int | None, budget: int | None) -> float:
    """max s G_c / <c, y> rounded up: no network with sum |a_j| |w_j| = 1 reaches more.

    `max_G` bounds the numerator, rounding included; the sum below it is off by at most
    n EPS sum |c_k y_k|. Infinite when <c, y> is not positive.
    """
    terms = c * problem.y
    total = float(terms.sum()) - problem.n * EPS * float(np.abs(terms).sum())
    if not total > 0.0:
        return np.inf
    return max(top(problem, c, sign, budget).upper_bound, 0.0) / total * (1.0 + 2.0 * EPS)


def proves_nothing_fits(problem: Problem, outcome: Outcome) -> bool:
    """Whether the bound on what networks reach is 0 up to the rounding of `max_G`."""
    lengths = problem.norms
    rounding = 4.0 * LANDSCAPE_TOL + 128.0 * EPS * (problem.n + problem.d)
    return outcome.bound <= rounding * float(np.abs(outcome.dual) @ lengths)


def check_search(sign: int | None, rounds: int) -> None:
    """Raise unless the options shared by the searches make sense."""
    if sign not in (None, 1, -1):
        raise ReluflowError(
            f"sign must be 1, -1 or None, got {sign!r}: None lets outer weights have either sign"
        )
    if isinstance(rounds, bool) or not isinstance(rounds, int | np.integer) or rounds < 1:
        raise ReluflowError(f"rounds must be a whole number of at least 1, got {rounds!r}")


def generate(
    problem: Problem,
    margin: bool,
    sign: int | None,
    rounds: int,
    budget: int | None,
    rng: Rng,
    seconds: float | None = None,
) -> Outcome:
    """The best network of any width, with a bound on all networks.

    Each round solves the program of the cones known so far and asks the landscape of its
    multipliers for directions that beat it: by ascent while that finds any, by the bounded search
    of `max_G` otherwise. There are finitely many cones, and none is added twice. No round begins
    after ``seconds``, and searches of the landscape are then short unless ``budget`` says more.
    """
    began = time.monotonic()
    if seconds is not None and budget is None:
        budget = TIMED_NODES

    def late() -> bool:
        return seconds is not None and time.monotonic() - began > seconds

    check_search(sign, rounds)
    problem.check_kinks("the best network")
    generator = generator_of(rng)
    if not problem.X.any():
        dual = problem.y / float(problem.y @ problem.y)
        return _nothing(problem, dual, 0.0)
    zero = np.flatnonzero(~problem.X.any(axis=1))
    if margin and zero.size:  # f = 0 there
        dual = np.zeros(problem.n)
        dual[zero[0]] = problem.y[zero[0]]
        return _nothing(problem, dual, 0.0)
    small, basis, sizes, Y = _reduce(problem)
    task = Task.of(small, margin, sign)
    beyond = None if margin else _unreachable_part(task)
    if beyond is not None:  # every network has <beyond, f> = 0
        dual = beyond / (sizes * Y)
        return _nothing(problem, dual, ratio_bound(problem, dual, sign, budget))
    pool = Pool(task)
    pool.add(*promising_directions(task, small.y, np.zeros((0, small.d)), -np.inf, generator))
    pool, point, used, complete = _rounds(task, pool, rounds, budget, generator, late)
    points = [point] if late() else sharpen(task, pool, point, generator)
    best, value, own_error = best_network(task, points)
    dual, bound = _dual(problem, task, points, sizes * Y, value / Y, budget, complete)
    v = best.v @ basis
    error = own_error
    if not margin and value > 0.0:
        F = np.maximum(problem.X @ v.T, problem.leak * (problem.X @ v.T)) @ best.s
        error = float(np.abs(F * Y / value - problem.y).max())
    return Outcome(v, best.s, value / Y, dual, bound, error, own_error, used, len(pool.s))


def _nothing(problem: Problem, dual: Array, bound: float) -> Outcome:
    """No network has the labels: <dual, y> = 1 and <dual, f> = 0 for all outputs f."""
    v = np.zeros((1, problem.d))
    return Outcome(v, np.ones(1), 0.0, dual, bound, np.inf, np.inf, 0, 0, fits=False)


def _unreachable_part(task: Task) -> Array | None:
    """A vector orthogonal to all outputs with <it, y> = 1, None when some network fits.

    The labels fit if changing each by a small share of its own size makes them outputs.
    """
    y, R = task.problem.y, task.reachable
    if R.shape[1] == len(y):
        return None
    off = np.linalg.svd(R)[0][:, R.shape[1] :]
    change = correction(off, y, task.sizes)
    if np.abs(change).max() <= UNREACHABLE:
        return None
    beyond = change / task.sizes
    return np.asarray(beyond / float(beyond @ y))


def _reduce(problem: Problem) -> tuple[Problem, Array, Array, float]:
    """The problem in its span, each sample divided with its label by its own size.

    Returns it, the basis, the sizes (n,) and what the labels were divided by beyond, all powers of
    two, which cost no digit.
    """
    sizes = problem.norms
    units = np.array([_power(size) for size in sizes])
    Y = _power(float(np.abs(problem.y / units).max()))
    basis = np.eye(problem.d)
    if sizes.any():
        span = row_space(problem.X[sizes > 0] / sizes[sizes > 0, None], SAME)
        basis = span if len(span) < problem.d else basis
    X = problem.X / units[:, None]
    X = X if len(basis) == problem.d else X @ basis.T
    return Problem(X, problem.y / units / Y, leak=problem.leak), basis, units, Y


def _power(x: float) -> float:
    return float(2.0 ** np.ceil(np.log2(x))) if x > 0.0 else 1.0


def _rounds(
    task: Task,
    pool: Pool,
    rounds: int,
    budget: int | None,
    rng: np.random.Generator,
    late: Callable[[], bool],
) -> tuple[Pool, Point, int, bool]:
    """Solve and add cones until none is better: the last program and point, rounds, complete."""
    last: tuple[Pool, Point] | None = None
    used, unit, before = 0, 1.0, 0.0
    while used < rounds and not (used and late()):
        used += 1
        point = pool.solve(unit)
        if point is None:
            break
        pool, point = pool.forget(point, point.t > before * (1.0 + 1e-8))
        last, before = (pool.only(np.ones(len(pool.s), dtype=bool)), point), max(before, point.t)
        unit = min(point.t, 1.0) if point.t > SOLVED else 1e-3
        level = max(point.t, 0.0) * (1.0 + REACHED) + NOTHING * 1e-2
        if pool.add(*promising_directions(task, point.c, directions(point), level, rng)):
            continue
        best = top(task.problem, point.c, task.sign, budget)
        if best.value > level and pool.add(best.vector[None], np.array([float(best.sign)])):
            continue
        return *last, used, bool(best.upper_bound <= level * (1 + 1e-7) + NOTHING)
    if last is None:
        raise ReluflowError(
            "the cone program could not be solved: expected data of moderate size, "
            "rescale the samples or drop repeated ones"
        )
    return *last, used, False


def _vanishing_points(task: Task, points: list[Point]) -> list[Point]:
    """Points whose multipliers are near some with G_c = 0, with these: no network has a value.

    The solver's multipliers are off by its tolerance, and so is the bound they give.
    """
    made = []
    for p in points:
        size = np.abs(p.c)
        change = correction(task.reachable, p.c, size)
        c = p.c + size * change
        total = float(c @ task.problem.y)
        if np.abs(change).max() <= NEAR and total > 0.0:
            made.append(replace(p, c=c / total))
    return made


def _dual(
    problem: Problem,
    task: Task,
    points: list[Point],
    units: Array,
    value: float,
    budget: int | None,
    complete: bool,
) -> tuple[Array, float]:
    """The multipliers with the least bound, in the units of the problem, and that bound.

    Ascent tells which of the candidates is likely best; the bound itself is that of `max_G`. The
    second best is tried too when the first misses the value and searches are not cut short.
    """
    rng = np.random.default_rng(0)
    if max(p.t for p in points) <= SOLVED:
        points = points + _vanishing_points(task, points)
    distinct = {id(p.c): p for p in points}.values()
    order = [p.c / units for p in sorted(distinct, key=lambda p: reach(task, p, rng))]
    dual, bound = order[0], ratio_bound(problem, order[0], task.sign, budget)
    if complete and len(order) > 1 and bound > value * (1.0 + SHARP):
        other = ratio_bound(problem, order[1], task.sign, budget)
        dual, bound = (order[1], other) if other < bound else (dual, bound)
    return dual, bound
