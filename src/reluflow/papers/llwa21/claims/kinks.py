"""[LLWA21]_ at kinks: Lemma B.15 as an equality, and where a flow may go on in several ways."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.polynomial import Legendre
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.claims.claim import Found, experiment
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import orthogonally_separable
from reluflow.claims.verdict import Comparison, at_least, at_most
from reluflow.descent import descend
from reluflow.gradientflow.flow import flow
from reluflow.landscape import D
from reluflow.network import Network, initialize
from reluflow.papers.llwa21.claims.directions import outputs_of
from reluflow.papers.llwa21.runs import branchings, early_rate, flow_until, in_unit_ball, sides
from reluflow.problem import Problem, datasets
from reluflow.problem.losses import HalfSquare, Logistic
from reluflow.trajectory import Trajectory
from reluflow.trajectory.observables import velocity

RTOL = 1e-11  # of the runs
SLOPE = 1e-7  # RTOL times what differentiating a polynomial through the records costs, nodes^2
ENERGY = 1e-9
VALLEY = Problem(
    np.array([[0.0, 1.0], [1.0, 0.6]]), np.array([-1.0, 1.0]), Logistic(), 0.2, name="valley"
)
SMALL, EPS = 1e-3, 0.1  # r and eps of Assumptions 4.6, A.6 in the flows looked at


def min_norm_velocity(problem: Problem, net: Network) -> Array:
    """Minus the Clarke subgradient of least norm, (m, d + 1).

    w_j' = a_j D_j and a_j' = <w_j, D_j> with D_j the least of its kind where <w_j, x_k> = 0; the
    choice there does not enter <w_j, D_j>.
    """
    W, a = net.weights()
    force = D(problem, W, problem.pull_at(problem.outputs(net)))
    return np.column_stack([a[:, None] * force, np.sum(W * force, axis=1)])


def pieces(
    problem: Problem, net: Network, t_end: float, nodes: int
) -> Iterator[tuple[Trajectory, NDArray[np.int64], Array]]:
    """The run between its kinks, one piece after the other, recorded at Gauss nodes and both ends.

    Gives the run, the places of the nodes among its records, and their weights in time.
    """
    found = flow(problem, net, t_end=t_end, rtol=RTOL, progress=False)
    edges = np.unique([0.0, *found.events["time"], t_end])
    edges = edges[np.append(np.diff(edges) > 1e-6 * t_end, True)]
    x, weight = leggauss(nodes)
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    inner = middle[:, None] + half[:, None] * x
    save = np.sort(np.concatenate([edges, inner.ravel()]))
    run = flow(problem, net, t_end=t_end, rtol=RTOL, save=save, progress=False)
    for i in range(len(middle)):
        yield run, np.arange(1, nodes + 1) + i * (nodes + 1), half[i] * weight


def measure(
    problem: Problem, net: Network, t_end: float, nodes: int
) -> tuple[float, float, int, int]:
    """|theta' + least subgradient| and |integral of its square - fall of L|, relative.

    Also the numbers of pieces that slide and of kinks. theta' is the derivative of the polynomial
    through the records of a piece.
    """
    slope = energy = 0.0
    slid, kinks = 0, -1
    for run, at, weight in pieces(problem, net, t_end, nodes):
        nets = [run.path()[int(k)] for k in at]
        least = np.array([min_norm_velocity(problem, net) for net in nets])
        theta = np.array([np.column_stack(net.weights()) for net in nets])
        t, flat = run.times[at], theta.reshape(len(at), -1)
        domain = [run.times[at[0] - 1], run.times[at[-1] + 1]]
        quotient = np.column_stack(
            [Legendre.fit(t, column, len(at) - 1, domain=domain).deriv()(t) for column in flat.T]
        )
        gap = np.abs(quotient - least.reshape(len(at), -1)).max()
        slope = max(slope, float(gap / np.abs(least).max()))
        fall = float(run.loss[at[0] - 1] - run.loss[at[-1] + 1])
        spent = float(weight @ np.sum(least**2, axis=(1, 2)))
        energy = max(energy, abs(spent - fall) / float(run.loss[0]))
        sine = np.abs([net.directions @ problem.X.T for net in nets]).min(axis=(1, 2))
        slid += bool((sine < 1e-12).all())
        kinks += 1
    return slope, energy, slid, kinks


def _compare_energy(slope: float, energy: float) -> list[Comparison]:
    return [
        at_most(slope, SLOPE, what="|theta' + subgradient of least norm|, relative"),
        at_most(energy, ENERGY, what="|integral of |velocity|^2 - fall of L| / L(0), every piece"),
    ]


@experiment("LLWA21-LB.15", part="slide", quick={"nodes": 24}, full={"nodes": 40})
def along_a_slide(seed: int, nodes: int) -> list[Comparison]:
    """One neuron lands in a valley from either side, slides and leaves: both halves as equalities.

    On the valley the gradients of both sides point into it and are longer than the least one.
    """
    starts = [np.array([0.15, h]) for h in (0.2, 0.04, -0.04, -0.2)]
    nets = [Network(w[None], np.array([np.linalg.norm(w)]), leak=0.2) for w in starts]
    found = [measure(VALLEY, net, 12.0, nodes) for net in nets]
    return [
        *_compare_energy(max(f[0] for f in found), max(f[1] for f in found)),
        at_least(min(f[2] for f in found), 1, what="pieces along the valley, each start"),
    ]


@experiment(
    "LLWA21-LB.15", part="crossings", quick={"m": 6, "nodes": 24}, full={"m": 20, "nodes": 40}
)
def across_kinks(seed: int, m: int, nodes: int) -> list[Comparison]:
    """The same along a run of a leaky network that crosses kinks, between them."""
    problem = datasets.symmetric_separable()
    net = initialize(problem, m, scale=0.3, kind="gaussian", rng=seed)
    slope, energy, _, kinks = measure(problem, net, 20.0, nodes)
    return [*_compare_energy(slope, energy), at_least(kinks, 1, what="kinks crossed")]


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
            met += branchings(flow_until(problem, net, 5.0))
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
        evidence = flow_until(problem, net, 5.0)
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


@experiment("LLWA21-LB.15", part="differences", quick={"sets": 5}, full={"sets": 50})
def velocity_by_differences(seed: int, sets: int) -> list[Comparison]:
    """Where no sample is on a kink the velocity is minus the gradient of the mean loss.

    Central differences of the loss, written out, against the velocity and against one step of
    descent; leaky activation, two and three features, logistic and half-square losses.
    """
    rng = np.random.default_rng(seed)
    worst = {"velocity": 0.0, "dense": 0.0, "lumped": 0.0}
    for i in range(sets):
        d, m, h, lr = 2 + i % 2, 4, 1e-5, 1e-3
        y = np.sign(rng.standard_normal(6))
        logistic = i % 4 < 2
        problem = Problem(
            rng.standard_normal((6, d)), y, Logistic() if logistic else HalfSquare(), leak=0.3
        )
        theta = rng.standard_normal(m * (d + 1))
        net = Network(theta[: m * d].reshape(m, d), theta[m * d :], leak=0.3)
        if np.abs(problem.X @ net.W.T).min() < 1e-3:
            continue

        def loss(theta: Array, problem: Problem = problem, logistic: bool = logistic) -> float:
            f = outputs_of(problem, theta, 4)
            each = np.log1p(np.exp(-problem.y * f)) if logistic else 0.5 * (f - problem.y) ** 2
            return float(each.mean())

        steps = h * np.eye(theta.size)
        slope = np.array([(loss(theta - e) - loss(theta + e)) / (2 * h) for e in steps])
        size = float(np.abs(slope).max())
        dW, da = velocity(problem, net)
        gap = np.abs(np.append(dW, da) - slope).max() / size
        worst["velocity"] = max(worst["velocity"], gap)
        for backend in ("dense", "lumped"):
            end = descend(problem, net, lr=lr, steps=1, backend=backend).final
            moved = (np.append(*end.weights()) - theta) / lr
            worst[backend] = max(worst[backend], np.abs(moved - slope).max() / size)
    return [
        at_most(worst["velocity"], 1e-7, what="velocity against differences of the loss, relative"),
        at_most(worst["dense"], 1e-7, what="one dense step against them, relative"),
        at_most(worst["lumped"], 1e-7, what="one lumped step against them, relative"),
    ]


@experiment("LLWA21-LB.15", part="closed-form", quick={"t_end": 8.0}, full={"t_end": 30.0})
def sliding_in_closed_form(seed: int, t_end: float) -> list[Comparison]:
    """On a kink the velocity is the element of least norm: a valley whose output is logistic.

    x_1 = (1, 1/2) pulls a neuron w = (w_1, 0) = (a, 0) up the hyperplane of x_2 = (0, 1), whose
    label -1 pushes it back; with c_1 = (1 - f)/2 the slope c_1/|c_2| of x_2 gives D = (c_1, 0),
    so f = a w_1 obeys f' = f (1 - f), and the loss falls by |velocity|^2 = 2 f c_1^2.
    """
    problem = Problem(np.array([[1.0, 0.5], [0.0, 1.0]]), np.array([1.0, -1.0]))
    times = np.linspace(0.0, t_end, 41)
    output, off, energy = 0.0, 0.0, 0.0
    for start in np.random.default_rng(seed).uniform(0.05, 0.6, 3):
        run = flow(
            problem,
            Network(np.array([[start, 0.0]]), np.array([start])),
            t_end=t_end,
            save=times,
            rtol=1e-9,
        )
        f = 1 / (1 + (1 / start**2 - 1) * np.exp(-times))
        seen = np.array([problem.outputs(net) for net in run.path()])
        output = max(output, np.abs(seen[:, 0] - f).max(), np.abs(seen[:, 1]).max())
        off = max(off, max(abs(float(net.weights()[0][0, 1])) for net in run.path()))
        # loss (1 - f)^2/4 + 1/4: its derivative -(1 - f) f'/2 is -2 f c_1^2
        energy = max(energy, np.abs(run.loss - (0.25 * (1 - f) ** 2 + 0.25)).max())
    return [
        at_most(output, 1e-7, what="outputs against the logistic curve"),
        at_most(off, 1e-7, what="distance to the hyperplane"),
        at_most(energy, 1e-7, what="loss against its closed form"),
    ]
