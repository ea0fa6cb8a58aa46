"""Runge-Kutta pairs as data that check their own order conditions when built."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.errors import ReluflowError

Tree = tuple[Any, ...]  # a rooted tree is the sorted tuple of its branches


@cache
def trees(order: int) -> tuple[Tree, ...]:
    """Rooted trees with ``order`` vertices.

    >>> [len(trees(p)) for p in range(1, 9)]
    [1, 1, 2, 4, 9, 20, 48, 115]
    """
    return tuple(sorted(set(_forests(order - 1, order - 1))))


def _forests(total: int, largest: int) -> Iterator[Tree]:
    if total == 0:
        yield ()
        return
    for size in range(min(total, largest), 0, -1):
        for tree in trees(size):
            for rest in _forests(total - size, size):
                yield tuple(sorted((tree, *rest)))


def _vertices(tree: Tree) -> int:
    return 1 + sum(_vertices(t) for t in tree)


def _density(tree: Tree) -> int:
    value = _vertices(tree)
    for branch in tree:
        value *= _density(branch)
    return value


def _stages(tree: Tree, A: Array) -> Array:
    value = np.ones(A.shape[0])
    for branch in tree:
        value = value * (A @ _stages(branch, A))
    return value


def order_defect(A: Array, b: Array, order: int) -> float:
    """Largest violation of the conditions sum_i b_i Phi_i(t) = 1/gamma(t), |t| <= order."""
    return max(
        abs(float(b @ _stages(t, A)) - 1.0 / _density(t))
        for p in range(1, order + 1)
        for t in trees(p)
    )


@dataclass(frozen=True)
class Tableau:
    r"""An explicit method of order ``order`` with two error estimates and a dense output.

    ``E5`` and ``E3`` are differences of the solution's weights and those of lower order; the
    dense output is :math:`y(x) = y_0 + x(F_1 + (1-x)(F_2 + x(F_3 + \dots)))` ([HNW93]_ II.6).
    """

    A: Array
    B: Array
    c: Array
    E3: Array
    E5: Array
    D: Array
    order: int

    def __post_init__(self) -> None:
        s = self.B.size
        defect = order_defect(self.A[:s, :s], self.B, self.order)
        rows = np.abs(self.A.sum(axis=1) - self.c).max()
        if defect > 1e-12 or rows > 1e-12:
            raise ReluflowError(
                f"Runge-Kutta coefficients miss order {self.order}: defect {defect:.1e}, "
                f"row sums {rows:.1e}"
            )


@cache
def dormand_prince_8() -> Tableau:
    """The 8(5,3) pair of Dormand and Prince with its seventh-order dense output [HNW93]_."""
    from scipy.integrate import DOP853

    s = DOP853.n_stages
    A = np.zeros((16, 16))
    A[:s, :s] = DOP853.A
    A[s, :s] = DOP853.B
    A[s + 1 :, : DOP853.A_EXTRA.shape[1]] = DOP853.A_EXTRA
    c = np.concatenate([DOP853.C, [1.0], DOP853.C_EXTRA])
    return Tableau(A, DOP853.B.copy(), c, DOP853.E3.copy(), DOP853.E5.copy(), DOP853.D.copy(), 8)


@dataclass(frozen=True)
class Collocation:
    r"""An implicit method that meets y' = v(y) at its nodes: Radau IIA ([HW96]_ IV.5, IV.8).

    The nodes are those of Radau, the last one is 1: of s stages the order is 2s - 1, and what is
    stiff is damped completely. ``A`` integrates the polynomial through stage velocities,
    :math:`Y_i = y_0 + h \sum_j A_{ij} v(Y_j)`, and :math:`A^{-1} = T \Lambda T^{-1}` takes the
    stages apart. ``E`` and the real eigenvalue give the estimate of order s,

    .. math:: (I - h J / \lambda_0)^{-1} (h v(y_0) / \lambda_0 + \sum_i E_i (Y_i - y_0)).
    """

    nodes: Array
    A: Array
    E: Array
    eigenvalues: NDArray[np.complex128]  # the real one first, then one of each pair
    T: NDArray[np.complex128]  # columns as eigenvalues, halves of conjugate pairs left out
    T_inverse: NDArray[np.complex128]

    def __post_init__(self) -> None:
        s = self.nodes.size
        defect = order_defect(self.A, self.A[-1], min(2 * s - 1, 7))
        rebuilt = np.real(self.T @ np.diag(self.eigenvalues) @ self.T_inverse)
        if defect > 1e-12 or np.abs(rebuilt @ self.A - np.eye(s)).max() > 1e-9:
            raise ReluflowError(f"Radau coefficients miss their order: defect {defect:.1e}")

    @property
    def real(self) -> float:
        """The real eigenvalue of the inverse of A."""
        return float(self.eigenvalues[0].real)


@cache
def radau(stages: int = 5) -> Collocation:
    """Radau IIA with an odd number of stages."""
    last = np.zeros(stages + 1)
    last[-2:] = -1.0, 1.0
    # all roots are real, in a complex array from NumPy 2.5 on
    nodes = 0.5 * (1.0 + np.sort(np.polynomial.legendre.legroots(last).real))
    nodes[-1] = 1.0
    powers = np.arange(stages)
    values = nodes[:, None] ** powers
    A = np.linalg.solve(values.T, (nodes[:, None] ** (powers + 1) / (powers + 1)).T).T
    roots, vectors = np.linalg.eig(np.linalg.inv(A))
    inverse = np.linalg.inv(vectors)
    order = [int(np.argmin(np.abs(roots.imag))), *np.flatnonzero(roots.imag > 1e-6)]
    weight = np.where(np.arange(len(order)) > 0, 2.0, 1.0)  # a pair adds twice the real part
    first = 1.0 / float(roots[order[0]].real)
    other = np.linalg.solve(values.T, 1.0 / (powers + 1) - first * (powers == 0))
    E = (other - A[-1]) @ np.linalg.inv(A)
    return Collocation(
        nodes, A.astype(np.float64), E, roots[order], weight * vectors[:, order], inverse[order]
    )
