"""Gradient descent with the smoothed activation of [TK24]_."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.descent.dense import Blas
from reluflow.network import Network
from reluflow.problem import Problem
from reluflow.problem.activation import SmoothedRelu


class Smooth(Blas):
    """Neuron by neuron, in float64; the activation is a function of the pair (w, x)."""

    def __init__(
        self, problem: Problem, net: Network, both: bool, limit: float, activation: SmoothedRelu
    ) -> None:
        super().__init__(problem, net, both, limit, np.dtype(np.float64))
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
        self.W += (rate * self.a)[:, None] * D
        if self.both:
            self.a += rate * inner
        return True

    def cost(self) -> dict[str, Any]:
        return {"backend": "dense", "kernel": "smoothed"}
