"""[MMV24]_: starts and runs of its checks, what neurons do along them, and checks on several runs.

t_1 is when the last neuron is trapped, t_2^s when the group in S_s first gives more than 1/4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from reluflow.arrays import Array
from reluflow.claims.claim import Found, Outcome, Predicate, claim, experiment
from reluflow.claims.evidence import Evidence
from reluflow.claims.run import as_found
from reluflow.claims.verdict import Comparison, Hypothesis, equals
from reluflow.gradientflow.flow import flow
from reluflow.kernels.codes import CROSS
from reluflow.landscape import pattern
from reluflow.network import Network, initialize
from reluflow.papers.mmv24.constants import Constants, constants
from reluflow.problem import Problem, datasets
from reluflow.problem.losses import Exponential

CheckOfEvidence = Callable[[Evidence], Outcome]
SURE = 1e-9  # relative distance to a hyperplane below which a side is not counted
BESIDE = 1e-5  # distance in time of the records on either side of a kink


def unit_start(problem: Problem, m: int, seed: int) -> Network:
    """Balanced Gaussian directions, the longest of norm 1."""
    net = initialize(problem, m, scale=1.0, kind="balanced", normalize="none", rng=seed)
    return net.scaled(-float(net.log_norms.max()))


@cache
def toy_start(seed: int) -> Evidence:
    """TOY6 with 20 Gaussian neurons that have not moved."""
    problem = datasets.toy6(reduction="sum")
    return Evidence.of(problem, start=unit_start(problem, 20, seed).scaled(-14.0))


@cache
def early_run(
    seed: int,
    m: int,
    exponent: float,
    leak: float = 0.0,
    loss: str = "exponential",
    reduction: str = "sum",
) -> Evidence:
    """A flow on TOY6 from 10^-exponent until T, then half as long again."""
    problem = datasets.toy6(loss=loss, reduction=reduction, leak=leak)
    net = unit_start(problem, m, seed).scaled(-exponent * math.log(10.0))
    T = constants(Evidence.of(problem, start=net)).T
    run = flow(problem, net, t_end=1.5 * T, save=np.linspace(0.0, 1.5 * T, 91), rtol=1e-10)
    return Evidence.of(problem, run)


@cache
def drift_run(
    seed: int, m: int, leak: float = 0.0, reduction: str = "sum", kinks: bool = True
) -> Evidence:
    """A flow on TOY6 from 0.02 until the outputs are about 1, seven records at each of 60 times."""
    problem = datasets.toy6(reduction=reduction, leak=leak)
    net = unit_start(problem, m, seed).scaled(math.log(0.02))
    end = 1.2 * (problem.n if reduction == "mean" else 1)
    near = end * np.arange(-3, 4) / 3000
    times = np.linspace(end / 100, 0.99 * end, 60)[:, None] + near
    save = np.append(0.0, np.unique(times))
    return Evidence.of(problem, flow(problem, net, t_end=end, save=save, rtol=1e-11, kinks=kinks))


@cache
def trapped_run(seed: int, m: int, t_end: float) -> Evidence:
    """A flow on SEP data from a small balanced start, past its alignment and growth."""
    problem = datasets.separable(0.6, 10, 3, rng=seed)
    net = initialize(problem, m, scale=1e-4, kind="balanced", normalize="none", rng=seed)
    times = np.concatenate([np.linspace(0, 0.1 * t_end, 200), np.linspace(0.1 * t_end, t_end, 100)])
    return Evidence.of(problem, flow(problem, net, t_end=t_end, save=np.unique(times)))


@cache
def long_run(seed: int, m: int, log_eps: float, toy: bool = True, tail: float = 5.0) -> Evidence:
    """A flow on TOY6, or SEP data, past alignment and growth, then ``tail`` times as long."""
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


def run_with_kinks(problem: Problem, unit: Network, log_eps: float, t_end: float) -> Evidence:
    """The flow from exp(log_eps) times a start, recorded on a grid, at and beside every kink."""
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
    return run_with_kinks(problem, unit, Constants(problem, unit).log_eps_max() - 1.0, 6.0)


@cache
def practical_run(seed: int, m: int) -> Evidence:
    """TOY6 from 1e-6."""
    problem = datasets.toy6(reduction="sum")
    return run_with_kinks(problem, unit_start(problem, m, seed), -6 * math.log(10.0), 2.0)


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
    return run_with_kinks(problem, unit, Constants(problem, unit).log_eps_max() - 1.0, 20.0)


def sides(problem: Problem, net: Network) -> NDArray[np.int8]:
    """Sign of <w_j, x_i>, 0 within rounding of the hyperplane; shape (m, n)."""
    return pattern(problem, net.W, SURE)


def experiment_on(
    id: str, *, given: Sequence[Predicate], example: Callable[..., Evidence], **options: Any
) -> Callable[[CheckOfEvidence], CheckOfEvidence]:
    """Register a check on one more run of our own; a user's evidence is looked at once."""

    def wrap(check: CheckOfEvidence) -> CheckOfEvidence:
        def look(**settings: Any) -> Found:
            evidence = example(**settings)
            hypotheses = [test(evidence) for test in given]
            if any(h.ok is False for h in hypotheses):
                return Found((), hypotheses)
            found = as_found(check(evidence))
            return Found(found.comparisons, [*hypotheses, *found.hypotheses], found.note)

        look.__doc__, look.__module__ = check.__doc__, check.__module__
        experiment(id, **options)(look)
        return check

    return wrap


def claim_on_runs(
    id: str,
    *,
    others: Mapping[str, Mapping[str, Any]],
    given: Sequence[Predicate],
    example: Callable[..., Evidence],
    quick: Mapping[str, Any],
    full: Mapping[str, Any],
    needs: Sequence[str] = ("path", "start"),
    **options: Any,
) -> Callable[[CheckOfEvidence], CheckOfEvidence]:
    """Register a check of evidence, and the same on ``others``: settings that differ, by part."""

    def wrap(check: CheckOfEvidence) -> CheckOfEvidence:
        shared: dict[str, Any] = {"given": given, "example": example, "full": full, **options}
        claim(id, needs=needs, quick=quick, **shared)(check)
        for part, more in others.items():
            experiment_on(id, part=part, quick={**quick, **more}, **shared)(check)
        return check

    return wrap


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
    def own_samples(self) -> NDArray[np.bool_]:
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

    def is_trapped(self, stay: Stay) -> bool:
        """In S_+ (a > 0), S_- (a < 0) or S_dead."""
        return not stay.active.any() or bool((stay.active == self.own_samples[stay.neuron]).all())

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

    def agreement(self) -> Comparison:
        """Records show the patterns that the located crossings lead to."""
        return equals(
            self.contradictions, 0, tolerance=0, what="recorded sides against the crossings"
        )

    @cached_property
    def t1(self) -> float:
        """When the last neuron is trapped; inf if one is not."""
        ends = [stay for stay in self.stays() if stay.open]
        if not all(self.is_trapped(stay) for stay in ends):
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
            if stay.open and stay.active.any() and self.is_trapped(stay):
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
