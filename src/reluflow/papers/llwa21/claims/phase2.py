"""[LLWA21]_ Phase II on symmetric data: a small network moves as two neurons embedded in it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from reluflow.arrays import Array
from reluflow.claims.claim import Found, experiment
from reluflow.claims.evidence import Evidence
from reluflow.claims.verdict import Comparison, Hypothesis, at_least, at_most
from reluflow.errors import ReluflowError
from reluflow.gradientflow.flow import flow
from reluflow.network import Network
from reluflow.papers.llwa21.claims.near_zero import MU_TILDE, Departure, draw, mixture, start_size
from reluflow.papers.llwa21.runs import (
    RTOL,
    branchings,
    early_rate,
    embed,
    m_distance,
    none_met,
    states_at,
    two_neurons,
)
from reluflow.problem import Problem

SMALL = 1e-7  # r of the flow that stands for the limit r -> 0, which it reaches up to O(r^2)
SCALES = (1e-2, 1e-3, 1e-4)  # sigma
TINY = (1e-6, 1e-7, 1e-8)  # for times before t0, which must come after the start


@dataclass(frozen=True, eq=False)
class Follower:
    """A Gaussian draw on symmetric data beside the two neurons it follows as sigma -> 0."""

    problem: Problem
    net: Network
    printed: bool = False

    @cached_property
    def rate(self) -> float:
        """lambda0, or what is printed for it."""
        return early_rate(self.problem, self.printed)[0]

    @cached_property
    def b(self) -> Array:
        """bbar."""
        return mixture(self.net, early_rate(self.problem)[1])

    @cached_property
    def good(self) -> Hypothesis:
        """Both signs in bbar, no zero."""
        fine = bool((self.b > 0).any() and (self.b < 0).any() and (self.b != 0).all())
        return Hypothesis("bbar is a good embedding vector", fine, f"bbar {np.round(self.b, 3)}")

    @cached_property
    def pair(self) -> Departure:
        """theta-hat."""
        mubar = early_rate(self.problem)[1]
        return Departure(self.problem, two_neurons(self.b, mubar, self.problem.leak))

    def two(self, times: Array, r: float = SMALL) -> list[Network]:
        """flow(r theta-hat, T2(r) + t)."""
        shift = math.log(1 / r) / self.rate
        run = states_at(self.problem, self.pair.hat.scaled(math.log(r)), shift + times)
        return list(run.path())

    def whole(self, times: Array, sigma: float) -> Evidence:
        """theta(T12 + t) from sigma times the draw."""
        shift = math.log(1 / (sigma * start_size(self.net))) / self.rate
        return states_at(self.problem, self.net.scaled(math.log(sigma)), shift + times)

    def errors(self, times: Array, sigmas: tuple[float, ...]) -> tuple[Array, Hypothesis]:
        """|theta(T12 + t) - pi_b(theta~(t))|_M over sigma |theta-bar_0|_M, (sigmas, times)."""
        goal = [embed(self.b, state) for state in self.two(times)]
        found, branched = [], 0
        for sigma in sigmas:
            run = self.whole(times, sigma)
            branched += branchings(run)
            size = sigma * self.net.m_norm
            found.append([gap / size for gap in map(m_distance, run.path(), goal)])
        return np.array(found), none_met(branched)


@cache
def follower(seed: int, m: int, printed: bool = False) -> Follower:
    """The first draw from this seed on that is good."""
    for i in range(100):
        problem, net = draw(seed + 1000 * i, m)
        found = Follower(problem, net, printed)
        if found.good.ok:
            return found
    raise ReluflowError(f"none of 100 draws from seed {seed} on is good: expected half of them")


@experiment("LLWA21-L5.3", quick={"draws": 4}, full={"draws": 100})
def embedding_commutes(seed: int, draws: int) -> Found:
    """flow(pi_b(th), t) = pi_b(flow(th, t)), b of both signs, for pairs that meet no branching."""
    worst, moved, several = 0.0, math.inf, 0
    for i in range(draws):
        rng = np.random.default_rng([seed, i])
        problem = draw(seed + i, 6)[0]
        W = rng.standard_normal((2, problem.d))
        pair = Network(W, np.linalg.norm(W, axis=1) * [1, -1], leak=problem.leak).scaled(-1.0)
        b = rng.standard_normal(5)
        b[:2] = np.abs(b[:2]) * [1, -1]
        few, many = (flow(problem, net, t_end=40.0, rtol=RTOL) for net in (pair, embed(b, pair)))
        several += sum(branchings(Evidence.of(problem, run)) for run in (few, many))
        worst = max(worst, m_distance(many.final, embed(b, few.final)) / many.final.m_norm)
        moved = min(moved, m_distance(few.final, pair) / pair.m_norm)
    return Found(
        [
            at_most(worst, 1e-8, what="relative M-distance after time 40"),
            at_least(moved, 0.1, what="the pair has moved, relative"),
        ],
        [none_met(several)],
    )


def limit_and_order(f: Follower, times: Array, sigmas: tuple[float, ...]) -> Found:
    """The limit r -> 0 is there, is not zero, and is followed with an error linear in sigma."""
    if not f.good.ok:
        return Found((), [f.good])
    late, early = f.two(times), f.two(times, 1e-4)
    moved = max(m_distance(a, b) / b.m_norm for a, b in zip(late, early, strict=True))
    errors, seen = f.errors(times, sigmas)
    comparisons: list[Comparison] = [
        at_most(moved, 1e-7, what="change from r = 1e-4 to 1e-7, over the size: a limit, not zero"),
        *linear_in_sigma(errors, sigmas),
    ]
    return Found(comparisons, [f.good, seen])


def linear_in_sigma(errors: Array, sigmas: tuple[float, ...]) -> list[Comparison]:
    """What does not grow, w_j across mubar, is at most the start; ``errors`` are in its units."""
    order = 1 + np.polyfit(np.log(sigmas), np.log(errors), 1)[0].min()
    return [
        at_most(errors[-1].max(), 1.1, what="error over sigma |theta-bar_0|_M, least sigma"),
        at_least(order, 0.9, what="order of the error in sigma, 1 expected"),
    ]


def after(f: Follower, steps: tuple[float, ...]) -> Array:
    """Times in units of 1/lambda0."""
    return np.array(steps) / early_rate(f.problem)[0]


LONG: dict[str, tuple[float, ...]] = {"steps": (0.0, 1.0, 3.0)}


@experiment("LLWA21-L5.4", quick={"m": 6, **LONG}, full={"m": 20})
def rescaled_limit(seed: int, m: int, steps: tuple[float, ...]) -> Found:
    """At T12 + t with lambda0 = max |G|."""
    f = follower(seed, m)
    return limit_and_order(f, after(f, steps), SCALES)


def limit_with_either_rate(f: Follower, times: Array) -> Found:
    """flow(r theta-hat, T2(r) + t) for r = 1e-4 and 1e-7, T2 with either value of lambda0.

    Twice the rate is half of the time: what is left is of order sqrt(r).
    """
    other = replace(f, printed=True)
    sizes, shrunk = [], []
    for each in (f, other):
        late, early = each.two(times), each.two(times, 1e-4)
        sizes.append(min(state.m_norm for state in late))
        shrunk.append(max(a.m_norm / b.m_norm for a, b in zip(late, early, strict=True)))
    comparisons = [
        at_most(abs(shrunk[0] - 1), 1e-7, what="|size at r = 1e-7 over that at 1e-4 - 1|, meant"),
        at_most(shrunk[1], 0.05, what="the same ratio with the printed rate (1e-3^.5)"),
        at_most(sizes[1] / sizes[0], 0.01, what="size at r = 1e-7, printed over meant"),
    ]
    return Found(comparisons, [f.good])


@experiment("LLWA21-L5.4", **MU_TILDE, quick={"m": 6, **LONG}, full={"m": 20})
def limit_with_the_displayed_rate(seed: int, m: int, steps: tuple[float, ...]) -> Found:
    """With the displayed value the rescaled flow would tend to zero."""
    f = follower(seed, m)
    return limit_with_either_rate(f, after(f, steps))


def up_to_t0(f: Follower, sigmas: tuple[float, ...]) -> Found:
    """As L5.4 for t <= t0, where the limit is within 4m |hat|^3 e^{3 lambda t}/lambda."""
    times = np.array([f.pair.last - 1 / f.pair.rate, f.pair.last])
    found = limit_and_order(f, times, sigmas)
    near = max(
        m_distance(state, f.pair.grown(float(t)))
        / (f.pair.curvature * math.exp(3 * f.pair.rate * t))
        for state, t in zip(f.two(times), times, strict=True)
    )
    bound = at_most(near, 1.0, error=1e-3, what="distance to e^(lambda0 t) theta-hat over bound")
    return Found([*found.comparisons, bound], found.hypotheses)


@experiment("LLWA21-LE.8", quick={"m": 6}, full={"m": 20})
def limit_before_t0(seed: int, m: int) -> Found:
    """With lambda0 = max |G|, which its proof uses."""
    return up_to_t0(follower(seed, m), TINY)


@experiment("LLWA21-LE.8", **MU_TILDE, quick={"m": 6}, full={"m": 20})
def limit_before_t0_with_the_displayed_rate(seed: int, m: int) -> Found:
    """Up to t0 too the rescaled flow would tend to zero with the displayed value."""
    f = follower(seed, m)
    return limit_with_either_rate(f, np.array([f.pair.last - 1 / f.pair.rate, f.pair.last]))


@experiment("LLWA21-LE.9", quick={"m": 6, "steps": (2.0, 6.0)}, full={"m": 20})
def limit_after_t0(seed: int, m: int, steps: tuple[float, ...]) -> Found:
    """What holds at t0 holds at every later time."""
    f = follower(seed, m)
    times = np.append(f.pair.last, f.pair.last + after(f, steps))
    errors, seen = f.errors(times, TINY)
    at_t0, later = linear_in_sigma(errors[:, :1], TINY), linear_in_sigma(errors[:, 1:], TINY)
    return Found([*at_t0, *later], [f.good, seen])
