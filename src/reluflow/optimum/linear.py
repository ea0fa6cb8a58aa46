"""Hard-margin separators through the origin, to rounding."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reluflow._views import Shown
from reluflow.arrays import Array
from reluflow.errors import ReluflowError
from reluflow.problem import Problem

MET = 1e-8  # bound and margin this close, relatively, are one
WORKING = 64  # samples with which the search for the support starts, at most


@dataclass(frozen=True, eq=False)
class LinearMargin(Shown):
    """The largest margin of a hyperplane through the origin, and a bound that meets it.

    ``margin <= max over unit w of min_k y_k <w, x_k> <= upper_bound``.

    Attributes
    ----------
    margin : float
        Reached by `w`.
    upper_bound : float
        |sum_k l_k y_k x_k| for the weights l of `dual`.
    w : array, shape (d,)
        Of norm 1; 0 where nothing separates.
    dual : array, shape (n,)
        Weights l >= 0 with sum 1.
    support : array
        Samples with l_k > 0.
    status : str
        "optimal", "gap left" (margin and bound differ by more than 1e-8 of the bound) or
        "infeasible": no hyperplane through the origin separates, and the bound, which `dual`
        proves, is 0 up to rounding.
    """

    margin: float
    upper_bound: float
    w: Array = field(repr=False)
    dual: Array = field(repr=False)
    support: NDArray[np.intp] = field(repr=False)
    status: str

    @property
    def gap(self) -> float:
        """upper_bound - margin."""
        return self.upper_bound - self.margin


def check_labels(problem: Problem) -> None:
    """Raise unless all labels are -1 or +1."""
    wrong = problem.y[~np.isin(problem.y, (-1.0, 1.0))]
    if wrong.size:
        raise ReluflowError(
            f"a margin needs labels -1 and +1, got {wrong[0]:g}: relabel the classes, or use "
            "min_norm for regression"
        )


def linear_margin(problem: Problem, sign: int | None) -> LinearMargin:
    """See `reluflow.max_margin`, model "linear"."""
    Z = problem.y[:, None] * problem.X
    if sign is not None:  # x+ and x- of [LLWA21]_ Section 6
        Z = np.where(problem.y == sign, 1.0, problem.leak)[:, None] * Z
    sizes = np.linalg.norm(Z, axis=1)
    n, d = Z.shape
    if not sizes.all():  # a zero sample has margin 0
        dual = np.zeros(n)
        dual[int(np.argmin(sizes))] = 1.0
        return _infeasible(dual, Z)
    # <w, z_k> >= gamma is <w, u_k> >= gamma / |z_k|: each sample at its own size
    U, least = Z / sizes[:, None], float(sizes.min())
    targets = least / sizes
    weights, w = _least_distance(U, targets)
    dual = weights * targets / float(weights @ targets)
    if not (w.any() and (U @ w).min() > 0.0):
        return _infeasible(dual, Z)
    upper = float(np.linalg.norm(weights @ U))
    upper += 4.0 * float(np.finfo(float).eps) * (n + d) * float(weights.sum())
    upper *= least / float(weights @ targets)
    margin = float((Z @ w).min())
    status = "optimal" if upper - margin <= MET * upper else "gap left"
    return LinearMargin(margin, upper, w, dual, np.flatnonzero(dual > 0.0), status)


def _infeasible(dual: Array, Z: Array) -> LinearMargin:
    bound = float(np.linalg.norm(dual @ Z))
    return LinearMargin(
        0.0, bound, np.zeros(Z.shape[1]), dual, np.flatnonzero(dual > 0.0), "infeasible"
    )


def _least_distance(U: Array, targets: Array) -> tuple[Array, Array]:
    r"""Multipliers m >= 0 of :math:`\min \|w\| : U w \ge \tau`, and the direction w of the minimum.

    w is along :math:`\sum_k m_k u_k`. Clarabel proposes a working set; on it nonnegative least
    squares is exact, and rows that its solution does not satisfy join until there are none.
    """
    from scipy.optimize import nnls

    n, d = U.shape
    working = _propose_rows(U, targets)
    dual, w = np.zeros(n), np.zeros(d)
    for _ in range(n + 1):
        rows = U[working]
        system = np.vstack([rows.T, targets[working]])
        weights, distance = nnls(system, np.append(np.zeros(d), 1.0), maxiter=100 * (len(rows) + 9))
        dual = np.zeros(n)
        dual[working] = weights / weights.sum()
        if distance <= 1e-12:
            return dual, np.zeros(d)
        w, exact = _refine(U, targets, dual)
        dual = exact if exact is not None else dual
        level = float((rows @ w / targets[working]).min())
        worse = np.flatnonzero(U @ w < level * targets - 1e-14)
        worse = worse[~np.isin(worse, working)]
        if not len(worse):
            break
        worst = worse[np.argsort((U @ w / targets)[worse], kind="stable")]
        working = np.append(working, worst[:WORKING])
    return dual, w


def _refine(U: Array, targets: Array, dual: Array) -> tuple[Array, Array | None]:
    """The direction of equal margins on the support, and its weights if they are nonnegative."""
    on = np.flatnonzero(dual > 0.0)
    w = np.asarray(np.linalg.lstsq(U[on], targets[on], rcond=None)[0], dtype=np.float64)
    plain = np.asarray(dual @ U / np.linalg.norm(dual @ U))
    size = float(np.linalg.norm(w))
    if not size > 0.0 or (U @ w / targets).min() / size < (U @ plain / targets).min():
        return plain, None
    w = np.asarray(w / size)
    weights = np.linalg.lstsq(U[on].T, w, rcond=None)[0]
    if not (weights >= 0.0).all():
        return w, None
    exact = np.zeros(len(U))
    exact[on] = weights / weights.sum()
    return w, exact


def _propose_rows(U: Array, targets: Array) -> NDArray[np.intp]:
    """Rows likely to be in the support, from the quadratic program min |w|^2/2 : U w >= targets."""
    import clarabel
    from scipy import sparse

    n, d = U.shape
    if n <= WORKING:
        return np.arange(n)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    P, A = sparse.identity(d, format="csc"), sparse.csc_matrix(-U)
    cones = [clarabel.NonnegativeConeT(n)]
    found = clarabel.DefaultSolver(P, np.zeros(d), A, -targets, cones, settings).solve()
    weights = np.asarray(found.z)
    if not np.isfinite(weights).all():
        weights = np.zeros(n)
    return np.sort(np.argsort(-weights, kind="stable")[: max(WORKING, 2 * d)])
