"""Reading the start of Algorithm 1: a network, or only signs and an activation pattern."""

from __future__ import annotations

from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluflow.arrays import Array, Mask, frozen_array
from reluflow.errors import ReluflowError
from reluflow.network import Network
from reluflow.problem import Problem
from reluflow.problem.losses import HalfSquare

_ORTHONORMAL = 1e-8  # largest error of X X^T
_EXACT = 2e10  # products for which X X^T is formed; beyond it, it is applied to random vectors
_BALANCE = 1e-9  # |a| may fall short of |w| by this much


class UnitVectors(Problem):
    """The problem with X = I, which is only made when asked for."""

    def __init__(self, y: ArrayLike) -> None:
        labels = frozen_array(y, "y", 1)
        if labels.size == 0:
            raise ReluflowError("y is empty: expected at least one label")
        self.__dict__.update(
            y=labels,
            loss=HalfSquare(),
            leak=0.0,
            reduction="mean",
            bias=None,
            name="unit vectors",
            known=MappingProxyType({}),
        )

    @cached_property
    def X(self) -> Array:
        X = np.eye(self.n)
        X.setflags(write=False)
        return X

    @property
    def n(self) -> int:
        return int(self.y.shape[0])

    @property
    def d(self) -> int:
        return self.n

    def replace(self, **changes: Any) -> Problem:
        return Problem(self.X, self.y, name=self.name).replace(**changes)


class Start(NamedTuple):
    """What Algorithm 1 needs to know of the start."""

    problem: Problem
    signs: NDArray[np.int8]
    mask: Mask  # (n, m): label of the neuron's sign, and active at the start
    axes: bool  # X is the identity, possibly with zero columns to its right
    products: Array | None  # (n, m): <w_j, x_k>, in units of exp(log_scale)
    net: Network | None


def on_axes(problem: Problem) -> bool:
    """Whether the samples are the first unit vectors."""
    if isinstance(problem, UnitVectors):
        return True
    X = problem.X
    if X.shape[1] < X.shape[0] or not (np.diagonal(X) == 1.0).all():
        return False
    return int(np.count_nonzero(X)) == len(X)


def check_scope(problem: Problem) -> None:
    """One sentence if Algorithm 1 does not apply."""
    if not isinstance(problem.loss, HalfSquare):
        raise ReluflowError(
            f"algorithm1 needs the half-square or square loss, got {problem.loss.name}: use limit()"
        )
    problem.check_kinks("algorithm1")
    if problem.leak != 0.0:
        raise ReluflowError(f"algorithm1 needs leak=0, got leak={problem.leak:g}: use limit()")
    if on_axes(problem):
        return
    n, d, X = problem.n, problem.d, problem.X
    if n <= d and float(n) * n * d <= _EXACT:
        error = float(np.abs(X @ X.T - np.eye(n)).max())
    elif n <= d:  # the mean of |(X X^T - I) z|^2 is the squared Frobenius norm
        z = np.random.default_rng(0).standard_normal((n, 8))
        error = float(np.sqrt(np.square(X @ (X.T @ z) - z).sum() / 8))
    else:
        raise ReluflowError(
            f"algorithm1 needs orthonormal inputs, got {n} samples in {d} dimensions: use limit()"
        )
    if error > _ORTHONORMAL:
        raise ReluflowError(
            f"algorithm1 needs orthonormal inputs, X X^T = I, got an error of {error:.2g}: "
            "use limit()"
        )


def _signs(signs: ArrayLike | None, m: int) -> NDArray[np.int8]:
    if signs is None:
        raise ReluflowError("a mask needs signs=, +1 or -1 for all neurons or for each")
    given = np.asarray(signs)
    if given.shape not in ((), (m,)) or not np.isin(given, (-1, 1)).all():
        raise ReluflowError(f"signs must be +1 or -1, one for all or one for each of {m} neurons")
    return np.broadcast_to(given, (m,)).astype(np.int8)


def _from_mask(problem: Problem, signs: ArrayLike | None, mask: ArrayLike) -> Start:
    on = np.asarray(mask)
    if on.ndim != 2 or on.shape[0] != problem.n or on.shape[1] == 0:
        raise ReluflowError(
            f"mask has shape {on.shape}, expected ({problem.n}, m): a row for each sample and a "
            "column for each neuron, True where <w_j, x_k> > 0"
        )
    s = _signs(signs, on.shape[1])
    allowed = on.astype(bool) & (problem.y[:, None] * s > 0)
    return Start(problem, s, allowed, on_axes(problem), None, None)


def _from_network(problem: Problem, net: Network) -> Start:
    net.check_fits(problem.d)
    short = net.log_norms > net.log_outer + _BALANCE
    if short.any():
        j = int(np.flatnonzero(short)[0])
        raise ReluflowError(
            f"algorithm1 needs |a_j| >= |w_j|, balanced or dominated starts, got less in neuron "
            f"{j}: use limit(), or initialize(problem, m, kind='sphere')"
        )
    axes = on_axes(problem)
    P = net.W[:, : problem.n].T if axes else problem.X @ net.W.T
    rounding = 0.0 if axes else 4 * np.finfo(float).eps * np.sqrt(problem.d)
    threshold = rounding * np.linalg.norm(net.W, axis=1)
    active = threshold < P
    s = np.sign(net.a).astype(np.int8)
    return Start(problem, s, active & (problem.y[:, None] * s > 0), axes, P, net)


def read_start(
    problem: Problem | ArrayLike,
    net: Network | None,
    signs: ArrayLike | None,
    mask: ArrayLike | None,
) -> Start:
    """Check the arguments of :func:`algorithm1` and find mask and signs."""
    given = problem if isinstance(problem, Problem) else UnitVectors(problem)
    check_scope(given)
    if (net is None) == (mask is None):
        raise ReluflowError("give either a network or a mask with signs")
    if mask is not None:
        return _from_mask(given, signs, mask)
    if signs is not None:
        raise ReluflowError("the signs are those of the network's outer weights: drop signs=")
    assert net is not None
    return _from_network(given, net)
