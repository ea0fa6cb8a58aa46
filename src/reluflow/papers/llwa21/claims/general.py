"""[LLWA21]_ Appendix A: conditions under which one neuron wins on data that are not symmetric."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize

from reluflow.arrays import Array
from reluflow.claims.claim import (
    Found,
    Predicate,
    assumption,
    claim,
    experiment,
    predicate,
)
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import (
    MOST_ENTRIES,
    margin_loss,
    orthogonally_separable,
    separable,
    some_leak,
    symmetric_data,
    unit_ball,
)
from reluflow.claims.verdict import Comparison, Hypothesis, Status, at_least, at_most
from reluflow.landscape import max_G
from reluflow.network import Network
from reluflow.optimum.linear import LinearMargin
from reluflow.optimum.max_margin import max_margin
from reluflow.optimum.stationarity import stationarity
from reluflow.papers.llwa21.claims.assumptions import (
    means_separate,
    on_hinted_data,
    on_mirrored_hints,
)
from reluflow.papers.llwa21.runs import branchings, in_unit_ball, least_margin, sides
from reluflow.problem import Problem, datasets
from reluflow.problem.losses import Logistic

SUPPORT_TOL = 1e-7  # relative, for equal margins on the support set
CLOSE = 1e-6  # relative, below which two margins are not told apart


def decided_by_optimisation(name: str) -> Callable[[Callable[[Evidence], Any]], Predicate]:
    """A hypothesis decided by optimisation, and left open on data too large for that."""

    def wrap(test: Callable[[Evidence], Any]) -> Predicate:
        def guarded(evidence: Evidence) -> Any:
            if evidence.problem.X.size > MOST_ENTRIES // 10:
                return None, f"{evidence.problem.X.size} entries are too many to optimise over"
            return test(evidence)

        return Predicate(name, guarded)

    return wrap


def principal_gap(problem: Problem, w: Array) -> float:
    """c <mu, w> leak - mean|Px| max|Px| for a unit w with margin c: positive iff w is principal."""
    along = problem.y * (problem.X @ w)
    across = np.linalg.norm(problem.X - np.outer(problem.X @ w, w), axis=1)
    c = float(along.min())
    return min(c, c * problem.leak * float(along.mean()) - float(across.mean() * across.max()))


@decided_by_optimisation("a principal direction exists (A.1)")
def has_principal_direction(evidence: Evidence) -> tuple[bool | None, str]:
    """Tried: max-margin separators, mu, mu+, and the best nearby; A.2 is necessary (G.1)."""
    p = evidence.problem
    candidates = [max_margin(p, "linear").w, max_margin(p, "linear", 1).w, *sides(p)[:2]]
    best, at = -np.inf, candidates[0]
    for w in candidates:
        size = float(np.linalg.norm(w))
        if size > 0 and principal_gap(p, w / size) > best:
            best, at = principal_gap(p, w / size), w / size

    def loss(v: Array) -> float:
        return -principal_gap(p, v / np.linalg.norm(v))

    if best <= 0 and p.d <= 20:
        best = max(best, -float(minimize(loss, at, method="Nelder-Mead").fun))
    if best > 0:
        return True, f"c leak <mu, w> exceeds mean|Px| max|Px| by {best:.3g}"
    if not means_separate(evidence).ok:
        return False, "A.2, which would follow, fails"
    return None, f"none found among separators and means (best gap {best:.3g})"


def one_neuron(problem: Problem, sign: int) -> tuple[LinearMargin, Problem]:
    """w+ or w- with its dual, and the data of its support set."""
    best = max_margin(problem, "linear", sign)
    slope = np.where(problem.y == sign, 1.0, problem.leak)
    q = slope * problem.y * (problem.X @ best.w)
    on = q <= best.margin * (1 + SUPPORT_TOL)
    return best, Problem(problem.X[on], problem.y[on], problem.loss, problem.leak)


def best_other(problem: Problem, sign: int, others: int) -> tuple[float, float, float]:
    """Largest margin on the support set of nets with a of sign ``others``, both bounds; gamma/2."""
    best, support = one_neuron(problem, sign)
    found = max_margin(support, "network", others)
    return found.margin, found.upper_bound, best.margin / 2


def weak_margin(name: str, sign: int) -> Predicate:
    """On the support set of w+ (w-), nets whose outer weights have the other sign stay below
    gamma+/2 (gamma-/2)."""

    @decided_by_optimisation(name)
    def test(evidence: Evidence) -> tuple[bool | None, str]:
        lower, upper, bound = best_other(evidence.problem, sign, -sign)
        if upper < bound * (1 - CLOSE):
            return True, f"at most {upper:.4g} against {bound:.4g}"
        return (False if lower >= bound * (1 - CLOSE) else None), f"{lower:.4g} to {upper:.4g}"

    return test


negatives_weak = weak_margin("negative nets have less margin on S+ (A.5)", 1)
positives_weak = weak_margin(
    "positive nets have less margin on the support of w- (A.9, a >= 0)", -1
)


def dual_value(problem: Problem, sign: int) -> tuple[float, float]:
    """max_u -sign sum_i lam*_i y_i phi(<u, x_i>) at the dual lam* of w+ or w-, and gamma."""
    best = max_margin(problem, "linear", sign)
    return max_G(problem, best.dual * problem.y, -sign).value, best.margin


def weak_at_dual(name: str, sign: int) -> Predicate:
    """max_u -sign sum lam*_i y_i phi(<u, x_i>) < gamma; our repair of A.5, and its mirror image."""

    @decided_by_optimisation(name)
    def test(evidence: Evidence) -> tuple[bool, str]:
        value, gamma = dual_value(evidence.problem, sign)
        detail = f"{value:.4g} against gamma{'+' if sign > 0 else '-'} {gamma:.4g}"
        return value < gamma * (1 - CLOSE), detail

    return test


negatives_weak_at_dual = weak_at_dual("negative neurons do not pay at the dual of w+ (A.5*)", 1)
positives_weak_at_dual = weak_at_dual(
    "positive neurons do not pay at the dual of w- (A.5* mirrored)", -1
)


@predicate("no branching: certified by orthogonal separability, or none met by the run")
def no_branching(evidence: Evidence) -> tuple[bool | None, str]:
    """Orthogonally separable data have none (I.2); elsewhere a run shows its own."""
    ok, detail = orthogonally_separable.test(evidence)
    if ok:
        return True, f"orthogonally separable: {detail}"
    if evidence.run is None or evidence.run.settings.get("kind") != "flow":
        return None, "not orthogonally separable, and there is no flow to look at"
    several = branchings(evidence)
    if several:
        return False, f"the run met {several} points with several continuations"
    return None, "the run met no point with several continuations"


def counterexample(seed: int = 0) -> Evidence:
    """Three points on which A.5 holds and A.5* does not."""
    X = np.array([[-2.0, 0.2], [1.0, 0.9], [10.0, 0.0]]) / 10
    return Evidence.of(Problem(X, np.array([-1.0, 1.0, 1.0]), Logistic(), 0.5))


def planar_data(seed: int, n: int) -> Problem:
    """Random separable points in the plane."""
    rng = np.random.default_rng(seed)
    Z = np.column_stack([rng.uniform(0.2, 2.0, n), rng.standard_normal(n)])
    y = np.resize([1.0, -1.0], n)
    return Problem(y[:, None] * Z, y, Logistic(), 0.5)


def on_small_mirrored_hints(seed: int) -> Evidence:
    """Mirrored hints in the unit ball."""
    return Evidence.of(in_unit_ball(on_mirrored_hints(seed).problem))


def on_orthogonal_symmetric_data(seed: int) -> Evidence:
    """Symmetric data with all y x in a half-right cone: orthogonally separable."""
    plus = np.abs(np.random.default_rng(seed).standard_normal((4, 3))) + 0.1
    X, y = np.vstack([plus, -plus]), np.repeat([1.0, -1.0], 4)
    return Evidence.of(Problem(X, y, Logistic(), 0.5))


SEPARABLE = (margin_loss, some_leak, separable)
assumption("LLWA21-A.1", *SEPARABLE, has_principal_direction, example=on_hinted_data)
assumption("LLWA21-A.5", *SEPARABLE, negatives_weak, example=on_hinted_data)
assumption("LLWA21-A.5star", *SEPARABLE, negatives_weak_at_dual, example=on_hinted_data)
assumption("LLWA21-A.9", *SEPARABLE, positives_weak, example=on_mirrored_hints, form="repaired")
NO_BRANCHING: dict[str, Any] = {
    "given": [margin_loss, some_leak, no_branching],
    "expected": Status.MET,
    "reason": "not decidable in general: certified where data are orthogonally separable",
}


@claim("LLWA21-A4.6", example=on_orthogonal_symmetric_data, **NO_BRANCHING)
@claim("LLWA21-A.6", example=counterexample, **NO_BRANCHING)
def has_one_continuation(evidence: Evidence) -> list[Comparison]:
    """Nothing is compared: the hypotheses say it all."""
    return []


@experiment("LLWA21-A.2", part="one neuron", quick={"sets": 3}, full={"sets": 30})
def one_neuron_along_the_mean(seed: int, sets: int) -> Found:
    """On symmetric data with A.2 the strongest pull separates: one neuron takes L from ln 2 to 0.

    A silent network is asked for the neuron worth adding most; it gains all of the loss.
    """
    gain, turned = 0.0, 0.0
    hypotheses: list[Hypothesis] = []
    for i in range(sets):
        evidence = on_orthogonal_symmetric_data(seed + i)
        p = evidence.problem
        hypotheses += [test(evidence) for test in (symmetric_data, means_separate)]
        silent = Network(np.zeros((1, p.d)), np.zeros(1), leak=p.leak)
        found = stationarity(p, silent)
        gain = max(gain, abs(found.gain / np.log(2) - 1))
        mu = sides(p)[0]
        turned = max(turned, 1 - abs(float(found.vector @ mu)) / float(np.linalg.norm(mu)))
    return Found(
        [
            at_most(turned, 1e-9, what="1 - |cos(neuron worth adding, mu)|, largest"),
            at_most(gain, 1e-9, what="|gain of that neuron / ln 2 - 1|, largest"),
        ],
        hypotheses,
    )


@experiment("LLWA21-A.1", part="threshold", quick={"epsilons": (0.02, 0.1)})
def hint_makes_w_star_principal(seed: int, epsilons: tuple[float, ...]) -> list[Comparison]:
    """With three hints w* is principal exactly from H = H0 on (A.2, proof of Theorem 6.2)."""
    above, below = np.inf, -np.inf
    for eps in epsilons:
        base = datasets.hinted(eps=eps)
        w, H0 = base.known["w_star"], base.known["H0"]
        gaps = []
        for H in (1.001 * H0, 0.999 * H0):
            X = np.vstack([H * w, base.X[1:]])
            gaps.append(principal_gap(Problem(X, base.y, base.loss, base.leak), w) / eps)
        above, below = min(above, gaps[0]), max(below, gaps[1])
    return [
        at_least(above, 0.0, error=1e-9, what="gap of A.1 along w* over eps at 1.001 H0, least"),
        at_most(below, 0.0, error=1e-9, what="gap of A.1 along w* over eps at 0.999 H0, largest"),
    ]


def with_positive_support(rng: np.random.Generator) -> Problem:
    """Separable points of the plane, the negative ones so far out that S+ has none of them."""
    Z = np.column_stack([rng.uniform(0.2, 1.0, 5), rng.standard_normal(5)])
    far = np.column_stack([rng.uniform(8.0, 12.0, 2), 0.1 * rng.standard_normal(2)])
    y = np.repeat([1.0, -1.0], [5, 2])
    return Problem(y[:, None] * np.vstack([Z, far]), y, Logistic(), float(rng.uniform(0.3, 0.7)))


@experiment("LLWA21-A.5", part="positive support", quick={"sets": 5}, full={"sets": 100})
def enough_that_support_is_positive(seed: int, sets: int) -> list[Comparison]:
    """If all labels in S+ are +1 (below Lemma A.4): the best margin is leak gamma+/2 exactly.

    sum_i lam*_i a phi(<w, x_i>) <= leak |a||w| gamma+ bounds it (proof of Theorem 6.2), and the
    neuron along -w+ with a < 0 attains the bound.
    """
    problems = [datasets.figure1_right(eps=0.1)]
    problems += [with_positive_support(np.random.default_rng([seed, i])) for i in range(sets)]
    used, low, high = 0, 0.0, 0.0
    for problem in problems:
        if (one_neuron(problem, 1)[1].y < 0).any():
            continue
        used += 1
        lower, upper, bound = best_other(problem, 1, -1)
        low = max(low, abs(lower / (problem.leak * bound) - 1))
        high = max(high, abs(upper / (problem.leak * bound) - 1))
    return [
        at_least(used, sets / 2, what="data sets whose S+ has positive labels alone"),
        at_most(low, 1e-7, what="|margin reached with a <= 0 / (leak gamma+/2) - 1|, largest"),
        at_most(high, 1e-7, what="|bound on such margins / (leak gamma+/2) - 1|, largest"),
    ]


@predicate("the neuron -phi(-<w-, x>) has margin gamma-/2 > 0 on the support set of w-")
def has_minus_neuron(evidence: Evidence) -> tuple[bool, str]:
    """What is compared with itself in A.9 as printed."""
    best, support = one_neuron(evidence.problem, -1)
    net = Network(-best.w[None, :] / np.sqrt(2), np.array([-np.sqrt(0.5)]))
    q = least_margin(support, net)
    return q > 0, f"{q:.6g} against {best.margin / 2:.6g}"


@claim(
    "LLWA21-A.9",
    form="printed",
    example=on_small_mirrored_hints,
    given=[margin_loss, some_leak, unit_ball, separable, has_minus_neuron],
)
def negatives_weak_too(evidence: Evidence) -> Comparison:
    """Printed with a <= 0, the sign of the solution -phi(-<w-, x>) itself, which has gamma-/2."""
    lower, _, bound = best_other(evidence.problem, -1, -1)
    return at_most(lower / bound, 1 - CLOSE, what="margin of nets with a <= 0 over gamma-/2")


@experiment("LLWA21-A.5star", part="counterexample")
def counterexample_to_a5_star(seed: int) -> list[Comparison]:
    """On the counterexample of TA.7: A.5 holds (.0336 < .05), A.5* does not (.185 > .1)."""
    p = counterexample().problem
    _, upper, bound = best_other(p, 1, -1)
    value, gamma = dual_value(p, 1)
    return [
        at_most(abs(upper - 0.0336), 5e-5, what="A.5: best margin with a <= 0, noted .0336"),
        at_most(upper, bound, what="A.5: below gamma+/2"),
        at_most(abs(value - 0.185), 5e-4, what="A.5*: value at the dual, noted .185"),
        at_least(value, gamma, what="A.5*: above gamma+"),
    ]
