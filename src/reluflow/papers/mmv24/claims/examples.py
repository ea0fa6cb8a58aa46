"""[MMV24]_: constants, counts, examples and closed forms that need no run of a wide network."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import linprog

from reluflow.arrays import Array
from reluflow.claims.claim import experiment
from reluflow.claims.hypotheses import least_cosine
from reluflow.claims.verdict import Comparison, at_least, at_most, equals
from reluflow.descent import descend
from reluflow.gradientflow.flow import flow
from reluflow.landscape import early
from reluflow.network import Network, initialize
from reluflow.papers.mmv24.constants import Constants
from reluflow.papers.mmv24.runs import unit_start
from reluflow.problem import Problem, datasets
from reluflow.problem.losses import Exponential
from reluflow.trajectory.observables import velocity


@experiment("MMV24-T1.0", quick={"draws": 20}, full={"draws": 1000})
def small_enough(seed: int, draws: int) -> Comparison:
    """eps <= eps_max of (28) implies t1_bound <= T, in logarithms."""
    rng = np.random.default_rng(seed)
    worst = -np.inf
    for _ in range(draws):
        p = datasets.separable(0.5, int(rng.integers(2, 20)), 4, rng=rng)
        unit = unit_start(p, int(rng.integers(1, 200)), int(rng.integers(2**31)))
        for form in ("printed", "meant"):
            at_the_bound = Constants(p, unit.scaled(Constants(p, unit).log_eps_max(form)))
            worst = max(worst, at_the_bound.t1_bound(form) / at_the_bound.T)
    return at_most(worst - 1, 1e-12, what="t1_bound / T - 1 at eps = eps_max, both forms")


@experiment("MMV24-R1", quick={"draws": 10_000}, full={"draws": 100_000})
def gaussian_starts(seed: int, draws: int) -> list[Comparison]:
    """A Gaussian neuron starts active on its own class with probability >= 1/2, none along x_s.

    One such neuron in V_+ reaches S_+, so m of them do with probability >= 1 - 2^-m. Entries of W_0
    are N(0, 1/D); by symmetry a neuron is active on any one sample with probability 1/2.
    """
    p = datasets.separable(0.6, 10, 3, rng=seed)
    net = initialize(
        p, draws, scale=1 / math.sqrt(p.d), kind="balanced", normalize="none", rng=seed
    )
    W, count = net.W, draws * p.d
    made = [
        equals(p.d * np.mean(W**2), 1.0, tolerance=4 * math.sqrt(2 / count), what="D E w_i^2"),
        equals(
            p.d**2 * np.mean(W**4) / 3,
            1.0,
            tolerance=4 * math.sqrt(96 / 9 / count),
            what="D^2 E w_i^4 / 3",
        ),
        equals(np.mean(net.a > 0), 0.5, tolerance=2 / math.sqrt(draws), what="share of V_+"),
        equals(
            np.mean(W @ p.X[0] > 0),
            0.5,
            tolerance=2 / math.sqrt(draws),
            what="share active on one sample",
        ),
    ]
    for s in (1.0, -1.0):
        mine = W[s * net.a > 0]
        share = float(np.mean((mine @ p.X[np.sign(p.y) == s].T > 0).any(axis=1)))
        error = 3 * math.sqrt(share * (1 - share) / len(mine))
        made.append(at_least(share, 0.5, error=error, what=f"active on their class, sign {s:+.0f}"))
        other = p.X[np.sign(p.y) == -s].sum(axis=0)
        along = mine @ other / np.linalg.norm(mine, axis=1) / np.linalg.norm(other)
        made.append(
            at_most(along.max(), 1 - 1e-12, what=f"largest cosine with x of sign {-s:+.0f}")
        )
    own = np.asarray((W[net.a > 0] @ p.X[p.y > 0].T > 0).any(axis=1))
    for m in (2, 4, 8):
        none = float(np.mean(~own[: len(own) // m * m].reshape(-1, m).any(axis=1)))
        error = 3 * math.sqrt(0.5**m * m / len(own))
        made.append(
            at_most(none, 0.5**m + error, what=f"no neuron for S_+ among {m}; 2^-m + 3 s.e.")
        )
    return made


@experiment("MMV24-C1", part="dead cone")
def dead_cone(seed: int) -> list[Comparison]:
    """S_dead by linear programs: more than {0} for TOY6, {0} where samples surround the origin."""
    around = np.array([[1.0, 0.3], [1.0, -0.3], [-1.0, 0.0]])  # the first two less twice the last
    surrounded = Problem(around, np.array([1.0, 1.0, -1.0]), Exponential(), reduction="sum")
    return [
        at_least(least_cosine(surrounded), 0.1, what="mu of the surrounding samples"),
        at_least(widest_dead(datasets.toy6()), 0.5, what="largest |z|_inf <= 1 in S_dead, TOY6"),
        equals(widest_dead(surrounded), 0.0, tolerance=1e-9, what="and where they surround it"),
    ]


def widest_dead(problem: Problem) -> float:
    """Largest entry of |z| over z with <x_i, z> <= 0 for all i and |z|_inf <= 1: 2 d programs."""
    found = [
        linprog(sign * row, A_ub=problem.X, b_ub=np.zeros(problem.n), bounds=(-1.0, 1.0))
        for row in np.eye(problem.d)
        for sign in (1.0, -1.0)
    ]
    return max(-float(each.fun) for each in found)


def one_sample(label: float) -> tuple[Problem, Network]:
    """x = (1, 0) with a label, and the neuron w = (0, 1), a = 1 on its hyperplane."""
    problem = Problem(np.array([[1.0, 0.0]]), np.array([label]), Exponential(), reduction="sum")
    return problem, Network(np.array([[0.0, 1.0]]), np.ones(1))


def _step(problem: Problem, net: Network, eta: float, slope: float) -> Network:
    """One step of descent with phi'(0) = slope, from a neuron on all hyperplanes."""
    force = slope * problem.pull_at(problem.outputs(net)) @ problem.X
    return Network(net.W + eta * net.a[:, None] * force, net.a + eta * net.W @ force)


@experiment("MMV24-E3")
def one_step_into_the_dead_cone(seed: int) -> list[Comparison]:
    """x=(1,0), y=-1, w=(0,1): phi'(0)=0 rests; phi'(0)=c steps by eta c into S_dead and rests."""
    problem, net = one_sample(-1.0)
    etas, slopes = (1e-1, 1e-2, 1e-3, 1e-4), (0.5, 1.0)
    still = descend(problem, net, lr=0.1, steps=10).final
    gaps, sizes, inside = [], [], []
    for eta in etas:
        ends = [
            descend(problem, _step(problem, net, eta, c), lr=eta, steps=10).final for c in slopes
        ]
        moved = [float(np.hypot(*(end.W - net.W)[0]) + abs(end.a - net.a)[0]) for end in ends]
        gaps += [abs(m / (eta * c) - 1) for m, c in zip(moved, slopes, strict=True)]
        inside += [float(end.W[0] @ problem.X[0]) for end in ends]
        sizes.append(max(moved))
    return [
        equals(np.abs(still.W - net.W).max(), 0.0, tolerance=0.0, what="movement with phi'(0)=0"),
        at_most(max(gaps), 1e-12, what="movement in eleven steps over eta c, less 1"),
        at_most(max(inside), 0.0, what="<w, x> afterwards"),
        at_most(
            sizes[-1] / sizes[0],
            2 * etas[-1] / etas[0],
            what="movement at the least eta over that at the largest: to 0 with eta",
        ),
    ]


@experiment("MMV24-E4")
def waiting_and_leaving(seed: int) -> list[Comparison]:
    """x=(1,0), y=+1: wait until t_0, then a = cosh th, w = (sinh th, 1): a solution for any t_0."""
    problem, net = one_sample(1.0)
    end, times = 2.0, np.linspace(0.0, 2.0, 21)
    angle = solve_ivp(
        lambda t, th: np.exp(-np.sinh(2 * th) / 2),
        (0.0, end),
        [0.0],
        method="DOP853",
        dense_output=True,
        rtol=1e-13,
        atol=1e-15,
        max_step=0.05,
    ).sol

    def path(t: float, since: float) -> Network:
        th = float(angle(t - since)[0]) if t > since else 0.0
        return Network(np.array([[math.sinh(th), 1.0]]), np.array([math.cosh(th)]))

    waits = (0.0, 1.0, math.inf)
    residuals = [residual(problem, partial(path, since=since), times) for since in waits]
    ends = [float(problem.outputs(path(end, since))[0]) for since in waits]
    left = flow(problem, net, t_end=end, save=times, on_branch="leave", rtol=1e-11)
    gap = max(_distance(n, path(float(t), 0.0)) for n, t in zip(left.path(), times, strict=True))
    stays = flow(problem, net, t_end=end, on_branch="stay").final
    still = descend(problem, net, lr=1e-3, steps=round(end / 1e-3)).final
    off = [
        _distance(
            descend(
                problem, _step(problem, net, eta, 1.0), lr=eta, steps=round(end / eta) - 1
            ).final,
            path(end, 0.0),
        )
        / eta
        for eta in (1e-2, 1e-3, 1e-4)
    ]
    return [
        *[
            at_most(r, 1e-8, what=f"|theta(t) - theta(0) - integral of F|, t_0 = {since:g}")
            for r, since in zip(residuals, waits, strict=True)
        ],
        at_least(min(ends[:2]), 0.5, what="f at t = 2 of those that leave S_dead: not regular"),
        equals(ends[2], 0.0, tolerance=0.0, what="f at t = 2 of the one that waits: regular"),
        at_most(gap, 1e-8, what="leaving branch: |flow - closed form|"),
        equals(_distance(stays, net), 0.0, tolerance=0.0, what="waiting branch of the flow"),
        equals(_distance(still, net), 0.0, tolerance=0.0, what="movement of descent, phi'(0) = 0"),
        at_most(max(off), 2.0, what="descent with phi'(0) = 1 off the leaving branch, over eta"),
    ]


def _distance(one: Network, two: Network) -> float:
    """Largest difference of two networks in an entry."""
    (W, a), (V, b) = one.weights(), two.weights()
    return max(float(np.abs(W - V).max()), float(np.abs(a - b).max()))


def residual(problem: Problem, path: Callable[[float], Network], times: Array) -> float:
    """Largest |theta(t) - theta(0) - integral of F(theta)| at the times, F with phi'(0) = 0."""

    def both(parts: tuple[Array, Array]) -> Array:
        return np.append(parts[0].ravel(), parts[1])

    x, weight = np.polynomial.legendre.leggauss(12)
    total, worst = np.zeros(3), 0.0
    for low, high in pairwise(times):
        nodes = (low + high) / 2 + (high - low) / 2 * x
        speed = np.array([both(velocity(problem, path(t))) for t in nodes])
        total += (high - low) / 2 * weight @ speed
        gap = both(path(high).weights()) - both(path(times[0]).weights()) - total
        worst = max(worst, float(np.abs(gap).max()))
    return worst


@experiment("MMV24-R3", part="closed-form", quick={"draws": 10}, full={"draws": 500})
def cosine_in_one_cone(seed: int, draws: int) -> list[Comparison]:
    """Inside S_+ with f ~ 0: cos(t) = tanh(artanh cos(0) + |x_a| t), and
    |w(t)|/|w(0)| = cosh(|x_a| t) + cos(0) sinh(|x_a| t), both for a balanced neuron."""
    rng = np.random.default_rng(seed)
    angle, size, least = 0.0, 0.0, np.inf
    for _ in range(draws):
        X = np.abs(rng.standard_normal((5, 3))) + 0.1  # correlated, one class: one cone
        problem = Problem(X, np.ones(5), Exponential(), reduction="sum")
        w = rng.random(3) + 0.1
        net = Network(1e-9 * w[None, :], np.array([1e-9 * np.linalg.norm(w)]))
        x_a = X.sum(axis=0)
        r = float(np.linalg.norm(x_a))
        start = float(w @ x_a) / (r * float(np.linalg.norm(w)))
        least = min(least, 1 - start)
        for t in (0.1 / r, 0.5 / r, 2.0 / r):
            later = early(problem, net, float(t))
            v = later.directions[0]
            angle = max(angle, abs(v @ x_a / r - np.tanh(np.arctanh(start) + r * t)))
            grown = np.exp(later.log_norms[0] - net.log_norms[0])
            size = max(size, abs(grown / (np.cosh(r * t) + start * np.sinh(r * t)) - 1))
    return [
        at_most(angle, 1e-12, what="cosine against tanh(artanh c_0 + |x_a| t)"),
        at_most(size, 1e-12, what="norm against cosh + c_0 sinh, relative"),
        at_least(least, 1e-4, what="least 1 - cos at the start"),
    ]


@experiment("MMV24-E4", part="closed-form")
def leaving_under_a_frozen_pull(seed: int) -> list[Comparison]:
    """x = (1, 0), y = 1, w = (0, 1), a = 1 while f ~ 0: th' = 1, so that leaving at once is
    a = cosh t, w = (sinh t, 1), and waiting is w, a as they are."""
    problem = Problem(np.array([[1.0, 0.0]]), np.ones(1), Exponential())
    net = Network(np.array([[0.0, 1.0]]), np.ones(1))
    left, stays = 0.0, 0.0
    for t in (0.1, 1.0, 3.0):
        W, a = early(problem, net, t, on_branch="leave").weights()
        gap = np.abs(np.append(W[0], a) - [np.sinh(t), 1.0, np.cosh(t)]).max()
        left = max(left, float(gap) / np.cosh(t))
        W, a = early(problem, net, t, on_branch="stay").weights()
        stays = max(stays, float(np.abs(np.append(W[0], a) - [0.0, 1.0, 1.0]).max()))
    return [
        at_most(left, 1e-13, what="leaving at once, relative error"),
        at_most(stays, 0.0, what="waiting, error"),
    ]
