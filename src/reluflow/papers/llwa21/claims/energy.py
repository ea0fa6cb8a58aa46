"""[LLWA21]_ Lemma B.15 as an equality: velocity and energy of runs that cross kinks and slide."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.polynomial import Legendre
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.claims.claim import experiment
from reluflow.claims.verdict import Comparison, at_least, at_most
from reluflow.network import Network, initialize
from reluflow.problem import Problem, datasets
from reluflow.problem.losses import Logistic
from reluflow.trajectory import Trajectory

RTOL = 1e-11  # of the runs
SLOPE = 1e-7  # RTOL times what differentiating a polynomial through the records costs, nodes^2
ENERGY = 1e-9
VALLEY = Problem(
    np.array([[0.0, 1.0], [1.0, 0.6]]), np.array([-1.0, 1.0]), Logistic(), 0.2, name="valley"
)


def min_norm_velocity(problem: Problem, net: Network) -> Array:
    """Minus the Clarke subgradient of least norm, (m, d + 1).

    w_j' = a_j D_j and a_j' = <w_j, D_j> with D_j the least of its kind where <w_j, x_k> = 0; the
    choice there does not enter <w_j, D_j>.
    """
    from reluflow.landscape import D

    W, a = net.weights()
    force = D(problem, W, problem.pull_at(problem.outputs(net)))
    return np.column_stack([a[:, None] * force, np.sum(W * force, axis=1)])


def pieces(
    problem: Problem, net: Network, t_end: float, nodes: int
) -> Iterator[tuple[Trajectory, NDArray[np.int64], Array]]:
    """The run between its kinks, one piece after the other, recorded at Gauss nodes and both ends.

    Gives the run, the places of the nodes among its records, and their weights in time.
    """
    from reluflow.gradientflow.flow import flow

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


def _compared(slope: float, energy: float) -> list[Comparison]:
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
        *_compared(max(f[0] for f in found), max(f[1] for f in found)),
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
    return [*_compared(slope, energy), at_least(kinks, 1, what="kinks crossed")]
