r"""The convex program of the best penalised network whose neurons stay in given activation cones.

A neuron with :math:`|a| |w| = \rho` costs least when it is balanced, :math:`\frac12 (|w|^2 + a^2) =
\rho`. So with one vector :math:`v_b = |a_b| w_b` for each cone, as in `reluflow.optimum.program`,

.. math:: \min_v L(F) + \lambda \sum_b \|v_b\|, \qquad
          F_k = \sum_b s_b\, \phi'_{u_{bk}} \langle v_b, x_k \rangle, \quad v_b \in C_{u_b}

is a second-order cone program for square losses and has exponential cones for the others. Over all
cones it is convex in the measure :math:`\sum_b \|v_b\| \delta_{v_b / \|v_b\|}`: with c the pull at
F, an end is the best network of any width if and only if :math:`\max s\,G_c \le \lambda`, with
equality on its directions. For *any* c with :math:`\max s\,G_c \le \lambda`

.. math:: L(F) + \lambda \sum_b \|v_b\| \ge \inf_F [L(F) + \langle c, F \rangle],

which is the bound (:func:`dual_value`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import entr

from reluflow.arrays import Array, Mask, Sides
from reluflow.errors import ReluflowError
from reluflow.kernels.codes import EXPONENTIAL, LOGISTIC, SQUARE
from reluflow.landscape.canonical import EPS
from reluflow.optimum.program import GUESSES, Task, face_basis, merge_neurons
from reluflow.problem import Problem

STEPS = 40  # of Newton's method
SOLVED = 1e-9  # relative residual below which it has converged


@dataclass(frozen=True, eq=False)
class Penalised:
    """Vectors v (B, r) with signs s (B,), in the coordinates of a task."""

    v: Array
    s: Array


def check_loss(problem: Problem) -> None:
    """Raise unless the loss is one whose conjugate is known here."""
    if problem.loss.kernel not in (SQUARE, LOGISTIC, EXPONENTIAL):
        raise ReluflowError(
            f"ridge is for square, logistic and exponential losses, got {problem.loss.name!r}"
        )


def dual_value(problem: Problem, c: Array) -> float:
    r"""inf over F of L(F) + <c, F>, rounded down; -inf where that is not finite.

    With omega = weight * factor and p = c y / omega: square losses <c, y> - |c|^2 / (2 omega);
    logistic omega (-p log p - (1 - p) log(1 - p)); exponential omega (p - p log p).
    """
    loss, y = problem.loss, problem.y
    omega = problem.weight * loss.kernel_factor
    if loss.kernel == SQUARE:
        terms = c * y - c * c / (2.0 * omega)
        size = np.abs(c * y) + c * c / (2.0 * omega)
    else:
        p = c * y / omega
        if (p < 0.0).any() or (loss.kernel == LOGISTIC and (p > 1.0).any()):
            return -np.inf
        parts = (entr(p), entr(1.0 - p)) if loss.kernel == LOGISTIC else (entr(p), p)
        terms, size = omega * (parts[0] + parts[1]), omega * (np.abs(parts[0]) + np.abs(parts[1]))
    return float(terms.sum()) - (problem.n + 8) * EPS * float(size.sum())


def best_in_cones(
    task: Task, decay: float, patterns: Sides, s: Array, walls: Mask
) -> Penalised | None:
    """The best penalised network with one neuron in each closed cone; None when the solver fails.

    Parameters are those of :func:`reluflow.optimum.program.best_in_cones`. Everything is divided by
    ``decay``, so that the norms have weight 1 and multipliers are pulls over ``decay``.
    """
    import clarabel

    X, slopes = task.problem.X, task.slopes(patterns)
    (n, r), B = X.shape, len(s)
    F = ((s[:, None] * slopes)[:, :, None] * X).transpose(1, 0, 2).reshape(n, B * r)
    loss = _loss_rows(task.problem, decay, F, clarabel)
    b_of, h_of = np.nonzero(walls)
    sides = -patterns[b_of, h_of, None] * task.normals[h_of]
    K = len(b_of)
    where = (np.repeat(np.arange(K), r), (b_of[:, None] * r + np.arange(r)).ravel())
    size = B * r + B + loss.extra
    cones = sparse.csc_matrix((sides.ravel(), where), shape=(K, size))
    at = np.arange(B * (r + 1)).reshape(B, r + 1)
    columns = np.hstack([B * r + np.arange(B)[:, None], np.arange(B * r).reshape(B, r)])
    norms = sparse.csc_matrix((-np.ones(at.size), (at.ravel(), columns.ravel())), (at.size, size))
    middle = sparse.csc_matrix((loss.rows.shape[0], B))
    own = sparse.hstack([sparse.csc_matrix(loss.inner), middle, loss.rows])
    A = sparse.vstack([own, cones, norms], format="csc")
    b = np.concatenate([loss.right, np.zeros(K + at.size)])
    q = np.concatenate([np.zeros(B * r), np.ones(B), loss.linear])
    quadratic = np.concatenate([np.zeros(B * r + B), loss.quadratic])
    kinds = [*loss.kinds, clarabel.NonnegativeConeT(K)]
    kinds += [clarabel.SecondOrderConeT(r + 1)] * B
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    settings.max_iter = 200
    P = sparse.diags(quadratic, format="csc")
    found = clarabel.DefaultSolver(P, q, A, b, kinds, settings).solve()
    x = np.asarray(found.x)
    if not np.isfinite(x).all():
        return None
    return Penalised(x[: B * r].reshape(B, r), np.asarray(s, dtype=float))


@dataclass(frozen=True, eq=False)
class _LossRows:
    """Rows of the program that make the loss: inner on the vectors, rows on ``extra`` variables."""

    extra: int
    inner: Array
    rows: Any
    right: Array
    linear: Array
    quadratic: Array
    kinds: list[Any]


def _loss_rows(problem: Problem, decay: float, F: Array, clarabel: Any) -> _LossRows:
    """The loss over ``decay`` as a function of the vectors, whose outputs are F v."""
    n, y, omega = problem.n, problem.y, problem.weight * problem.loss.kernel_factor
    eye = sparse.identity(n, format="csc")
    if problem.loss.kernel == SQUARE:  # F v + (decay/omega) e = y, e = c / decay
        share = decay / omega
        kinds = [clarabel.ZeroConeT(n)]
        return _LossRows(n, F, share * eye, y, np.zeros(n), np.full(n, share), kinds)
    margins = y[:, None] * F
    exponential = clarabel.ExponentialConeT
    if problem.loss.kernel == EXPONENTIAL:  # (-q, 1, t) in the cone: e^-q <= t
        inner, rows = np.zeros((3 * n, F.shape[1])), sparse.lil_matrix((3 * n, n))
        inner[0::3] = margins
        rows[2::3] = -eye
        right = np.tile([0.0, 1.0, 0.0], n)
        linear = np.full(n, omega / decay)
        kinds = [exponential() for _ in range(n)]
        return _LossRows(n, inner, rows.tocsc(), right, linear, np.zeros(n), kinds)
    # t >= log(1 + e^-q): u + w <= 1, (-t, 1, u) and (-q - t, 1, w) in the cone; variables t, u, w
    inner, rows = np.zeros((7 * n, F.shape[1])), sparse.lil_matrix((7 * n, 3 * n))
    rows[:n, n : 2 * n] = eye
    rows[:n, 2 * n :] = eye
    rows[n : 4 * n : 3, :n] = eye
    rows[n + 2 : 4 * n : 3, n : 2 * n] = -eye
    inner[4 * n :: 3] = margins
    rows[4 * n :: 3, :n] = eye
    rows[4 * n + 2 :: 3, 2 * n :] = -eye
    right = np.concatenate([np.ones(n), np.tile([0.0, 1.0, 0.0], 2 * n)])
    linear = np.concatenate([np.full(n, omega / decay), np.zeros(2 * n)])
    kinds = [clarabel.NonnegativeConeT(n), *(exponential() for _ in range(2 * n))]
    return _LossRows(3 * n, inner, rows.tocsc(), right, linear, np.zeros(3 * n), kinds)


def sharper_points(task: Task, decay: float, point: Penalised) -> Iterator[Penalised]:
    """Sharper points near ``point``, one for each guess at which Newton's method converges."""
    for kink, smallest in GUESSES:
        v, s = merge_neurons(point.v, point.s, smallest, kink)
        found = _newton(task, decay, v, s, kink) if len(v) else None
        if found is not None:
            yield found


def _newton(task: Task, decay: float, v: Array, s: Array, kink: float) -> Penalised | None:
    r"""Newton's method on :math:`\Pi_j(s_j \sum_k \phi'_{jk} c_k x_k) = \lambda v_j / \|v_j\|`.

    :math:`\Pi_j` projects off the hyperplanes on which neuron j lies, guessed from v. The equations
    are those of a convex function, whose Hessian is that of the loss plus lambda times that of the
    norms. None when it does not converge.
    """
    problem = task.problem
    flat = np.abs(v @ task.normals.T) <= kink * np.linalg.norm(v, axis=1)[:, None]
    bases = [face_basis(task.normals[zero]) for zero in flat]
    if any(len(basis) == 0 for basis in bases):
        return None
    slopes = s[:, None] * task.slopes(task.patterns(v))
    M = np.vstack([B @ (problem.X.T * slope) for B, slope in zip(bases, slopes, strict=True)])
    ends = np.cumsum([len(basis) for basis in bases])
    parts = [slice(end - len(basis), end) for end, basis in zip(ends, bases, strict=True)]
    x = np.concatenate([basis @ w for basis, w in zip(bases, v, strict=True)])
    best, kept = np.inf, x
    for _ in range(STEPS):
        sizes = [np.linalg.norm(x[p]) for p in parts]
        if not min(sizes) > 0.0:
            return None
        unit = np.concatenate([x[p] / size for p, size in zip(parts, sizes, strict=True)])
        f = M.T @ x
        error = M @ problem.pull_at(f) - decay * unit
        worst = float(np.abs(error).max()) / decay
        if not worst < best:
            break
        best, kept = worst, x
        H = (M * (problem.weight * problem.loss.bend(f, problem.y))) @ M.T
        for p, size in zip(parts, sizes, strict=True):
            bend = np.eye(p.stop - p.start) - np.outer(unit[p], unit[p])
            H[p, p] += decay / size * bend
        x = x + np.linalg.lstsq(H, error, rcond=1e-14)[0]
    if not best < SOLVED:
        return None
    vectors = np.array([kept[p] @ basis for p, basis in zip(parts, bases, strict=True)])
    return Penalised(vectors, s)
