"""[MMV24]_: runs from the scales of Theorem 1, and the patterns their neurons go through."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from reluflow.claims.evidence import Evidence
from reluflow.claims.verdict import Comparison, equals
from reluflow.kernels.codes import CROSS
from reluflow.network import Network
from reluflow.papers.mmv24.claims.constants import Constants
from reluflow.papers.mmv24.claims.early import unit_start
from reluflow.papers.mmv24.claims.traps import sides
from reluflow.problem import Problem, datasets
from reluflow.problem.losses import Exponential

BESIDE = 1e-5  # distance in time of the records on either side of a kink


def aligned(problem: Problem, unit: Network, log_eps: float, t_end: float) -> Evidence:
    """The flow from exp(log_eps) times a start, recorded on a grid, at and beside every kink."""
    from reluflow.gradientflow.flow import flow

    grid = np.linspace(0.0, t_end, 101)
    first = flow(problem, unit.scaled(log_eps), t_end=t_end, save=grid)
    kinks = np.asarray(first.events.get("time", ()), dtype=float)
    times = np.unique(np.concatenate([grid, kinks, kinks - BESIDE, kinks + BESIDE]))
    times = times[(times >= 0) & (times <= t_end)]
    return Evidence.of(problem, flow(problem, unit.scaled(log_eps), t_end=t_end, save=times))


@cache
def scoped_run(seed: int, m: int, sep: bool = False) -> Evidence:
    """TOY6, or SEP data, from the scale that Eq. 28 asks for."""
    problem = datasets.separable(0.5, 8, 3, rng=seed) if sep else datasets.toy6(reduction="sum")
    unit = unit_start(problem, m, seed)
    return aligned(problem, unit, Constants(problem, unit).log_eps_max() - 1.0, 6.0)


@cache
def practical_run(seed: int, m: int) -> Evidence:
    """TOY6 from 1e-6."""
    problem = datasets.toy6(reduction="sum")
    return aligned(problem, unit_start(problem, m, seed), -6 * math.log(10.0), 2.0)


@cache
def near_run(seed: int, m: int, angle: float = 1e-2) -> Evidence:
    """Unit inputs with mu near 1, and one positive neuron within ``angle`` of x_-.

    From the scale of Eq. 28 with the smaller zeta, which is below that with the larger one.
    """
    turn = np.array([-0.1, 0.0, 0.1])
    Z = np.column_stack([np.cos(turn), np.sin(turn)])
    problem = Problem(
        np.vstack([Z, -Z]), np.repeat([1.0, -1.0], 3), loss=Exponential(), reduction="sum"
    )
    unit = unit_start(problem, m, seed)
    W, a = unit.W.copy(), unit.a.copy()
    W[0] = np.linalg.norm(W[0]) * np.array([-math.cos(angle), math.sin(angle)])
    a[0] = np.linalg.norm(W[0])
    unit = Network(W, a, unit.log_scale)
    return aligned(problem, unit, Constants(problem, unit).log_eps_max() - 1.0, 20.0)


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
