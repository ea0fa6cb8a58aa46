"""Gradient descent neuron by neuron: fused kernels for small d, matrix products for large d."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.descent.samples import Samples, join_scale, split_scale
from reluflow.kernels.codes import DIVERGED, DONE
from reluflow.network import Network
from reluflow.problem import Problem
from reluflow.problem.activation import SmoothedRelu

_SAFE_STEPS = 256  # a neuron kept in units of 2^exponent is brought back near 1 this often
_MOSTLY = 0.95  # share of features that move, above which leaving out the others does not pay
_NEAR_ONE = 64  # powers of two a neuron may drift before that


class Stepper(Protocol):
    """A state of the network that knows how to take gradient steps."""

    def advance(self, rates: Array, batches: NDArray[np.int64]) -> tuple[int, int]:
        """Take up to len(rates) steps: (code, steps taken)."""

    def weights(self) -> tuple[Array, Array, Array | None]:
        """Current (W, a, log_scale)."""

    def outputs(self) -> Array | None:
        """f at the samples, if that is cheaper than spelling out the network."""

    def pack(self) -> dict[str, NDArray[Any]]:
        """Whole state as arrays, for a checkpoint."""

    def unpack(self, packed: dict[str, NDArray[Any]]) -> None:
        """Restore what :meth:`pack` gave."""

    def cost(self) -> dict[str, Any]:
        """What the steps cost, in numbers that mean something for this method."""


class _Plain:
    """Weights as plain arrays in units of 2^exponent per neuron."""

    def __init__(self, net: Network, dtype: np.dtype[Any]) -> None:
        self.exponent, mantissa = split_scale(net.log_scale, net.m)
        self.scaled = net.log_scale is not None
        self.W = np.ascontiguousarray(net.W * mantissa[:, None], dtype=dtype)
        self.a = np.ascontiguousarray(net.a * mantissa, dtype=dtype)
        self._rescale()

    def _rescale(self) -> None:
        """Bring drifting neurons back near 1 by exact powers of two."""
        if self.scaled:
            top = np.maximum(np.max(np.abs(self.W), axis=1), np.abs(self.a))
            shift = np.frexp(top)[1]
            shift[(np.abs(shift) < _NEAR_ONE) | (top == 0) | ~np.isfinite(top)] = 0
            self.W = np.ldexp(self.W, -shift[:, None])
            self.a = np.ldexp(self.a, -shift)
            self.exponent = self.exponent + shift
        self.scale2 = np.ldexp(1.0, np.clip(2 * self.exponent, -2000, 2000).astype(np.int32))

    def _all(self) -> NDArray[Any]:
        """Inner weights with all features."""
        return self.W

    def weights(self) -> tuple[Array, Array, Array | None]:
        W, a = self._all().astype(np.float64), self.a.astype(np.float64)
        return join_scale(W, a, self.exponent, keep=self.scaled)

    def pack(self) -> dict[str, NDArray[Any]]:
        return {"dense.W": self._all(), "dense.a": self.a, "dense.exponent": self.exponent}

    def unpack(self, packed: dict[str, NDArray[Any]]) -> None:
        self.W, self.a = packed["dense.W"], packed["dense.a"]
        self.exponent = packed["dense.exponent"]
        self.scale2 = np.ldexp(1.0, np.clip(2 * self.exponent, -2000, 2000).astype(np.int32))

    def _pieces(self, total: int) -> list[slice]:
        size = _SAFE_STEPS if self.scaled else total
        return [slice(i, min(i + size, total)) for i in range(0, total, max(size, 1))]


class Fused(_Plain):
    """One pass over neurons per step, forward and backward fused; best for small d."""

    def __init__(self, samples: Samples, net: Network, both: bool, limit: float) -> None:
        super().__init__(net, np.dtype(np.float64))
        self.samples, self.both, self.limit = samples, both, limit
        self.XT = samples.X.T.copy()  # never a frozen view: another signature
        S = samples.X @ self.W.T
        phi = np.where(S > 0, S, samples.leak * S)
        self.f = phi @ (self.a * self.scale2)
        stored = samples.d != 2  # with two features the kernel computes signs anew
        active = np.ascontiguousarray(S.T) > 0  # samples of a neuron one after the other
        self.slope = np.where(active, 1.0, samples.leak) if stored else np.empty((0, 0))

    def advance(self, rates: Array, batches: NDArray[np.int64]) -> tuple[int, int]:
        from reluflow.kernels.dense import dense_steps

        q, taken = self.samples, 0
        targets = tuple(q.targets)
        for piece in self._pieces(rates.size):
            code, done = dense_steps(
                self.W,
                self.a,
                self.scale2,
                self.XT,
                targets,
                q.leak,
                self.both,
                rates[piece],
                batches[piece],
                self.limit,
                self.f,
                self.slope,
            )
            taken += done
            if code != DONE:
                return code, taken
            self._rescale()
        return DONE, taken

    def outputs(self) -> Array | None:
        return np.asarray(self.f[self.samples.row])

    def pack(self) -> dict[str, NDArray[Any]]:
        return {**super().pack(), "dense.f": self.f, "dense.slope": self.slope}

    def unpack(self, packed: dict[str, NDArray[Any]]) -> None:
        super().unpack(packed)
        self.f, self.slope = packed["dense.f"], packed["dense.slope"]

    def cost(self) -> dict[str, Any]:
        return {"backend": "dense", "kernel": "fused"}


class Blas(_Plain):
    """Two matrix products per step; any loss object, float64 or float32.

    Weights of features that are zero on every sample never move, unless the activation is
    smoothed or weights decay: they are left out of the products (a fifth of the pixels of centred
    MNIST digits).
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
        super().__init__(net, dtype)
        self.problem, self.both, self.limit, self.dtype = problem, both, limit, dtype
        self.decay = decay
        moving = np.flatnonzero(problem.X.any(axis=0))
        few = moving.size < _MOSTLY * problem.d and not self.scaled
        few = few and not problem.smoothing and decay == 0.0
        self.moving: NDArray[np.int64] | slice = moving if few else slice(None)
        self.X = np.ascontiguousarray(problem.X[:, self.moving], dtype=dtype)
        self._split(self.W)
        self._buffers: dict[int, tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = {}
        self.D = np.empty_like(self.W)
        self.inner = np.empty_like(self.a)

    def _split(self, W: NDArray[Any]) -> None:
        """Keep all weights, and those that move as the ones to work on."""
        self.start = W
        self.W = np.ascontiguousarray(W[:, self.moving])

    def _all(self) -> NDArray[Any]:
        W = self.start.copy()
        W[:, self.moving] = self.W
        return W

    def unpack(self, packed: dict[str, NDArray[Any]]) -> None:
        super().unpack(packed)
        self._split(self.W)

    def _buffer(self, n: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        if n not in self._buffers:
            shape = (n, self.a.size)
            H, f = np.empty(shape, self.dtype), np.empty(n, self.dtype)
            self._buffers[n] = H, f, np.empty((n, self.X.shape[1]), self.dtype)
        return self._buffers[n]

    def _shrink(self, rate: float) -> None:
        """Weight decay: trained weights lose lr lambda of themselves, before the gradient's part.

        Inner weights decay, and outer ones where they are trained.
        """
        if self.decay == 0.0:
            return
        keep = self.dtype.type(1.0 - rate * self.decay)
        self.W *= keep
        if self.both:
            self.a *= keep

    def _step(self, rate: float, batch: NDArray[np.int64]) -> bool:
        """One step in place; False when the outputs left the range of numbers."""
        from reluflow.kernels.blas import backward, forward

        problem, leak = self.problem, self.dtype.type(self.problem.leak)
        X, y, weight = self.X, problem.y, problem.weight
        if batch.size:
            batch = batch[batch >= 0]
            y = problem.y[batch]
            weight = 1.0 / batch.size if problem.reduction == "mean" else 1.0
        H, f, rows = self._buffer(y.size)
        if batch.size:
            X = np.take(self.X, batch, axis=0, out=rows)
        np.dot(X, self.W.T, out=H)
        forward(H, (self.a * self.scale2).astype(self.dtype), leak, f)
        if not np.max(np.abs(f)) <= self.limit:
            return False
        c = (-weight * problem.loss.slope(f.astype(np.float64), y)).astype(self.dtype)
        backward(H, c, leak, self.inner)
        np.dot(H.T, X, out=self.D)
        rate = self.dtype.type(rate)
        self.D *= (rate * self.a)[:, None]
        self._shrink(rate)
        self.W += self.D
        if self.both:
            self.a += rate * self.inner
        return True

    def advance(self, rates: Array, batches: NDArray[np.int64]) -> tuple[int, int]:
        taken = 0
        for piece in self._pieces(rates.size):
            for rate, batch in zip(rates[piece], batches[piece], strict=True):
                if not self._step(rate, batch):
                    return DIVERGED, taken
                taken += 1
            self._rescale()
        return DONE, taken

    def outputs(self) -> Array | None:
        return None

    def cost(self) -> dict[str, Any]:
        return {"backend": "dense", "kernel": f"blas {self.dtype.name}"}


class Smooth(Blas):
    """The smoothed activation of [TK24]_, neuron by neuron, in float64.

    It is a function of the pair (w, x).
    """

    def __init__(
        self,
        problem: Problem,
        net: Network,
        both: bool,
        limit: float,
        activation: SmoothedRelu,
        decay: float = 0.0,
    ) -> None:
        super().__init__(problem, net, both, limit, np.dtype(np.float64), decay)
        self.activation = activation

    def _step(self, rate: float, batch: NDArray[np.int64]) -> bool:
        problem, X, y, weight = self.problem, self.X, self.problem.y, self.problem.weight
        if batch.size:
            batch = batch[batch >= 0]
            X, y = X[batch], y[batch]
            weight = 1.0 / batch.size if problem.reduction == "mean" else 1.0
        f = self.activation.value(self.W, X) @ (self.a * self.scale2)
        if not np.max(np.abs(f)) <= self.limit:
            return False
        D = self.activation.pulled(self.W, X, -weight * problem.loss.slope(f, y))
        inner = np.sum(self.W * D, axis=1)
        D *= (rate * self.a)[:, None]
        self._shrink(rate)
        self.W += D
        if self.both:
            self.a += rate * inner
        return True

    def cost(self) -> dict[str, Any]:
        return {"backend": "dense", "kernel": "smoothed"}
