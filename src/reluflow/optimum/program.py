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

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array, Sides
from reluflow.landscape.canonical import hyperplanes
from reluflow.optimum.own_size import SAME, label_sizes
from reluflow.problem import Problem


@dataclass(frozen=True, eq=False)
class Task:
    """What the outputs must do: sgn(y_k) F_k >= t |y_k| (margin) or F_k = t y_k (interpolation).

    problem: samples in coordinates of their span, each divided with its target by its own size (an
    output is homogeneous in the sample); targets of size at most 1, for margins as well;
    signs: the outer signs a network may use; normals (H, r): the distinct hyperplanes; member,
    side (n,): hyperplane of each sample and whether it lies along or against its normal (0 for a
    zero sample); reachable (n, p): orthonormal basis of the outputs that networks have at all.
    """

    problem: Problem
    margin: bool
    signs: tuple[int, ...]
    normals: Array
    member: NDArray[np.intp]
    side: Array
    reachable: Array

    @staticmethod
    def of(problem: Problem, margin: bool, sign: int | None) -> Task:
        """The task of a problem already reduced and scaled."""
        normals, member, length = hyperplanes(problem.X, SAME)
        signs = (1, -1) if sign is None else (sign,)
        basis = reachable_outputs(problem, len(normals), member, length)
        return Task(problem, margin, signs, normals, member, np.sign(length), basis)

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

    def used(self, v: Array, t: float, least: float) -> NDArray[np.bool_]:
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


def restricted(
    task: Task, patterns: Sides, s: Array, walls: NDArray[np.bool_], unit: float
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
    """
    import clarabel
    from scipy import sparse

    X, y = task.problem.X, task.problem.y
    (n, r), B, K = X.shape, len(s), int(walls.sum())
    # variables: t / unit, the vectors v_b, bounds on their norms
    F = ((s[:, None] * task.slopes(patterns))[:, :, None] * X).transpose(1, 0, 2).reshape(n, B * r)
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
    t = unit * float(x[0]) / size if size > 1e-6 else 0.0  # v = 0 where nothing is reached
    return Point(v / size if t > 0.0 else 0.0 * v, np.asarray(s, dtype=float), c / scale, t)
