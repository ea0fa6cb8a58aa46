"""[LLWA21]_ Phase I and Appendix E.2: small neurons turn to +-mu and leave zero."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm

from reluflow.arrays import Array
from reluflow.claims.claim import Found, assumption, experiment, predicate
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import mean_logistic, some_leak, symmetric_data, unit_ball
from reluflow.claims.verdict import Comparison, Hypothesis, at_least, at_most
from reluflow.landscape import G, max_G
from reluflow.network import Network, initialize
from reluflow.papers.llwa21.runs import (
    branchings,
    early_rate,
    in_unit_ball,
    m_distance,
    none_met,
    sides,
    states_at,
    two_neurons,
)
from reluflow.problem import Problem, datasets

SIZES = (0.2, 0.1, 0.05, 0.02)  # r
MORE = (*SIZES, 0.01, 0.005)
ALIGNED = 1e-9  # relative, for |G| = lambda and a = sgn(G) |w|


@cache
def draw(seed: int, m: int) -> tuple[Problem, Network]:
    """Symmetric data in the unit ball and a Gaussian draw of unit size."""
    problem = in_unit_ball(datasets.symmetric_separable(rng=seed))
    return problem, initialize(problem, m, scale=1.0, kind="gaussian", normalize="none", rng=seed)


def start_size(net: Network) -> float:
    """N = sqrt(m) |theta-bar_0|_M."""
    return math.sqrt(net.m) * net.m_norm


def mixture(net: Network, mubar: Array) -> Array:
    """bbar_j = (<w_j, mubar> + a_j) / (2N)."""
    W, a = net.weights()
    return np.asarray((W @ mubar + a) / (2 * start_size(net)))


def alignment_error(problem: Problem, net: Network, r: float) -> tuple[float, float, int]:
    """M-norm of theta(T1(r)) - r bbar_j (mubar, 1) from sigma = r^3/N, its bound, branchings."""
    rate, mubar = early_rate(problem)
    N = start_size(net)
    sigma = r**3 / N
    time = math.log(r / (sigma * N)) / rate
    run = states_at(problem, net.scaled(math.log(sigma)), [time])
    b = r * mixture(net, mubar)
    error = m_distance(run.end(), Network(np.outer(b, mubar), b))
    bound = (4 / rate + math.sqrt(2)) * r**3 / math.sqrt(net.m)
    return error, bound, branchings(run)


@experiment(
    "LLWA21-L5.2",
    quick={"m": 6, "sizes": SIZES},
    full={"sizes": MORE},
    reason="C = 4/lambda0 + sqrt 2, with lambda0 = max |G|",
)
def power_iteration(seed: int, m: int, sizes: tuple[float, ...]) -> Found:
    """Errors against C r^3/sqrt(m), and the order in r."""
    problem, net = draw(seed, m)
    rate = early_rate(problem)[0]
    used = [r for r in sizes if r <= math.sqrt(rate) / 2]
    rows = [alignment_error(problem, net, r) for r in used]
    errors = np.array([error for error, _, _ in rows])
    found = [
        at_most(error, bound, error=1e-6 * r, what=f"|Delta|_M at T1(r), r = {r:g}")
        for r, (error, bound, _) in zip(used, rows, strict=True)
    ]
    order = float(np.polyfit(np.log(used), np.log(errors), 1)[0])
    found.append(at_least(order, 2.9, what="order of the error in r, 3 stated"))
    evidence = Evidence.of(problem)
    tests = [test(evidence) for test in (some_leak, unit_ball, symmetric_data)]
    return Found(found, [*tests, none_met(sum(several for _, _, several in rows))])


MU_TILDE: dict[str, Any] = {
    "form": "slip",
    "printed": "mu~ = (1 + leak)/2 mu, so lambda0 = |mu~| = (1 + leak)/2 |mu| (Section 5.1)",
    "meant": "mu~ = (1 + leak)/4 mu, the slope of G(w) = <w, mu~> in the line before; lambda0 = "
    "max |G|",
}


@experiment("LLWA21-L5.2", **MU_TILDE, quick={"m": 6}, full={"m": 60})
def slope_of_g(seed: int, m: int) -> Found:
    """G at random w, and the growth of a small network, against both values of mu~."""
    problem, net = draw(seed, m)
    (rate, mubar), printed = early_rate(problem), early_rate(problem, printed=True)[0]
    along = net.W @ mubar
    size = float(np.abs(along).max()) * rate
    seen = growth_rate(problem, net)
    off = [np.abs(G(problem, net.W) - each * along).max() / size for each in (rate, printed)]
    comparisons = [
        at_most(off[0], 1e-12, what="|G - <w, meant mu~>|, relative"),
        at_least(off[1], 0.9, what="|G - <w, printed mu~>|, relative (1)"),
        at_most(abs(seen / rate - 1), 1e-6, what="|growth rate / meant lambda0 - 1|"),
        at_least(abs(seen / printed - 1), 0.4, what="|growth rate / printed lambda0 - 1| (1/2)"),
    ]
    return Found(comparisons, [symmetric_data(Evidence.of(problem))])


def growth_rate(problem: Problem, net: Network) -> float:
    """Slope of log |theta| between growth by e^20 and by e^30, from e^-60."""
    times = np.array([20.0, 30.0]) / early_rate(problem)[0]
    run = states_at(problem, net.scaled(-60.0), times)
    first, last = (float(state.log_outer.max()) for state in run.path())
    return (last - first) / float(times[1] - times[0])


def linear_flow(problem: Problem, net: Network, time: float) -> Network:
    """expm(t M) applied to every (w_j, a_j), M = [[0, mu~], [mu~^T, 0]]."""
    rate, mubar = early_rate(problem)
    M = np.zeros((problem.d + 1, problem.d + 1))
    M[:-1, -1] = M[-1, :-1] = rate * mubar
    theta = np.column_stack(net.weights()) @ expm(time * M)
    return Network(theta[:, :-1], theta[:, -1], leak=net.leak)


@experiment("LLWA21-LD.1", quick={"draws": 20}, full={"draws": 500})
def linear_growth(seed: int, draws: int) -> list[Comparison]:
    """|linear flow|_M <= e^{lambda0 t} |theta_0|_M; G is linear, of slope mu~, as it assumes."""
    growth, gap = 0.0, 0.0
    for i in range(draws):
        rng = np.random.default_rng([seed, i])
        problem = in_unit_ball(datasets.symmetric_separable(rng=rng))
        net = initialize(problem, 4, scale=1.0, kind="gaussian", normalize="none", rng=rng)
        rate, mubar = early_rate(problem)
        gap = max(gap, float(np.abs(G(problem, net.W) - rate * (net.W @ mubar)).max()))
        for time in rng.uniform(0.0, 4 / rate, 3):
            size = linear_flow(problem, net, float(time)).m_norm
            growth = max(growth, size / (math.exp(rate * time) * net.m_norm))
    return [
        at_most(growth, 1.0, error=1e-12, what="M-norm over e^(lambda0 t) |theta_0|_M"),
        at_most(gap, 1e-12, what="|G(w) - <w, mu~>|"),
    ]


def linear_gap(problem: Problem, net: Network, shares: Array) -> tuple[Array, int]:
    """|theta - linear flow|_M over its bound, at shares of the time the lemma speaks of."""
    rate = early_rate(problem)[0]
    size = net.m_norm
    end = math.log(math.sqrt(rate / 4) / (math.sqrt(net.m) * size)) / rate
    run = states_at(problem, net, shares * end)
    gaps = [
        m_distance(state, linear_flow(problem, net, float(time)))
        / (4 * net.m * size**3 * math.exp(3 * rate * time) / rate)
        for state, time in zip(run.path(), run.times, strict=True)
    ]
    return np.array(gaps), branchings(run)


@experiment("LLWA21-LD.2", quick={"draws": 4}, full={"draws": 100})
def flow_stays_linear(seed: int, draws: int) -> Found:
    """|theta(t) - linear flow|_M <= 4m |theta_0|_M^3 e^{3 lambda0 t}/lambda0."""
    worst, change, several = 0.0, 0.0, 0
    for i in range(draws):
        rng = np.random.default_rng([seed, i])
        problem, net = draw(seed + i, int(rng.integers(2, 9)))
        small = net.scaled(math.log(10.0 ** rng.uniform(-4, -2) / start_size(net)))
        gaps, branched = linear_gap(problem, small, np.linspace(0.4, 1.0, 7))
        several += branched
        worst = max(worst, float(gaps.max()))
        change = max(change, abs(math.log(gaps[-1] / gaps[-3])))
    comparisons = [
        at_most(worst, 1.0, error=1e-3, what="distance to the linear flow over its bound"),
        at_most(change, 0.5, what="|change of log(distance e^(-3 lambda0 t))| over the last fifth"),
    ]
    return Found(comparisons, [none_met(several)])


@predicate("well aligned (E.3)")
def well_aligned(evidence: Evidence) -> tuple[bool, str]:
    """Neurons that are not zero maximise |G|, have a = sgn(G) |w|, and lie on no kink."""
    p, net = evidence.problem, evidence.end()
    keep = np.isfinite(net.log_norms) | np.isfinite(net.log_outer)
    if not keep.any():
        return False, "all neurons are zero"
    if not p.pull.any():
        return False, "nothing pulls on a silent network"
    kept = net.subset(keep)
    units, sizes = kept.directions, np.exp(kept.log_norms - kept.log_outer)
    values = G(p, units)
    X = p.X[p.X.any(axis=1)]
    kink = np.abs(units @ X.T / np.linalg.norm(X, axis=1)).min()
    same = bool((np.sign(kept.a) == np.sign(values)).all())
    balanced = float(np.abs(sizes - 1).max())
    fine = same and balanced <= ALIGNED and kink > ALIGNED
    detail = (
        f"imbalance {balanced:.1e}, signs {'right' if same else 'wrong'}, "
        f"least |cos(w, x)| {kink:.3g}"
    )
    if not fine:  # whatever the maximum is, which takes seconds to bound on tables
        return False, detail
    short = 1 - np.abs(values).min() / max_G(p).upper_bound
    return bool(short <= ALIGNED), f"|G| short of its maximum by {short:.1e}, {detail}"


def aligned_pair(seed: int) -> Evidence:
    """theta-hat of a Gaussian draw of six neurons on symmetric data."""
    problem, net = draw(seed, 6)
    mubar = early_rate(problem)[1]
    return Evidence.of(problem, two_neurons(mixture(net, mubar), mubar, problem.leak))


def aligned_one(seed: int) -> Evidence:
    """One neuron along mu+ and a zero one, on data with three hints."""
    problem = in_unit_ball(datasets.figure1_right())
    plus = sides(problem)[1]
    w = 0.3 * plus / np.linalg.norm(plus)
    W = np.vstack([w, np.zeros_like(w)])
    return Evidence.of(problem, Network(W, np.array([0.3, 0.0]), leak=problem.leak))


assumption("LLWA21-DefE.3", well_aligned, needs=("end",), example=aligned_pair)


@dataclass(frozen=True, eq=False)
class Departure:
    """Flows from r theta-hat in the time t after T2(r) = ln(1/r)/lambda."""

    problem: Problem
    hat: Network

    @cached_property
    def rate(self) -> float:
        """lambda = max |G| on the sphere."""
        return max_G(self.problem).value

    @cached_property
    def on(self) -> NDArray[np.bool_]:
        """Neurons of theta-hat that are not zero."""
        return np.asarray(self.hat.W.any(axis=1))

    @cached_property
    def last(self) -> float:
        """t0, up to which the bounds are stated."""
        gap = float(np.abs(self.hat.W[self.on] @ self.problem.X.T).min()) / self.hat.m_norm
        return math.log(self.rate * gap / (16 * self.hat.m * self.hat.m_norm**2)) / (2 * self.rate)

    @cached_property
    def curvature(self) -> float:
        """4m |theta-hat|_M^3 / lambda."""
        return 4 * self.hat.m * self.hat.m_norm**3 / self.rate

    def grown(self, t: float) -> Network:
        """e^{lambda t} theta-hat."""
        return self.hat.scaled(self.rate * t)

    def states(self, start: Network, r: float, times: Array) -> list[Network]:
        """The flow from ``start`` at T2(r) + times."""
        at = math.log(1 / r) / self.rate + np.sort(times)
        return list(states_at(self.problem, start, at).path())

    def from_ray(self, r: float, times: Array) -> list[Network]:
        """The flow from r theta-hat; neurons at zero stay there (Lemma B.17)."""
        states = self.states(self.hat.subset(self.on).scaled(math.log(r)), r, times)
        copies = np.eye(self.hat.m)[:, self.on]
        weights = (state.weights() for state in states)
        return [Network(copies @ W, copies @ a, leak=self.hat.leak) for W, a in weights]

    def beside(self, r: float, power: float, rng: np.random.Generator) -> Network:
        """A start at M-distance r^(1 + power) from r theta-hat."""
        dW, da = rng.standard_normal(self.hat.W.shape), rng.standard_normal(self.hat.m)
        size = r ** (1 + power) / Network(dW, da).m_norm
        return Network(r * self.hat.W + size * dW, r * self.hat.a + size * da, leak=self.hat.leak)

    def grid(self) -> Array:
        """Times up to t0, in which the network grows by e^2."""
        return np.linspace(self.last - 2.0 / self.rate, self.last, 8)


def departures(seed: int) -> tuple[list[tuple[Departure, str]], list[Hypothesis]]:
    """Symmetric data with two neurons, hinted data with one and a zero one; what they rest on."""
    evidence = {"pair": aligned_pair(seed), "one neuron": aligned_one(seed)}
    tests = (mean_logistic, some_leak, unit_ball, well_aligned)
    found = [(Departure(each.problem, each.end()), name) for name, each in evidence.items()]
    return found, [test(each) for each in evidence.values() for test in tests]


@experiment("LLWA21-TE.4", quick={"sizes": (1e-4, 1e-7)}, full={"sizes": (1e-4, 1e-7, 1e-10)})
def limit_near_zero(seed: int, sizes: tuple[float, ...]) -> Found:
    """The limit exists, is near e^{lambda t} theta-hat, and other starts share it."""
    comparisons: list[Comparison] = []
    found, hypotheses = departures(seed)
    for out, name in found:
        times = out.grid()
        rays = [out.from_ray(r, times) for r in sizes]
        rng = np.random.default_rng(seed)
        other = out.states(out.beside(sizes[-1], 1.0, rng), sizes[-1], times)
        size = rays[-1][-1].m_norm
        moved = max(map(m_distance, rays[-1], rays[0])) / size
        near = max(
            m_distance(state, out.grown(float(t))) / (out.curvature * math.exp(3 * out.rate * t))
            for state, t in zip(rays[-1], times, strict=True)
        )
        shared, bound = max(map(m_distance, rays[-1], other)) / size, 10 * sizes[-1] + 2e-8
        comparisons += [
            at_most(moved, 1e-7, what=f"{name}: change with r, relative"),
            at_most(near, 1.0, error=1e-3, what=f"{name}: distance to e^(lambda t) over its bound"),
            at_most(shared, bound, error=1e-8, what=f"{name}: other starts, relative"),
            at_least(size, 1e-6, what=f"{name}: the limit is not zero"),
        ]
    return Found(comparisons, hypotheses)


@experiment("LLWA21-LE.5", quick={"r": 1e-5, "starts": 2}, full={"r": 1e-6, "starts": 20})
def no_flips_up_to_t0(seed: int, r: float, starts: int) -> Found:
    """Up to t0: activations stay, |theta|_M <= 2 e^{lambda t} |theta-hat|_M, closeness."""
    flips, growth, close, rest = 0, 0.0, 0.0, 0.0
    found, hypotheses = departures(seed)
    for out, _ in found:
        on = out.on
        signs = np.sign(out.hat.W @ out.problem.X.T)
        times = out.grid()
        for i in range(starts):
            states = out.states(out.beside(r, 1.0, np.random.default_rng([seed, i])), r, times)
            for state, t in zip(states, times, strict=True):
                e = math.exp(out.rate * t)
                flips += int((np.sign(state.W @ out.problem.X.T) != signs)[on].sum())
                growth = max(growth, state.m_norm / (2 * e * out.hat.m_norm))
                grown = out.grown(float(t))
                gap = m_distance(state.subset(on), grown.subset(on))
                close = max(close, gap / (r * e + out.curvature * e**3))
                if not on.all():
                    rest = max(rest, state.subset(~on).m_norm / (2 * r * e))
    return Found(
        [
            at_most(flips, 0, what="activations that differ from theta-hat's"),
            at_most(growth, 1.0, what="|theta|_M over 2 e^(lambda t) |theta-hat|_M"),
            at_most(close, 1.0, error=1e-6, what="distance to e^(lambda t) theta-hat over bound"),
            at_most(rest, 1.0, error=1e-6, what="neurons that are zero in theta-hat, over bound"),
        ],
        hypotheses,
    )


@experiment("LLWA21-LE.6", quick={"r": 1e-4, "starts": 2}, full={"r": 1e-5, "starts": 20})
def near_starts_stay_near(seed: int, r: float, starts: int) -> Found:
    """Starts at distance r^2 stay within 4 r e^{lambda t} of the flow from r theta-hat."""
    worst, least = 0.0, math.inf
    found, hypotheses = departures(seed)
    for out, _ in found:
        times = out.grid()
        ray = out.from_ray(r, times)
        for i in range(starts):
            states = out.states(out.beside(r, 1.0, np.random.default_rng([seed, i])), r, times)
            gaps = np.array(list(map(m_distance, states, ray))) / (4 * r * np.exp(out.rate * times))
            worst, least = max(worst, float(gaps.max())), min(least, float(gaps.min()))
    return Found(
        [
            at_most(worst, 1.0, error=1e-4, what="distance over 4 C r^k e^(lambda t)"),
            at_least(least, 1e-3, what="least of it: the starts do differ"),
        ],
        hypotheses,
    )
