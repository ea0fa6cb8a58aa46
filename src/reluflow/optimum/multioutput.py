r"""Ends of training with several outputs: margins, KKT conditions, one more neuron, best networks.

Margins are linear in the outputs: constraint i asks :math:`\langle b_i, f(x_{k_i})\rangle \ge 1`
with :math:`b = e_y - e_c` for each class c other than that of the sample, or :math:`b = \pm e_c`
where labels are -1 and +1. With multipliers l of the constraints and
:math:`C_l = \sum_i l_i e_{k_i} b_i^\top`,

.. math:: \max_\theta \frac{\min_i \langle b_i, f(x_{k_i})\rangle}{\|W\|^2 + \|A\|^2}
          = \min_{l \in \Delta} \frac12 \max_{\|w\|=1} G_{C_l}(w), \qquad
          \min_{f(x_k) = y_k} \|W\|^2 + \|A\|^2
          = \max_C \frac{2\langle C, Y\rangle}{\max_{\|w\|=1} G_C(w)}.

The left sides become second-order cone programs when the directions w_j are given (variables a_j,
cost 2 sum_j \|a_j\|); directions are added where the landscape of the multipliers is above 1. The
right sides bound them from the other side, and meet them where all maxima of G_C are known.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from reluflow.arrays import Array, Mask
from reluflow.errors import ReluflowError
from reluflow.landscape.multioutput import (
    LargestG,
    cone_matrix,
    extremal_vectors,
    largest_G,
    simple_bound,
)
from reluflow.network import Network
from reluflow.optimum.kkt import KKT, Fit, active_tolerances, fit_active_set, project_on_cone
from reluflow.optimum.max_margin import NetworkMargin
from reluflow.optimum.min_norm import MinNorm
from reluflow.optimum.stationarity import Stationarity
from reluflow.problem import Problem

MET = 1e-6  # bounds this close, relatively, have met


class Constraints(NamedTuple):
    """What the margins of a problem are: <b_i, f(x_k)> with k = sample_i, at output_i of Y."""

    sample: NDArray[np.intp]
    output: NDArray[np.intp]
    b: Array  # (I, K)

    def matrix(self, multipliers: Array, shape: tuple[int, ...]) -> Array:
        """C_l (n, K)."""
        C = np.zeros(shape)
        np.add.at(C, self.sample, multipliers[:, None] * self.b)
        return C

    def spread(self, values: Array, shape: tuple[int, ...], fill: float) -> Array:
        """Values of the constraints at their places in (n, K)."""
        out = np.full(shape, fill)
        out[self.sample, self.output] = values
        return out


def constraints(problem: Problem) -> Constraints:
    """The margins of a problem with classes, or with labels -1 and +1."""
    y = problem.y
    if problem.loss.classes:
        sample, output = np.nonzero(y == 0.0)
        b = y[sample].copy()
        b[np.arange(len(sample)), output] = -1.0
        return Constraints(sample, output, b)
    if not np.isin(y, (-1.0, 1.0)).all():
        raise ReluflowError(
            "a margin needs classes or labels -1 and +1: use loss='softmax', or min_norm for "
            "regression"
        )
    sample, output = np.nonzero(np.ones_like(y))
    b = np.zeros((len(sample), problem.K))
    b[np.arange(len(sample)), output] = y[sample, output]
    return Constraints(sample, output, b)


def _unit_weights(net: Network) -> tuple[Array, Array, float]:
    """W and A divided by |theta|, and the log of that."""
    inner, outer = net.log_norms, net.log_outer
    most = float(max(inner.max(), outer.max()))
    if most == -np.inf:
        raise ReluflowError("all weights are zero: expected a network with a direction")
    factor = np.exp(net.log_factors - most)[:, None]
    W, A = factor * net.W, factor * net.a
    size = float(np.sqrt((W**2).sum() + (A**2).sum()))
    return W / size, A / size, most + float(np.log(size))


def kkt(problem: Problem, net: Network, *, tol: float | None = None, kink_tol: float = 1e-9) -> KKT:
    """KKT conditions of the margin with several outputs: see :func:`reluflow.kkt`.

    ``multipliers``, ``q`` and ``active`` have shape (n, K): entry (k, c) belongs to the margin of
    sample k against class c (for labels -1 and +1 to its output c); q is infinite where there is
    none, at the class of the sample itself. ``smoothed_margin`` is nan.
    """
    net.check_fits_problem(problem)
    if tol is not None and not tol >= 0.0:
        raise ReluflowError(f"tol must be a number >= 0, got {tol!r}: 1e-9 is exact equality")
    rows, shape = constraints(problem), problem.y.shape
    W, A, log_size = _unit_weights(net)
    S = problem.X @ W.T
    f = np.maximum(S, problem.leak * S) @ A
    q = np.sum(rows.b * f[rows.sample], axis=1)
    q_min = float(q.min())
    imbalance = float(np.abs(np.linalg.norm(W, axis=1) - np.linalg.norm(A, axis=1)).max())
    none = np.zeros((0, 2), dtype=np.intp)
    if not q_min > 0.0:
        ratios = q / abs(q_min) if q_min < 0.0 else np.where(q > 0.0, np.inf, 0.0)
        spread = rows.spread(ratios, shape, np.inf)
        zeros = np.zeros(shape)
        where = (zeros.astype(bool), 0.0, np.nan, imbalance, none, np.zeros(0))
        return KKT(np.inf, zeros, q_min, np.nan, spread, np.nan, *where)
    log_q_min = float(np.log(q_min)) + 2.0 * log_size
    ratios = q / q_min
    chosen, best = fit_active_set(
        lambda each: _fit(problem, W, A, q_min, rows, ratios <= 1.0 + each, kink_tol),
        active_tolerances(problem.n, log_q_min) if tol is None else [float(tol)],
    )
    total = float(best.multipliers.sum())
    excess = float(best.multipliers @ (ratios - 1.0)) / total if total > 0.0 else np.nan
    active = rows.spread(ratios <= 1.0 + chosen, shape, 0.0).astype(bool)
    return KKT(
        best.residual,
        rows.spread(best.multipliers, shape, 0.0),
        q_min,
        np.nan,
        rows.spread(ratios, shape, np.inf),
        log_q_min,
        active,
        chosen,
        excess,
        imbalance,
        best.kinks,
        best.slopes,
    )


def _fit(
    problem: Problem,
    W: Array,
    A: Array,
    q_min: float,
    rows: Constraints,
    active: Mask,
    kink_tol: float,
) -> Fit:
    """The best multipliers of the active constraints and slopes at their kinks."""
    scale = 1.0 / np.sqrt(q_min)
    W, A = scale * W, scale * A
    used = (np.linalg.norm(W, axis=1) > 0.0) | (np.linalg.norm(A, axis=1) > 0.0)
    chosen, neurons = np.flatnonzero(active), np.flatnonzero(used)
    W, A = W[used], A[used]
    X, b = problem.X[rows.sample[chosen]], rows.b[chosen]
    S = X @ W.T
    sizes = np.linalg.norm(X, axis=1)[:, None] * np.linalg.norm(W, axis=1)
    flat = np.abs(S) <= kink_tol * sizes
    slopes = np.where((S > 0.0) & ~flat, 1.0, problem.leak)
    drive = b @ A.T  # <b_i, a_j>
    inner = (slopes * drive)[:, :, None] * X[:, None, :]
    outer = np.where(flat, 0.0, slopes * S)[:, :, None] * b[:, None, :]
    g = np.concatenate([inner.reshape(len(X), -1), outer.reshape(len(X), -1)], axis=1)
    theta = np.concatenate([W.ravel(), A.ravel()])
    flat &= drive != 0.0
    lift, d = (1.0 - problem.leak) * drive, problem.d

    def generator(i: int, up: Mask) -> Array:
        out: Array = g[i].copy()
        for j in np.flatnonzero(up):
            out[j * d : (j + 1) * d] += lift[i, j] * X[i]
        return out

    def steepest(i: int, r: Array) -> Mask:
        return np.asarray(flat[i] & (lift[i] * (r[: W.size].reshape(W.shape) @ X[i]) > 0.0))

    weights, owners, marks, r = project_on_cone(theta, generator, steepest, flat)
    multipliers = np.zeros(len(active))
    np.add.at(multipliers, chosen[owners], weights)
    share = np.zeros(flat.shape)
    np.add.at(share, owners, weights[:, None] * marks)
    at, of = np.nonzero(flat)
    total = multipliers[chosen[at]]
    with np.errstate(divide="ignore", invalid="ignore"):
        free = problem.leak + (1.0 - problem.leak) * share[at, of] / total
    kinks = np.stack([neurons[of], rows.sample[chosen[at]]], axis=1).astype(np.intp)
    decided = total > 1e-13 * multipliers.max(initial=0.0)
    residual = float(np.linalg.norm(r) / np.linalg.norm(theta))
    return Fit(residual, multipliers, kinks, np.where(decided, free, np.nan))


# ---------------------------------------------------------------------- stationarity
@dataclass(frozen=True, eq=False)
class VectorStationarity(Stationarity):
    """A :class:`Stationarity` with several outputs.

    Attributes
    ----------
    kind : str
        "global minimum" (over networks of every width), "stationary, not global", "stationary"
        (no neuron that gains was found, none is excluded) or "not stationary".
    relative : float
        Largest |gradient of a neuron| over its size times sum_k |c_k||x_k| of a silent network;
        "stationary" means at most ``tol``.
    escape, escape_bound : float
        max G_C on the sphere at the network's pull, found and bounded from above.
    outer : array (K,)
        Outer direction of the neuron worth adding; its inner one is ``vector``.

    Whether it is a minimum among networks of its width is not looked at: ``local`` is "undecided".
    """

    outer: Array = field(repr=False, default_factory=lambda: np.empty(0))


def stationarity(
    problem: Problem,
    net: Network,
    *,
    tol: float = 1e-7,
    kink_tol: float = 1e-7,
    zero_tol: float | None = None,
    budget: int | None = None,
) -> VectorStationarity:
    """Stationarity with several outputs: see :func:`reluflow.stationarity`.

    ``zero_tol`` and ``budget`` play no part.
    """
    net.check_fits_problem(problem)
    f = problem.outputs(net)
    C = problem.pull_at(f)
    sizes = np.exp(net.log_factors)
    own = np.array(
        [_gradient(problem, C, w, a, kink_tol) for w, a in zip(net.W, net.a, strict=True)]
    )
    per_neuron = own * sizes
    norms = np.sqrt(np.sum(net.W**2, axis=1) + np.sum(net.a**2, axis=1))
    unit = max(problem.total_pull, 1e-300)
    felt = norms * sizes > 1e-6 * max(float(np.max(norms * sizes)), 1e-300)
    relative = float(np.max(own[felt] / (norms[felt] * unit), initial=0.0))
    best = largest_G(problem, C)
    size, gain = _worth(problem, f, best)
    kind = "not stationary"
    if relative <= tol:
        kind = "stationary"
        if best.upper_bound <= tol * unit:
            kind = "global minimum"
        elif best.value > tol * unit:
            kind = "stationary, not global"
    return VectorStationarity(
        kind=kind,
        local="none" if kind == "not stationary" else "undecided",
        loss=float(problem.value(f)),
        residual=float(np.linalg.norm(per_neuron)),
        relative=relative,
        per_neuron=per_neuron,
        escape=best.value,
        escape_bound=best.upper_bound,
        vector=best.vector,
        sign=1,
        size=size,
        gain=gain,
        excess=None,
        descent=None,
        states=np.zeros(net.m, dtype=np.intp),
        clarke=True,
        network=net,
        _slopes=np.empty((0, 0)),
        _kinked=np.empty(0, dtype=bool),
        _index=np.empty(0, dtype=np.intp),
        outer=best.outer,
    )


def _gradient(problem: Problem, C: Array, w: Array, a: Array, kink_tol: float) -> float:
    """Least norm of a subgradient of one neuron, over the slopes at its kinks."""
    from reluflow.kernels.boxls import box_least_norm

    S = problem.X @ w
    U = np.where(S > 0.0, 1, -1).astype(np.int8)
    U[np.abs(S) <= kink_tol * problem.norms * np.linalg.norm(w)] = 0
    M = cone_matrix(problem, C, U)
    inner, on = M @ a, U == 0
    if on.any():
        Z = np.ascontiguousarray((C[on] @ a)[:, None] * problem.X[on])
        base = inner.copy()
        box_least_norm(base, Z, problem.leak, np.empty(len(Z)), inner)
    return float(np.hypot(np.linalg.norm(inner), np.linalg.norm(M.T @ w)))


def _worth(problem: Problem, f: Array, best: LargestG) -> tuple[float, float]:
    """Size |a||w| of the best neuron to add, and by how much it lowers the loss."""
    if best.value <= 0.0:
        return 0.0, 0.0
    S = problem.X @ best.vector
    step = np.maximum(S, problem.leak * S)[:, None] * best.outer
    now = float(problem.value(f))
    if not problem.loss.margin:
        bend = problem.weight * problem.loss.curvature * float(np.sum(step**2))
        return best.value / bend, 0.5 * best.value**2 / bend
    far = 50.0 / max(float(np.abs(step).max()), 1e-300)
    found = minimize_scalar(
        lambda r: float(problem.value(f + r * step)), bounds=(0.0, far), method="bounded"
    )
    return float(found.x), max(now - float(found.fun), 0.0)


# ---------------------------------------------------------------------- best networks
class _Program(NamedTuple):
    """A solved program: sum_j |a_j|, outer weights, multipliers as a pull, whether it fits."""

    value: float
    A: Array
    C: Array
    multipliers: Array
    fits: bool


def _solve(problem: Problem, V: Array, rows: Constraints | None) -> _Program:
    """min sum_j |a_j| with given directions V: margins at least 1, or labels met (rows None)."""
    import clarabel
    from scipy import sparse

    K, J = problem.K, len(V)
    S = problem.X @ V.T
    phi = np.maximum(S, problem.leak * S)  # variables: a_1 .. a_J, then t_1 .. t_J
    if rows is None:
        fit = np.kron(phi, np.eye(K))
        target = problem.y.ravel()
        cones = [clarabel.ZeroConeT(len(target))]
    else:
        fit = -(phi[rows.sample][:, :, None] * rows.b[:, None, :]).reshape(len(rows.b), -1)
        target = -np.ones(len(rows.b))
        cones = [clarabel.NonnegativeConeT(len(target))]
    lines = np.zeros((J * (K + 1), J * (K + 1)))
    for j in range(J):
        at = j * (K + 1)
        lines[at, J * K + j] = -1.0
        lines[at + 1 : at + 1 + K, j * K : (j + 1) * K] = -np.eye(K)
        cones.append(clarabel.SecondOrderConeT(K + 1))
    top = np.hstack([fit, np.zeros((len(target), J))])
    matrix = sparse.csc_matrix(np.vstack([top, lines]))
    right = np.concatenate([target, np.zeros(len(lines))])
    cost = np.concatenate([np.zeros(J * K), np.ones(J)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    none = sparse.csc_matrix((len(cost), len(cost)))
    solved = clarabel.DefaultSolver(none, cost, matrix, right, cones, settings).solve()
    x, z = np.array(solved.x), np.array(solved.z)[: len(target)]
    A = x[: J * K].reshape(J, K)
    fits = str(solved.status) in ("Solved", "AlmostSolved")
    if rows is None:
        return _Program(float(np.linalg.norm(A, axis=1).sum()), A, -z.reshape(-1, K), z, fits)
    z = np.maximum(z, 0.0)
    C = rows.matrix(z, problem.y.shape)
    return _Program(float(np.linalg.norm(A, axis=1).sum()), A, C, z, fits)


class Found(NamedTuple):
    """A network of given directions, the best multipliers met, and the bound they prove."""

    V: Array
    program: _Program
    ratio: float  # max G_C over <C, target>: bounds 1 / value from above
    C: Array
    multipliers: Array
    rounds: int


def _generate(
    problem: Problem, rows: Constraints | None, rounds: int, seconds: float | None
) -> Found:
    """Solve, look where the landscape of the multipliers is above 1, add directions, repeat.

    No round begins after ``seconds``, the first one excepted; without rounds the bound of the first
    multipliers is all there is.
    """
    began = time.monotonic()
    first = problem.pull if rows is not None else np.array(problem.y)
    if rounds == 0:
        return _bound_alone(problem, rows, first)
    V = _maxima(problem, first)
    best: tuple[float, Array, Array] = (np.inf, first, np.zeros(0))
    turn = 0
    while turn < rounds:
        if turn and seconds is not None and time.monotonic() - began > seconds:
            break
        turn += 1
        used, program = V, _solve(problem, V, rows)
        C = program.C
        paid = float(np.sum(C * problem.y)) if rows is None else float(program.multipliers.sum())
        size = np.abs(C).max()
        if not size > 0.0 or not paid > 0.0:
            break
        found = extremal_vectors(problem, C, starts=300)
        top = float(found.values.max(initial=0.0))
        bound = top * (1.0 + 1e-9) if found.exact else max(simple_bound(problem, C), top)
        if bound / paid < best[0]:
            best = bound / paid, C, program.multipliers
        met = program.fits and bound / paid * program.value <= 1.0 + 1e-9
        above = found.vectors[found.values > (1.0 + 1e-10 if program.fits else 0.0)]
        fresh = [v for v in above if np.abs(V - v).max(axis=1).min() > 1e-9]
        if met or not fresh:
            break
        keep = np.linalg.norm(program.A, axis=1) > 1e-9 * program.value if program.fits else ...
        V = np.vstack([V[keep], np.array(fresh)])
    return Found(used, program, best[0], best[1], best[2], turn)


def _bound_alone(problem: Problem, rows: Constraints | None, C: Array) -> Found:
    """What given multipliers prove without a network: equal ones, or the labels themselves."""
    equal = np.zeros(0) if rows is None else np.full(len(rows.b), 1.0 / len(rows.b))
    if rows is not None:
        C = rows.matrix(equal, problem.y.shape)
    paid = float(np.sum(C * problem.y)) if rows is None else 1.0
    none = _Program(np.inf, np.empty((0, problem.K)), C, equal, False)
    return Found(np.empty((0, problem.d)), none, simple_bound(problem, C) / paid, C, equal, 0)


def _maxima(problem: Problem, C: Array) -> Array:
    """Directions to begin with: maxima of G_C, and both ways along each sample."""
    found = extremal_vectors(problem, C, starts=300)
    used = problem.norms > 0.0
    units = problem.X[used] / problem.norms[used, None]
    return np.vstack([found.vectors[found.of_kind("max")], units, -units])


def _network(problem: Problem, found: Found, factor: float) -> Network:
    """The balanced network of a program, weights multiplied by sqrt(factor)."""
    sizes = np.linalg.norm(found.program.A, axis=1)
    used = sizes > 1e-9 * sizes.sum()
    root = np.sqrt(factor * sizes[used])[:, None]
    A = root * found.program.A[used] / sizes[used, None]
    return Network(root * found.V[used], A, leak=problem.leak, bias=problem.bias)


def max_margin(
    problem: Problem,
    model: str = "network",
    sign: int | None = None,
    *,
    rounds: int = 100,
    budget: int | None = None,
    rng: np.random.Generator | int | None = 0,
    seconds: float | None = None,
) -> NetworkMargin:
    """Largest normalised margin of a network with several outputs, as bounds from both sides.

    See :func:`reluflow.max_margin`; ``dual`` has shape (n, K), one multiplier for each margin.
    ``budget`` and ``rng`` play no part; ``rounds=0`` gives the bound alone, at any size.
    """
    if model != "network" or sign is not None:
        problem.check_one_output("a linear margin, or one sign of all outer weights,")
    rows = constraints(problem)
    found = _generate(problem, rows, rounds, seconds)
    upper = 0.5 * found.ratio
    total = max(float(found.multipliers.sum()), 1e-300)
    dual = rows.spread(found.multipliers / total, problem.y.shape, 0.0)
    rest = (found.rounds, len(found.V))
    if not found.program.fits:
        return NetworkMargin(0.0, upper, None, dual, *rest, "gap left")
    net = _network(problem, found, 1.0)
    f = problem.outputs(net)
    least = float(np.min(np.sum(rows.b * f[rows.sample], axis=1)))
    margin = least / net.norm2
    status = "optimal" if upper - margin <= MET * upper else "gap left"
    net = _network(problem, found, 1.0 / least)
    return NetworkMargin(margin, upper, net, dual, *rest, status)


def min_norm(
    problem: Problem,
    sign: int | None = None,
    *,
    rounds: int = 100,
    budget: int | None = None,
    rng: np.random.Generator | int | None = 0,
    seconds: float | None = None,
) -> MinNorm:
    """Least norm of an interpolating network with several outputs, as bounds from both sides.

    See :func:`reluflow.min_norm`; ``dual`` has shape (n, K). ``budget`` and ``rng`` play no part;
    ``rounds=0`` gives the bound alone, at any size.
    """
    if sign is not None:
        problem.check_one_output("one sign of all outer weights")
    if not problem.y.any():
        still = Network(np.zeros((1, problem.d)), np.zeros((1, problem.K)), leak=problem.leak)
        return MinNorm(0.0, 0.0, still, np.zeros(problem.y.shape), 0.0, 0, 0, "optimal")
    found = _generate(problem, None, rounds, seconds)
    lower = 2.0 / found.ratio if found.ratio > 0.0 else np.inf
    rest = (found.rounds, len(found.V))
    if not found.program.fits:
        return MinNorm(np.inf, lower, None, found.C, np.inf, *rest, "gap left")
    net = _network(problem, found, 1.0)
    error = float(np.abs(problem.outputs(net) - problem.y).max())
    status = "optimal" if net.norm2 - lower <= MET * net.norm2 else "gap left"
    return MinNorm(net.norm2, lower, net, found.C, error, *rest, status)
