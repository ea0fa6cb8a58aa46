"""[MMV24]_: which patterns neurons go through and how fast, until all are trapped (Theorem 1.1).

The theorem speaks below exp(-10^4) or so; flows in logarithms go there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from reluflow.claims.claim import Found, claim
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import (
    balanced_start,
    gradient_flow,
    margin_loss,
    no_leak,
    positively_correlated,
)
from reluflow.claims.mmv24 import SURE
from reluflow.claims.mmv24_constants import (
    Constants,
    both_classes,
    not_aligned,
    small_start,
)
from reluflow.claims.mmv24_early import unit_start
from reluflow.claims.verdict import Hypothesis, Status, at_least, at_most, equals
from reluflow.network import Network
from reluflow.problem import Problem, datasets
from reluflow.problem.losses import Exponential

Array = NDArray[np.float64]

DATA = [gradient_flow, margin_loss, no_leak, both_classes, positively_correlated]
START = [balanced_start, not_aligned]
NEEDS = ("path", "start", "flow", "time")


def aligned(problem: Problem, unit: Network, log_eps: float, t_end: float) -> Evidence:
    """The flow from exp(log_eps) times a start, recorded on a grid and at every kink."""
    from reluflow.flow.flow import flow

    grid = np.linspace(0.0, t_end, 101)
    first = flow(problem, unit.scaled(log_eps), t_end=t_end, save=grid)
    kinks = np.asarray(first.events.get("time", ()), dtype=float)
    times = np.unique(np.concatenate([grid, kinks]))
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
def near_run(seed: int, m: int, angle: float = 1e-5) -> Evidence:
    """Unit inputs with mu near 1, and one positive neuron within ``angle`` of x_-."""
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
    return aligned(problem, unit, Constants(problem, unit).log_eps_max("printed") - 1.0, 20.0)


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
        assert self.evidence.start is not None
        return Constants(self.evidence.problem, self.evidence.start)

    @cached_property
    def sign(self) -> NDArray[np.int64]:
        """Signs of the outer weights."""
        return np.sign(self.c.start.a).astype(int)

    @cached_property
    def wanted(self) -> NDArray[np.bool_]:
        """Samples of a neuron's own sign, (m, n)."""
        return np.outer(self.sign, self.evidence.problem.y) > 0

    def stays(self) -> Iterator[Stay]:
        """Every stay; at a kink the sample goes to the side P46 allows."""
        run = self.evidence.run
        assert run is not None
        events = run.events
        neuron = np.asarray(events.get("neuron", ()), dtype=int)
        sample = np.asarray(events.get("sample", ()), dtype=int)
        time = np.asarray(events.get("time", ()), dtype=float)
        first = self.c.start.W @ self.evidence.problem.X.T > 0
        last = float(self.evidence.times[-1])
        for j in range(len(first)):
            active, since = first[j].copy(), 0.0
            for i in np.flatnonzero(neuron == j)[np.argsort(time[neuron == j], kind="stable")]:
                if time[i] > since:
                    yield Stay(j, since, float(time[i]), active.copy(), False)
                since = float(time[i])
                active[sample[i]] = self.wanted[j, sample[i]]
            yield Stay(j, since, last, active, True)

    def trapped(self, stay: Stay) -> bool:
        """In S_+ (a > 0), S_- (a < 0) or S_dead."""
        return not stay.active.any() or bool((stay.active == self.wanted[stay.neuron]).all())

    @cached_property
    def t1(self) -> float:
        """When the last neuron is trapped; inf if one is not."""
        ends = [stay for stay in self.stays() if stay.open]
        if not all(self.trapped(stay) for stay in ends):
            return math.inf
        return max(stay.begin for stay in ends)


def leaves_patterns(evidence: Evidence, form: str) -> Found:
    """Until T a neuron outside its traps changes pattern within dwell(n_a)."""
    walk = Walk(evidence)
    ratios = []
    for stay in walk.stays():
        if walk.trapped(stay) or stay.begin > walk.c.T:
            continue
        bound = walk.c.dwell(int(stay.active.sum()), form)
        if stay.begin + bound <= walk.c.T:
            ratios.append((stay.end - stay.begin) / bound)
    some = Hypothesis("some neuron is outside its traps and has a dwell time to spend before T",
                      bool(ratios))  # fmt: skip
    return Found([at_most(max(ratios, default=np.nan), 1.0, what="longest stay over its bound")],
                 [some])  # fmt: skip


def avoids_cap(evidence: Evidence, form: str) -> Found:
    """Until T no neuron is in the zeta-cap of the other class, and those around it move away."""
    walk, p = Walk(evidence), evidence.problem
    c = walk.c
    zeta, inside, fastest = c.zeta(form), 0, -np.inf
    for net, t in zip(evidence.path, evidence.times, strict=True):
        if t > c.T:
            break
        W, pull = net.directions, p.pull_at(p.outputs(net))
        for s in (1, -1):
            mine = W[walk.sign == s]
            axis = c.sums[-s] / np.linalg.norm(c.sums[-s])
            across = mine - np.outer(mine @ axis, axis)
            sine2 = np.sum(across**2, axis=1)
            ahead = mine @ axis > 0
            inside = max(inside, int((ahead & (sine2 <= zeta)).sum()))
            other = ((mine @ p.X.T > 0) == (p.y * s < 0)).all(axis=1) & (sine2 > zeta)
            if other.any():  # in the other class's cone, outside the cap
                push = s * ((mine[other] @ p.X.T > 0) * pull) @ p.X
                push -= np.sum(push * mine[other], axis=1, keepdims=True) * mine[other]
                fastest = max(fastest, float((push @ axis).max()))
    edge = -zeta * math.sqrt(c.mu) * c.X_min * c.unit / 2
    found = [equals(inside, 0, tolerance=0, what="most neurons in the cap at once")]
    if np.isfinite(fastest):
        found.append(at_most(fastest, edge, what="d cos(w, x_other)/dt beside the cap"))
    return Found(found)


def _in_form(check: Callable[[Evidence, str], Found], form: str) -> Callable[[Evidence], Found]:
    """The check with the constants of one form."""

    def look(evidence: Evidence) -> Found:
        return check(evidence, form)

    look.__doc__ = check.__doc__
    return look


for _id, _check in (("MMV24-DT", leaves_patterns), ("MMV24-CAP", avoids_cap)):
    claim(
        _id, form="printed", needs=NEEDS, given=[*DATA, *START, small_start("printed")],
        example=near_run, quick={"m": 12}, full={"m": 200},
    )(_in_form(_check, "printed"))  # fmt: skip
    for _part, _sep in (("", False), ("SEP", True)):
        claim(
            _id, form="repaired", part=_part, needs=NEEDS,
            given=[*DATA, *START, small_start("repaired")], example=scoped_run,
            quick={"m": 20, "sep": _sep}, full={"m": 500},
        )(_in_form(_check, "repaired"))  # fmt: skip


def _kinks(walk: Walk) -> list[float]:
    """y_i <x_i, D_j>/|x_i| wherever a live neuron is recorded on the hyperplane of x_i, t <= T."""
    p, found = walk.evidence.problem, []
    size = np.linalg.norm(p.X, axis=1)
    for net, t in zip(walk.evidence.path, walk.evidence.times, strict=True):
        if t > walk.c.T:
            break
        cosines = net.directions @ p.X.T / size
        pull = p.pull_at(p.outputs(net))
        for j in np.flatnonzero((np.abs(cosines) <= SURE).any(axis=1)):
            active = cosines[j] > SURE
            if active.any():
                push = (active * pull) @ p.X
                on = np.flatnonzero(np.abs(cosines[j]) <= SURE)
                found += [float(p.y[i] * (p.X[i] @ push) / size[i]) for i in on]
    return found


@claim(
    "MMV24-P7", needs=NEEDS, given=[*DATA, *START, small_start("repaired")], example=scoped_run,
    quick={"m": 20}, full={"m": 500},
)  # fmt: skip
def crosses_one_way(evidence: Evidence) -> Found:
    """At a kink sign(a_j) d cos(w_j, y_i x_i)/dt >= mu^{3/2} X_min/2 while t <= T."""
    walk = Walk(evidence)
    speeds = _kinks(walk)
    bound = walk.c.mu**1.5 * walk.c.X_min * walk.c.unit / 2
    some = Hypothesis("a live neuron is recorded on a kink", bool(speeds), f"{len(speeds)} of them")
    least = min(speeds, default=np.nan)
    return Found([at_least(least, bound, what="least speed at a kink")], [some])


def trapped_in_time(evidence: Evidence) -> Found:
    """Theorem 1.1: at t_1 <= t1_bound all are trapped; own-sign activation at 0 excludes dead."""
    walk = Walk(evidence)
    c, bound = walk.c, walk.c.t1_bound()
    late = astray = 0
    for stay in walk.stays():
        if stay.begin <= bound < stay.end or (stay.open and stay.end <= bound):
            late += not walk.trapped(stay)
        if stay.open:
            own = (c.start.W[stay.neuron] @ c.problem.X.T > 0) & walk.wanted[stay.neuron]
            astray += bool(own.any()) and not stay.active.any()
    note = (
        f"t_1 = {walk.t1:.4g} is {walk.t1 / bound:.1e} of its bound. Bound and log eps_max with "
        f"zeta = min and factor 8: {bound:.5g}, {c.log_eps_max():.6g}; as printed (max, 4): "
        f"{c.t1_bound('printed'):.5g}, {c.log_eps_max('printed'):.6g}. mu = {c.mu:.4g}, "
        f"xi = mu^2 = {c.xi:.4g}, zeta_1 = {c.zeta_1:.4g}, zeta_2 = {c.zeta_2:.4g}; T = {c.T:.4g}."
    )
    found = [
        at_most(walk.t1, bound, what="t_1"),
        equals(late, 0, tolerance=0, what="neurons outside their traps at t_1"),
        equals(astray, 0, tolerance=0, what="dead neurons that began active on their own class"),
    ]
    return Found(found, note=note)


claim(
    "MMV24-T1.1", needs=NEEDS, given=[*DATA, *START, small_start("repaired")],
    example=practical_run, quick={"m": 20}, full={"m": 500},
)(trapped_in_time)  # fmt: skip
for _part, _sep in (("in scope", False), ("in scope, SEP", True)):
    claim(
        "MMV24-T1.1", part=_part, needs=NEEDS, given=[*DATA, *START, small_start("repaired")],
        example=scoped_run, quick={"m": 20, "sep": _sep}, full={"m": 500}, expected=Status.HOLDS,
        reason="from the scale of Eq. 28, which only a flow in logarithms can start at",
    )(trapped_in_time)  # fmt: skip
