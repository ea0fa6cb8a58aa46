"""[LLWA21]_ Assumptions 4.6, A.6 and Appendix I.2: where a flow may go on in several ways."""

from __future__ import annotations

import numpy as np

from reluflow.arrays import Array
from reluflow.claims.claim import Found, experiment
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import orthogonally_separable
from reluflow.claims.verdict import at_least, at_most
from reluflow.network import Network, initialize
from reluflow.papers.llwa21.claims.assumptions import branchings, sides
from reluflow.papers.llwa21.runs import early_rate, in_unit_ball, until
from reluflow.problem import Problem, datasets
from reluflow.problem.losses import Logistic

SMALL, EPS = 1e-3, 0.1  # r and eps of Assumptions 4.6, A.6 in the flows looked at


def edges(problem: Problem, net: Network) -> tuple[int, int, int]:
    """Kinks (j, i) of the network put there one by one: ridges, valleys, refractions.

    v1 and v2 are the rates of <w_j, x_i> with slope 1 and slope leak at the kink.
    """
    c = problem.pull_at(problem.outputs(net))
    gram = problem.X @ problem.X.T
    counts = [0, 0, 0]
    for j in range(net.m):
        for i in range(problem.n):
            x = problem.X[i]
            w = net.W[j] - x * (net.W[j] @ x) / (x @ x)
            h = np.where(problem.X @ w > 0, 1.0, problem.leak)
            rest = float((h * c * gram[i]).sum() - h[i] * c[i] * gram[i, i])
            v1, v2 = (net.a[j] * (rest + s * c[i] * gram[i, i]) for s in (1.0, problem.leak))
            counts[0 if v2 < 0 < v1 else 1 if v1 < 0 < v2 else 2] += 1
    return counts[0], counts[1], counts[2]


@experiment("LLWA21-I2", quick={"draws": 20}, full={"draws": 500})
def no_ridges(seed: int, draws: int) -> Found:
    """No kink is a ridge on orthogonally separable data; on others some are."""
    ridges, control, met = 0, 0, 0
    hypotheses = []
    for i in range(draws):
        rng = np.random.default_rng([seed, i])
        leak = float(rng.choice([0.0, 0.3, 0.7]))
        problem = datasets.separable(
            0.9, 6, 3, rng=rng, loss="logistic", leak=leak, reduction="mean"
        )
        net = initialize(problem, 5, scale=10.0 ** rng.uniform(-3, 0.5), kind="gaussian", rng=rng)
        test = orthogonally_separable(Evidence.of(problem))
        if not test.ok:
            continue
        hypotheses = [test]
        ridges += edges(problem, net)[0]
        other = Problem(problem.X, rng.permutation(problem.y), problem.loss, leak)
        control += edges(other, net)[0]
        if i < 5:
            met += branchings(until(problem, net, 5.0))
    return Found(
        [
            at_most(ridges, 0, what="kinks that are ridges"),
            at_most(met, 0, what="moments at which runs could branch"),
            at_least(control, 1, what="ridges with the labels shuffled"),
        ],
        hypotheses,
    )


def one_direction_each(
    centres: list[tuple[float, Array]], leak: float, rng: np.random.Generator
) -> Network:
    """Balanced groups of 1 to 3 small neurons that share a direction within EPS of their centre.

    ``centres`` are the sign of the outer weights and the unit vector of each group.
    """
    W, a = [], []
    for sign, centre in centres:
        z = rng.standard_normal(centre.size)
        v = centre + EPS * rng.uniform() * z / np.linalg.norm(z)
        for size in SMALL * rng.uniform(0.1, 1.0, int(rng.integers(1, 4))):
            W.append(size * v / np.linalg.norm(v))
            a.append(sign * size)
    return Network(np.array(W), np.array(a), leak=leak)


def continuations(
    problem: Problem, centres: list[tuple[float, Array]], seed: int, starts: int
) -> tuple[int, int]:
    """Kinks crossed by flows from such starts until q_min = 5, and points with several ways on."""
    kinks, several = 0, 0
    for i in range(starts):
        net = one_direction_each(centres, problem.leak, np.random.default_rng([seed, i]))
        evidence = until(problem, net, 5.0)
        kinks += len(evidence.trajectory().events.get("kind", ()))
        several += branchings(evidence)
    return kinks, several


def with_kinks_ahead(seed: int, sets: int, symmetric: bool) -> list[Problem]:
    """Separable points of the plane that mu (or mu+) does not separate, without the certificate.

    Neurons that start near it must then cross kinks on their way to a separator.
    """
    found: list[Problem] = []
    i = 0
    while len(found) < sets:
        rng = np.random.default_rng([seed, i])
        i += 1
        Z = np.column_stack([rng.uniform(0.1, 1.0, 6), 0.7 + rng.standard_normal(6)])
        if symmetric:
            X, y = np.vstack([Z, -Z]), np.repeat([1.0, -1.0], 6)
        else:
            y = rng.choice([-1.0, 1.0], 6)
            X = y[:, None] * Z
        problem = in_unit_ball(Problem(X, y, Logistic(), 0.5))
        centre = sides(problem)[0 if symmetric else 1]
        wrong = bool((problem.y * (problem.X @ centre) < 0).any())
        if wrong and not orthogonally_separable(Evidence.of(problem)).ok:
            found.append(problem)
    return found


def all_go_one_way(
    seed: int, problems: list[Problem], centres: list[list[tuple[float, Array]]], starts: int
) -> Found:
    """None of the flows could have gone on otherwise."""
    counts = [
        continuations(problem, centre, seed + i, starts)
        for i, (problem, centre) in enumerate(zip(problems, centres, strict=True))
    ]
    kinks, several = (int(n) for n in np.sum(counts, axis=0))
    return Found(
        [
            at_least(kinks, 1, what="kinks crossed"),
            at_most(several, 0, what="of these, points with several continuations"),
        ],
        note=f"{len(problems)} data sets, {starts} starts each, {kinks} kinks crossed",
    )


@experiment("LLWA21-A4.6", part="instances", quick={"sets": 4, "starts": 3}, full={"sets": 40})
def two_groups_go_one_way(seed: int, sets: int, starts: int) -> Found:
    """Two groups near +-mubar on symmetric data without the certificate."""
    problems = with_kinks_ahead(seed, sets, symmetric=True)
    means = [early_rate(problem)[1] for problem in problems]
    return all_go_one_way(seed, problems, [[(1.0, mu), (-1.0, -mu)] for mu in means], starts)


@experiment("LLWA21-A.6", part="instances", quick={"sets": 4, "starts": 3}, full={"sets": 40})
def one_group_goes_one_way(seed: int, sets: int, starts: int) -> Found:
    """One group near mubar+ on separable data without the certificate."""
    problems = with_kinks_ahead(seed, sets, symmetric=False)
    means = [sides(problem)[1] for problem in problems]
    return all_go_one_way(
        seed, problems, [[(1.0, mu / np.linalg.norm(mu))] for mu in means], starts
    )
