"""The process of small starts, without training: which features, in which order, when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reluflow._lazy import make_lazy

if TYPE_CHECKING:
    from reluflow.prediction.limit import limit
    from reluflow.prediction.orthogonal import OrthogonalProcess, algorithm1
    from reluflow.prediction.process import JumpProcess

_HOMES = {
    "JumpProcess": "reluflow.prediction.process",
    "OrthogonalProcess": "reluflow.prediction.orthogonal",
    "algorithm1": "reluflow.prediction.orthogonal",
    "limit": "reluflow.prediction.limit",
}

__all__ = ["JumpProcess", "OrthogonalProcess", "algorithm1", "limit"]

make_lazy(__name__, _HOMES)
