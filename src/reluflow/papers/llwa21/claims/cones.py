"""[LLWA21]_ Appendices G.1 to G.5: small neurons enter cones of separators and grow there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from typing import Any

import numpy as np

from reluflow.arrays import Array
from reluflow.claims.claim import Found, experiment
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import balanced_start, some_leak, unit_ball
from reluflow.claims.verdict import Comparison, Hypothesis, at_least, at_most
from reluflow.landscape.early import early
from reluflow.network import Network
from reluflow.papers.llwa21.claims.assumptions import means_separate, plus_is_longer
from reluflow.papers.llwa21.claims.general import principal_gap
from reluflow.papers.llwa21.claims.near_zero import Departure
from reluflow.papers.llwa21.runs import embed, in_unit_ball, m_distance, sides, states_at
from reluflow.problem import Problem, datasets
from reluflow.problem.losses import Logistic

STAY = 15.0  # T0 of Lemma G.3 in units of 1/lambda0-
LOGS = (-80.0, -100.0, -120.0)  # log sigma: neurons may grow by e^30 before T0
LARGER = (-16.0, -22.0, -28.0)  # log sigma at which negative neurons are still felt
SIZES = (0.08, 0.04, 0.02)  # r times the largest |b_k|


@experiment("LLWA21-LG.1", quick={"draws": 300}, full={"draws": 5000})
def principal_implies_separating(seed: int, draws: int) -> list[Comparison]:
    """Random data with a principal direction (A.1) satisfy A.2."""
    principal, wrong, other = 0, 0, 0
    for i in range(draws):
        rng = np.random.default_rng([seed, i])
        n = int(rng.integers(2, 8))
        Z = np.column_stack(
            [rng.uniform(0.3, 2.0, n), 10 ** rng.uniform(-1.5, 0.5) * rng.standard_normal((n, 2))]
        )
        y = rng.choice([-1.0, 1.0], n)
        problem = Problem(y[:, None] * Z, y, Logistic(), float(rng.uniform(0.1, 0.9)))
        stated = bool(means_separate(Evidence.of(problem)).ok)
        if principal_gap(problem, np.array([1.0, 0.0, 0.0])) > 0:
            principal += 1
            wrong += not stated
        else:
            other += stated
    return [
        at_least(principal, draws / 20, what="draws with A.1 along e1"),
        at_most(wrong, 0, what="of these, draws without A.2"),
        at_least(other, 1, what="A.2 without A.1 along e1: the converse is not so"),
    ]


def depth(problem: Problem) -> float:
    """delta: least margin of unit vectors sum h_i y_i x_i, h in [leak, 1]^n; at a vertex."""
    Z = problem.y[:, None] * problem.X
    H = np.array(list(product((problem.leak, 1.0), repeat=problem.n)))
    W = H @ Z
    return float((W @ Z.T / np.linalg.norm(W, axis=1)[:, None]).min())


def cone_margins(problem: Problem, net: Network) -> Array:
    """min_i sgn(a_j) y_i <w_j, x_i>/|w_j| of each neuron."""
    signed = np.sign(net.a)[:, None] * net.directions
    return np.asarray((signed @ (problem.y[:, None] * problem.X).T).min(axis=1))


def start_on(problem: Problem, seed: int, m: int, excluded: str) -> Network:
    """Balanced random directions of both signs, then two on rays: those printed, or the true ones.

    ``excluded`` names which exclusion is believed: the first two neurons lie on the other's rays.
    """
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((m, problem.d))
    _, plus, minus = sides(problem)
    flip = -1.0 if excluded == "printed" else 1.0
    W[0], W[1] = flip * minus, -flip * plus
    W /= np.linalg.norm(W, axis=1)[:, None]
    return Network(W, np.resize([1.0, -1.0], m), leak=problem.leak)


def conditions(problem: Problem, net: Network) -> list[Hypothesis]:
    """Those printed with Lemmas G.3 and G.4: A.2, balance, and off the rays that are printed."""
    evidence = Evidence.of(problem, start=net)
    _, plus, minus = (v / np.linalg.norm(v) for v in sides(problem))
    rays = np.where((net.a > 0)[:, None], minus, -plus)
    near = float(np.linalg.norm(net.directions - rays, axis=1).min())
    off = Hypothesis(
        "not on lambda mu- (a > 0) or -lambda mu+ (a < 0), lambda >= 0",
        near > 1e-6,
        f"least distance of a direction to its ray {near:.3g}",
    )
    tests = (some_leak, unit_ball, means_separate, balanced_start)
    return [*(test(evidence) for test in tests), off]


def planar_hints() -> Problem:
    """Data with three hints in the unit ball."""
    return in_unit_ball(datasets.figure1_right(eps=0.1))


def frozen_cone(seed: int, m: int, excluded: str) -> tuple[Problem, Network, Comparison]:
    """Flow of G alone: the least margin of neurons with a > 0 at the best T0, against delta/2."""
    problem = planar_hints()
    net = start_on(problem, seed, m, excluded)
    positive = net.subset(net.a > 0)
    rate = float(np.linalg.norm(sides(problem)[2])) / 2
    states = early(problem, positive, np.linspace(0.1, STAY, 60) / rate)
    best = max(cone_margins(problem, state).min() for state in states)
    bound = at_least(best, depth(problem) / 2, what="least margin in the cone at the best T0")
    return problem, positive, bound


@experiment("LLWA21-LG.3", form="printed", quick={"m": 10})
def off_the_printed_ray(seed: int, m: int) -> Found:
    """A start on -mu-, which the printed exclusion of +mu- allows, shrinks along its ray."""
    problem, positive, bound = frozen_cone(seed, m, "printed")

    # on that ray dG = {mu-}: the direction is kept for ever, so that no later T0 serves either
    rate = float(np.linalg.norm(sides(problem)[2])) / 2
    last = early(problem, positive.subset(np.array([0])), STAY / rate)
    turned = float(np.linalg.norm(last.directions[0] - positive.directions[0]))
    lost = float(positive.log_norms[0] - last.log_norms[0])
    any_time = Hypothesis(
        "T0 may be any time",
        turned <= 1e-9,
        f"by {STAY:g}/lambda0- the neuron on -mu- has turned by {turned:.1e} and shrunk "
        f"by e^-{lost:.3g}: it stays on its ray",
    )
    return Found([bound], [*conditions(problem, positive), any_time])


@experiment("LLWA21-LG.3", form="repaired", quick={"m": 10}, full={"m": 400})
def off_the_true_ray(seed: int, m: int) -> Found:
    """All starts off -mu-, one of them on +mu-, are in the cone at T0."""
    problem, _, bound = frozen_cone(seed, m, "true")
    return Found([bound], [means_separate(Evidence.of(problem))])


@dataclass(frozen=True, eq=False)
class Growth:
    """Small balanced networks on hinted data: T0, rates, and flows from several sigma."""

    problem: Problem
    net: Network

    @cached_property
    def rates(self) -> tuple[float, float]:
        """lambda0+ = |mu+|/2, lambda0- = |mu-|/2."""
        _, plus, minus = sides(self.problem)
        return float(np.linalg.norm(plus)) / 2, float(np.linalg.norm(minus)) / 2

    @property
    def kappa(self) -> float:
        return 1 - self.rates[1] / self.rates[0]

    @cached_property
    def T0(self) -> float:
        """When all neurons are in the cones of depth delta/3; STAY/lambda0- at the latest."""
        grid = np.linspace(0.1, STAY, 150) / self.rates[1]
        bound = depth(self.problem) / 3
        for time, net in zip(grid, early(self.problem, self.net, grid), strict=True):
            if cone_margins(self.problem, net).min() >= bound:
                return float(time)
        return float(grid[-1])

    @cached_property
    def unit(self) -> float:
        """log of the largest |b_k|: r is counted in its inverse."""
        return float(self.goal(LOGS[-1], 0.0)[1][self.net.a > 0].max())

    def at(self, log_sigma: float, times: list[float]) -> list[Network]:
        """The flow from sigma times the draw."""
        return list(states_at(self.problem, self.net.scaled(log_sigma), times).path())

    def after(self, log_sigma: float, log_r: float) -> float:
        """T0 + ln(r/(sqrt(m) sigma))/lambda0+."""
        grown = log_r - log_sigma - 0.5 * math.log(self.net.m)
        return self.T0 + grown / self.rates[0]

    def goal(self, log_sigma: float, log_r: float) -> tuple[Network, Array]:
        """r b_k (mubar+, 1) and r^(1 - kappa) b_k (mubar-, 1), with log|b_k|, from theta(T0)."""
        early = self.at(log_sigma, [self.T0])[0]
        _, plus, minus = (v / np.linalg.norm(v) for v in sides(self.problem))
        up = early.a > 0
        to = np.where(up[:, None], plus, minus)
        part = (np.sum(early.W * to, axis=1) + early.a) / 2
        share = np.where(up, 1.0, 1 - self.kappa)
        unit = share * (log_sigma + 0.5 * math.log(self.net.m))
        log_b = np.log(np.abs(part)) + early.log_factors - unit
        size = np.sign(part) * np.exp(log_b + share * log_r)
        return Network(size[:, None] * to, size, leak=self.problem.leak), log_b


@cache
def growth(seed: int, m: int, excluded: str = "true") -> Growth:
    """Six hinted points in the unit ball and a draw."""
    problem = planar_hints()
    return Growth(problem, start_on(problem, seed, m, excluded))


@experiment("LLWA21-LG.4", form="repaired", quick={"m": 8}, full={"m": 100})
def all_but_the_true_rays(seed: int, m: int) -> Found:
    """Starts off -mu- (a > 0) and +mu+ (a < 0), two of them on the printed rays, enter.

    At the best T0 all neurons are in the cone of depth delta/3, with norms proportional to sigma.
    """
    g = growth(seed, m)
    times = [float(t) for t in np.linspace(0.1, 1.0, 20) * g.T0]
    runs = [g.at(log, times) for log in LOGS[:2]]
    margins = np.array([[cone_margins(g.problem, net).min() for net in run] for run in runs])
    best = int(np.argmax(margins.min(axis=0)))
    sizes = [run[best].log_norms - log for run, log in zip(runs, LOGS[:2], strict=True)]
    least, bound = margins[:, best].min(), depth(g.problem) / 3
    comparisons = [
        at_least(least, bound, what="least margin in the cones at the best T0"),
        at_most(np.abs(sizes[0] - sizes[1]).max(), 1e-3, what="|change of log(|w|/sigma)|"),
    ]
    return Found(comparisons, [means_separate(Evidence.of(g.problem))])


@experiment("LLWA21-LG.4", form="printed", quick={"m": 8})
def all_but_the_printed_rays(seed: int, m: int) -> Found:
    """a > 0 on -mu- and a < 0 on +mu+, which the print allows, do not enter.

    At a fixed T0 the flow tends to that of G alone as sigma -> 0, and the cone is closed: were
    there a T0 and a sigma_max, the flow of G alone would be in the cone at T0.
    """
    g = growth(seed, m, "printed")
    grid = np.linspace(0.1, STAY, 60) / g.rates[1]
    margins = [cone_margins(g.problem, net).min() for net in early(g.problem, g.net, grid)]
    # later, rounding errors across the ray, which grow as e^(2 lambda0+ t), would be seen
    soon = 6.0 / g.rates[0]
    limit = early(g.problem, g.net, soon)
    off = [np.abs(g.at(log, [soon])[0].directions - limit.directions).max() for log in LOGS[:2]]
    chosen = Hypothesis(
        "T0 and sigma_max may be chosen",
        bool(max(off) <= 1e-6),
        f"no T0 up to {STAY:g}/lambda0- serves as sigma -> 0; flows from sigma = e^{LOGS[0]:g} and "
        f"e^{LOGS[1]:g} differ from that limit by {max(off):.1e}",
    )
    what = "least margin in the cones at the best T0, sigma -> 0"
    bound = at_least(max(margins), depth(g.problem) / 3, what=what)
    return Found([bound], [*conditions(g.problem, g.net), chosen])


def hypotheses_of(problem: Problem) -> list[Hypothesis]:
    """A.2 and A.3 of the data."""
    evidence = Evidence.of(problem)
    return [means_separate(evidence), plus_is_longer(evidence)]


def _orders(g: Growth) -> list[Comparison]:
    """Error of theta(T0 + T1) in r, and how |b_k| depends on sigma, for both signs."""
    log_r = [float(r) for r in np.log(SIZES) - g.unit]
    errors = []
    for r in log_r:
        state = g.at(LOGS[0], [g.after(LOGS[0], r)])[0]
        errors.append(m_distance(state, g.goal(LOGS[0], r)[0]))
    order = float(np.polyfit(log_r, np.log(errors), 1)[0])
    up = g.net.a > 0
    sizes = np.array([g.at(log, [g.after(log, log_r[-1])])[0].log_norms for log in LOGS])
    slopes = np.polyfit(LOGS, sizes, 1)[0]  # of log|b|, r being fixed
    off = np.abs(slopes[~up] - g.kappa).max()
    return [
        at_least(order, 2.8, what="order in r of the error, 3 stated"),
        at_most(np.abs(slopes[up]).max(), 0.01, what="|d log|b| / d log sigma|, a > 0: bounded"),
        at_most(off, 0.01, what="|d log|b| / d log sigma - kappa|, a < 0"),
    ]


def slopes_after_t0(g: Growth) -> Array:
    """d log|w_k| / dt of each neuron while it is small and in its cone."""
    times = [g.after(LOGS[0], math.log(r) - g.unit) for r in (1e-12, 1e-6)]
    first, last = g.at(LOGS[0], times)
    return np.asarray((last.log_norms - first.log_norms) / (times[1] - times[0]))


@experiment("LLWA21-LG.5", quick={"m": 4}, full={"m": 40})
def grows_in_its_cone(seed: int, m: int) -> Found:
    """Order 3 in r, |b_k| of both signs, and the rates |mu+-|/2 as slopes of log|w_k|."""
    g = growth(seed, m)
    off = _relative_error(slopes_after_t0(g), g, 0.5).max()
    rate = at_most(off, 1e-6, what="slopes of log|w_k| against |mu+-|/2, relative")
    return Found([*_orders(g), rate], hypotheses_of(g.problem))


def _relative_error(slopes: Array, g: Growth, factor: float) -> Array:
    """|slope / (factor |mu+-|) - 1| of each neuron, mu+ for a > 0 and mu- for a < 0."""
    _, plus, minus = (float(np.linalg.norm(v)) for v in sides(g.problem))
    rates = factor * np.where(g.net.a > 0, plus, minus)
    return np.asarray(np.abs(slopes / rates - 1))


RATES: dict[str, Any] = {
    "form": "slip",
    "printed": "lambda0+ = |mu+| and lambda0- = |mu-|, from G(w) = <w, mu+-> (G.3.2, before (64))",
    "meant": "lambda0+- = |mu+-|/2, from G(w) = <w, mu+->/2 as G is defined in G.3",
}


@experiment("LLWA21-LG.5", **RATES, quick={"m": 4}, full={"m": 40})
def rates_in_the_proof(seed: int, m: int) -> Found:
    """Slopes of log|w_k| against both; with the printed rates |b_k| would fall with sigma."""
    g = growth(seed, m)
    slopes, up = slopes_after_t0(g), g.net.a > 0
    times = [g.T0 + (g.after(log, math.log(SIZES[-1]) - g.unit) - g.T0) / 2 for log in LOGS]
    sizes = [g.at(log, [time])[0].log_norms for log, time in zip(LOGS, times, strict=True)]
    falls = np.polyfit(LOGS, np.array(sizes), 1)[0][up]
    meant, printed = (_relative_error(slopes, g, factor) for factor in (0.5, 1.0))
    comparisons = [
        at_most(meant.max(), 1e-6, what="slopes of log|w_k| against |mu+-|/2"),
        at_least(printed.min(), 0.4, what="and against |mu+-| (1/2)"),
        at_least(falls.min(), 0.4, what="d log|b| / d log sigma at half of T1, a > 0 (1/2)"),
    ]
    return Found(comparisons, hypotheses_of(g.problem))


@experiment("LLWA21-LG.8", quick={"m": 4}, full={"m": 20})
def follows_one(seed: int, m: int) -> Found:
    """theta(T12 + t) against the embedding of one neuron's limit, and how it depends on sigma."""
    g = growth(seed, m)
    times, goal = embedded_limit(g)
    errors = []
    for log in LARGER:
        states = g.at(log, list(g.after(log, -g.unit) + times))
        errors.append([m_distance(a, c) / c.m_norm for a, c in zip(states, goal, strict=True)])
    worst = np.array(errors).max(axis=1)
    slope = float(np.polyfit(LARGER, np.log(worst), 1)[0])
    up = int(np.sum(g.net.a > 0))
    return Found(
        [
            at_least(min(c.m_norm for c in goal), 1e-3, what="the limit is not zero"),
            at_most(worst[-1], 1e-3, what="relative error at log sigma = -28"),
            at_least(slope, 0.8 * g.kappa, what="order of the error in sigma, kappa expected"),
            at_least(up, 1, what="neurons with a > 0"),
        ],
        hypotheses_of(g.problem),
    )


def embedded_limit(g: Growth) -> tuple[Array, list[Network]]:
    """Times around T12, and one neuron's limit r -> 0 there, embedded by the limit of b."""
    plus = sides(g.problem)[1] / np.linalg.norm(sides(g.problem)[1])
    b = np.where(g.net.a > 0, np.exp(g.goal(LOGS[-1], 0.0)[1] - g.unit), 0.0)
    size = float(np.linalg.norm(b))
    hat = Network(np.array([size * plus, 0 * plus]), np.array([size, 0.0]), leak=g.problem.leak)
    times = np.array([-2.0, 0.0, 2.0]) / g.rates[0]
    rays = Departure(g.problem, hat).from_ray(1e-7, times)
    return times, [embed(b, state) for state in rays]


@experiment("LLWA21-LG.8", **RATES, quick={"m": 4}, full={"m": 20})
def one_neuron_with_the_printed_rate(seed: int, m: int) -> Found:
    """T12 - T0 with |mu+| is half as long: the network is still near zero then."""
    g = growth(seed, m)
    log = LARGER[-1]
    times, goal = embedded_limit(g)
    wait = g.after(log, -g.unit) - g.T0
    meant = g.at(log, [g.T0 + wait + float(times[1])])[0].m_norm / goal[1].m_norm
    printed = g.at(log, [g.T0 + wait / 2 + float(times[1])])[0].m_norm / goal[1].m_norm
    comparisons = [
        at_most(abs(meant - 1), 1e-3, what="||theta(T12)|_M over its limit's - 1|, |mu+|/2"),
        at_most(printed, 1e-3, what="|theta(T12)|_M over its limit's with |mu+|"),
    ]
    return Found(comparisons, hypotheses_of(g.problem))
