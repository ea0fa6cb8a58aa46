"""[MMV24]_: constants, counts and examples that need no run of a wide network."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from reluflow.claims.claim import experiment
from reluflow.claims.verdict import Comparison, at_least, at_most, equals
from reluflow.network import Network
from reluflow.problem import Problem, datasets
from reluflow.problem.losses import Exponential


@experiment("MMV24-T1.0", quick={"draws": 20}, full={"draws": 1000})
def small_enough(seed: int, draws: int) -> Comparison:
    """eps <= eps_max of (28) implies t1_bound <= T, in logarithms."""
    rng = np.random.default_rng(seed)
    worst = -np.inf
    for _ in range(draws):
        p = datasets.separable(0.5, int(rng.integers(2, 20)), 4, rng=rng)
        k, width = p.known, int(rng.integers(1, 200))
        small = min(k["zeta_1"], k["xi"], rng.random())
        bound = 16 * math.log(p.n) / (small * math.sqrt(k["correlation"]) * k["X_min"])
        W_max = float(rng.uniform(0.5, 3))
        first = math.log(
            min(k["correlation"], small) * math.sqrt(k["correlation"]) * k["X_min"]
            / (8 * math.sqrt(width) * p.n * k["X_max"] ** 2 * W_max**2)
        )  # fmt: skip
        second = -0.5 * math.log(width) - 4 * p.n * k["X_max"] * bound
        T = -(0.5 * math.log(width) + min(first, second)) / (4 * p.n * k["X_max"])
        worst = max(worst, bound / T)
    return at_most(worst - 1, 1e-12, what="t1_bound / T - 1")


@experiment("MMV24-R1", quick={"draws": 4000}, full={"draws": 100_000})
def gaussian_starts(seed: int, draws: int) -> list[Comparison]:
    """A Gaussian neuron starts active on its own class with probability >= 1/2, none along x_s.

    One such neuron in V_+ reaches S_+, so m of them do with probability >= 1 - 2^-m.
    """
    rng = np.random.default_rng(seed)
    p = datasets.separable(0.6, 10, 3, rng=seed)
    W = rng.standard_normal((draws, p.d))
    made = []
    for s in (1.0, -1.0):
        share = float(np.mean((W @ p.X[np.sign(p.y) == s].T > 0).any(axis=1)))
        error = 3 * math.sqrt(share * (1 - share) / draws)
        made.append(at_least(share, 0.5 - error, what=f"share for sign {s:+.0f}; 1/2 less 3 s.e."))
        other = p.X[np.sign(p.y) == -s].sum(axis=0)
        along = W @ other / np.linalg.norm(W, axis=1) / np.linalg.norm(other)
        made.append(
            at_most(along.max(), 1 - 1e-12, what=f"largest cosine with x of sign {-s:+.0f}")
        )
    own = np.asarray((W @ p.X[p.y > 0].T > 0).any(axis=1))
    for m in (2, 4, 8):
        none = float(np.mean(~own[: draws // m * m].reshape(-1, m).any(axis=1)))
        error = 3 * math.sqrt(0.5**m * m / draws)
        made.append(
            at_most(none, 0.5**m + error, what=f"no neuron for S_+ among {m}; 2^-m + 3 s.e.")
        )
    return made


@experiment("MMV24-PATH", form="repaired", quick={"most": 5}, full={"most": 8})
def longest_path(seed: int, most: int) -> list[Comparison]:
    """Longest monotone path of activation counts against its closed form and 4 log n."""
    gap, ratio = 0.0, 0.0
    for plus in range(1, most + 1):
        for minus in range(1, most + 1):
            best = _longest(plus, minus)
            harmonic = sum(1 / k for k in range(1, minus + 1)) + 0.5
            harmonic += sum(1 / k for k in range(1, plus))
            gap = max(gap, abs(best - harmonic))
            ratio = max(ratio, best / (4 * math.log(plus + minus)))
    return [
        at_most(gap, 1e-12, what="longest path less H_(n_-) + 1/2 + H_(n_+ - 1)"),
        at_most(ratio, 1.0, what="longest path over 4 log n"),
    ]


def _longest(plus: int, minus: int) -> float:
    """Largest sum of 1/(k_+ + k_-) over paths with k_+ rising and k_- falling, one at a time."""

    @cache
    def best(up: int, down: int) -> float:
        if (up, down) == (plus, 0) or up + down == 0:
            return 0.0
        ways = [best(up + 1, down)] if up < plus else []
        ways += [best(up, down - 1)] if down > 0 else []
        return 1 / (up + down) + max(ways)

    return max(best(up, down) for up in range(plus + 1) for down in range(minus + 1) if up + down)


@experiment("MMV24-E3")
def one_step_into_the_dead_cone(seed: int) -> list[Comparison]:
    """x=(1,0), y=-1, w=(0,1): phi'(0)=0 rests; phi'(0)=c steps by eta c and then rests."""
    from reluflow.descent import descend

    problem = Problem(np.array([[1.0, 0.0]]), -np.ones(1), Exponential(), reduction="sum")
    net = Network(np.array([[0.0, 1.0]]), np.ones(1))
    still = descend(problem, net, lr=0.1, steps=10).final
    moves = []
    for eta in (1e-1, 1e-2, 1e-3):  # one step of the rule phi'(0) = 1, by hand
        w = net.W[0] + eta * net.a[0] * -problem.X[0]
        after = descend(problem, Network(w[None], np.ones(1)), lr=eta, steps=10).final
        moves.append(float(np.abs(after.W - w).max()))
    return [
        equals(np.abs(still.W - net.W).max(), 0.0, tolerance=0.0, what="movement with phi'(0)=0"),
        equals(max(moves), 0.0, tolerance=0.0, what="movement after the step of phi'(0)=1"),
    ]


@experiment("MMV24-E4")
def waiting_and_leaving(seed: int) -> list[Comparison]:
    """x=(1,0), y=+1: the leaving branch a = cosh th, w = (sinh th, 1) solves the flow."""
    from scipy.integrate import solve_ivp

    from reluflow.flow.flow import flow

    problem = Problem(np.array([[1.0, 0.0]]), np.ones(1), Exponential(), reduction="sum")
    net = Network(np.array([[0.0, 1.0]]), np.ones(1))
    times = np.linspace(0.0, 2.0, 21)
    angle = solve_ivp(
        lambda t, th: np.exp(-np.sinh(2 * th) / 2), (0.0, 2.0), [0.0], t_eval=times, rtol=1e-12,
        atol=1e-14,
    ).y[0]  # fmt: skip
    left = flow(problem, net, t_end=2.0, save=times, on_branch="leave", rtol=1e-11)
    assert left.networks is not None
    gap = max(
        max(abs(n.weights()[0][0, 0] - math.sinh(th)), abs(n.weights()[1][0] - math.cosh(th)))
        for n, th in zip(left.networks, angle, strict=True)
    )
    stays = flow(problem, net, t_end=2.0, on_branch="stay").final
    return [
        at_most(gap, 1e-8, what="leaving branch: |flow - closed form|"),
        equals(np.abs(stays.weights()[0] - net.W).max(), 0.0, tolerance=0.0, what="waiting branch"),
    ]
