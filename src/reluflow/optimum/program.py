r"""The convex program of the best network whose neurons stay in given activation cones.

By balance, :math:`|a_j| = \|w_j\|`, so a network is a list of vectors :math:`v_j = |a_j| w_j` with
signs :math:`s_j`, and :math:`\frac12\|\theta\|^2 = \sum_j \|v_j\|`. With one vector for each cone
(pattern u, sign s) the outputs are linear in v, and

.. math:: \max \Big\{ t : \sum_b \|v_b\| \le 1,\; \mathrm{sgn}(y_k) F_k \ge t |y_k| \;(\text{or }
          F_k = t y_k),\; v_b \in C_{u_b} \Big\}, \qquad
          F_k = \sum_b s_b\, \phi'_{u_{bk}} \langle v_b, x_k \rangle

is a second-order cone program. Its multipliers c, with :math:`\langle c, y \rangle = 1` and for
margins :math:`c_k y_k \ge 0`, are a pull: t is the largest :math:`s_b G_c` on the cones listed, and
no network at all has more than :math:`\max_{\|w\| = 1} s\, G_c(w)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array, Mask, Sides
from reluflow.landscape.canonical import hyperplanes
from reluflow.optimum.own_size import SAME, label_sizes
from reluflow.problem import Problem

GUESSES = ((1e-5, 1e-5), (1e-3, 1e-3), (1e-7, 1e-7), (1e-9, 1e-9))
"""Relative sizes below which a product <v, x> and a weight |v| count as zero, tried in turn."""
STEPS = 12


@dataclass(frozen=True, eq=False)
class Task:
    """What the outputs must do: sgn(y_k) F_k >= t |y_k| (margin) or F_k = t y_k (interpolation).

    problem: samples in coordinates of their span, each divided with its target by its own size (an
    output is homogeneous in the sample); targets of size at most 1, for margins as well;
    signs: the outer signs a network may use; normals (H, r): the distinct hyperplanes; member,
    length (n,): hyperplane of each sample and its signed length along the normal.
    """

    problem: Problem
    margin: bool
    signs: tuple[int, ...]
    normals: Array
    member: NDArray[np.intp]
    length: Array

    @staticmethod
    def of(problem: Problem, margin: bool, sign: int | None) -> Task:
        """The task of a problem already reduced and scaled."""
        normals, member, length = hyperplanes(problem.X, SAME)
        signs = (1, -1) if sign is None else (sign,)
        return Task(problem, margin, signs, normals, member, length)

    @cached_property
    def side(self) -> Array:
        """+1 or -1 (n,): the sample lies along its normal or against it; 0 for a zero sample."""
        return np.sign(self.length)

    @cached_property
    def reachable(self) -> Array:
        """Orthonormal basis (n, p) of the outputs that networks have at all."""
        return reachable_outputs(self.problem, len(self.normals), self.member, self.length)

    @property
    def sign(self) -> int | None:
        """The only sign allowed, or None."""
        return None if len(self.signs) > 1 else self.signs[0]

    def patterns(self, w: Array) -> Sides:
        """Sides of the hyperplanes (B, H) on which directions w (B, r) lie; +1 on the plane."""
        return np.where(w @ self.normals.T < 0.0, -1, 1).astype(np.int8)

    def slopes(self, patterns: Sides) -> Array:
        """phi' of each sample (B, n) in the cones of patterns (B, H)."""
        on = patterns[:, self.member] * self.side > 0
        return np.where(on, 1.0, self.problem.leak)

    def outputs(self, v: Array, s: Array) -> Array:
        """F_k of the network with vectors v (B, r) and signs s (B,), by its true activation."""
        p = self.problem.X @ v.T
        return np.asarray(np.maximum(p, self.problem.leak * p) @ s)

    @property
    def sizes(self) -> Array:
        """|y_k| (n,), what an error of F_k / t is compared with; the smallest one for a label 0."""
        return label_sizes(self.problem.y)

    def used(self, v: Array, t: float, least: float) -> Mask:
        """Neurons (B,) that make more than ``least`` of some t |y_k|, a sample's own target."""
        most = np.abs(self.problem.X @ v.T) / self.sizes[:, None]
        return np.asarray(most.max(axis=0) > least * t)


def reachable_outputs(problem: Problem, H: int, member: NDArray[np.intp], length: Array) -> Array:
    r"""Orthonormal columns that span the outputs (f(x_1), ..., f(x_n)) of all networks.

    :math:`\phi(\langle w, x_k\rangle) = \frac{1 + \mathrm{leak}}2 \langle w, x_k\rangle +
    \frac{1 - \mathrm{leak}}2 |\langle w, n_h\rangle| \|x_k\|` on hyperplane h, and the parts
    are independent functions of w. Parallel samples, and opposite pairs beyond the rank, lower
    the dimension below n.
    """
    kinks = np.zeros((problem.n, H))
    on = member >= 0
    kinks[on, member[on]] = 0.5 * (1.0 - problem.leak) * np.abs(length[on])
    U, sizes, _ = np.linalg.svd(np.hstack([kinks, 0.5 * (1.0 + problem.leak) * problem.X]))
    rank = int(np.sum(sizes > SAME * sizes[0]))
    return np.eye(problem.n) if rank == problem.n else U[:, :rank]


@dataclass(frozen=True, eq=False)
class Point:
    """Vectors v (B, r) with signs s (B,), sum |v_b| = 1; pull c (n,), <c, y> = 1; value t.

    v is 0 when t is.
    """

    v: Array
    s: Array
    c: Array
    t: float


def best_in_cones(
    task: Task,
    patterns: Sides,
    s: Array,
    walls: Mask,
    unit: float,
    samples: Mask | None = None,
) -> Point | None:
    """The best network with one neuron in each closed cone; None when the solver fails.

    Parameters
    ----------
    task : Task
        Data, and what to reach.
    patterns : array, shape (B, H)
        One cone for each row.
    s : array, shape (B,)
        Outer sign of the neuron of each cone.
    walls : array of bool, shape (B, H)
        The hyperplanes by which each cone is described; others are taken on trust, and the
        vectors found may lie beyond them.
    unit : float
        A guess of t, by which the program is scaled.
    samples : array of bool, shape (n,), optional
        Margins: the samples that ask for one; others may be classified wrongly, and have c_k = 0.
    """
    import clarabel
    from scipy import sparse

    X, y, slopes = task.problem.X, task.problem.y, task.slopes(patterns)
    if samples is not None:
        X, y, slopes = X[samples], y[samples], slopes[:, samples]
    (n, r), B, K = X.shape, len(s), int(walls.sum())
    # variables: t / unit, the vectors v_b, bounds on their norms
    F = ((s[:, None] * slopes)[:, :, None] * X).transpose(1, 0, 2).reshape(n, B * r)
    if task.margin:
        F, wanted = np.sign(y)[:, None] * F, np.abs(y)
    else:  # one equation for each dimension of the outputs: the rest repeats them
        F, wanted = task.reachable.T @ F, task.reachable.T @ y
    p = len(wanted)
    meet = np.hstack([unit * wanted[:, None], -F, np.zeros((p, B))])
    total = np.hstack([np.zeros((1, 1 + B * r)), np.ones((1, B))])
    b_of, h_of = np.nonzero(walls)
    sides = -patterns[b_of, h_of, None] * task.normals[h_of]
    where = (np.repeat(np.arange(K), r), (1 + b_of[:, None] * r + np.arange(r)).ravel())
    cones = sparse.csc_matrix((sides.ravel(), where), shape=(K, 1 + B * r + B))
    at = np.arange(B * (r + 1)).reshape(B, r + 1)
    columns = np.hstack([1 + B * r + np.arange(B)[:, None], 1 + np.arange(B * r).reshape(B, r)])
    norms = sparse.csc_matrix(
        (-np.ones(at.size), (at.ravel(), columns.ravel())), shape=(at.size, 1 + B * r + B)
    )
    A = sparse.vstack([sparse.csc_matrix(meet), total, cones, norms], format="csc")
    b = np.zeros(A.shape[0])
    b[p] = 1.0
    kind = clarabel.NonnegativeConeT if task.margin else clarabel.ZeroConeT
    kinds = [kind(p), clarabel.NonnegativeConeT(1 + K)]
    kinds += [clarabel.SecondOrderConeT(r + 1)] * B
    q = np.zeros(A.shape[1])
    q[0] = -1.0
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    settings.max_iter = 200
    P = sparse.csc_matrix((A.shape[1], A.shape[1]))
    found = clarabel.DefaultSolver(P, q, A, b, kinds, settings).solve()
    x, z = np.asarray(found.x), np.asarray(found.z[:p])
    if not (np.isfinite(x).all() and np.isfinite(z).all()):
        return None
    v = x[1 : 1 + B * r].reshape(B, r)
    c = np.maximum(z, 0.0) * np.sign(y) if task.margin else task.reachable @ z
    size, scale = float(np.linalg.norm(v, axis=1).sum()), float(c @ y)
    if not scale > 0.0:
        return None
    if samples is not None:
        full = np.zeros(len(samples))
        full[samples] = c
        c = full
    t = unit * float(x[0]) / size if size > 1e-6 else 0.0  # v = 0 where nothing is reached
    return Point(v / size if t > 0.0 else 0.0 * v, np.asarray(s, dtype=float), c / scale, t)


def merge_neurons(v: Array, s: Array, smallest: float, close: float) -> tuple[Array, Array]:
    """Neurons of the same sign and direction (within `close`) as one; small ones left out."""
    size = np.linalg.norm(v, axis=1)
    vectors: list[Array] = []
    signs: list[float] = []
    for j in np.argsort(-size, kind="stable"):
        if size[j] <= smallest * size.sum():
            break
        for i, w in enumerate(vectors):
            apart = v[j] / size[j] - w / np.linalg.norm(w)
            if signs[i] == s[j] and np.abs(apart).max() <= close:
                vectors[i] = w + v[j]
                break
        else:
            vectors.append(v[j])
            signs.append(float(s[j]))
    return np.array(vectors), np.array(signs)


def sharper_points(task: Task, point: Point) -> Iterator[Point]:
    """Sharper points near `point`, one for each guess at which Newton's method converges."""
    for kink, smallest in GUESSES:
        v, s = merge_neurons(point.v, point.s, smallest, kink)
        found = _newton(task, v / point.t, s, point.c / point.t, kink) if len(v) else None
        if found is not None:
            yield found


def _binding(task: Task, v: Array, s: Array, c: Array) -> Mask:
    """Samples whose multiplier outweighs their slack; all of them for interpolation."""
    if not task.margin:
        return np.ones(len(c), dtype=bool)
    y = task.problem.y
    slack = np.sign(y) * task.outputs(v, s) / np.abs(y) - 1.0
    share = np.abs(c * y)
    return np.asarray(share / share.max() > slack)


def _newton(task: Task, v: Array, s: Array, c: Array, kink: float) -> Point | None:
    r"""Newton's method on the optimality conditions, from solver accuracy to rounding.

    Once it is known which neurons a cone program uses, on which hyperplanes each lies and which
    samples bind, the optimum of :math:`\min \sum_j \|v_j\|` subject to :math:`F_k = y_k`
    (k binding) solves

    .. math:: \Pi_j \Big(s_j \sum_k \phi'_{jk} c_k x_k\Big) = \frac{v_j}{\|v_j\|}, \qquad
              \sum_j s_j \phi'_{jk} \langle v_j, x_k \rangle = y_k,

    with :math:`\Pi_j` the projection off the hyperplanes of neuron j. What is known is guessed from
    v (B, r) and c (n,); the caller judges the result by its value and bound. None when it fails.
    """
    X, y = task.problem.X, task.problem.y
    on = _binding(task, v, s, c)
    if not on.any():
        return None
    sizes = np.linalg.norm(v, axis=1)
    flat = np.abs(v @ task.normals.T) <= kink * sizes[:, None]
    slopes = s[:, None] * task.slopes(task.patterns(v))[:, on]
    bases = [face_basis(task.normals[zero]) for zero in flat]
    if any(len(basis) == 0 for basis in bases):
        return None
    # coordinates of v_j in its face, and how they enter the outputs
    z = [basis @ w for basis, w in zip(bases, v, strict=True)]
    M = np.vstack([basis @ (X[on].T * slope) for basis, slope in zip(bases, slopes, strict=True)])
    ends = np.cumsum([len(basis) for basis in bases])
    parts = [slice(end - len(basis), end) for end, basis in zip(ends, bases, strict=True)]
    x, c_on, best = np.concatenate(z), c[on], np.inf
    targets = task.sizes[on]
    sizes_of = np.append(np.ones(len(x)), targets)
    for _ in range(STEPS):
        unit = np.concatenate([x[p] / np.linalg.norm(x[p]) for p in parts])
        error = np.concatenate([M @ c_on - unit, M.T @ x - y[on]])
        worst = float(np.abs(error / sizes_of).max())
        if not worst < best:
            break
        best, kept = worst, (x, c_on)
        curvature = np.zeros((len(x), len(x)))
        for p in parts:
            size = np.linalg.norm(x[p])
            curvature[p, p] = (np.eye(p.stop - p.start) - np.outer(unit[p], unit[p])) / size
        J = np.block([[-curvature, M], [M.T, np.zeros((on.sum(), on.sum()))]])
        # symmetric scaling by the sizes of neurons and labels, which may differ much
        lengths = np.concatenate([np.full(p.stop - p.start, np.linalg.norm(x[p])) for p in parts])
        scale = np.sqrt(np.append(lengths, 1.0 / targets))
        step = scale * np.linalg.lstsq(scale[:, None] * J * scale, -scale * error, rcond=1e-13)[0]
        x, c_on = x + step[: len(x)], c_on + step[len(x) :]
        if not all(np.linalg.norm(x[p]) > 0.0 for p in parts):
            return None
    if not best < 1e-9:
        return None
    x, c_on = kept
    full = np.zeros_like(c)
    full[on] = c_on
    if task.margin:
        full = np.maximum(full * np.sign(y), 0.0) * np.sign(y)
    vectors = np.array([x[p] @ basis for p, basis in zip(parts, bases, strict=True)])
    total, scale = float(np.linalg.norm(vectors, axis=1).sum()), float(full @ y)
    if not (np.isfinite(total) and scale > 0.0):
        return None
    return Point(vectors / total, s, full / scale, 1.0 / total)


def face_basis(normals: Array) -> Array:
    """Orthonormal rows that span the complement of the rows given."""
    if len(normals) == 0:
        return np.eye(normals.shape[1])
    _, sizes, Vt = np.linalg.svd(normals)
    return Vt[int(np.sum(sizes > 1e-10)) :]


def fewest_neurons(task: Task, point: Point) -> Point | None:
    """The point with as few of its directions as needed, and the least total weight.

    The linear program over the weights has an optimum with at most as many neurons as binding
    samples; solving for these weights alone meets the labels to rounding.
    """
    from scipy.optimize import linprog

    v, s = merge_neurons(point.v, point.s, 1e-12, 1e-12)
    unit = v / np.linalg.norm(v, axis=1, keepdims=True)
    P = task.problem.X @ unit.T
    F = np.maximum(P, task.problem.leak * P) * s / point.t
    y = task.problem.y
    if task.margin:
        F, y = np.sign(y)[:, None] * F / np.abs(y)[:, None], np.ones_like(y)
        fit = linprog(np.ones(len(s)), A_ub=-F, b_ub=-y)
    else:
        F, y = F / task.sizes[:, None], y / task.sizes
        fit = linprog(np.ones(len(s)), A_eq=F, b_eq=y)
    if fit.status != 0:
        return None
    used = (np.abs(F).max(axis=0) * fit.x) > 1e-12
    on = fit.ineqlin.marginals < 0.0 if task.margin else np.ones(len(y), dtype=bool)
    weights = np.linalg.lstsq(F[on][:, used], y[on], rcond=None)[0]
    if not (weights > 0.0).all():
        return None
    total = float(weights.sum())
    return Point(unit[used] * weights[:, None] / total, s[used], point.c, point.t / total)
