"""Runge-Kutta pairs as data that check their own order conditions when built."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

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
