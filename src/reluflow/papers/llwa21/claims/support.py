"""[LLWA21]_ Theorems G.9, G.11, Lemma G.10: one neuron alone, and whether others pay beside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
from scipy.optimize import linprog

from reluflow.arrays import Array
from reluflow.claims.claim import Found, claim, experiment, predicate
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import (
    balanced_start,
    separable,
    some_leak,
    unit_ball,
)
from reluflow.claims.verdict import Comparison, Hypothesis, at_least, at_most
from reluflow.landscape import max_G
from reluflow.network import Network
from reluflow.optimum.max_margin import margin_bound, max_margin
from reluflow.papers.llwa21.claims.assumptions import SETTING, large_margins
from reluflow.papers.llwa21.claims.general import (
    counterexample,
    dual_value,
    negatives_weak,
    negatives_weak_at_dual,
    one_neuron,
    planar_data,
)
from reluflow.papers.llwa21.claims.one_neuron import hinted_or_middle
from reluflow.papers.llwa21.runs import (
    decade,
    flow_until,
    has_decade,
    least_margin,
    margin,
)
from reluflow.problem import Problem, datasets
from reluflow.trajectory.save import every


@predicate("one balanced neuron, a = |w|, on the side of w*")
def single(evidence: Evidence) -> tuple[bool, str]:
    """m = 1, a > 0, <w, w*> > 0."""
    net = evidence.start
    if net is None or net.m != 1:
        return False, "there is not one neuron"
    cosine = float(net.directions[0] @ max_margin(evidence.problem, "linear").w)
    return bool(net.a[0] > 0 and cosine > 0), f"sign {np.sign(net.a[0]):g}, cosine {cosine:.3g}"


@cache
def trained_alone(seed: int, q_min: float) -> Evidence:
    """One neuron of size 1 on the side of w*, on the data of Figure 1 middle."""
    problem = hinted_or_middle("middle")
    w = np.random.default_rng(seed).standard_normal(problem.d)
    w *= np.sign(w @ max_margin(problem, "linear").w) / np.linalg.norm(w)
    net = Network(w[None, :], np.ones(1), leak=problem.leak)
    return flow_until(problem, net, q_min, save=every(0.25))


@claim(
    "LLWA21-TG.9",
    needs=("start", "path"),
    example=trained_alone,
    quick={"q_min": 100.0},
    full={"q_min": 500.0},
    given=[*SETTING, balanced_start, single, large_margins, has_decade],
)
def one_neuron_alone(evidence: Evidence) -> list[Comparison]:
    """(w, a)/|theta| tends to (w+, 1)/sqrt 2: what is across w+ is kept while |theta| grows."""
    p = evidence.problem
    early, net = (evidence.path()[i] for i in decade(evidence))
    best = max_margin(p, "linear", 1)
    before, off = (float(np.linalg.norm(each.directions[0] - best.w)) for each in (early, net))
    grown = np.sqrt(net.norm2 / early.norm2)
    q = least_margin(p, net)
    ratio = margin(p, net) / (best.margin / 2)
    return [
        at_most(off / before * grown, 1.1, what="|w/|w| - w+| times |theta|, last decade of q"),
        at_most(off, 1 / np.sqrt(q), what="|w/|w| - w+|, against 1/sqrt(q_min)"),
        at_most(abs(float(net.log_norms[0] - net.log_outer[0])), 1e-6, what="|log |w|/a|"),
        at_least(ratio, 1 - 1 / q, error=1e-9, what="margin over gamma+/2"),
        at_most(ratio, 1.0, error=1e-9, what="and not above it"),
    ]


def primal_on_grid(problem: Problem, angles: int) -> float:
    """Linear program over unit neurons on a grid: max min_i sum c_k y_i (-phi(<u_k, x_i>)) / 2."""
    t = np.linspace(0, 2 * math.pi, angles, endpoint=False)
    S = problem.X @ np.array([np.cos(t), np.sin(t)])
    A = -problem.y[:, None] * np.maximum(S, problem.leak * S)
    n = problem.n
    found = linprog(
        np.append(np.zeros(angles), -1.0),
        A_ub=np.hstack([-A, np.ones((n, 1))]),
        b_ub=np.zeros(n),
        A_eq=np.append(np.ones(angles), 0.0)[None, :],
        b_eq=[1.0],
        bounds=[(0, None)] * angles + [(None, None)],
    )
    return -float(found.fun) / 2


@experiment("LLWA21-LG.10", quick={"sets": 5, "angles": 2000}, full={"sets": 100, "angles": 8000})
def minimax(seed: int, sets: int, angles: int) -> list[Comparison]:
    """Best margin with all a <= 0 (a linear program) = min over the simplex of the largest -G/2."""
    gap, random, used = 0.0, 0.0, 0
    problems = [counterexample().problem, *(planar_data(seed + i, 5) for i in range(sets))]
    for i, problem in enumerate(problems):
        dual = max_margin(problem, "network", -1)
        if dual.margin <= 0:
            continue
        used += 1
        gap = max(gap, abs(primal_on_grid(problem, angles) / dual.upper_bound - 1))
        lam = np.random.default_rng([seed, i]).dirichlet(np.ones(problem.n), 5)
        bounds = [margin_bound(problem, each, -1) for each in lam]
        random = max(random, dual.margin / min(bounds))
    return [
        at_least(used, 1, what="data sets that such nets separate"),
        at_most(gap, 1e-5, what="|primal on a grid of neurons / dual - 1|"),
        at_most(random, 1.0, error=1e-9, what="best margin over the bound of random multipliers"),
    ]


def margin_with_negative(problem: Problem, shares: Array) -> float:
    """Largest margin over gamma+/2 after a share of |theta|^2 goes to the best negative neuron.

    That neuron maximises -sum lam*_i y_i phi; the positive one turns as far as pays, by a scan.
    """
    best, _ = one_neuron(problem, 1)
    u = max_G(problem, best.dual * problem.y, -1).vector
    across = u - best.w * (best.w @ u)
    across /= max(float(np.linalg.norm(across)), 1e-300)
    most = 0.0
    for share in shares:
        turns = np.linspace(-10 * share, 10 * share, 201)
        for turn in turns:
            w = math.cos(turn) * best.w + math.sin(turn) * across
            W = np.vstack([math.sqrt((1 - share) / 2) * w, math.sqrt(share / 2) * u])
            a = np.array([math.sqrt((1 - share) / 2), -math.sqrt(share / 2)])
            most = max(most, margin(problem, Network(W, a)))
    return most / (best.margin / 2)


def near_networks(problem: Problem, rng: np.random.Generator, draws: int) -> Iterator[Network]:
    """Networks near pi_b(w+), signs of a kept.

    Three positive neurons share w+, moved or not, two negative ones are near zero. Near means what
    the proof does: positive neurons keep the activations of w+, the least margin stays on its
    support.
    """
    best, support = one_neuron(problem, 1)
    signs = np.sign(problem.X @ best.w)
    for _ in range(draws):
        b = rng.uniform(0.3, 1.0, 3)
        b /= np.linalg.norm(b)
        eps = 10.0 ** rng.uniform(-5, -1)
        W = np.vstack([np.outer(b, best.w), np.zeros((2, problem.d))])
        a = np.append(b, [0.0, 0.0])
        size = np.repeat([eps * rng.choice([0.0, 1.0]), eps], [3, 2])
        W = W + size[:, None] * rng.standard_normal(W.shape)
        a = a + size * rng.standard_normal(5)
        a[3:] = -np.abs(a[3:])
        net = Network(W, a)
        near = (np.sign(problem.X @ W[:3].T) == signs[:, None]).all()
        if near and least_margin(support, net) <= least_margin(problem, net) * (1 + 1e-12):
            yield net


def margin_nearby(problem: Problem, seed: int, draws: int) -> float:
    """Largest margin over gamma+/2 of sampled networks near pi_b(w+)."""
    rng = np.random.default_rng(seed)
    half = one_neuron(problem, 1)[0].margin / 2
    return max(margin(problem, net) for net in near_networks(problem, rng, draws)) / half


def local_maximum(problem: Problem, seed: int, draws: int) -> list[Comparison]:
    """No margin above gamma+/2 near by, sampled and along the most promising neuron."""
    small = margin_with_negative(problem, np.logspace(-4, -2, 5))
    sampled = margin_nearby(problem, seed, draws)
    return [
        at_most(small, 1 + 1e-9, what="margin over gamma+/2 with a small negative neuron"),
        at_most(sampled, 1 + 1e-9, what="margin over gamma+/2 of sampled networks near by"),
    ]


@experiment("LLWA21-TG.11", form="printed", quick={"shares": (1e-6, 1e-4, 1e-2)})
def local_under_a5(seed: int, shares: tuple[float, ...]) -> Found:
    """Item 1: under A.5 a negative neuron of any small size may raise the margin.

    The networks are in Q-bar with P = {1}, m = 2, b = (1, 0): one neuron with a >= 0, one with
    a <= 0. Their distance to the embedding is of order sqrt(share), so it is no local maximum.
    """
    evidence = counterexample()
    gains = [(margin_with_negative(evidence.problem, np.array([s])) - 1) / s for s in shares]
    sizes = ", ".join(f"{s:g}" for s in shares)
    near = Hypothesis("as near as one likes", True, f"shares {sizes} of |theta|^2 for a_2 < 0")
    tests = (some_leak, unit_ball, separable, negatives_weak)
    return Found(
        [at_most(min(gains), 0.0, what="(margin/(gamma+/2) - 1) / share, least of the sizes")],
        [*(test(evidence) for test in tests), near],
    )


def same_margin_same_function(problem: Problem, seed: int, draws: int) -> list[Comparison]:
    r"""Item 2 with numbers: the shares used of the bounds on D and on f; the least D/gamma+.

    With S = sum_P \|w_k - a_k w+\|^2, r^2 the part of |theta|^2 = 1 off P and V the value of A.5*,

    .. math:: D = \gamma^+/2 - \gamma(\theta) \ge \gamma^+ S/2 + (\gamma^+ - V)\, r^2/2,
              \qquad |f - \hat f| \le (1 + 1/\sqrt 2) \sqrt S + r^2

    on the unit sphere: where D = 0, so are S and r, and the function is the same.
    """
    rng = np.random.default_rng(seed)
    best, _ = one_neuron(problem, 1)
    value, gamma = dual_value(problem, 1)
    inputs = np.vstack([rng.standard_normal((300, problem.d)), problem.X])
    inputs /= np.linalg.norm(inputs, axis=1)[:, None]
    limit = Network(best.w[None, :] / math.sqrt(2), np.array([math.sqrt(0.5)]))
    goal = limit.evaluate(inputs, problem.leak)
    used, moved, least = 0.0, 0.0, math.inf
    for near in near_networks(problem, rng, draws):
        net = near.scaled(-0.5 * math.log(near.norm2))
        W, a = net.weights()
        S = float(np.sum((W[:3] - np.outer(a[:3], best.w)) ** 2))
        r2 = float(np.sum(W[3:] ** 2) + np.sum(a[3:] ** 2))
        D = gamma / 2 - margin(problem, net)
        used = max(used, (gamma * S + (gamma - value) * r2) / 2 / (D + 1e-14 * gamma))
        gap = float(np.abs(net.evaluate(inputs, problem.leak) - goal).max())
        moved = max(moved, gap / ((1 + math.sqrt(0.5)) * math.sqrt(S) + r2 + 1e-14))
        least = min(least, D / gamma)
    return [
        at_most(used, 1.0, what="gamma+ S/2 + (gamma+ - V) r^2/2 over the loss of margin"),
        at_most(moved, 1.0, what="|f - f_hat| over (1 + 1/sqrt 2) sqrt(S) + r^2"),
        at_most(least, 1e-9, what="least loss of margin among them, over gamma+"),
    ]


@experiment("LLWA21-TG.11", form="repaired", quick={"draws": 500}, full={"draws": 10_000})
def local_under_a5_star(seed: int, draws: int) -> Found:
    """Where A.5* holds (hints, Figure 1 middle) no network near by has more margin."""
    return on_both(lambda problem: local_maximum(problem, seed, draws))


def on_both(compare: Callable[[Problem], list[Comparison]]) -> Found:
    """What is compared on data with hints and on those of Figure 1 middle, where A.5* holds."""
    problems = datasets.figure1_right(eps=0.1), datasets.figure1_middle()
    comparisons = [c for problem in problems for c in compare(problem)]
    return Found(comparisons, [negatives_weak_at_dual(Evidence.of(each)) for each in problems])


@experiment(
    "LLWA21-TG.11",
    form="repaired",
    part="same function",
    quick={"draws": 300},
    full={"draws": 10_000},
)
def equal_margin_equal_function(seed: int, draws: int) -> Found:
    """Item 2: near by, equal margin means the same function."""
    return on_both(lambda problem: same_margin_same_function(problem, seed, draws))
