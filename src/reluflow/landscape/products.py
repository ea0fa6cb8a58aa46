"""Products of the samples with each other, for paths that meet many hyperplanes."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from reluflow.arrays import Array
from reluflow.problem import Problem

_FEATURES, _ENTRIES = 8, 1_000  # of X, from which they pay
_BYTES = 2.5e9  # of all that are kept, and of the largest one
_kept: WeakKeyDictionary[Problem, Array] = WeakKeyDictionary()


def products_pay(problem: Problem) -> bool:
    """Whether the products of the samples are made and kept."""
    many = problem.d >= _FEATURES and problem.X.size >= _ENTRIES
    return many and 8.0 * problem.n**2 <= _BYTES


def sample_products(problem: Problem) -> Array | None:
    """K = X X^T (n, n), kept for the next time; None where it does not pay or is too large.

    With K at hand a hyperplane on the way of a neuron costs n + d operations instead of n d.
    """
    if problem in _kept:
        return _kept[problem]
    if not products_pay(problem):
        return None
    room = _BYTES - 8.0 * problem.n**2
    while _kept and sum(K.nbytes for K in _kept.values()) > room:
        del _kept[next(iter(_kept))]  # the oldest
    K: Array = np.ascontiguousarray(problem.X @ problem.X.T)
    K.setflags(write=False)
    _kept[problem] = K
    return K
