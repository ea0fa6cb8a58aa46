"""Networks of many records, stacked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from reluflow.arrays import Array
from reluflow.network import Network


@dataclass(frozen=True)
class States(Sequence[Network]):
    """Recorded networks as stacked arrays; item i is the network of record i."""

    W: Array  # (records, m, d)
    a: Array  # (records, m)
    log_scale: Array | None  # (records, m)
    leak: float = 0.0
    bias: float | None = None
    smoothing: float = 0.0

    def __len__(self) -> int:
        return int(self.W.shape[0])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        scale = None if self.log_scale is None else self.log_scale[index]
        W, a, smoothing = self.W[index], self.a[index], self.smoothing
        return Network(W, a, scale, leak=self.leak, bias=self.bias, smoothing=smoothing)

    def __iter__(self) -> Iterator[Network]:
        return (self[i] for i in range(len(self)))
