"""What Algorithm 1 returns: a jump process with the norms known on orthonormal inputs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array, Indices, Mask
from reluflow.errors import ReluflowError
from reluflow.network import Network
from reluflow.prediction.orthogonal_offsets import half_fall
from reluflow.prediction.process import JumpProcess


def signed_parts(y: Array) -> list[tuple[float, Mask, float]]:
    """(sign, samples of that sign, norm of their labels) for the signs that occur."""
    parts = [(s, s * y > 0, float(np.linalg.norm(y[s * y > 0]))) for s in (1.0, -1.0)]
    return [part for part in parts if part[2] > 0.0]


@dataclass(frozen=True, eq=False, repr=False)
class OrthogonalProcess(JumpProcess):
    r"""The jump process of orthonormal inputs ([TLB26]_ Theorem 2).

    Attributes
    ----------
    mask : array (n, m), bool
        M: sample k has the label sign of neuron j, which was active on it at the start.
    groups : array (m,)
        Neurons with equal columns of ``mask`` have equal numbers and jump as one; -1 for an
        empty column, whose neuron never grows.
    uncovered : index array
        Samples with a label that no neuron can fit.
    sizes : array (K,)
        v_i, norm of the labels fitted at jump i; the group ends with sum of |w|^2 equal to v_i.
    margin : float
        mu: the squared norm at the end is off by about scale^mu (empirical). The least of
        -beta_j at jump i over groups that jump later and share a sample of jump i, and of
        2 (-beta_j) at the end over groups that never jump.
    """

    mask: Mask = field(default_factory=lambda: np.zeros((0, 0), dtype=bool))
    groups: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    uncovered: Indices = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    sizes: Array = field(default_factory=lambda: np.empty(0))
    margin: float = math.nan

    @property
    def sets(self) -> tuple[Indices, ...]:
        """Samples fitted at each jump, the same as ``samples``."""
        return self.samples

    @property
    def norm2(self) -> float:
        """Squared norm of all weights at the end, 2 sum_i v_i."""
        return 2.0 * float(np.sum(self.sizes))

    @property
    def min_norm2(self) -> float:
        """Squared norm of the smallest interpolating network, 2(|y+| + |y-|)."""
        return 2.0 * sum(size for _, _, size in signed_parts(self.problem.y))

    @property
    def ratio(self) -> float:
        """``norm2 / min_norm2``; at least 1 if every sample is covered."""
        return self.norm2 / self.min_norm2 if self.min_norm2 > 0.0 else math.nan

    @cached_property
    def minimal(self) -> Network:
        """The interpolating network of smallest norm: one neuron for each sign of the labels."""
        X, y = self.problem.X, self.problem.y
        parts = signed_parts(y)
        if not parts:
            return Network(np.zeros((1, X.shape[1])), np.zeros(1), bias=self.problem.bias)
        W = [s * y[on] @ X[on] / math.sqrt(size) for s, on, size in parts]
        a = [s * math.sqrt(size) for s, _, size in parts]
        return Network(np.array(W), np.array(a), bias=self.problem.bias)

    def half_fit_times(self, scale: float | None = None, log_scale: float | None = None) -> Array:
        """Real times at which f = y/2 on the samples of each jump, from a start of this scale.

        [TLB26]_ reads jumps so; ``jump_times`` are the earlier times at which the loss is half way.
        """
        if self.offsets is None or not self.n_jumps:
            raise ReluflowError(
                "the times of fits need a jump and the initial weights: "
                "call algorithm1(problem, net) with a network"
            )
        growth = np.array([self.rates[i, who[0]] for i, who in enumerate(self.neurons)])
        return self.jump_times(scale, log_scale) + half_fall(growth)

    def first_half_fit_time(
        self, log_scale: float | None = None, scale: float | None = None
    ) -> float:
        """Real time at which the first fitted samples reach f = y/2, from a start of this scale."""
        return float(self.half_fit_times(scale, log_scale)[0])
