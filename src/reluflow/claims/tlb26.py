"""[TLB26]_: orthonormal inputs, where every jump is known before training."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.claims.claim import assumption, claim, experiment, predicate
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import balanced_start, gradient_flow, no_leak, orthonormal_inputs
from reluflow.claims.invariants import drift, sign_changes
from reluflow.claims.verdict import Comparison, Status, at_least, at_most, equals
from reluflow.network import Network, initialize
from reluflow.prediction.orthogonal import algorithm1
from reluflow.problem import Problem, datasets

Array = NDArray[np.float64]


def mask_of(problem: Problem, net: Network) -> NDArray[np.bool_]:
    """M: sample k has the label sign of neuron j and is active on it."""
    same = np.sign(net.a) * np.sign(problem.y)[:, None] > 0
    return np.asarray(same & (problem.X @ net.W.T > 0))


@predicate("balanced start, all neurons of one norm")
def one_norm(evidence: Evidence) -> tuple[bool, str]:
    """|a_j| = |w_j| = alpha."""
    balanced = balanced_start(evidence)
    if not balanced.ok or evidence.start is None:
        return False, balanced.detail
    spread = float(np.ptp(evidence.start.log_norms))
    return spread <= 1e-9, f"log-norms differ by {spread:.1e}"


@predicate("mask without zero rows, zero columns or equal columns; labels not 0 (A4)")
def full_mask(evidence: Evidence) -> tuple[bool, str]:
    """A4 (i), and labels that are not 0."""
    if evidence.start is None:
        return False, "the start is not known"
    M = mask_of(evidence.problem, evidence.start)
    rows, columns = int((~M.any(axis=1)).sum()), int((~M.any(axis=0)).sum())
    distinct = len(np.unique(M, axis=1).T) == M.shape[1]
    fine = rows == columns == 0 and distinct and bool((evidence.problem.y != 0).all())
    return fine, f"{rows} zero rows, {columns} zero columns, columns distinct: {distinct}"


@predicate("no tie between jumps (A4)")
def no_tie(evidence: Evidence) -> tuple[bool, str]:
    """A4 (ii): unique argmin at every jump."""
    process = algorithm1(evidence.problem, evidence.start)
    least = float(np.min(process.gaps, initial=np.inf))
    return process.ending != "tie" and least > 1e-9, f"least relative gap {least:.2g}"


@cache
def covered(seed: int, n: int = 16, m: int = 6) -> Evidence:
    """A draw for which A4 holds, with gaps of at least 5 % (digest G16)."""
    for draw in range(10_000):
        rng = np.random.default_rng([seed, draw])
        problem = datasets.orthonormal(n, rng=rng)
        net = initialize(problem, m, log_scale=-40.0, kind="sphere", normalize="none", signs=1,
                         rng=rng)  # fmt: skip
        evidence = Evidence.of(problem, start=net)
        if full_mask(evidence).ok and algorithm1(problem, net).gaps.min() >= 0.05:
            return evidence
    raise AssertionError("no covered draw")


@cache
def golden_run(seed: int, log_scale: float = -40.0, records: int = 400) -> Evidence:
    """Gradient flow on the golden case."""
    from reluflow.flow.flow import flow

    problem = datasets.golden()
    net = Network(problem.known["W0"], np.ones(3), np.full(3, log_scale))
    times = np.linspace(0.0, -2.6 * log_scale + 20.0, records)
    run = flow(problem, net, t_end=times[-1], save=times, rtol=1e-10)
    return Evidence.of(problem, run)


assumption("TLB26-A1", orthonormal_inputs, example=covered)
assumption("TLB26-A3", one_norm, needs=("start",), example=covered)
assumption("TLB26-A4", orthonormal_inputs, full_mask, no_tie, needs=("start",), example=covered)


@claim(
    "TLB26-A2", needs=("path",), given=[gradient_flow, orthonormal_inputs, no_leak],
    example=golden_run,
)  # fmt: skip
def inactive_components_rest(evidence: Evidence) -> Comparison:
    """A component <w_j, x_k> <= 0 never moves; relative to the neuron's size at the start."""
    X = evidence.problem.X
    first = evidence.path[0]
    off = X @ first.W.T <= 0
    worst = 0.0
    for net in evidence.path:
        factor = np.exp(net.log_factors - first.log_factors)
        change = np.abs(X @ net.W.T * factor - X @ first.W.T) / np.abs(first.W).max(axis=1)
        worst = max(worst, float(change[off].max(initial=0.0)))
    return at_most(worst, 10 * evidence.rtol, what="relative change of inactive components")


@claim("TLB26-P1", needs=("path",), given=[gradient_flow, balanced_start], example=golden_run)
def balance_and_signs(evidence: Evidence) -> list[Comparison]:
    """a_j^2 = |w_j|^2 and sign(a_j) are kept."""
    return [drift(evidence), sign_changes(evidence)]


@experiment("TLB26-T1")
def golden_case(seed: int) -> list[Comparison]:
    """Algorithm 1 gives order, sets and times of the golden case."""
    problem = datasets.golden()
    known = problem.known
    process = algorithm1(problem, Network(known["W0"], np.ones(3)))
    order = tuple(int(who[0]) for who in process.neurons)
    sets = tuple(tuple(np.sort(s).tolist()) for s in process.samples)
    return [
        equals(order == known["order"] and sets == known["sets"], 1, tolerance=0,
               what="order and sets as derived by hand"),
        at_most(np.abs(process.times - known["jump_times"]).max(), 1e-12, what="jump times"),
        equals(process.norm2, 16.0, tolerance=1e-12, what="squared norm of the limit"),
    ]  # fmt: skip


@experiment("TLB26-T2", quick={"exponents": (40, 100)}, full={"exponents": (40, 100)})
def jumps_of_the_flow(seed: int, exponents: Any) -> list[Comparison]:
    """Half-fit times of the flow: their difference quotient in log(1/alpha) is the jump time."""
    logs = [e * math.log(10) for e in exponents]
    fits = [_half_fits(-log_alpha) for log_alpha in logs]
    quotient = (fits[1][0] - fits[0][0]) / (logs[1] - logs[0])
    times = datasets.golden().known["jump_times"]
    errors = [
        np.abs(t / log_alpha - times).max() for (t, _), log_alpha in zip(fits, logs, strict=True)
    ]
    return [
        at_most(np.abs(quotient - times).max(), 1e-4, what="difference quotient against tau"),
        at_most(errors[1], errors[0], what="error of t / log(1/alpha), smaller at smaller alpha"),
        at_most(abs(fits[1][1] - 16.0) / 16.0, 1e-8, what="relative error of the squared norm"),
    ]


def _half_fits(log_alpha: float) -> tuple[Array, float]:
    """Times at which samples 1, 3 and 4 of the golden case reach y/2, and the final norm."""
    from reluflow.flow.flow import flow
    from reluflow.trajectory import every

    problem = datasets.golden()
    net = Network(problem.known["W0"], np.ones(3), np.full(3, log_alpha))
    end = -2.4 * log_alpha + 20.0
    run = flow(problem, net, t_end=end, save=every(0.02), observe=["outputs", "norm2"])
    f = run["outputs"] / problem.y
    found = []
    for k in (0, 2, 3):
        i = int(np.argmax(f[:, k] >= 0.5))
        x0, x1 = (math.log(f[j, k] / (1 - f[j, k])) for j in (i - 1, i))  # logistic in time
        found.append(run.times[i - 1] + 0.02 * -x0 / (x1 - x0))
    return np.array(found), float(run["norm2"][-1])


@experiment("TLB26-E15", quick={"draws": 50}, full={"draws": 1000})
def norms(seed: int, draws: int) -> list[Comparison]:
    """Norm of the limit, of the smallest interpolator, and the bounds on their ratio."""
    rng = np.random.default_rng(seed)
    golden = datasets.golden()
    process = algorithm1(golden, Network(golden.known["W0"], np.ones(3)))
    low, high = np.inf, -np.inf
    for _ in range(draws):
        y = rng.standard_normal(16)
        found = algorithm1(y, signs=rng.choice([-1.0, 1.0], 24), mask=rng.random((16, 24)) < 0.5)
        if found.uncovered.size:
            continue
        jumps = [sum(found.signs[who[0]] == s for who in found.neurons) for s in (1, -1)]
        low, high = min(low, found.ratio), max(high, found.ratio / math.sqrt(max(jumps)))
    return [
        equals(process.norm2, 16.0, tolerance=1e-12, what="golden: squared norm"),
        equals(process.min_norm2, 2 * math.sqrt(30), tolerance=1e-12, what="golden: minimum"),
        at_least(low - 1, -1e-12, what="least ratio - 1"),
        at_most(high - 1, 1e-12, what="largest ratio over sqrt(jumps of a sign) - 1"),
    ]


@experiment("TLB26-T3", quick={"sizes": (16, 64, 256), "draws": 20},
            full={"sizes": (16, 64, 256, 1024, 8192), "draws": 20}, expected=Status.HOLDS,
            reason="checked with constants derived again; the probability is vacuous")  # fmt: skip
def norm_grows_like_sqrt_n(seed: int, sizes: Any, draws: int) -> list[Comparison]:
    """Squared norm of the limit against 8.9 max|y| (sqrt n_+ + sqrt n_-), and the mean ratio."""
    rng = np.random.default_rng(seed)
    worst, mean = 0.0, 0.0
    for n in sizes:
        m = math.ceil(8 * math.log2(n))
        ratios = []
        for _ in range(draws):
            y = rng.standard_normal(int(n))
            found = algorithm1(y, signs=rng.choice([-1.0, 1.0], m), mask=rng.random((n, m)) < 0.5)
            bound = np.abs(y).max() * (math.sqrt((y > 0).sum()) + math.sqrt((y < 0).sum()))
            worst = max(worst, found.norm2 / (8.9 * bound))
            ratios.append(found.ratio)
        mean = max(mean, float(np.mean(ratios)))
    return [
        at_most(worst, 1.0, what="squared norm over its bound"),
        at_most(mean, 2.5, what="largest mean ratio to the minimum"),
    ]


@experiment("TLB26-B22", quick={"draws": 20}, full={"draws": 500})
def one_neuron_per_sign(seed: int, draws: int) -> list[Comparison]:
    """If one neuron per sign covers its points there are two jumps and the minimal norm."""
    rng = np.random.default_rng(seed)
    jumps, ratio = 0, 0.0
    for _ in range(draws):
        y = rng.standard_normal(12)
        y[:2] = np.abs(y[0]), -np.abs(y[1])
        mask = rng.random((12, 8)) < 0.5
        signs = np.array([1.0, -1.0] * 4)
        mask[y > 0, 0] = True
        mask[y < 0, 1] = True
        found = algorithm1(y, signs=signs, mask=mask)
        jumps, ratio = max(jumps, found.n_jumps), max(ratio, found.ratio)
    return [
        equals(jumps, 2, tolerance=0, what="most jumps"),
        equals(ratio, 1.0, tolerance=1e-12, what="largest ratio of squared norms"),
    ]


@experiment("TLB26-D1", quick={"draws": 20}, full={"draws": 500})
def two_systems(seed: int, draws: int) -> Comparison:
    """Positive and negative neurons jump as if the others were not there."""
    rng = np.random.default_rng(seed)
    worst = 0.0
    for _ in range(draws):
        y, signs = rng.standard_normal(12), rng.choice([-1.0, 1.0], 16)
        mask = rng.random((12, 16)) < 0.5
        union = algorithm1(y, signs=signs, mask=mask)
        apart: list[float] = []
        for s in (1.0, -1.0):
            only = np.where(s * y > 0, y, 0.0)  # label 0 is fitted from the start, n is kept
            apart += algorithm1(only, signs=signs, mask=mask).times.tolist()
        both = np.sort(apart)
        same = both.size == union.times.size
        gap = np.abs(both - union.times) / union.times if same else np.array([np.inf])
        worst = max(worst, float(gap.max(initial=0.0)))
    return at_most(worst, 1e-12, what="relative difference of jump times")
