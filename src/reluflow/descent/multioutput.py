"""Gradient descent of a network with several outputs, by matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.descent.samples import join_scale, split_scale
from reluflow.kernels.codes import DIVERGED, DONE
from reluflow.network import Network
from reluflow.problem import Problem

_SAFE_STEPS = 256  # a neuron kept in units of 2^exponent is brought back near 1 this often
_NEAR_ONE = 64  # powers of two a neuron may drift before that


class Vectors:
    r"""A stepper of `descend` for outputs in R^K: four matrix products a step.

    With H = X W^T and the pull C (n, K),

    .. math:: f = \phi(H) A, \qquad A \leftarrow A + \eta\, \phi(H)^\top C, \qquad
              W \leftarrow W + \eta\, (\phi'(H) \circ C A^\top)^\top X.

    Weight decay takes lr lambda of every trained weight besides. Weights are kept in units of
    2^exponent per neuron, so that any initial scale is exact.
    """

    def __init__(
        self,
        problem: Problem,
        net: Network,
        both: bool,
        limit: float,
        dtype: np.dtype[Any],
        decay: float = 0.0,
    ) -> None:
        self.problem, self.both, self.limit, self.dtype = problem, both, limit, dtype
        self.decay = decay
        self.exponent, mantissa = split_scale(net.log_scale, net.m)
        self.scaled = net.log_scale is not None
        self.W = np.ascontiguousarray(net.W * mantissa[:, None], dtype=dtype)
        self.A = np.ascontiguousarray(net.a * mantissa[:, None], dtype=dtype)
        self.X = np.ascontiguousarray(problem.X, dtype=dtype)
        self._rescale()

    def _rescale(self) -> None:
        """Bring drifting neurons back near 1 by exact powers of two."""
        if self.scaled:
            top = np.maximum(np.max(np.abs(self.W), axis=1), np.max(np.abs(self.A), axis=1))
            shift = np.frexp(top)[1]
            shift[(np.abs(shift) < _NEAR_ONE) | (top == 0) | ~np.isfinite(top)] = 0
            self.W = np.ldexp(self.W, -shift[:, None])
            self.A = np.ldexp(self.A, -shift[:, None])
            self.exponent = self.exponent + shift
        scale2 = np.ldexp(1.0, np.clip(2 * self.exponent, -2000, 2000).astype(np.int32))
        self.scale2 = scale2[:, None].astype(self.dtype)

    def _step(self, rate: float, batch: NDArray[np.int64]) -> bool:
        """One step in place; False when the outputs left the range of numbers."""
        problem, leak = self.problem, self.dtype.type(self.problem.leak)
        X, y, weight = self.X, problem.y, problem.weight
        if batch.size:
            batch = batch[batch >= 0]
            X, y = X[batch], y[batch]
            weight = 1.0 / batch.size if problem.reduction == "mean" else 1.0
        H = X @ self.W.T
        active = H > 0
        np.maximum(H, leak * H if leak else leak, out=H)
        f = H @ (self.A * self.scale2)
        if not np.max(np.abs(f)) <= self.limit:
            return False
        C = (-weight * problem.loss.slope(f.astype(np.float64), y)).astype(self.dtype)
        keep, rate = self.dtype.type(1.0 - rate * self.decay), self.dtype.type(rate)
        B = C @ self.A.T
        B *= np.where(active, self.dtype.type(1.0), leak) if leak else active
        if self.decay:
            self.W *= keep
        if self.decay and self.both:
            self.A *= keep
        if self.both:
            self.A += rate * (H.T @ C)
        self.W += rate * (B.T @ X)
        return True

    def advance(self, rates: Array, batches: NDArray[np.int64]) -> tuple[int, int]:
        """Take up to len(rates) steps: (code, steps taken)."""
        taken = 0
        size = _SAFE_STEPS if self.scaled else max(rates.size, 1)
        for start in range(0, rates.size, size):
            piece = slice(start, start + size)
            for rate, batch in zip(rates[piece], batches[piece], strict=True):
                if not self._step(rate, batch):
                    return DIVERGED, taken
                taken += 1
            self._rescale()
        return DONE, taken

    def weights(self) -> tuple[Array, Array, Array | None]:
        """Current (W, A, log_scale)."""
        Z = np.hstack([self.W, self.A]).astype(np.float64)
        Z, _, log_scale = join_scale(Z, np.zeros(len(Z)), self.exponent, keep=self.scaled)
        return Z[:, : self.problem.d], Z[:, self.problem.d :], log_scale

    def outputs(self) -> Array | None:
        """None: they are computed from the weights."""
        return None

    def pack(self) -> dict[str, NDArray[Any]]:
        """Whole state as arrays, for a checkpoint."""
        return {"dense.W": self.W, "dense.a": self.A, "dense.exponent": self.exponent}

    def unpack(self, packed: dict[str, NDArray[Any]]) -> None:
        """Restore what :meth:`pack` gave."""
        self.W, self.A = packed["dense.W"], packed["dense.a"]
        self.exponent = packed["dense.exponent"]
        self._rescale()

    def cost(self) -> dict[str, Any]:
        """The method."""
        return {"backend": "dense", "kernel": f"blas {self.dtype.name}, {self.problem.K} outputs"}
