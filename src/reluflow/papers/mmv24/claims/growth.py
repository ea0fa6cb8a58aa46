"""[MMV24]_: runs past alignment and growth, and the two groups they have from t_1 on.

t_1 is when the last neuron is trapped, t_2^s when the group in S_s first gives more than 1/4.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from reluflow.arrays import Array
from reluflow.claims.evidence import Evidence
from reluflow.claims.verdict import Hypothesis
from reluflow.network import Network
from reluflow.papers.mmv24.claims.early import unit_start
from reluflow.papers.mmv24.claims.walk import Walk
from reluflow.problem import datasets

LEVEL = 0.25  # output at which t_2 is read


@cache
def long_run(seed: int, m: int, log_eps: float, toy: bool = True, tail: float = 5.0) -> Evidence:
    """A flow on TOY6, or SEP data, past alignment and growth, then ``tail`` times as long."""
    from reluflow.gradientflow.flow import flow

    problem = datasets.toy6(reduction="sum") if toy else datasets.separable(0.6, 10, 3, rng=seed)
    net = unit_start(problem, m, seed).scaled(log_eps)
    slowest = min(np.linalg.norm(problem.X[problem.y == s].sum(axis=0)) for s in (1.0, -1.0))
    growth = (-log_eps + 10.0) / slowest
    times = [
        np.linspace(0, 2, 100),
        np.linspace(2, growth, 200),
        np.geomspace(growth, tail * growth),
    ]
    save = np.unique(np.concatenate(times))
    return Evidence.of(problem, flow(problem, net, t_end=float(save[-1]), save=save))


@dataclass(frozen=True, eq=False)
class Growth(Walk):
    """A run with the groups it has from t_1 on."""

    @cached_property
    def groups(self) -> dict[int, NDArray[np.int64]]:
        """Neurons in S_+ and in S_- at the end, by sign."""
        found: dict[int, list[int]] = {1: [], -1: []}
        for stay in self.stays():
            if stay.open and stay.active.any() and self.trapped(stay):
                found[int(self.sign[stay.neuron])].append(stay.neuron)
        return {s: np.array(found[s], dtype=int) for s in (1, -1)}

    @cached_property
    def outputs(self) -> Array:
        """max |f| over each class, (records, 2)."""
        p = self.c.problem
        f = np.array([np.abs(p.outputs(net)) for net in self.evidence.path()])
        return np.stack([f[:, np.sign(p.y) == s].max(axis=1) for s in (1, -1)], axis=1)

    @cached_property
    def t2(self) -> dict[int, float]:
        """t_2^+ and t_2^-, by sign; outputs grow exponentially between records. inf if never."""
        t, found = self.evidence.times, {}
        for column, s in enumerate((1, -1)):
            f = self.outputs[:, column]
            i = int(np.argmax(f > LEVEL))
            found[s] = math.inf
            if f[i] > LEVEL and i > 0 and f[i - 1] > 0:
                share = math.log(LEVEL / f[i - 1]) / math.log(f[i] / f[i - 1])
                found[s] = float(t[i - 1] + share * (t[i] - t[i - 1]))
        return found

    def log_size(self, net: Network, s: int) -> float:
        """log of the sum of |w_j|^2 over a group."""
        return float(logsumexp(2 * net.log_norms[self.groups[s]]))

    def between(self, low: float, high: float) -> Iterator[tuple[float, Network]]:
        """Records in a stretch of time."""
        for t, net in zip(self.evidence.times, self.evidence.path(), strict=True):
            if low <= t <= high:
                yield float(t), net

    @cached_property
    def reached(self) -> list[Hypothesis]:
        """Both groups hold neurons, all are trapped before they grow, and the run goes past t_2."""
        both = all(len(group) for group in self.groups.values())
        last = max(self.t2.values())
        return [
            Hypothesis("S_+ and S_- both hold neurons", both),
            Hypothesis(
                "all neurons are trapped before t_2",
                self.t1 < min(self.t2.values()),
                f"t_1 = {self.t1:.4g}",
            ),
            Hypothesis("the run goes past t_2", math.isfinite(last), f"t_2 = {last:.4g}"),
        ]
