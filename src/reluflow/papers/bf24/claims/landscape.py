"""[BF24]_: lemmas about G and its constants, checked on random data and on Figure 2."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from reluflow.arrays import Array
from reluflow.claims.claim import Found, experiment
from reluflow.claims.evidence import Evidence
from reluflow.claims.verdict import Comparison, Hypothesis, at_least, at_most, equals
from reluflow.landscape import constants
from reluflow.network import Network
from reluflow.papers.bf24.claims.cones import margins
from reluflow.papers.bf24.claims.data import box_size, dominance, extreme_samples, positive_data
from reluflow.papers.bf24.claims.definitions import planar_constants
from reluflow.papers.bf24.claims.faces import (
    extremal_by_definition,
    faces_survive,
    general_position,
    gradients_avoid_borders,
    kinds_of_extrema,
    listed,
    one_sign_around,
    random_problems,
)
from reluflow.problem import Problem, datasets

OUTER = (0, 2)  # Kset of three points in the boxes
CORNERS = np.array(list(np.ndindex(*(2,) * 9)), dtype=float)


experiment("BF24-A2", quick={"sets": 6, "tries": 100}, full={"sets": 30})(general_position)
experiment("BF24-Def1", quick={"sets": 20}, full={"sets": 200})(extremal_by_definition)
experiment("BF24-L2", quick={"sets": 10}, full={"sets": 100})(gradients_avoid_borders)
experiment("BF24-L11", quick={"sets": 10, "tries": 100}, full={"sets": 30, "tries": 2000})(
    faces_survive
)
experiment("BF24-L14", quick={"sets": 30}, full={"sets": 200})(kinds_of_extrema)
experiment("BF24-L12", quick={"sets": 5, "tries": 20}, full={"sets": 25, "tries": 200})(
    one_sign_around
)


@experiment("BF24-L3", quick={"sets": 20}, full={"sets": 100})
def some_extremal_vector(seed: int, sets: int) -> Comparison:
    """At least one extremal vector exists."""
    fewest = min(
        int(np.count_nonzero(np.abs(listed(p).values) > 0)) for p in random_problems(seed, sets)
    )
    return at_least(fewest, 1, what="fewest extremal vectors of a set")


@experiment("BF24-L8", form="printed", quick={"box_eta": 0.16})
def boxes_imply_assumption_5(seed: int, box_eta: float) -> Found:
    """Three points of the boxes, box_eta < 1/6, at which the two sides of Assumption 5 compare
    the other way: of the corners the one with the smallest quotient, inside where a box is open."""
    made = []
    for corner in CORNERS:
        X, y = box_points(np.where(corner > 0, 1.0, 1e-9)[None], box_eta)
        problem = Problem(X[0], y[0], name="corner of the boxes")
        for k, one, other in zip(OUTER, *sides_of_assumption5(problem, OUTER), strict=True):
            made.append((one / other, k, one, other, problem))
    _, k, left, right, problem = min(made, key=lambda found: found[0])
    size, extreme = box_size(problem), extreme_samples(problem)
    return Found(
        [at_least(left, right, what="y_k |x_k|^2 against |y| sqrt(sum <x_k, x_k'>^2)")],
        [
            Hypothesis(
                "three points in the boxes, box_eta < 1/6 (Assumption 3)",
                size < 1 / 6,
                f"least box_eta {size:.6g}",
            ),
            Hypothesis("the sample is extreme (k in Kset)", k in extreme, f"k = {k + 1}"),
        ],
        note=f"x = {np.round(problem.X, 4).tolist()}, y = {np.round(problem.y, 4).tolist()}.",
    )


def sides_of_assumption5(problem: Problem, extreme: Iterable[int]) -> tuple[Array, Array]:
    """y_k |x_k|^2 and |y| sqrt(sum over k' of <x_k, x_k'>^2) at the extreme samples."""
    left, right = [], []
    for k in extreme:
        others = sum(float(problem.X[k] @ problem.X[j]) ** 2 for j in range(problem.n) if j != k)
        left.append(float(problem.y[k] * problem.X[k] @ problem.X[k]))
        right.append(float(np.sqrt(np.sum(problem.y**2) * others)))
    return np.array(left), np.array(right)


@experiment(
    "BF24-L8", form="repaired", quick={"draws": 200, "many": 1_000_000}, full={"draws": 3000}
)
def boxes_imply_the_rest(seed: int, draws: int, many: int) -> list[Comparison]:
    """Assumptions 4 and 6 follow below 1/6; Assumption 5 below 0.0977, corners included.

    The shares of uniform draws that violate Assumption 5 are of ``many`` (tolerance: half of the
    last digit given and 4 standard errors); alpha_1 and alpha_3 of Eq. 13 are least at a corner,
    as each is monotone in every coordinate.
    """
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
        at_most(worst_corner(0.0978), 0.0, what="and at the worst corner of 0.0978"),
        _share(0.166, 0.06, 0.005, many, rng),
        _share(0.12, 0.0005, 0.00005, many, rng),
        at_least(least_weight(1 / 6), 0.233, what="least alpha_1, alpha_3 of Eq. 13, box_eta 1/6"),
    ]


def box_points(u: Array, e: float) -> tuple[Array, Array]:
    """Three points of the boxes of size e and their labels, from 9 numbers in [0, 1] each."""
    x1, x2, x3, z = u[:, 0:2], u[:, 2:4], u[:, 4:6], u[:, 6:9]
    X = np.stack([e * x1 + [-1, 1], e * (2 * x2 - 1) + [0, 1], e * x3 * [-1, 1] + [1, 1]], axis=1)
    return X, e * z + [1, 0, 1]


def box_margins(u: Array, e: float) -> Array:
    """Margin of Assumption 5 of such points; Kset is the two outer ones."""
    X, y = box_points(u, e)
    K = X @ X.transpose(0, 2, 1)
    size2 = np.diagonal(K, axis1=1, axis2=2)
    off = np.sqrt(np.sum(K**2, axis=2) - size2**2)
    gap = y * size2 - np.linalg.norm(y, axis=1, keepdims=True) * off
    return np.asarray(gap[:, OUTER].min(axis=1))


def worst_corner(e: float) -> float:
    """Least margin of Assumption 5 over the corners of the boxes of size e (open sides closed)."""
    return float(box_margins(CORNERS, e).min())


def least_weight(e: float) -> float:
    """Least alpha_1 and alpha_3 of x_2 = alpha_1 x_1 + alpha_3 x_3 over the corners."""
    X, _ = box_points(CORNERS, e)
    return float(np.linalg.solve(X[:, [0, 2]].transpose(0, 2, 1), X[:, 1, :, None]).min())


def _share(e: float, known: float, digit: float, many: int, rng: np.random.Generator) -> Comparison:
    part = 100_000  # drawn at once
    bad = sum(
        int(np.count_nonzero(box_margins(1.0 - rng.random((part, 9)), e) <= 0))
        for _ in range(many // part)
    )
    error = 4 * np.sqrt(known * (1 - known) / many)
    return equals(
        bad / many, known, tolerance=digit + error, what=f"share of draws without A5 at {e:g}"
    )


@experiment(
    "BF24-L9",
    form="slip",
    quick={"sets": 20},
    full={"sets": 200},
    printed="Eq. 25 (third display of Appendix D.1): alpha_min,- has the faces of Eq. 24, those "
    "with D_u not in A^-1(u)",
    meant="the mirrored set, D_u not in -A^-1(u), as the proof of Lemma 9 uses it; the sign may "
    "be lost in our text alone",
)
def faces_of_alpha_minus(seed: int, sets: int) -> list[Comparison]:
    """alpha_min,- in the plane, face by face, with either set; Lemma 9 asks for a positive one.

    Where some D_u points opposite to its own cone the cosine over the printed set is -1.
    """
    made = [planar_constants(p) for p in random_problems(seed, sets, d=2)]
    found = [constants(p).alpha_minus for p in random_problems(seed, sets, d=2)]
    gaps = [abs(f / c.alpha_minus - 1) for f, c in zip(found, made, strict=True)]
    return [
        at_least(min(c.alpha_minus for c in made), 1e-8, what="meant set: least alpha_min,-"),
        at_most(max(gaps), 1e-8, what="meant set: relative difference to the one in use"),
        at_most(min(c.alpha_minus_printed for c in made), 1e-7, what="printed set: alpha_min,-"),
    ]


@experiment("BF24-L9", quick={"sets": 10}, full={"sets": 30})
def alphas_are_positive(seed: int, sets: int) -> list[Comparison]:
    """Both constants are positive on random data; numbers of Figure 2, and the plane's by
    definition."""
    known = constants(datasets.three_points())
    drawn = [constants(p) for p in random_problems(seed, sets)]
    flat = random_problems(seed, sets, d=2)
    pairs = [(constants(p), planar_constants(p)) for p in flat]
    off = max(
        abs(getattr(found, name) / getattr(known, name) - 1)
        for found, known in pairs
        for name in ("D_min", "alpha_plus", "alpha_minus")
    )
    return [
        equals(known.D_min, 0.268742, tolerance=5e-7, what="D_min, Figure 2"),
        equals(known.alpha_min, 0.728690, tolerance=5e-7, what="alpha_min, Figure 2"),
        at_least(min(c.D_min for c in drawn), 1e-8, what="least D_min of random sets"),
        at_least(min(c.alpha_min for c in drawn), 1e-8, what="least alpha_min of random sets"),
        at_most(off, 1e-8, what="d = 2: relative difference to the definitions, face by face"),
    ]


@experiment("BF24-L10", quick={"sets": 10}, full={"sets": 30})
def delta_is_positive(seed: int, sets: int) -> list[Comparison]:
    """delta_0 > 0."""
    known = constants(datasets.three_points()).delta_0
    drawn = min(constants(p).delta_0 for p in random_problems(seed, sets))
    flat = random_problems(seed, sets, d=2)
    off = max(abs(constants(p).delta_0 / planar_constants(p).delta_0 - 1) for p in flat)
    return [
        equals(known, 0.629476, tolerance=5e-7, what="delta_0, Figure 2"),
        at_least(drawn, 1e-10, what="least delta_0 of random sets"),
        at_most(off, 1e-8, what="d = 2: relative difference to Eq. 21, face by face"),
    ]


@experiment("BF24-X1")
def two_solutions(seed: int) -> list[Comparison]:
    """One point, w = 0: staying and leaving, at once or later, are solutions (``on_branch``).

    One that leaves at t_0 has a = cosh u, w = sinh u with u' = 1 - sinh(2 u)/2 and u(t_0) = 0,
    which is integrated apart.
    """
    from scipy.integrate import solve_ivp

    from reluflow.gradientflow.flow import flow

    problem = Problem(np.ones((1, 1)), np.ones(1))
    net = Network(np.zeros((1, 1)), np.ones(1))
    stays = flow(problem, net, t_end=0.5, on_branch="stay").final
    known = solve_ivp(
        lambda t, u: 1 - np.sinh(2 * u) / 2, (0.0, 1.0), [0.0], rtol=1e-12, atol=1e-14
    ).y[0, -1]
    made = [equals(abs(stays.weights()[0][0, 0]), 0.0, tolerance=0.0, what="|w| when staying")]
    for start, when in ((net, "at once"), (stays, "at 0.5")):
        W, a = flow(problem, start, t_end=1.0, on_branch="leave").final.weights()
        gap = max(abs(W[0, 0] - np.sinh(known)), abs(a[0] - np.cosh(known)))
        made.append(at_most(gap, 1e-7, what=f"error of (w, a) 1 after leaving {when}"))
    return made
