"""What the kernels need to know of a problem, repeated samples merged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.problem import Problem

if TYPE_CHECKING:
    from reluflow.kernels.pull import Targets


@dataclass(frozen=True)
class Samples:
    """Samples, labels and weights as the kernels read them."""

    X: Array
    y: Array
    weight: Array
    row: NDArray[np.int64]  # which of these each sample of the problem is
    kind: int
    factor: float
    leak: float
    mean_batch: bool
    decay: float = 0.0  # weight decay

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    @property
    def d(self) -> int:
        return int(self.X.shape[1])

    @property
    def targets(self) -> Targets:
        """What is minimised, as the kernels take it."""
        from reluflow.kernels.pull import Targets

        return Targets(self.y, self.weight, self.kind, self.factor, self.mean_batch, self.decay)


_MERGE_LIMIT = 1 << 20  # entries of X up to which equal samples are looked for


def samples_of(problem: Problem, stochastic: bool, decay: float = 0.0) -> Samples:
    """Arrays for the kernels, with the weight decay.

    In full-batch descent equal samples with equal labels act as one of their total weight; a
    mini-batch weighs its own members, so there nothing is merged.
    """
    X, y, row = problem.X, problem.y, np.arange(problem.n)
    if stochastic:
        weight = np.ones(problem.n)
    else:
        weight = np.full(problem.n, problem.weight)
        if X.size <= _MERGE_LIMIT:
            _, first, inverse, count = np.unique(
                np.column_stack([X, y]),
                axis=0,
                return_index=True,
                return_inverse=True,
                return_counts=True,
            )
            if len(first) < problem.n:
                order = np.argsort(first)
                X, y = X[first[order]], y[first[order]]
                weight = problem.weight * count[order].astype(np.float64)
                row = np.argsort(order)[inverse.reshape(-1)]
    return Samples(
        np.ascontiguousarray(X),
        np.ascontiguousarray(y),
        weight,
        row,
        problem.loss.kernel,
        problem.loss.kernel_factor,
        problem.leak,
        problem.reduction == "mean",
        decay,
    )


def split_scale(log_scale: Array | None, m: int) -> tuple[NDArray[np.int64], Array]:
    """exp(log_scale) = 2^exponent * mantissa with mantissa near 1."""
    if log_scale is None:
        return np.zeros(m, dtype=np.int64), np.ones(m)
    exponent = np.rint(log_scale / np.log(2.0)).astype(np.int64)
    return exponent, np.exp(log_scale - exponent * np.log(2.0))


def join_scale(
    W: Array, a: Array, exponent: NDArray[np.int64], keep: bool
) -> tuple[Array, Array, Array | None]:
    """(W, a, log_scale) of weights in units of 2^exponent; plain floats unless ``keep``."""
    if not keep and np.all(exponent > -900):
        shift = exponent.astype(np.int32)
        return np.ldexp(W, shift[:, None]), np.ldexp(a, shift), None
    return W, a, exponent * np.log(2.0)
