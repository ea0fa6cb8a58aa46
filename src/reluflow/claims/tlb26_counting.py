"""[TLB26]_: probabilities and elementary inequalities behind the norm bound."""

from __future__ import annotations

import math

import numpy as np

from reluflow.claims.claim import experiment
from reluflow.claims.verdict import Comparison, at_least, at_most


@experiment("TLB26-P2", quick={"draws": 4000}, full={"draws": 20_000})
def coverage(seed: int, draws: int) -> list[Comparison]:
    """A4 (i) by Monte Carlo against the union bound, three standard errors allowed."""
    rng = np.random.default_rng(seed)
    made = []
    for n, m, N in ((32, 24, 16), (32, 32, 16), (16, 20, 8)):
        y = np.where(np.arange(n) < N, 1, -1)
        good = 0
        for _ in range(draws):
            same = rng.choice([-1, 1], m) * y[:, None] > 0
            M = same & (rng.random((n, m)) < 0.5)
            if M.any(axis=1).all() and M.any(axis=0).all():
                good += len(np.unique(np.packbits(M, axis=0).T, axis=0)) == m
        bound = 1 - n * 0.75**m - m * 2.0**-N - m * (m - 1) / 4 * 2.0**-N
        share = good / draws
        error = 3 * math.sqrt(max(share * (1 - share), 1 / draws) / draws)
        made.append(
            at_least(share, bound - error, what=f"success, n={n}, m={m}; bound less 3 s.e.")
        )
    return made


@experiment("TLB26-P4", quick={"draws": 2000}, full={"draws": 50_000})
def halving(seed: int, draws: int) -> list[Comparison]:
    """One halving leaves (1 +- eps)|U|/2 points except with probability 2 exp(-eps^2 |U| / 6)."""
    rng = np.random.default_rng(seed)
    made = []
    for size in (100, 400, 1600):
        left = rng.binomial(size, 0.5, draws)
        missed = float(np.mean(np.abs(left - size / 2) > 0.2 * size / 2))
        error = 3 * math.sqrt(max(missed * (1 - missed), 1 / draws) / draws)
        bound = min(1.0, 2 * math.exp(-(0.2**2) * size / 6))
        made.append(at_most(missed, bound + error, what=f"misses, |U| = {size}; bound + 3 s.e."))
    return made


@experiment("TLB26-P5", quick={"draws": 200}, full={"draws": 5000})
def first_jumps(seed: int, draws: int, n: int = 4096, eps: float = 0.2) -> list[Comparison]:
    """Halvings within (1 +- eps)/2: sum sqrt|A_i| <= sqrt(n) sqrt(r)/(1 - sqrt r)."""
    rng = np.random.default_rng(seed)
    r = (1 + eps) / 2
    bound = math.sqrt(n) * math.sqrt(r) / (1 - math.sqrt(r))
    K = math.ceil(math.log(n) / (2 * math.log(1 / r)))
    worst, kept = 0.0, 0
    for _ in range(draws):
        left, total, fine = n, 0.0, True
        for _ in range(K):
            rest = int(rng.binomial(left, 0.5))
            fine &= abs(rest - left / 2) <= eps * left / 2
            total, left = total + math.sqrt(left - rest), rest
        if fine:
            kept, worst = kept + 1, max(worst, total)
    return [
        at_least(kept, 1, what="runs on the halving event"),
        at_most(worst, bound, what="largest sum of sqrt|A_i|"),
    ]


@experiment("TLB26-P6", quick={"draws": 200}, full={"draws": 5000})
def remaining_jumps(seed: int, draws: int, n: int = 4096, eps: float = 0.2) -> list[Comparison]:
    """After K halvings of the event at most sqrt(n) points are left."""
    rng = np.random.default_rng(seed)
    K = math.ceil(math.log(n) / (2 * math.log(2 / (1 + eps))))
    worst, kept = 0, 0
    for _ in range(draws):
        left, fine = n, True
        for _ in range(K):
            rest = int(rng.binomial(left, 0.5))
            fine, left = fine and abs(rest - left / 2) <= eps * left / 2, rest
        if fine:
            kept, worst = kept + 1, max(worst, left)
    return [
        at_least(kept, 1, what="runs on the halving event"),
        at_most(worst, math.sqrt(n), what="points left"),
    ]


@experiment("TLB26-P7", quick={"draws": 2000}, full={"draws": 100_000})
def close_coordinates(seed: int, draws: int) -> Comparison:
    """|u_k - v_k| <= sqrt(2 eps) for unit vectors with <u, v> >= 1 - eps."""
    u, v = _pairs(seed, draws)
    eps = 1 - np.sum(u * v, axis=1)
    gap = np.abs(u - v).max(axis=1) - np.sqrt(2 * eps)
    return at_most(gap.max(), 1e-12, what="largest excess")


@experiment("TLB26-C2", quick={"draws": 2000}, full={"draws": 100_000})
def close_velocities(seed: int, draws: int) -> Comparison:
    """|d_k - <d, w> w_k| <= sqrt(2 eps) + eps for unit vectors with <d, w> >= 1 - eps."""
    d, w = _pairs(seed, draws)
    cosine = np.sum(d * w, axis=1)
    eps = 1 - cosine
    gap = np.abs(d - cosine[:, None] * w).max(axis=1) - np.sqrt(2 * eps) - eps
    return at_most(gap.max(), 1e-12, what="largest excess")


def _pairs(seed: int, draws: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of unit vectors at all distances."""
    rng = np.random.default_rng(seed)
    u = rng.standard_normal((draws, 5))
    v = u + rng.standard_normal((draws, 5)) * 10.0 ** rng.uniform(-4, 1, (draws, 1))
    return (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (u, v))  # type: ignore[return-value]


@experiment("TLB26-L10", quick={"draws": 50}, full={"draws": 1000})
def integral_inequality(seed: int, draws: int) -> Comparison:
    """u' = A + B int u, the extreme case: u stays below (u_0 + A/sqrt B) e^{sqrt B t}."""
    rng = np.random.default_rng(seed)
    worst = -np.inf
    for _ in range(draws):
        u0, A, B = rng.uniform(0, 2, 3) + np.array([0.0, 0.0, 0.05])
        t = np.linspace(0.0, 5.0, 501)
        root = math.sqrt(B)
        u = u0 * np.cosh(root * t) + A / root * np.sinh(root * t)  # u'' = B u, u'(0) = A
        worst = max(worst, float(np.max(u / ((u0 + A / root) * np.exp(root * t)))))
    return at_most(worst - 1, 1e-12, what="u over its bound - 1")
