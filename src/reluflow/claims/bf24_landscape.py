"""[BF24]_: lemmas about G and its constants, checked on random data and on Figure 2."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reluflow.claims.bf24_cones import margins
from reluflow.claims.bf24_data import box_size, dominance, positive_data
from reluflow.claims.bf24_faces import (
    extremal_by_definition,
    general_position,
    gradients_avoid_borders,
    one_sign_around,
    random_problems,
)
from reluflow.claims.claim import experiment
from reluflow.claims.evidence import Evidence
from reluflow.claims.verdict import Comparison, at_least, at_most, equals
from reluflow.landscape import D, G, constants, extremal_vectors, pattern
from reluflow.network import Network
from reluflow.problem import Problem, datasets

Array = NDArray[np.float64]


experiment("BF24-A2", quick={"sets": 6}, full={"sets": 30})(general_position)
experiment("BF24-Def1", quick={"sets": 20}, full={"sets": 200})(extremal_by_definition)
experiment("BF24-L2", quick={"sets": 10}, full={"sets": 100})(gradients_avoid_borders)
experiment("BF24-L12", quick={"sets": 5, "tries": 20}, full={"sets": 25, "tries": 200})(
    one_sign_around
)


@experiment("BF24-L3", quick={"sets": 20}, full={"sets": 100})
def some_extremal_vector(seed: int, sets: int) -> Comparison:
    """At least one extremal vector exists."""
    fewest = min(
        int(np.count_nonzero(np.abs(extremal_vectors(p).values) > 0))
        for p in random_problems(seed, sets)
    )
    return at_least(fewest, 1, what="fewest extremal vectors of a set")


@experiment("BF24-L8", form="printed", quick={"draws": 400}, full={"draws": 5000})
def boxes_imply_assumption_5(seed: int, draws: int) -> Comparison:
    """box_eta < 1/6 is said to imply Assumption 5; some draws of that size violate it."""
    rng = np.random.default_rng(seed)
    problems = (datasets.assumption3_box(0.166, rng) for _ in range(draws))
    worst = min(dominance(p) for p in problems)
    return at_least(worst, 0.0, what="least margin of Assumption 5 at box_eta 0.166")


@experiment("BF24-L8", form="repaired", quick={"draws": 200}, full={"draws": 3000})
def boxes_imply_the_rest(seed: int, draws: int) -> list[Comparison]:
    """Assumptions 4 and 6 follow below 1/6; Assumption 5 below 0.0977, corners included."""
    rng = np.random.default_rng(seed)
    wide = [datasets.assumption3_box(0.166, rng) for _ in range(draws)]
    bad = sum(not positive_data(Evidence.of(p)).ok for p in wide)
    inside = max(box_size(p) for p in wide)
    narrow = min(dominance(datasets.assumption3_box(0.097, rng)) for _ in range(draws))
    return [
        at_most(inside, 1 / 6, what="largest box_eta of the draws"),
        equals(bad, 0, tolerance=0, what="draws that violate Assumption 4 at box_eta 0.166"),
        at_least(min(margins(p).least for p in wide), 0.0, what="margin of Assumption 6 there"),
        at_least(min(narrow, worst_corner(0.097)), 0.0, what="margin of Assumption 5 at 0.097"),
        at_most(worst_corner(0.0985), 0.0, what="and at the worst corner of 0.0985"),
    ]


def worst_corner(e: float) -> float:
    """Least margin of Assumption 5 over the corners of the boxes of size e (open sides closed)."""
    worst = np.inf
    for bits in np.ndindex(*(2,) * 9):
        u = np.array(bits, dtype=float)
        X = np.array(
            [
                [-1 + e * u[0], 1 + e * u[1]],
                [e * (2 * u[2] - 1), 1 + e * (2 * u[3] - 1)],
                [1 - e * u[4], 1 + e * u[5]],
            ]
        )
        y = np.array([1 + e * u[6], e * u[7], 1 + e * u[8]])
        K = X @ X.T
        off = np.sqrt(np.sum(K**2, axis=1) - np.diag(K) ** 2)
        gap = y * np.diag(K) - np.linalg.norm(y) * off
        worst = min(worst, float(gap[[0, 2]].min()))  # Kset is the two outer points
    return worst


@experiment("BF24-L9", form="printed", quick={"sets": 10}, full={"sets": 30})
def printed_alpha_minus(seed: int, sets: int) -> Comparison:
    """Eq. 25 as printed keeps faces with D_u in the negative cone, where the cosine is -1."""
    least = 1.0
    for problem in random_problems(seed, sets):
        found = extremal_vectors(problem)
        for w, value in zip(found.vectors, found.values, strict=True):
            if value < 0:  # D_u = value * w lies opposite to its own face
                grad = D(problem, w)
                cosine = float(w @ grad / np.linalg.norm(grad))
                least = min(least, np.sqrt(max(0.0, 1.0 - cosine**2)))
    return at_least(least, 1e-6, error=1e-7, what="alpha_min,- with the set as printed")


@experiment("BF24-L9", form="repaired", quick={"sets": 10}, full={"sets": 30})
def mirrored_alpha_minus(seed: int, sets: int) -> list[Comparison]:
    """With the mirrored set both constants are positive; numbers of Figure 2."""
    known = constants(datasets.three_points())
    drawn = [constants(p) for p in random_problems(seed, sets)]
    return [
        equals(known.D_min, 0.268742, tolerance=5e-7, what="D_min, Figure 2"),
        equals(known.alpha_min, 0.728690, tolerance=5e-7, what="alpha_min, Figure 2"),
        at_least(min(c.D_min for c in drawn), 1e-8, what="least D_min of random sets"),
        at_least(min(c.alpha_min for c in drawn), 1e-8, what="least alpha_min of random sets"),
    ]


@experiment("BF24-L10", quick={"sets": 10}, full={"sets": 30})
def delta_is_positive(seed: int, sets: int) -> list[Comparison]:
    """delta_0 > 0."""
    known = constants(datasets.three_points()).delta_0
    drawn = min(constants(p).delta_0 for p in random_problems(seed, sets))
    return [
        equals(known, 0.629476, tolerance=5e-7, what="delta_0, Figure 2"),
        at_least(drawn, 1e-10, what="least delta_0 of random sets"),
    ]


@experiment("BF24-L11", quick={"sets": 10, "tries": 100}, full={"sets": 30, "tries": 2000})
def faces_survive(seed: int, sets: int, tries: int) -> Comparison:
    """Outputs with mean |f x| = 0.9 delta_0 leave every extremal face extremal."""
    rng = np.random.default_rng(seed + 1)
    lost = 0
    for problem in random_problems(seed, sets):
        found = extremal_vectors(problem)
        moving = np.abs(found.values) > 0
        limit = constants(problem).delta_0
        norms = np.linalg.norm(problem.X, axis=1)
        for _ in range(tries):
            f = rng.standard_normal(problem.n)
            f *= 0.9 * limit / np.mean(np.abs(f) * norms)
            grads = D(problem, found.vectors[moving], problem.pull_at(f))
            kept = pattern(problem, grads) == found.signs[moving, None] * found.patterns[moving]
            lost += int(np.count_nonzero(~kept.all(axis=1)))
    return equals(lost, 0, tolerance=0, what="extremal faces lost")


@experiment("BF24-L14", quick={"sets": 30}, full={"sets": 200})
def kinds_of_maxima(seed: int, sets: int) -> list[Comparison]:
    """At a local maximum D_u lies in its own face, or the face is the single ray -D_u."""
    rng = np.random.default_rng(seed + 1)
    maxima, wrong = 0, 0
    for problem in random_problems(seed, sets):
        found = extremal_vectors(problem)
        for w, value, face in zip(found.vectors, found.values, found.faces, strict=True):
            steps = rng.standard_normal((400, problem.d)) * 1e-4
            if face:  # half of them inside the face, where G is smooth and curves only gently
                on = problem.X[list(face)]
                steps[:200] -= steps[:200] @ np.linalg.pinv(on) @ on
            around = w + steps - np.outer(steps @ w, w)
            around /= np.linalg.norm(around, axis=1, keepdims=True)
            if (G(problem, around) <= value + 1e-15).all():
                maxima += 1
                wrong += value < 0 and len(face) != problem.d - 1
    return [
        at_least(maxima, 1, what="local maxima found by sampling"),
        equals(wrong, 0, tolerance=0, what="of neither kind"),
    ]


@experiment("BF24-X1")
def two_solutions(seed: int) -> list[Comparison]:
    """One point, w = 0: staying and leaving are both solutions, told apart by ``on_branch``."""
    from reluflow.flow.flow import flow

    problem = Problem(np.ones((1, 1)), np.ones(1))
    net = Network(np.zeros((1, 1)), np.ones(1))
    stays = flow(problem, net, t_end=1.0, on_branch="stay").final
    leaves = flow(problem, net, t_end=1.0, on_branch="leave").final
    return [
        equals(abs(stays.weights()[0][0, 0]), 0.0, tolerance=0.0, what="|w| when staying"),
        at_least(leaves.weights()[0][0, 0], 0.1, what="w when leaving"),
    ]
