"""Items made when asked for, and the scale of a start."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar, overload

from reluflow.arrays import real_number
from reluflow.errors import ReluflowError

Item = TypeVar("Item")


class Lazy(Sequence[Item], Generic[Item]):
    """A sequence whose items are made when asked for; the ``keep`` latest stay in memory."""

    def __init__(self, length: int, make: Callable[[int], Item], keep: int = 4) -> None:
        self._length, self._make, self._keep = length, make, keep
        self._made: OrderedDict[int, Item] = OrderedDict()

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...

    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._length))]
        if not -self._length <= index < self._length:
            raise IndexError(f"item {index} of {self._length}")
        i = int(index) % self._length
        if i not in self._made:
            self._made[i] = self._make(i)
            if len(self._made) > self._keep:
                self._made.popitem(last=False)
        return self._made[i]

    def __iter__(self) -> Iterator[Item]:
        return (self[i] for i in range(self._length))


def log_inverse(scale: float | None, log_scale: float | None) -> float:
    """L = log(1/scale) > 0 from ``scale`` or its logarithm."""
    if (scale is None) == (log_scale is None):
        raise ReluflowError("give either scale (1e-40) or its logarithm log_scale (-1000)")
    if log_scale is None:
        scale = real_number(scale, "scale")
        if not 0.0 < scale < 1.0:
            raise ReluflowError(
                f"scale must lie strictly between 0 and 1, got {scale:g}: "
                "use log_scale= for one below 1e-300"
            )
        return -math.log(scale)
    log_scale = real_number(log_scale, "log_scale")
    if not -math.inf < log_scale < 0.0:
        raise ReluflowError(f"log_scale must be negative and finite, got {log_scale:g}")
    return -log_scale
