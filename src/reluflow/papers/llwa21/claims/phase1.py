"""[LLWA21]_ Phase I on symmetric data: small neurons follow a power iteration to +-mu."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from reluflow.arrays import Array
from reluflow.claims.claim import Found, experiment
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import some_leak, symmetric_data, unit_ball
from reluflow.claims.verdict import Comparison, at_least, at_most
from reluflow.landscape import G
from reluflow.network import Network, initialize
from reluflow.papers.llwa21.claims.assumptions import branchings
from reluflow.papers.llwa21.claims.bounds import m_norm
from reluflow.papers.llwa21.runs import early_rate, in_unit_ball, m_distance, none_met
from reluflow.problem import Problem, datasets

RTOL = 1e-10
SIZES = (0.2, 0.1, 0.05, 0.02)  # r
MORE = (*SIZES, 0.01, 0.005)


@cache
def draw(seed: int, m: int) -> tuple[Problem, Network]:
    """Symmetric data in the unit ball and a Gaussian draw of unit size."""
    problem = in_unit_ball(datasets.symmetric_separable(rng=seed))
    return problem, initialize(problem, m, scale=1.0, kind="gaussian", normalize="none", rng=seed)


def start_size(net: Network) -> float:
    """N = sqrt(m) |theta-bar_0|_M."""
    return math.sqrt(net.m) * m_norm(net)


def mixture(net: Network, mubar: Array) -> Array:
    """bbar_j = (<w_j, mubar> + a_j) / (2N)."""
    W, a = net.weights()
    return np.asarray((W @ mubar + a) / (2 * start_size(net)))


def aligned(problem: Problem, net: Network, r: float) -> tuple[float, float, int]:
    """M-norm of theta(T1(r)) - r bbar_j (mubar, 1) from sigma = r^3/N, its bound, branchings."""
    from reluflow.gradientflow.flow import flow

    rate, mubar = early_rate(problem)
    N = start_size(net)
    sigma = r**3 / N
    time = math.log(r / (sigma * N)) / rate
    run = flow(problem, net.scaled(math.log(sigma)), t_end=time, rtol=RTOL)
    b = r * mixture(net, mubar)
    error = m_distance(run.final, Network(np.outer(b, mubar), b))
    bound = (4 / rate + math.sqrt(2)) * r**3 / math.sqrt(net.m)
    return error, bound, branchings(Evidence.of(problem, run))


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
    rows = [aligned(problem, net, r) for r in used]
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
    comparisons = [
        at_most(
            np.abs(G(problem, net.W) - rate * along).max() / size,
            1e-12,
            what="|G - <w, meant mu~>|, relative",
        ),
        at_least(
            np.abs(G(problem, net.W) - printed * along).max() / size,
            0.9,
            what="|G - <w, printed mu~>|, relative (1)",
        ),
        at_most(abs(seen / rate - 1), 1e-6, what="|growth rate / meant lambda0 - 1|"),
        at_least(abs(seen / printed - 1), 0.4, what="|growth rate / printed lambda0 - 1| (1/2)"),
    ]
    return Found(comparisons, [symmetric_data(Evidence.of(problem))])


def growth_rate(problem: Problem, net: Network) -> float:
    """Slope of log |theta| between growth by e^20 and by e^30, from e^-60."""
    from reluflow.gradientflow.flow import flow

    times = np.array([20.0, 30.0]) / early_rate(problem)[0]
    run = flow(problem, net.scaled(-60.0), t_end=float(times[-1]), save=list(times), rtol=RTOL)
    first, last = (float(state.log_outer.max()) for state in run.path())
    return (last - first) / float(times[1] - times[0])


def linear_flow(problem: Problem, net: Network, time: float) -> Network:
    """expm(t M) applied to every (w_j, a_j), M = [[0, mu~], [mu~^T, 0]]."""
    from scipy.linalg import expm

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
            size = m_norm(linear_flow(problem, net, float(time)))
            growth = max(growth, size / (math.exp(rate * time) * m_norm(net)))
    return [
        at_most(growth, 1.0, error=1e-12, what="M-norm over e^(lambda0 t) |theta_0|_M"),
        at_most(gap, 1e-12, what="|G(w) - <w, mu~>|"),
    ]


def linear_gap(problem: Problem, net: Network, shares: Array) -> tuple[Array, int]:
    """|theta - linear flow|_M over its bound, at shares of the time the lemma speaks of."""
    from reluflow.gradientflow.flow import flow

    rate = early_rate(problem)[0]
    size = m_norm(net)
    end = math.log(math.sqrt(rate / 4) / (math.sqrt(net.m) * size)) / rate
    run = flow(problem, net, t_end=end, save=list(shares * end), rtol=RTOL)
    gaps = [
        m_distance(state, linear_flow(problem, net, float(time)))
        / (4 * net.m * size**3 * math.exp(3 * rate * time) / rate)
        for state, time in zip(run.path(), run.times, strict=True)
    ]
    return np.array(gaps), branchings(Evidence.of(problem, run))


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
