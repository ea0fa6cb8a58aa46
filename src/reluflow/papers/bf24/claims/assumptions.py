"""[BF24]_ Assumptions 1, 4 and 5: what they are for, on data with and without them."""

from __future__ import annotations

import numpy as np

from reluflow.claims.claim import Found
from reluflow.claims.evidence import Evidence
from reluflow.claims.verdict import Comparison, Hypothesis, at_least, at_most, equals
from reluflow.landscape import constants, extremal_vectors
from reluflow.network import Network
from reluflow.papers.bf24.claims.data import dominance, dominant_extremes, positive_data
from reluflow.papers.bf24.claims.definitions import extremal_by_patterns
from reluflow.papers.bf24.claims.ends import draw_set
from reluflow.papers.bf24.claims.landscape import sides_of_assumption5
from reluflow.problem import Problem, datasets, losses


def lipschitz(loss: losses.Loss) -> tuple[float, float]:
    """Lipschitz constant of l' in f, and the least |l'(0, y)|, on a grid."""
    f, worst, least = np.linspace(-8.0, 8.0, 1601), 0.0, np.inf
    for y in (-1.0, 1.0) if loss.margin else (-3.0, -1.0, 1.0, 3.0):
        slope = loss.slope(f, np.full_like(f, y))
        worst = max(worst, float(np.abs(np.diff(slope) / np.diff(f)).max()))
        least = min(least, abs(float(slope[800])))
    return worst, least


def half_square_and_logistic(seed: int) -> list[Comparison]:
    """Assumption 1 covers the square loss of Eq. 10 and the logistic loss."""
    made = []
    for loss in (losses.HalfSquare(), losses.Logistic()):
        worst, least = lipschitz(loss)
        made.append(at_most(worst, 1 + 1e-10, what=f"Lipschitz constant of l', {loss.name} loss"))
        made.append(at_least(least, 0.1, what=f"least |l'(0, y)|, {loss.name} loss"))
    return made


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
    from reluflow.gradientflow.flow import flow

    inside = rng.dirichlet(np.ones(problem.n)) @ problem.X  # active on all under Assumption 4
    start = Network(inside[None] / np.linalg.norm(inside), np.ones(1), np.full(1, -6.0))
    size = float(np.linalg.norm(problem.pull @ problem.X))
    times = np.linspace(0.0, 200.0 / size, 400)
    run = flow(problem, start, t_end=float(times[-1]), save=times, states=True)
    unit = problem.X / np.linalg.norm(problem.X, axis=1, keepdims=True)
    return min(float((unit @ net.directions[0]).min()) for net in run.path())


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
