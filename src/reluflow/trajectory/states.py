"""Networks of many records, stacked."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reluflow.arrays import Array
from reluflow.errors import ReluflowError
from reluflow.network import Network


@dataclass(frozen=True)
class States(Sequence[Network]):
    """Recorded networks as stacked arrays; item i is the network of record i.

    Attributes
    ----------
    W : array, shape (records, m, d)
        Without the factor exp(log_scale), as ``a`` is: the weights themselves are
        :meth:`weights`.
    a : array, shape (records, m) or (records, m, K)
    log_scale : array, shape (records, m), or None
    leak, bias, smoothing
        As of every :class:`reluflow.Network`.
    """

    W: Array
    a: Array
    log_scale: Array | None
    leak: float = 0.0
    bias: float | None = None
    smoothing: float = 0.0

    def weights(self) -> tuple[Array, Array]:
        """True (W, a) of every record, (records, m, d) and (records, m), as plain floats."""
        if self.log_scale is None:
            return self.W, self.a
        factor = np.exp(self.log_scale)
        return factor[..., None] * self.W, factor * self.a

    def __len__(self) -> int:
        return int(self.W.shape[0])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        try:
            index = operator.index(index)
        except TypeError:
            raise ReluflowError(
                f"records go by their number, got {index!r}: run.at(t) is the network at a time"
            ) from None
        scale = None if self.log_scale is None else self.log_scale[index]
        W, a, smoothing = self.W[index], self.a[index], self.smoothing
        return Network(W, a, scale, leak=self.leak, bias=self.bias, smoothing=smoothing)

    def __iter__(self) -> Iterator[Network]:
        return (self[i] for i in range(len(self)))
