"""[TLB26]_: probabilities and elementary inequalities behind the norm bound."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from scipy.linalg import expm

from reluflow.claims.claim import Found, experiment
from reluflow.claims.verdict import Comparison, Hypothesis, at_least, at_most, equals
from reluflow.prediction.orthogonal import algorithm1

EPS = 0.2  # halvings within (1 +- EPS)/2
R = (1 + EPS) / 2


@experiment("TLB26-P2", quick={"draws": 4000}, full={"draws": 20_000})
def coverage(seed: int, draws: int) -> list[Comparison]:
    """A4 (i): its probability, exact, above the union bound and by Monte Carlo; no ties."""
    rng = np.random.default_rng(seed)
    made = []
    for n, m, N in ((32, 24, 16), (32, 32, 16), (16, 20, 8), (16, 8, 16), (32, 12, 32)):
        if n > N:
            fails = n * 0.75**m + m * 2.0**-N + m * (m - 1) / 4 * 2.0**-N
        else:
            fails = n * 2.0**-m + m * 2.0**-n + m * (m - 1) / 2 * 2.0**-n
        chance, share = success_probability(n, m, N), _coverage(rng, draws, n, m, N)
        error = 4 * math.sqrt(chance * (1 - chance) / draws)
        case = f"n={n}, m={m}, " + (f"N={N}" if n > N else "one sign")
        made += [
            at_least(chance, 1 - fails, what=f"{case}: probability of A4 (i), exact"),
            equals(share, chance, tolerance=error, what=f"{case}: share of draws, 4 s.e."),
        ]
    ties = 0
    for _ in range(draws // 100):
        y, signs = rng.standard_normal(16), rng.choice([-1.0, 1.0], 20)
        ties += algorithm1(y, signs=signs, mask=rng.random((16, 20)) < 0.5).ending == "tie"
    made.append(equals(ties, 0, tolerance=0, what="ties among drawn labels"))
    return made


def success_probability(n: int, m: int, N: int) -> float:
    """Probability of A4 (i), exact; N labels are positive. One sign of neurons if N = n.

    k neurons take distinct non-empty sets that cover N samples: sum_i (-1)^i C(N, i)
    (2^(N-i) - 1)!/(2^(N-i) - 1 - k)! of 2^(N k) choices. Signs are fair, the two parts independent.
    """

    def covers(samples: int, k: int) -> Fraction:
        ways = sum(
            (-1) ** i * math.comb(samples, i) * math.perm(2 ** (samples - i) - 1, k)
            for i in range(samples + 1)
        )
        return Fraction(ways, 2 ** (samples * k))

    if n == N:
        return float(covers(n, m))
    parts = (math.comb(m, k) * covers(N, k) * covers(n - N, m - k) for k in range(m + 1))
    return float(sum(parts, Fraction(0)) / 2**m)


def _coverage(rng: np.random.Generator, draws: int, n: int, m: int, N: int) -> float:
    """Share of masks without zero rows, zero columns or equal columns; N labels of one sign."""
    M = rng.random((draws, n, m)) < 0.5
    if n > N:
        M &= (rng.random((draws, 1, m)) < 0.5) == (np.arange(n) < N)[:, None]
    good = np.all(M.any(axis=1), axis=1) & np.all(M.any(axis=2), axis=1)
    columns = np.sort(np.einsum("k,dkj->dj", 2.0 ** np.arange(n), M), axis=1)  # exact below 2^53
    return float(np.mean(good & (np.diff(columns, axis=1) != 0).all(axis=1)))


def halvings(rng: np.random.Generator, draws: int, n: int, K: int) -> tuple[np.ndarray, np.ndarray]:
    """|U_0|, ..., |U_K| of neurons in a fixed order, (draws, K + 1), and where all are halvings."""
    left = np.full((draws, K + 1), n)
    for i in range(K):
        left[:, i + 1] = rng.binomial(left[:, i], 0.5)
    return left, np.asarray(halved(left).all(axis=1))


def halved(left: np.ndarray) -> np.ndarray:
    """Whether each of |U_1|, ..., |U_K| is within (1 +- eps) of half the one before, (..., K)."""
    half = left[..., :-1] / 2
    return np.asarray(np.abs(left[..., 1:] - half) <= EPS * half)


def halvings_needed(n: float) -> int:
    """K = ceil(log n / (2 log(1/r))): at most sqrt(n) points are left after K halvings."""
    return math.ceil(math.log(n) / (2 * math.log(1 / R)))


def failure_log(log_n: float, log_m: float) -> float:
    """log of 2 m^K sum_{i<K} exp(-eps^2 n ((1 - eps)/2)^i / 6), by K times its largest term."""
    K = math.ceil(log_n / (2 * math.log(1 / R)))
    least = log_n + (K - 1) * math.log((1 - EPS) / 2)
    power = EPS**2 / 6 * math.exp(least) if least < 700 else math.inf
    return math.log(2 * K) + K * log_m - power


@experiment("TLB26-P4", quick={"draws": 2000}, full={"draws": 50_000})
def halving(seed: int, draws: int) -> list[Comparison]:
    """Misses of one halving, and of all of several, against Chernoff's bound."""
    rng = np.random.default_rng(seed)
    made = []
    for n, K in ((100, 1), (400, 1), (1600, 1), (20_000, 3), (100_000, 4)):
        missed = 1 - float(halvings(rng, draws, n, K)[1].mean())
        error = 3 * math.sqrt(max(missed * (1 - missed), 1 / draws) / draws)
        least = n * ((1 - EPS) / 2) ** np.arange(K)
        bound = min(1.0, float(2 * np.exp(-(EPS**2) * least / 6).sum()))
        made.append(at_most(missed, bound + error, what=f"n = {n}, {K} halvings; bound + 3 s.e."))
    return made


@experiment(
    "TLB26-C1",
    quick={"draws": 20},
    full={"draws": 400},
    reason="at usual n the union bound over orders is above 1: it says nothing",
)
def chosen_order(seed: int, draws: int, n: int = 4096) -> Found:
    """How often the chosen order does not halve K times, against the union bound over orders."""
    rng = np.random.default_rng(seed)
    m, K = math.ceil(8 * math.log2(n)), halvings_needed(n)
    kept = np.zeros(K, dtype=int)  # runs whose first 1, ..., K jumps are halvings
    for _ in range(draws):
        y = np.abs(rng.standard_normal(n))
        process = algorithm1(y, signs=1, mask=rng.random((n, m)) < 0.5)
        sizes = np.zeros(K + 1, dtype=int)
        sizes[1 : process.n_jumps + 1] = [s.size for s in process.sets[:K]]
        kept += np.logical_and.accumulate(halved(n - np.cumsum(sizes)))
    missed = 1 - kept[-1] / draws
    bound = failure_log(math.log(n), math.log(m))
    decades = next(k for k in range(4, 400) if _union_log(k) < 0)
    note = (
        f"Of {draws} runs at n = {n} the first 1, ..., {K} jumps are halvings in "
        f"{', '.join(map(str, kept))}; the union bound is e^{bound:.0f} there and falls below 1 "
        f"from about n = 1e{decades}."
    )
    informative = Hypothesis("the failure bound is below 1", bound < 0, f"log bound {bound:.1f}")
    measured = at_most(
        math.log(missed) if missed else -math.inf,
        bound,
        what=f"log of the share of runs that miss one of {K} halvings",
    )
    return Found([measured], [informative], note)


def _union_log(decades: int) -> float:
    """Log failure bound at n = 10^decades, m = 8 log2 n."""
    log_n = decades * math.log(10.0)
    return failure_log(log_n, math.log(8 * log_n / math.log(2.0)))


@experiment("TLB26-P5", quick={"draws": 2000}, full={"draws": 100_000})
def first_jumps(seed: int, draws: int, n: int = 4096) -> list[Comparison]:
    """Halvings within (1 +- eps)/2: sum sqrt|A_i| <= sqrt(n) sqrt(r)/(1 - sqrt r)."""
    left, fine = halvings(np.random.default_rng(seed), draws, n, halvings_needed(n))
    totals = np.sqrt(left[fine, :-1] - left[fine, 1:]).sum(axis=1)
    bound = math.sqrt(n) * math.sqrt(R) / (1 - math.sqrt(R))
    return [
        at_least(fine.sum(), 1, what="runs on the halving event"),
        at_most(totals.max(initial=0.0), bound, what="largest sum of sqrt|A_i|"),
    ]


@experiment("TLB26-P6", quick={"draws": 2000}, full={"draws": 100_000})
def remaining_jumps(seed: int, draws: int, n: int = 4096) -> list[Comparison]:
    """After K halvings at most sqrt(n) points are left; jumps on U add at most max|y| |U|."""
    rng = np.random.default_rng(seed)
    left, fine = halvings(rng, draws, n, halvings_needed(n))
    worst = 0.0
    for _ in range(20):
        y = np.abs(rng.standard_normal(256))
        process = algorithm1(y, signs=1, mask=rng.random((256, 64)) < 0.5)
        rest = 256 - np.cumsum([0, *(s.size for s in process.sets[:-1])])
        later = np.cumsum(process.sizes[::-1])[::-1]
        worst = max(worst, float((later / (y.max() * rest)).max()))
    return [
        at_least(fine.sum(), 1, what="runs on the halving event"),
        at_most(left[fine, -1].max(initial=0), math.sqrt(n), what="points left"),
        at_most(worst, 1.0, what="sum of later sizes over max|y| |U_K|, Algorithm 1"),
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
    return u / np.linalg.norm(u, axis=1, keepdims=True), v / np.linalg.norm(
        v, axis=1, keepdims=True
    )


@experiment("TLB26-L10", quick={"draws": 50}, full={"draws": 1000})
def integral_inequality(seed: int, draws: int) -> list[Comparison]:
    """u' <= A + B int u: u stays below (u_0 + A/sqrt B) e^{sqrt B t}.

    u' is a share of the right-hand side that changes at random times, 1 throughout in the first
    draw. (u, I) with I the integral of u moves by a matrix exponential between these times.
    """
    rng = np.random.default_rng(seed)
    worst, largest = -np.inf, 0.0
    for draw in range(draws):
        u0, A, B = rng.uniform(0, 2, 3) + np.array([0.0, 0.0, 0.05])
        root, t, state = math.sqrt(B), 0.0, np.array([u0, 0.0, 1.0])
        for step in rng.exponential(0.25, 20):
            share = rng.uniform(0.5, 1.0) if draw else 1.0
            state = expm(step * np.array([[0, share * B, share * A], [1, 0, 0], [0, 0, 0]])) @ state
            t += step
            ratio = state[0] / ((u0 + A / root) * math.exp(root * t))
            worst, largest = max(worst, ratio - 1), max(largest, ratio)
    return [
        at_most(worst, 1e-12, what="u over its bound - 1"),
        at_least(largest, 0.4, what="u over its bound, largest: it is nearly used"),
    ]
