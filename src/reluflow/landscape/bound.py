"""The global maximum of |G| (or of G, or of -G) on the sphere, with a bound that always holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluflow.arrays import Array, Indices, Sides, generator_of, whole_number
from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.landscape import arrangement, branch
from reluflow.landscape.canonical import (
    EPS,
    PATTERN_TOL,
    Canonical,
    canonical,
    orthogonal,
    unit_pull,
)
from reluflow.landscape.kinds import verify
from reluflow.landscape.multistart import climb, starts
from reluflow.landscape.sweep import sweep
from reluflow.problem import Problem

CELL_RANK = 6  # above it the sphere has too many cells

Nodes = tuple[NDArray[Any], ...]
Expand = Callable[[Nodes, float], tuple[Nodes, Array, Array]]


@dataclass(frozen=True, eq=False)
class MaxG:
    """The maximum of G, of -G or of |G| over the unit sphere, from below and from above.

    Attributes
    ----------
    value : float
        Reached at `vector`.
    vector : array, shape (d,)
        Of norm 1.
    sign : int
        +1 where it is G that is large there, -1 where it is -G.
    upper_bound : float
        No direction has more.
    exact : bool
        Value and bound differ by at most `gap` times sum_k |c_k| |x_k|.
    method : str
        How it was found.
    nodes : int
        Boxes or patterns that were looked at.
    """

    value: float
    vector: Array = field(repr=False)
    sign: int
    upper_bound: float
    exact: bool
    method: str
    nodes: int


MOST_NODES = 10**9  # of a search, which holds its open nodes in memory


@check_arguments
def max_G(
    problem: Problem,
    pull: ArrayLike | None = None,
    sign: int | None = None,
    *,
    budget: int | None = None,
    gap: float = 1e-9,
    tol: float = PATTERN_TOL,
    method: str = "auto",
    rng: np.random.Generator | int | None = 0,
) -> MaxG:
    r"""Largest :math:`|G_c|` on the unit sphere, with an upper bound.

    .. math:: \max_{\|w\| = 1} \sigma G_c(w) \le
              \max_{t_P \in \{\pm1\}^P} \min_{t_N \in [-1, 1]^N} \|m + \sum_h t_h \kappa_h n_h\|

    with P the convex and N the concave kinks of :math:`\sigma G` (see `canonical`); the right side
    is equal when the maximum is not negative. Rank 2 is swept; else branch and bound, best node
    first: on the signs of P when these are at most 12 or the rank exceeds 6, on simplicial cells of
    the sphere otherwise. The bound holds whenever the search stops, rounding included.

    Parameters
    ----------
    problem : Problem
        Samples and leak.
    pull : array, shape (n,), optional
        The c_k; default ``problem.pull``.
    sign : {1, -1}, optional
        Maximise G (1) or -G (-1) only; default both, that is |G|.
    budget : int, optional
        Nodes of the search; default 200,000. When they run out `exact` is False and the bound is
        that of the open nodes.
    gap : float
        Stop when bound and value differ by less than this times sum_k |c_k| |x_k|.
    tol : float
        Relative size below which a distance counts as zero; what that may hide is in the bound.
    method : {"auto", "enumerate", "cells", "signs"}
        "enumerate" lists the critical points first; the other two are the branch and bound.
    rng : int, Generator or SeedSequence
        Starts of the ascent that gives the first value.

    Returns
    -------
    MaxG
    """
    if sign not in (None, 1, -1):
        raise ReluflowError(f"sign must be 1, -1 or None, got {sign!r}: None bounds |G|")
    if method not in ("auto", "enumerate", "cells", "signs"):
        raise ReluflowError(
            f"method must be auto, enumerate, cells or signs, got {method!r}: 'auto' chooses"
        )
    if not (0.0 < tol < 1.0 and gap >= 0.0):
        raise ReluflowError(f"tol must lie in (0, 1) and gap be at least 0, got {tol} and {gap}")
    most = 200_000 if budget is None else whole_number(budget, "budget", 1, MOST_NODES)
    c, unit = unit_pull(problem, pull)
    form = canonical(problem.X, c, problem.leak, tol)
    generator = generator_of(rng)
    if form.r == 0:
        return MaxG(0.0, np.eye(1, problem.d)[0], sign or 1, form.error * unit, True, "none", 0)
    results: list[MaxG] = []
    floor = -np.inf  # what the other sign reaches: no need to look below it
    for s, start in _order(form, (1, -1) if sign is None else (sign,), generator):
        results.append(_one_sign(form, s, problem.d, start, floor, most, gap, method))
        floor = max(floor, results[-1].value)
    best = max(results, key=lambda result: result.value)
    upper = max(result.upper_bound for result in results)
    nodes = sum(result.nodes for result in results)
    exact = bool(upper - best.value <= gap * form.scale)
    value, upper = best.value * unit, upper * unit
    return MaxG(value, best.vector, best.sign, upper, exact, best.method, nodes)


def _order(
    form: Canonical, signs: tuple[int, ...], rng: np.random.Generator
) -> list[tuple[int, tuple[Array, float]]]:
    """Signs with the best direction of each found by ascent, the better one first."""
    starts = [(s, _best_ascent(form if s > 0 else form.negated(), rng)) for s in signs]
    return sorted(starts, key=lambda start: -start[1][1])


def _one_sign(
    form: Canonical,
    sign: int,
    d: int,
    start: tuple[Array, float],
    floor: float,
    budget: int,
    gap: float,
    method: str,
) -> MaxG:
    g = form if sign > 0 else form.negated()
    z, value = start
    if d > g.r and value < 0.0:  # a direction orthogonal to the data has G = 0
        return MaxG(0.0, orthogonal(g.basis), sign, g.error, True, "none", 0)
    upper, nodes = np.inf, 0
    if method == "auto":
        method = _choose(g, max(value, floor))
    if method == "enumerate":
        points, complete, nodes = _enumerate(g, budget)
        if len(points):
            values = g.G(points)
            if values.max() > value:
                z, value = points[values.argmax()], float(values.max())
        if complete:
            upper = value + 2 * g.tol * g.scale
        else:
            method = "signs"
    if method != "enumerate":
        search = _cells if method == "cells" else _signs
        z, value, upper, nodes = search(g, z, value, floor, budget, 0.5 * gap * g.scale)
    upper = max(upper, value) + g.error + 64 * EPS * (g.H + g.r) * g.scale
    if d > g.r and upper < 0.0:
        upper = 0.0
    exact = upper - value <= gap * g.scale
    return MaxG(float(value), z @ g.basis, sign, float(upper), bool(exact), method, nodes)


def _choose(g: Canonical, level: float) -> str:
    """Sweep the plane; else decide few signs, or cut the sphere into cells when rank is small.

    A maximum below 0 is beyond the signs and slow for cells: enumerate it if that is possible.
    """
    if g.r <= 2 or (level < 0.0 and (arrangement.work(g.H, g.r) <= 3e7 or g.H <= 22)):
        return "enumerate"
    return "cells" if g.r <= CELL_RANK and (g.kappa > 0).sum() > 12 else "signs"


def _best_ascent(g: Canonical, rng: np.random.Generator) -> tuple[Array, float]:
    """The best direction found by ascent from some starts."""
    W = starts(g, 64, rng)
    ends, _ = climb(g, W)
    ends = np.vstack([ends, W])
    values = g.G(ends)
    return ends[values.argmax()], float(values.max())


def _enumerate(g: Canonical, budget: int) -> tuple[Array, bool, int]:
    """Critical directions of g, whether all of them, and nodes used."""
    if g.r == 2 and g.H > 0:
        points, _ = sweep(g)
        return np.array([p.z for p in points]).reshape(-1, 2), True, 2 * g.H
    if arrangement.work(g.H, g.r) <= (1e6 if g.H <= 22 else 3e7):
        found, lines, _, clear = arrangement.candidates(g)
        ends = np.array([p.z for p in verify(g, found, g.r)]).reshape(-1, g.r)
        return np.vstack([ends, lines]), clear, len(found)
    found, inside, complete, _ = branch.candidates(g, budget)
    nodes = len(found)
    ends = np.array([p.z for p in verify(g, found, g.r, inside)]).reshape(-1, g.r)
    return ends, complete, nodes


def _best_first(
    expand: Expand,
    nodes: Nodes,
    bounds: Array,
    g: Canonical,
    z: Array,
    value: float,
    floor: float,
    budget: int,
    slack: float,
) -> tuple[Array, float, float, int]:
    """Best-first branch and bound; returns the best point, its value, the bound and node count.

    The last array of nodes says which of them can be split further.
    """
    closed, used = -np.inf, len(bounds)
    while len(bounds):
        keep = (bounds > max(value, floor) + slack) & nodes[-1]
        closed = max(closed, float(bounds[~keep].max(initial=-np.inf)))
        nodes, bounds = tuple(a[keep] for a in nodes), bounds[keep]
        left = (budget - used) // 2  # each node has two children
        if not len(bounds) or left <= 0:
            break
        take = np.argsort(-bounds, kind="stable")[: min(max(64, len(bounds) // 4), left)]
        chosen = np.zeros(len(bounds), dtype=bool)
        chosen[take] = True
        parents = bounds[chosen]
        children, tops, points = expand(tuple(a[chosen] for a in nodes), max(value, floor) + slack)
        used += len(tops)
        tops = np.minimum(tops, np.tile(parents, len(tops) // max(len(parents), 1)))
        tried = g.G(points)
        if len(tried) and tried.max() > value:
            z, value = points[tried.argmax()], float(tried.max())
        nodes = tuple(np.concatenate([a[~chosen], b]) for a, b in zip(nodes, children, strict=True))
        bounds = np.concatenate([bounds[~chosen], tops])
    upper = max(closed, value, float(bounds.max(initial=-np.inf)))
    return z, value, upper, used


def _parts(g: Canonical) -> tuple[Array, Array, Array, Array]:
    """Normals and weights of the convex kinks, then of the concave ones."""
    convex = g.kappa > 0
    return g.N[convex], g.kappa[convex], g.N[~convex], g.kappa[~convex]


def _cells(
    g: Canonical, z: Array, value: float, floor: float, budget: int, slack: float
) -> tuple[Array, float, float, int]:
    """Branch and bound on simplicial cells of the sphere, halved along their longest edge."""
    from reluflow.kernels.landscape_bound import cell_bounds, convex_part

    NP, kP, NN, kN = _parts(g)
    r = g.r
    corners = np.array(np.meshgrid(*[[1.0, -1.0]] * r, indexing="ij")).reshape(r, -1).T
    V = corners[:, :, None] * np.eye(r)
    F = convex_part(V.reshape(-1, r), g.m, NP, kP).reshape(-1, r)

    def bound(V: Array, F: Array, target: float) -> tuple[Array, Array]:
        tops, points = np.empty(len(V)), np.empty((len(V), r))
        cell_bounds(np.ascontiguousarray(V), F, NN, kN, target, tops, points)
        return tops, points

    def expand(nodes: Nodes, target: float) -> tuple[Nodes, Array, Array]:
        V, F, _ = nodes
        gram = np.einsum("bic,bjc->bij", V, V)
        i, j = np.unravel_index(gram.reshape(len(V), -1).argmin(axis=1), (r, r))
        at = np.arange(len(V))
        middle = V[at, i] + V[at, j]
        middle /= np.linalg.norm(middle, axis=1, keepdims=True)
        f = convex_part(middle, g.m, NP, kP)
        left, right, Fl, Fr = V.copy(), V.copy(), F.copy(), F.copy()
        left[at, i], right[at, j] = middle, middle
        Fl[at, i], Fr[at, j] = f, f
        V2, F2 = np.concatenate([left, right]), np.concatenate([Fl, Fr])
        tops, points = bound(V2, F2, target)
        return (V2, F2, np.ones(len(V2), dtype=bool)), tops, points

    tops, _ = bound(V, F, -np.inf)
    whole = np.ones(len(V), dtype=bool)
    return _best_first(expand, (V, F, whole), tops, g, z, value, floor, budget, slack)


def _signs(
    g: Canonical, z: Array, value: float, floor: float, budget: int, slack: float
) -> tuple[Array, float, float, int]:
    """Branch and bound on the signs of the convex kinks."""
    from reluflow.kernels.landscape_bound import sign_bounds

    NP, kP, NN, kN = _parts(g)
    gram = NP @ NP.T

    def bound(states: Sides) -> tuple[Indices, Array, Array]:
        tops, points = np.empty(len(states)), np.empty((len(states), g.r))
        pick = np.empty(len(states), dtype=np.int64)
        sign_bounds(states, g.m, NP, kP, NN, kN, gram, tops, points, pick)
        return pick, tops, points

    def expand(nodes: Nodes, target: float) -> tuple[Nodes, Array, Array]:
        states, pick, _ = nodes
        both = np.concatenate([states, states])
        both[np.arange(len(both)), np.tile(pick, 2)] = np.repeat([1, -1], len(states))
        new, tops, points = bound(both)
        return (both, new, new >= 0), tops, points

    first = np.zeros((1, len(kP)), dtype=np.int8)
    pick, tops, points = bound(first)
    if g.G(points)[0] > value and points.any():
        z, value = points[0], float(g.G(points)[0])
    nodes = (first, pick, pick >= 0)
    z, value, upper, used = _best_first(expand, nodes, tops, g, z, value, floor, budget, slack)
    return z, value, max(upper, 0.0), used  # the signs say nothing below 0
