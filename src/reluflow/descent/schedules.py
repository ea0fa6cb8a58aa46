"""Step sizes and mini-batches as functions of the step number."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluflow.arrays import Array
from reluflow.errors import ReluflowError
from reluflow.runtime.plain import to_plain

Rate = float | ArrayLike | Callable[[int], float]


class Schedule:
    """Step sizes lr(0), lr(1), ...: a number, an array of ``steps`` values, or a function."""

    def __init__(self, lr: Rate, steps: int) -> None:
        self._rate: Callable[[int], float] | None = None
        self._values: Array | None = None
        self.constant: float | None = None
        if callable(lr):
            self._rate = lr
            sample = np.unique(np.linspace(0, max(steps - 1, 0), 1001).astype(int))
            self.key = [float(lr(int(s))) for s in sample] if steps else []
            self.name = getattr(lr, "__name__", "function")
        else:
            try:
                values = np.asarray(lr, dtype=float)
            except (TypeError, ValueError, OverflowError):
                raise ReluflowError(
                    f"lr must be a number, an array of them or a function of the step, got {lr!r}"
                ) from None
            if values.ndim == 0:
                self.constant = float(values)
                _check_rates(values[None])
                self.key, self.name = [self.constant], repr(self.constant)
            else:
                if values.shape != (steps,):
                    raise ReluflowError(
                        f"lr has shape {values.shape}: expected a number, a function of the step "
                        f"or an array of shape ({steps},), one entry per step"
                    )
                _check_rates(values)
                self._values = values
                self.key, self.name = values.tolist(), f"array of {steps} values"

    def rates(self, start: int, stop: int) -> Array:
        """lr(start), ..., lr(stop - 1)."""
        if self.constant is not None:
            return np.full(stop - start, self.constant)
        if self._values is not None:
            return self._values[start:stop]
        assert self._rate is not None
        values = np.array([float(self._rate(s)) for s in range(start, stop)])
        _check_rates(values, start)
        return values

    def time_after(self, time: float, step: int, rates: Array) -> float:
        """Flow time once ``rates`` have been used up to ``step``; the same for any chunking."""
        if self.constant is not None:
            return step * self.constant
        return float(np.add.accumulate(np.concatenate([[time], rates]))[-1])


def _check_rates(values: Array, start: int = 0) -> None:
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if bad.size:
        raise ReluflowError(
            f"lr at step {start + bad[0]} is {values[bad[0]]}: expected a finite number >= 0"
        )


class Batches:
    """Sample indices of each step of stochastic descent, in order, resumable.

    Without replacement, each epoch is a fresh permutation cut into pieces of ``size``; the last
    piece may be shorter and is padded with -1. ``size=None`` is full batch: no indices at all.
    """

    def __init__(
        self, n: int, size: int | None, replacement: bool, rng: np.random.Generator
    ) -> None:
        if size is not None and not 1 <= size <= n:
            raise ReluflowError(
                f"batch_size must lie between 1 and the {n} samples, got {size}: None is full batch"
            )
        self.n, self.size, self.replacement, self.rng = n, size, replacement, rng
        self._left = np.empty(0, dtype=np.int64)  # of the current epoch
        self._ahead = np.empty((0, size or 0), dtype=np.int64)  # drawn, not yet used

    def take(self, count: int) -> NDArray[np.int64]:
        """Indices of the next ``count`` steps, shape (count, size); :meth:`drop` moves on."""
        missing = count - len(self._ahead)
        if missing > 0:
            self._ahead = np.concatenate([self._ahead, self._draw(missing)])
        return self._ahead[:count]

    def drop(self, count: int) -> None:
        """Drop the first ``count`` rows of what :meth:`take` gave."""
        self._ahead = self._ahead[count:]

    def _draw(self, count: int) -> NDArray[np.int64]:
        if self.size is None:
            return np.empty((count, 0), dtype=np.int64)
        if self.replacement:
            return self.rng.integers(self.n, size=(count, self.size))
        out = np.full((count, self.size), -1, dtype=np.int64)
        for row in out:
            if self._left.size == 0:
                self._left = self.rng.permutation(self.n)
            piece, self._left = self._left[: self.size], self._left[self.size :]
            row[: piece.size] = piece
        return out

    def pack(self) -> dict[str, NDArray[Any]]:
        """State for a checkpoint."""
        state = json.dumps(self.rng.bit_generator.state, default=to_plain)
        return {
            "batch.left": self._left,
            "batch.ahead": self._ahead,
            "batch.rng": np.array(state),
        }

    def unpack(self, packed: dict[str, NDArray[Any]]) -> None:
        """Restore what :meth:`pack` gave."""
        self._left, self._ahead = packed["batch.left"], packed["batch.ahead"]
        self.rng.bit_generator.state = json.loads(str(packed["batch.rng"]))
