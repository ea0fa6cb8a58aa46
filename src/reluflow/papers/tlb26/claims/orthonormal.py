"""[TLB26]_: orthonormal inputs, where every jump is known before training."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from reluflow.claims.claim import assumption, claim, experiment, predicate
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import balanced_start, gradient_flow, no_leak, orthonormal_inputs
from reluflow.claims.invariants import balance_and_signs, kept_by_flow
from reluflow.claims.verdict import Comparison, at_least, at_most, equals
from reluflow.errors import ReluflowError
from reluflow.gradientflow.flow import flow
from reluflow.network import Network, initialize
from reluflow.papers.tlb26.runs import course, draws, offsets_of, wrong_counts
from reluflow.prediction.limit import limit
from reluflow.prediction.orthogonal import OrthogonalProcess, algorithm1
from reluflow.problem import Problem, datasets


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


@predicate("signs of output weights are fair")
def fair_signs(evidence: Evidence) -> tuple[bool | None, str]:
    """One draw cannot prove it; it speaks against it where fair signs would do so once in 1e6."""
    if evidence.start is None:
        return False, "the start is not known"
    up, m = int((evidence.start.a > 0).sum()), evidence.start.m
    chance = min(1.0, 2.0 * float(bdtr(min(up, m - up), m, 0.5)))  # two-sided binomial test
    return None if chance >= 1e-6 else False, f"{up} of {m} positive, p = {chance:.2g}"


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
def covered_start(seed: int, n: int = 16, m: int = 6) -> Evidence:
    """A draw for which A4 holds, with gaps of at least 5 %."""
    for draw in range(10_000):
        rng = np.random.default_rng([seed, draw])
        problem = datasets.orthonormal(n, rng=rng)
        net = initialize(
            problem, m, log_scale=-40.0, kind="sphere", normalize="none", signs=1, rng=rng
        )
        evidence = Evidence.of(problem, start=net)
        if full_mask(evidence).ok and algorithm1(problem, net).gaps.min() >= 0.05:
            return evidence
    raise ReluflowError(
        f"none of 10,000 draws of seed {seed} has a full mask and gaps of 5 % with n={n}, m={m}: "
        "take more neurons or another seed"
    )


def random_start(seed: int, n: int = 16, m: int = 24) -> Evidence:
    """Labels and signs of both kinds, unit directions, all neurons of one norm."""
    rng = np.random.default_rng(seed)
    problem = datasets.orthonormal(n, law="normal", rng=rng)
    net = initialize(problem, m, log_scale=-40.0, kind="sphere", normalize="none", rng=rng)
    return Evidence.of(problem, start=net)


@cache
def golden_run(seed: int, log_scale: float = -40.0, records: int = 400) -> Evidence:
    """Gradient flow on the golden case."""
    problem = datasets.golden()
    net = Network(problem.known["W0"], np.ones(3), np.full(3, log_scale))
    times = np.linspace(0.0, -2.6 * log_scale + 20.0, records)
    run = flow(problem, net, t_end=times[-1], save=times, rtol=1e-10)
    return Evidence.of(problem, run)


assumption("TLB26-A1", orthonormal_inputs, example=covered_start)
assumption(
    "TLB26-A3",
    one_norm,
    fair_signs,
    needs=("start",),
    example=random_start,
    unchecked=("directions are drawn from a law that no rotation changes",),
)
assumption(
    "TLB26-A4", orthonormal_inputs, full_mask, no_tie, needs=("start",), example=covered_start
)


@claim(
    "TLB26-A2",
    needs=("path",),
    given=[gradient_flow, orthonormal_inputs, no_leak],
    example=golden_run,
)
def inactive_components_rest(evidence: Evidence) -> Comparison:
    """A component <w_j, x_k> <= 0 never moves; relative to the neuron's size at the start."""
    X = evidence.problem.X
    first = evidence.path()[0]
    off = X @ first.W.T <= 0
    worst = 0.0
    for net in evidence.path():
        factor = np.exp(net.log_factors - first.log_factors)
        change = np.abs(X @ net.W.T * factor - X @ first.W.T) / np.abs(first.W).max(axis=1)
        worst = max(worst, float(change[off].max(initial=0.0)))
    return kept_by_flow(evidence, worst, "relative change of inactive components")


@claim("TLB26-P1", needs=("path",), given=[gradient_flow, balanced_start], example=golden_run)
def balance_is_kept(evidence: Evidence) -> list[Comparison]:
    """a_j^2 - |w_j|^2 and sign(a_j) are kept."""
    return balance_and_signs(evidence)


@experiment(
    "TLB26-A4",
    form="control",
    part="tie",
    reason="A4 (ii) is broken on purpose: two neurons reach size 1 together and share a sample",
)
def shared_tie(seed: int) -> list[Comparison]:
    """Labels 1, 1, 1, neurons active on the first two and the last two samples: S_j is equal.

    Algorithm 1 calls it a tie; flows from 1e-40 that differ in angles alone share the sample in
    the middle differently, so signs and labels do not determine the limit.
    """
    y = np.ones(3)
    mask = np.array([[1, 0], [1, 1], [0, 1]], dtype=bool)
    process = algorithm1(y, signs=1, mask=mask)
    shares = []
    for ahead in (0, 1):
        W = np.array([[1.0, 1.0, -0.1], [-0.1, 1.0, 1.0]])
        W[1 - ahead, 2 * ahead] = -30.0  # turned away: this one is smaller once both are aligned
        W /= np.linalg.norm(W, axis=1, keepdims=True)
        net = Network(W, np.ones(2), np.full(2, -40 * math.log(10.0)))
        W, a = flow(Problem(np.eye(3), y), net, t_end=500.0).final.weights()
        shares.append(float(a[0] * W[0, 1]))
    return [
        equals(process.ending == "tie", 1, tolerance=0, what="Algorithm 1 calls it a tie"),
        equals(len(process.branches), 2, tolerance=0, what="continuations it gives"),
        at_least(shares[0] - shares[1], 0.2, what="difference of the shares of the first neuron"),
    ]


@experiment("TLB26-T1")
def golden_case(seed: int) -> list[Comparison]:
    """Algorithm 1 gives order, sets and times of the golden case, and so does the prediction for
    any data, which does not know that these are orthonormal."""
    problem = datasets.golden()
    known = problem.known
    start = Network(known["W0"], np.ones(3))
    process, general = algorithm1(problem, start), limit(problem, start)
    missed = wrong_counts(len(known["jump_times"]), algorithm1=process, limit=general)
    if missed:
        return missed
    constants = np.array([0.77379, 0.9833, 1.1175])  # of half fits, on flows from tiny scales
    half_fits = process.half_fit_times(log_scale=-1.0) - process.times
    order = tuple(int(who[0]) for who in process.neurons)
    sets = tuple(tuple(np.sort(s).tolist()) for s in process.samples)
    return [
        equals(
            order == known["order"] and sets == known["sets"],
            1,
            tolerance=0,
            what="order and sets as derived by hand",
        ),
        at_most(np.abs(process.times - known["jump_times"]).max(), 1e-12, what="jump times"),
        at_most(np.abs(general.times - known["jump_times"]).max(), 1e-9, what="those of `limit`"),
        at_most(np.abs(half_fits - constants).max(), 1e-4, what="constants C_i of half fits"),
        at_most(
            np.abs(offsets_of(general) - offsets_of(process)).max(),
            1e-4,
            what="constants of half falls, of `limit` against the closed form",
        ),
        equals(process.norm2, 16.0, tolerance=1e-12, what="squared norm of the limit"),
    ]


@experiment("TLB26-D1", quick={"draws": 20, "flows": 2}, full={"draws": 500, "flows": 10})
def two_systems(seed: int, draws: int, flows: int) -> list[Comparison]:
    """Positive and negative neurons move as if the others were not there."""
    rng = np.random.default_rng(seed)
    times, norms, others = 0.0, 0.0, 0
    for _ in range(draws):
        y, signs = rng.standard_normal(12), rng.choice([-1.0, 1.0], 16)
        mask = rng.random((12, 16)) < 0.5
        union = algorithm1(y, signs=signs, mask=mask)
        parts = [  # label 0 is fitted from the start, n is kept
            algorithm1(np.where(s * y > 0, y, 0.0), signs=signs, mask=mask) for s in (1.0, -1.0)
        ]
        apart = sorted(jump for part in parts for jump in _jumps(part))
        together = _jumps(union)
        others += [jump[1:] for jump in apart] != [jump[1:] for jump in together]
        pairs = zip(apart, together, strict=False)
        times = max(times, max((abs(a[0] / b[0] - 1) for a, b in pairs), default=0.0))
        norms = max(norms, abs(sum(part.norm2 for part in parts) / union.norm2 - 1))
    return [
        equals(others, 0, tolerance=0, what="Algorithm 1: draws with other neurons or sets"),
        at_most(times, 1e-12, what="Algorithm 1: relative difference of jump times"),
        at_most(norms, 1e-12, what="Algorithm 1: relative difference of squared norms"),
        at_most(
            _union_against_parts(seed, flows),
            1e-6,
            what="flow: largest difference of weights, union and parts",
        ),
    ]


def _jumps(process: OrthogonalProcess) -> list[tuple[float, list[int], list[int]]]:
    """(time, neurons, samples) of every jump."""
    made = zip(process.times, process.neurons, process.sets, strict=True)
    return [(float(t), np.sort(who).tolist(), np.sort(s).tolist()) for t, who, s in made]


def _union_against_parts(seed: int, flows: int) -> float:
    """Flows of both signs together and apart, from when opposite labels are off, at 1e-40."""
    worst = 0.0
    for problem, start in draws(seed, flows, mixed=True):
        union = course(problem, start, -40 * math.log(10.0))
        first = int(np.searchsorted(union.run.times, 0.5 * union.process.times[0] * union.L))
        begin, t0 = union.run.path()[first], union.run.times[first]
        later = np.arange(first, len(union.run), 40)
        for s in (1.0, -1.0):
            who = np.flatnonzero(np.sign(start.a) == s)
            part = problem.replace(y=np.where(s * problem.y > 0, problem.y, 0.0), known={})
            save = union.run.times[later] - t0
            run = flow(part, begin.subset(who), t_end=float(save[-1]), save=save, rtol=1e-9)
            for k, net in zip(later, run.path(), strict=True):
                W, a = union.run.path()[int(k)].subset(who).weights()
                V, b = net.weights()
                worst = max(worst, np.abs(W - V).max(), np.abs(a - b).max())
    return worst


@experiment("TLB26-A4", part="ties-told")
def ties_are_seen(seed: int) -> list[Comparison]:
    """(ii) of the assumption: where two neurons reach size 1 together and share a sample, the
    limit depends on who goes first, and Algorithm 1 says so; on disjoint samples both jump."""
    overlap = np.array([[1, 0], [1, 1], [0, 1]])
    shared = algorithm1(np.ones(3), signs=1, mask=overlap)
    apart = algorithm1(np.array([2.0, 2.0]), signs=1, mask=np.eye(2))
    clear = algorithm1(np.array([1.0, 1.0, 1.1]), signs=1, mask=overlap)
    sizes = [sum(float(np.sum(part**2)) for part in b.final.weights()) for b in shared.branches]
    return [
        equals(shared.ending == "tie", 1, tolerance=0, what="a shared sample: told as a tie"),
        equals(len(shared.branches), 2, tolerance=0, what="continuations followed"),
        at_most(
            max((abs(size - 2 * math.sqrt(2) - 2) for size in sizes), default=math.inf),
            1e-12,
            what="squared norm of each, 2 (sqrt 2 + 1)",
        ),
        equals(apart.ending == "interpolates", 1, tolerance=0, what="disjoint samples: no tie"),
        at_most(np.abs(apart.times - 1.0).max(), 1e-12, what="both jump at n/(c |y|) = 1"),
        equals(clear.ending == "interpolates", 1, tolerance=0, what="labels that differ: no tie"),
    ]
