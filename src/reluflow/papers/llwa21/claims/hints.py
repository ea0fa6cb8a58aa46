"""[LLWA21]_ Theorem 6.2: three hints lead training to a margin below the largest."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from reluflow.claims.claim import Found, experiment
from reluflow.claims.evidence import Evidence
from reluflow.claims.verdict import Comparison, at_least, at_most, equals
from reluflow.network import Network, initialize
from reluflow.optimum.kkt import kkt
from reluflow.optimum.max_margin import max_margin
from reluflow.papers.llwa21.claims.assumptions import (
    BELOW_SIGMA_MAX,
    SETTING,
    means_separate,
    plus_is_longer,
)
from reluflow.papers.llwa21.claims.directions import NEAR
from reluflow.papers.llwa21.claims.general import has_principal_direction, negatives_weak_at_dual
from reluflow.papers.llwa21.claims.one_neuron import flip_classes
from reluflow.papers.llwa21.runs import (
    branchings,
    flow_until,
    least_margin,
    margin,
    none_met,
    one_neuron_limit,
    sides,
    sup_error,
)
from reluflow.problem import Problem, datasets
from reluflow.problem.losses import Logistic

RATIOS = {0.05: 2.478, 0.1: 1.442}  # eps -> largest margin over eps/2, noted for K = 1/2
PROVEN = (
    *SETTING,
    has_principal_direction,
    means_separate,
    plus_is_longer,
    negatives_weak_at_dual,
)


def gain(problem: Problem) -> tuple[float, float]:
    """Largest margin of any network over eps/2: reached, and its upper bound."""
    best, half = max_margin(problem), problem.known["limit_margin"]
    return best.margin / half, best.upper_bound / half


@cache
def hinted_run(seed: int, m: int, sigma: float, q: float) -> Evidence:
    """The flow from a balanced draw of size sigma on data with hints."""
    problem = datasets.figure1_right(eps=0.1)
    size = sigma / np.sqrt(problem.known["radius"])
    net = initialize(problem, m, scale=size, kind="balanced", normalize="none", rng=seed)
    reach = q if (net.a > 0).any() else min(q, 50.0)  # where it ends otherwise is plain by then
    return flow_until(problem, net, reach)


def limit_error(problem: Problem, net: Network) -> float:
    """Sup over the unit sphere of |f/|theta|^2 - phi(<w*, x>)/2|, over the sup of the limit."""
    return sup_error(problem, net, one_neuron_limit(problem, problem.known["w_star"]))


@experiment(
    "LLWA21-T6.2",
    quick={"draws": 3, "m": 2, "q": 100.0},
    full={"draws": 12, "m": 2, "q": 300.0},
    unchecked=BELOW_SIGMA_MAX,
    reason="sigma = 1e-8: from 1e-4 one draw of twelve is still 2 % away at q_min = 300; "
    "that error goes as sigma^(2 kappa), kappa = .456, and as 1/sqrt(q_min)",
)
def hints_win(seed: int, draws: int, m: int, q: float) -> Found:
    """(1/2) phi(<w*, x>) for every draw with some a > 0 (probability 1 - 2^-m), and no other."""
    worst, other, several = 0.0, np.inf, 0
    ratios: list[float] = []
    problem = datasets.figure1_right(eps=0.1)
    for i in range(draws):
        evidence = hinted_run(seed + i, m, 1e-8, q)
        start, end = evidence.first(), evidence.end()
        several += branchings(evidence)
        if (start.a > 0).any():
            worst = max(worst, limit_error(problem, end))
            ratios.append(margin(problem, end) / problem.known["limit_margin"])
        else:
            other = min(other, limit_error(problem, end))
    comparisons = [
        at_least(len(ratios), 1, what="draws with some a > 0"),
        at_most(worst, 1e-3, what="sup error of f/|theta|^2 there"),
        at_least(min(ratios, default=np.nan), 1 - 1e-3, what="margin over eps/2 there, least"),
        at_most(max(ratios, default=np.nan), 1 + 1e-6, what="margin over eps/2 there, largest"),
        at_least(min(other, 1.0), 0.1, what="sup error in draws with all a < 0 (1 without any)"),
        at_least(gain(problem)[0], 1 + 1e-6, what="largest margin over eps/2: suboptimal"),
        *(noted_ratio(eps, value) for eps, value in RATIOS.items()),
    ]
    tests = [test(Evidence.of(problem)) for test in PROVEN]
    return Found(comparisons, [*tests, none_met(several)])


def thresholds(eps: float) -> list[Comparison]:
    """K* = eps sqrt((3 + leak)/(1 - leak)) parts optimal from suboptimal, to 3 %."""
    K = datasets.hinted(eps=eps).known["K_threshold"]
    below = gain(datasets.hinted(eps=eps, K=0.97 * K))[1]
    above = gain(datasets.hinted(eps=eps, K=1.03 * K))[0]
    return [
        at_most(below, 1 + 1e-7, what=f"largest margin over eps/2, 0.97 K*, eps = {eps:g}"),
        at_least(above, 1 + 1e-7, what=f"largest margin over eps/2, 1.03 K*, eps = {eps:g}"),
    ]


@experiment(
    "LLWA21-T6.2",
    form="slip",
    part="K",
    quick={"epsilons": (0.05, 0.1)},
    printed="K > 0 (choice of parameters in Appendix A.2; the theorem says K large, eps small)",
    meant="K > eps sqrt((3 + leak)/(1 - leak)), which large K and small eps provide",
)
def how_large_is_k(seed: int, epsilons: tuple[float, ...]) -> Found:
    """Below that K the one neuron has the largest margin, so its margin is not suboptimal."""
    problem = datasets.hinted(eps=0.05, K=0.5 * datasets.hinted(eps=0.05).known["K_threshold"])
    ratio = at_most(gain(problem)[1], 1 + 1e-6, what="largest margin over eps/2 at K*/2: bound")
    rest = [c for eps in epsilons for c in thresholds(eps)]
    return Found([ratio, *rest], [test(Evidence.of(problem)) for test in PROVEN])


@experiment(
    "LLWA21-T6.2",
    form="slip",
    part="H",
    quick={"sizes": (1.0, 2.0)},
    printed="H > n |mu-| + |sum_{j>1} y_j x+_j| (Appendix A.2), where mu- contains leak H w*",
    meant="H > (|sum_{j>1} y_j x+_j| + |sum_{j>1} y_j x-_j|)/(1 - leak), for the same purpose, A.3",
)
def how_large_is_h(seed: int, sizes: tuple[float, ...]) -> list[Comparison]:
    """The printed bound grows with H, by leak; H above the meant one satisfies it, so A.3 holds."""
    base = datasets.hinted()
    w, H3 = base.known["w_star"], base.known["H3"]
    values = [size * H3 * (1 + 1e-6) for size in sizes]
    problems = [
        Problem(np.vstack([H * w, base.X[1:]]), base.y, leak=base.leak, loss=base.loss)
        for H in values
    ]
    bounds = [printed_bound(problem) for problem in problems]
    slope = (bounds[-1] - bounds[0]) / (values[-1] - values[0])
    met = max(bound / value for bound, value in zip(bounds, values, strict=True))
    longer = min(np.divide(*np.linalg.norm(sides(p)[1:], axis=1)) for p in problems)
    return [
        at_least(slope, 0.5 * base.leak, what="growth of the printed bound with H (leak, not 0)"),
        at_most(met, 1.0, what="printed bound over H where H satisfies the meant one, largest"),
        at_least(longer, 1.0, what="|mu+|/|mu-| there, least"),
    ]


def printed_bound(problem: Problem) -> float:
    """n |mu-| + |sum over all samples but the first, H w*, of y_j x+_j|."""
    plus = np.where(problem.y > 0, 1.0, problem.leak)[:, None] * problem.y[:, None] * problem.X
    own = problem.n * float(np.linalg.norm(sides(problem)[2]))
    return own + float(np.linalg.norm(plus[1:].sum(axis=0)))


@experiment(
    "LLWA21-T6.2",
    form="slip",
    part="probability",
    quick={"draws": 4000},
    full={"draws": 100_000},
    printed="probability at least 1 - delta, over D_init (display of Theorem 6.2)",
    meant="probability 1 - 2^-m, over the balanced D~_init, as the sentence before it says",
)
def share_of_good_draws(seed: int, draws: int) -> list[Comparison]:
    """Balanced draws with some a > 0; a single neuron has it half of the time, whatever delta."""
    found = []
    problem = datasets.figure1_right(eps=0.1)
    for m in (1, 2, 4):
        net = initialize(problem, m * draws, scale=1.0, kind="balanced", rng=seed + m)
        share = float((net.a.reshape(draws, m) > 0).any(axis=1).mean())
        spread = math.sqrt(2.0**-m * (1 - 2.0**-m) / draws)
        off = abs(share - (1 - 2.0**-m))
        what = f"|share with some a > 0 - (1 - 2^-m)|, m = {m}, 4 s.e."
        found.append(at_most(off, 4 * spread, what=what))
        if m == 1:
            found.append(at_most(share, 0.6, what="share for m = 1: no delta below 0.4 will do"))
    return found


def noted_ratio(eps: float, value: float) -> Comparison:
    """The ratio of Figure 1 right."""
    ratio = gain(datasets.figure1_right(eps=eps))[0]
    return equals(ratio, value, tolerance=6e-4, what=f"largest margin over eps/2, eps = {eps:g}")


def single_neuron(problem: Problem, sign: int) -> tuple[Network, float]:
    """The neuron of direction w+ (or -w-) and this sign, and its margin gamma/2."""
    best = max_margin(problem, "linear", sign)
    w = sign * best.w / np.sqrt(2)
    return Network(w[None, :], np.array([sign / np.sqrt(2)])), best.margin / 2


def one_neuron_data(seed: int, sets: int) -> list[Problem]:
    """Hinted data, mirrored (gamma- > gamma+), and random separable sets in the plane."""
    found = [flip_classes(datasets.figure1_right()), datasets.figure1_middle()]
    for i in range(sets):
        rng = np.random.default_rng([seed, i])
        Z = np.column_stack([rng.uniform(0.3, 2.0, 6), rng.standard_normal(6)])
        y = rng.choice([-1.0, 1.0], 6)
        found.append(Problem(y[:, None] * Z, y, Logistic(), 0.5))
    return found


def one_neuron_claims(problem: Problem, seed: int) -> tuple[float, float, float, float]:
    """KKT residual at (w+, 1)/sqrt 2; margins over gamma+/2: its own, sampled, and with a < 0."""
    net, gamma = single_neuron(problem, 1)
    found = kkt(problem, net, tol=1e-7)
    U = np.random.default_rng(seed).standard_normal((2000, problem.d))
    near = net.directions[0] + np.logspace(-6, 0, 2000)[:, None] * U
    U = np.vstack([U, near])
    S = (U / np.linalg.norm(U, axis=1)[:, None]) @ problem.X.T
    sampled = float((problem.y * np.maximum(S, problem.leak * S)).min(axis=1).max()) / 2
    other = single_neuron(problem, -1)[1]
    return found.residual, found.margin / gamma, sampled / gamma, other / gamma


def other_neurons(problem: Problem, seed: int, count: int = 20) -> list[tuple[float, float]]:
    """KKT residuals of balanced neurons that separate, 0.1 or more away from w+; their sines.

    v = |a| w at q_min = 1 is nearly the point v+ of least norm of a convex set: v - a r, with r
    the w part of the residual, has multipliers on active samples, so |v - v+| <= |a r| and the
    residual is at least sin(w, w+)/sqrt 2.
    """
    rng = np.random.default_rng(seed)
    best = single_neuron(problem, 1)[0].directions[0]
    found: list[tuple[float, float]] = []
    for _ in range(100 * count):
        w = best + 10.0 ** rng.uniform(-1.5, 0.5) * rng.standard_normal(best.size)
        w /= np.linalg.norm(w)
        net = Network(w[None, :], np.ones(1))
        if np.linalg.norm(w - best) >= 0.1 and least_margin(problem, net) > 0:
            sine = float(np.linalg.norm(w - best * (best @ w)))
            found.append((kkt(problem, net, tol=1e-9).residual, sine))
        if len(found) == count:
            break
    return found


@experiment(
    "LLWA21-LA.4",
    form="slip",
    quick={"sets": 1},
    full={"sets": 100},
    printed="it attains the global max margin gamma+/2 (Lemma A.4)",
    meant="the largest margin of all neurons with a_1 >= 0, which the lemma supposes",
)
def largest_among_positive(seed: int, sets: int) -> list[Comparison]:
    """On mirrored hints a neuron with a < 0 has gamma-/2, which is larger."""
    rows = np.array([one_neuron_claims(p, seed) for p in one_neuron_data(seed, sets)])
    return [
        at_most(rows[:, 2].max(), 1 + 1e-9, what="margins of neurons with a > 0 over gamma+/2"),
        at_least(rows[:, 2].min(), 0.999, what="and the sample comes near, least"),
        at_least(rows[:, 3].max(), 1.01, what="margin with a < 0 over gamma+/2, largest"),
    ]


@experiment("LLWA21-LA.4", quick={"sets": 10}, full={"sets": 300})
def best_positive_neuron(seed: int, sets: int) -> list[Comparison]:
    """Among a >= 0: (w+, 1)/sqrt 2 is KKT with margin gamma+/2, and no other is or has more."""
    problems = one_neuron_data(seed, sets)
    rows = np.array([one_neuron_claims(p, seed) for p in problems])
    residuals, sines = np.array([row for p in problems for row in other_neurons(p, seed)]).T
    ratio = (residuals / sines).min()
    return [
        at_least(residuals.size, 10 * sets, what="other separating neurons looked at"),
        at_least(residuals.min(), NEAR, what="their KKT residuals, least"),
        at_least(ratio, math.sqrt(0.5) - 1e-9, what="their KKT residuals over sin(w, w+), least"),
        at_most(rows[:, 0].max(), 1e-7, what="KKT residual at (w+, 1)/sqrt 2"),
        at_most(np.abs(rows[:, 1] - 1).max(), 1e-9, what="|margin/(gamma+/2) - 1|"),
        at_most(rows[:, 2].max(), 1 + 1e-9, what="margins of sampled neurons over gamma+/2"),
        at_least(rows[:, 2].min(), 0.999, what="and the sample comes near, least"),
    ]
