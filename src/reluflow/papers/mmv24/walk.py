"""[MMV24]_: the patterns that neurons of a run go through, and the groups they end in.

t_1 is when the last neuron is trapped, t_2^s when the group in S_s first gives more than 1/4.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from reluflow.arrays import Array
from reluflow.claims.evidence import Evidence
from reluflow.claims.verdict import Comparison, Hypothesis, equals
from reluflow.network import Network
from reluflow.papers.mmv24.constants import Constants
from reluflow.papers.mmv24.runs import sides

CROSS = 1  # kind of the events at which a sample changes side


@dataclass(frozen=True)
class Stay:
    """A neuron in one pattern from ``begin`` to ``end``; ``open`` if the run ends first."""

    neuron: int
    begin: float
    end: float
    active: NDArray[np.bool_]
    open: bool


@dataclass(frozen=True, eq=False)
class Walk:
    """The patterns each neuron goes through, from the start and the located kinks."""

    evidence: Evidence

    @cached_property
    def c(self) -> Constants:
        return Constants(self.evidence.problem, self.evidence.first())

    @cached_property
    def sign(self) -> NDArray[np.int64]:
        """Signs of the outer weights."""
        return np.sign(self.c.start.a).astype(int)

    @cached_property
    def wanted(self) -> NDArray[np.bool_]:
        """Samples of a neuron's own sign, (m, n)."""
        return np.outer(self.sign, self.evidence.problem.y) > 0

    @cached_property
    def first(self) -> NDArray[np.bool_]:
        """Samples on which neurons are active at the start, (m, n)."""
        return np.asarray(self.c.start.W @ self.evidence.problem.X.T > 0)

    @cached_property
    def crossings(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Neuron, sample and time of every located crossing, in order of time."""
        events = self.evidence.trajectory().events
        crossed = np.asarray(events.get("kind", ()), dtype=int) == CROSS
        neuron, sample, time = (
            np.asarray(events.get(key, ()), dtype=kind)[crossed]
            for key, kind in (("neuron", int), ("sample", int), ("time", float))
        )
        order = np.argsort(time, kind="stable")
        return neuron[order], sample[order], time[order]

    def stays(self) -> Iterator[Stay]:
        """Every stay; at a crossing the sample changes side, whichever side that is."""
        neuron, sample, time = self.crossings
        order = np.lexsort((time, neuron))
        first = self.first
        ends = np.searchsorted(neuron[order], np.arange(len(first) + 1))
        last = float(self.evidence.times[-1])
        for j in range(len(first)):
            active, since = first[j].copy(), 0.0
            for i in order[ends[j] : ends[j + 1]]:
                if time[i] > since:
                    yield Stay(j, since, float(time[i]), active.copy(), False)
                since = float(time[i])
                active[sample[i]] = not active[sample[i]]
            yield Stay(j, since, last, active, True)

    def trapped(self, stay: Stay) -> bool:
        """In S_+ (a > 0), S_- (a < 0) or S_dead."""
        return not stay.active.any() or bool((stay.active == self.wanted[stay.neuron]).all())

    @cached_property
    def ends(self) -> NDArray[np.bool_]:
        """Samples on which neurons are active at the last record, (m, n)."""
        return np.asarray(sides(self.evidence.problem, self.evidence.path()[-1]) > 0)

    @cached_property
    def contradictions(self) -> int:
        """Recorded sides, clear of rounding, that are not those the crossings lead to."""
        neuron, sample, time = self.crossings
        active, done, wrong = self.first.copy(), 0, 0
        for net, t in zip(self.evidence.path(), self.evidence.times, strict=True):
            while done < len(time) and time[done] <= t:
                active[neuron[done], sample[done]] ^= True
                done += 1
            side = sides(self.evidence.problem, net)
            wrong += int(((side != 0) & ((side > 0) != active)).sum())
        return wrong

    def agree(self) -> Comparison:
        """Records show the patterns that the located crossings lead to."""
        return equals(
            self.contradictions, 0, tolerance=0, what="recorded sides against the crossings"
        )

    @cached_property
    def t1(self) -> float:
        """When the last neuron is trapped; inf if one is not."""
        ends = [stay for stay in self.stays() if stay.open]
        if not all(self.trapped(stay) for stay in ends):
            return math.inf
        return max(stay.begin for stay in ends)


LEVEL = 0.25  # output at which t_2 is read


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
