"""[BF24]_ Assumptions 1, 3 to 6 and Lemma 8: what they are for, on data with and without them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from reluflow.arrays import Array
from reluflow.claims.claim import Found, assumption, claim, experiment
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import no_leak
from reluflow.claims.verdict import Comparison, Hypothesis, at_least, at_most, equals
from reluflow.gradientflow.flow import flow
from reluflow.landscape import constants, extremal_vectors
from reluflow.network import Network
from reluflow.papers.bf24.data import (
    MOST_CONES,
    box_size,
    dominance,
    dominant_extremes,
    extreme_samples,
    in_boxes,
    margins,
    negative_neurons_fade,
    number_of_cones,
    positive_data,
)
from reluflow.papers.bf24.planar import extremal_by_patterns
from reluflow.problem import Problem, datasets, losses


def a3c_points(seed: int) -> Evidence:
    """Data inside Assumption 3."""
    return Evidence.of(datasets.a3c())


assumption("BF24-A3", in_boxes, example=a3c_points)
assumption("BF24-A5", dominant_extremes, example=a3c_points)
assumption("BF24-A6", negative_neurons_fade, example=a3c_points)


@claim("BF24-A4", given=[positive_data, no_leak], example=a3c_points)
def one_extremal_vector(evidence: Evidence) -> Found:
    """Under Assumption 4 D* is the only extremal vector, and D_max = |D*|."""
    p, found = evidence.problem, evidence.landscape
    D = p.pull @ p.X
    moving = np.abs(found.values) > 0
    size = float(np.linalg.norm(D))
    gaps = np.linalg.norm(found.values[moving, None] * found.vectors[moving] - D, axis=1)
    checks = [
        equals(moving.sum(), 1, tolerance=0, what="extremal vectors"),
        at_most(gaps.min(initial=np.inf) / size, 1e-12, what="distance to D* over |D*|"),
    ]
    if number_of_cones(p) > MOST_CONES:
        return Found(checks, note="There are too many activation cones to compute D_max.")
    top = constants(p).D_max
    return Found([*checks, equals(top, size, tolerance=1e-12 * size, what="D_max, |D*|")])


OUTER = (0, 2)  # Kset of three points in the boxes
CORNERS = np.array(list(np.ndindex(*(2,) * 9)), dtype=float)


def sides_of_assumption5(problem: Problem, extreme: Iterable[int]) -> tuple[Array, Array]:
    """y_k |x_k|^2 and |y| sqrt(sum over k' of <x_k, x_k'>^2) at the extreme samples."""
    left, right = [], []
    for k in extreme:
        others = sum(float(problem.X[k] @ problem.X[j]) ** 2 for j in range(problem.n) if j != k)
        left.append(float(problem.y[k] * problem.X[k] @ problem.X[k]))
        right.append(float(np.sqrt(np.sum(problem.y**2) * others)))
    return np.array(left), np.array(right)


def draw_set(rng: np.random.Generator, d: int) -> Problem:
    """Data for Theorem 4: extreme points with labels near 1 around one with a small label."""
    if d == 2:
        return datasets.assumption3_box(0.09, rng)
    X = np.eye(d) + 0.05 * rng.random((d, d))
    inner = 0.5 / np.sqrt(d) * (1 + 0.1 * rng.standard_normal(d))
    y = np.append(1 + 0.1 * rng.random(d), 0.05 + 0.1 * rng.random())
    return Problem(np.vstack([X, inner]), y, name=f"corner-{d}")


def lipschitz(loss: losses.Loss) -> tuple[float, float]:
    """Lipschitz constant of l' in f, and the least |l'(0, y)|, on a grid."""
    f, worst, least = np.linspace(-8.0, 8.0, 1601), 0.0, np.inf
    for y in (-1.0, 1.0) if loss.margin else (-3.0, -1.0, 1.0, 3.0):
        slope = loss.slope(f, np.full_like(f, y))
        worst = max(worst, float(np.abs(np.diff(slope) / np.diff(f)).max()))
        least = min(least, abs(float(slope[800])))
    return worst, least


@experiment("BF24-A1")
def half_square_and_logistic(seed: int) -> list[Comparison]:
    """Assumption 1 covers the square loss of Eq. 10 and the logistic loss."""
    made = []
    for loss in (losses.HalfSquare(), losses.Logistic()):
        worst, least = lipschitz(loss)
        made.append(at_most(worst, 1 + 1e-10, what=f"Lipschitz constant of l', {loss.name} loss"))
        made.append(at_least(least, 0.1, what=f"least |l'(0, y)|, {loss.name} loss"))
    return made


@experiment(
    "BF24-A1",
    form="slip",
    printed="Section 2, before Assumption 1: the square loss l(f, y) = (f - y)^2 is covered",
    meant="(f - y)^2 / 2, as in Eq. 10: the derivative is then 1-Lipschitz; the factor only "
    "rescales time",
)
def factor_of_the_square(seed: int) -> list[Comparison]:
    """The derivative of (f - y)^2 is 2-Lipschitz, that of (f - y)^2/2 1-Lipschitz."""
    meant, printed = lipschitz(losses.HalfSquare())[0], lipschitz(losses.Square())[0]
    return [
        at_most(meant, 1 + 1e-10, what="Lipschitz constant of l', (f - y)^2/2"),
        at_least(printed, 2 - 1e-10, what="Lipschitz constant of l', (f - y)^2"),
    ]


def positive_set(rng: np.random.Generator, n: int, d: int) -> Problem:
    """Samples around the diagonal, all correlated, positive labels: Assumption 4."""
    while True:
        X = 1.0 + 0.8 * rng.standard_normal((n, d))
        problem = Problem(X, 0.05 + rng.random(n), name=f"positive-{d}")
        if positive_data(Evidence.of(problem)).ok:
            return problem


@experiment("BF24-A4", part="random", quick={"sets": 5}, full={"sets": 50})
def one_extremal_vector_of_many(seed: int, sets: int) -> Found:
    """Assumption 4 on random data, d = 2 to 4: D* is the only extremal vector, by a search through
    all patterns and by the list of the landscape, and D_max = |D*|."""
    rng = np.random.default_rng(seed)
    most, listed, gap, size = 0, 0, 0.0, 0.0
    for n, d in ((4, 2), (6, 2), (5, 3), (5, 4)):
        for _ in range(sets):
            problem = positive_set(rng, n, d)
            D = problem.pull @ problem.X
            length = float(np.linalg.norm(D))
            vectors, values = extremal_by_patterns(problem)
            most = max(most, abs(len(values) - 1))
            found = extremal_vectors(problem, basin_points=0)
            listed = max(listed, abs(int(np.count_nonzero(found.values)) - 1))
            for rows, G in ((vectors, values), (found.vectors[:1], found.values[:1])):
                gap = max(gap, float(np.linalg.norm(G[0] * rows[0] - D)) / length)
            size = max(size, abs(constants(problem).D_max / length - 1))
    return Found(
        [
            equals(most, 0, tolerance=0, what="extremal vectors beyond one, all patterns"),
            equals(listed, 0, tolerance=0, what="extremal vectors beyond one, listed"),
            at_most(gap, 1e-12, what="distance to D* over |D*|"),
            at_most(size, 1e-12, what="D_max over |D*|, less 1"),
        ],
        [Hypothesis("Assumption 4", True, f"{4 * sets} sets with all inner products positive")],
    )


def least_cosine_of_one_neuron(problem: Problem, rng: np.random.Generator) -> float:
    """Least <w, x_k>/(|w| |x_k|) along the flow of one neuron that starts active on all samples."""
    inside = rng.dirichlet(np.ones(problem.n)) @ problem.X  # active on all under Assumption 4
    start = Network(inside[None] / np.linalg.norm(inside), np.ones(1), np.full(1, -6.0))
    size = float(np.linalg.norm(problem.pull @ problem.X))
    times = np.linspace(0.0, 200.0 / size, 400)
    run = flow(problem, start, t_end=float(times[-1]), save=times, states=True)
    unit = problem.X / np.linalg.norm(problem.X, axis=1, keepdims=True)
    return min(float((unit @ net.directions[0]).min()) for net in run.path())


@experiment("BF24-A5", part="one-neuron", quick={"sets": 3}, full={"sets": 20})
def one_neuron_stays_active(seed: int, sets: int) -> Found:
    """What Assumption 5 is for: one neuron active on all samples stays so along its trajectory."""
    rng = np.random.default_rng(seed)
    problems: list[Problem] = []
    while len(problems) < 2 * sets:
        problem = draw_set(rng, 2 + len(problems) % 2)
        about = Evidence.of(problem)
        if positive_data(about).ok and dominant_extremes(about).ok:
            problems.append(problem)
    least = min(least_cosine_of_one_neuron(p, rng) for p in problems)
    margin = min(dominance(p) for p in problems)
    left, right = sides_of_assumption5(datasets.three_points(), (0, 2))
    return Found(
        [
            at_least(least, 1e-3, what="least cosine with a sample along the trajectories"),
            at_most(np.abs(left - [1.71875, 0.8125]).max(), 1e-12, what="Figure 2: left sides"),
            at_most(np.abs(right - [2.246, 1.778]).max(), 5e-4, what="Figure 2: right sides"),
        ],
        [
            Hypothesis(
                "Assumptions 4 and 5", margin > 0, f"least margin of Assumption 5 {margin:.3g}"
            )
        ],
    )


@experiment(
    "BF24-A5",
    form="control",
    quick={"sets": 3},
    full={"sets": 20},
    reason="Assumption 5 is broken on purpose: an extreme sample is lost on the way",
)
def one_neuron_leaves(seed: int, sets: int) -> Found:
    """Without Assumption 5: an extreme sample with a small label among others with large ones is
    lost on the way."""
    rng = np.random.default_rng(seed)
    found, margin, fine = [], -np.inf, True
    for _ in range(sets):
        X = np.array([[-0.9, 1.0], [0.0, 1.0], [0.9, 1.0]]) + 0.02 * rng.standard_normal((3, 2))
        problem = Problem(X, np.array([0.01, 0.02, 2.0]) * (1 + 0.1 * rng.random(3)))
        fine &= bool(positive_data(Evidence.of(problem)).ok)
        margin = max(margin, dominance(problem))
        found.append(least_cosine_of_one_neuron(problem, rng))
    return Found(
        [
            at_most(margin, -0.1, what="margin of Assumption 5, which fails"),
            at_most(max(found), -1e-3, what="least cosine with a sample: it becomes negative"),
        ],
        [Hypothesis("Assumption 4", fine)],
    )


@experiment("BF24-A6", part="d3", quick={"sets": 10}, full={"sets": 100})
def three_dimensions_never_fade(seed: int, sets: int) -> list[Comparison]:
    """Assumption 6 (1) contradicts Assumption 4 for d >= 3.

    Take an extreme x_i and the cone in which it alone is active: D = r_i x_i / n. The hyperplane
    of a neighbouring extreme x_j touches that cone, u_j = -1, and u_j <D, x_j> =
    -r_i <x_i, x_j>/n < 0. In two dimensions only x_i's inner neighbour touches it.
    """
    rng = np.random.default_rng(seed)
    found = [margins(draw_set(rng, 3)) for _ in range(sets)]
    usual = [m for m in found if m.residual > 0]
    return [
        at_least(len(usual), sets / 2, what="sets of d = 3 with r > 0 on Kset"),
        equals(sum(m.push > 0 for m in usual), 0, tolerance=0, what="that satisfy part 1"),
    ]


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
