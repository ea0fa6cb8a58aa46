"""[MMV24]_ Figures 5, 10-13: fifty neurons on pairs of MNIST digits, by descent and by flow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from reluflow.arrays import Array
from reluflow.descent import descend
from reluflow.errors import ReluflowError
from reluflow.gradientflow.flow import flow
from reluflow.network import Network, initialize
from reluflow.papers.figure import Skipped
from reluflow.problem import Problem, datasets
from reluflow.report.traces import Image, Panel
from reluflow.trajectory import Trajectory
from reluflow.trajectory.observables import Observable, cosines

WIDTH, STD, LR, STEPS = 50, 1e-6, 2e-3, 15_000
EVERY = 50  # steps between records
DRAWN = 300  # images of each digit in the heat map


def digits(positive: int, negative: int, per_class: int | None) -> Problem:
    """A centred pair of digits, mean exponential loss; Skipped where the files are not."""
    try:
        return datasets.mnist_pair(positive, negative, per_class=per_class)
    except ReluflowError as error:
        raise Skipped(str(error)) from None


def small_start(problem: Problem, seed: int) -> Network:
    """Fifty neurons, inner and outer weights from N(0, 1e-12)."""
    return initialize(problem, WIDTH, scale=STD, kind="gaussian", normalize="none", rng=seed)


def class_sums(problem: Problem) -> Array:
    """x_+ and x_-, the sums of the inputs of each class; rows."""
    return np.array([problem.X[problem.y == s].sum(axis=0) for s in (1.0, -1.0)])


def mean_neurons(net: Network) -> Array:
    """Mean of w_j over a_j > 0 and over a_j < 0; rows, zero for an empty group."""
    W, a = net.weights()
    return np.array([W[a * s > 0].sum(axis=0) / max((a * s > 0).sum(), 1) for s in (1.0, -1.0)])


def mean_cosines(problem: Problem, net: Network) -> Array:
    """Cosine of each mean neuron with the sum of its class."""
    means, sums = mean_neurons(net), class_sums(problem)
    size = np.linalg.norm(means, axis=1) * np.linalg.norm(sums, axis=1)
    along = np.sum(means * sums, axis=1)
    return np.asarray(np.divide(along, size, out=np.zeros(2), where=size > 0))


def shown_images(problem: Problem) -> Problem:
    """A few hundred images of each digit, evenly taken, the positive digit first."""
    rows = [np.flatnonzero(problem.y == s) for s in (1.0, -1.0)]
    taken = [r[np.linspace(0, len(r) - 1, min(DRAWN, len(r))).astype(int)] for r in rows]
    keep = np.concatenate(taken)
    return problem.replace(X=problem.X[keep], y=problem.y[keep], known={})


def heat_map(few: Problem) -> Panel:
    """Inner products of images, ordered by label."""
    K = few.X @ few.X.T
    limit = float(np.quantile(np.abs(K), 0.98))
    return Panel(
        [Image(np.clip(K, -limit, limit), bar=True)],
        "inner products, by label",
        axes=False,
        equal=True,
    )


def right_pairs(problem: Problem) -> tuple[float, list[float]]:
    """Share of signed pairs y_i y_k <x_i, x_k> > 0 among the images drawn, and by block.

    Blocks are both digits with themselves, then one with the other.
    """
    few = shown_images(problem)
    right = np.outer(few.y, few.y) * (few.X @ few.X.T) > 0
    one = few.y > 0
    blocks = [right[np.ix_(a, b)] for a, b in ((one, one), (~one, ~one), (one, ~one))]
    return float(right.mean()), [float(block.mean()) for block in blocks]


@dataclass(frozen=True, eq=False)
class Course:
    """A run on a pair of digits; ``steps`` is flow time over lr where it is a flow."""

    problem: Problem
    run: Trajectory
    name: str

    @cached_property
    def steps(self) -> Array:
        """Iteration of each record."""
        return self.run.times / LR

    @cached_property
    def groups(self) -> Array:
        """Cosines of every neuron with the sum of the class of its sign, nan for the other
        class; (2, records, m)."""
        cosine, outer = self.run["cosines"], self.run["outer"]
        return np.array(
            [np.where(s * outer > 0, cosine[:, :, i], np.nan) for i, s in enumerate((1.0, -1.0))]
        )

    def at(self, step: float) -> int:
        """Record nearest to an iteration."""
        return int(np.argmin(np.abs(self.steps - step)))

    def least_cosine(self, step: float) -> float:
        """Smallest cosine of a neuron with the sum of its class."""
        return float(np.nanmin(self.groups[:, self.at(step)]))

    def share_aligned(self, step: float) -> float:
        """Share of neurons whose cosine with the sum of their class is at least 0.9."""
        values = self.groups[:, self.at(step)]
        return float(np.mean(values[~np.isnan(values)] >= 0.9))

    def falls_below(self, loss: float) -> float:
        """Iteration at which the loss falls below a level, linear between records; inf if never."""
        below = self.run.loss < loss
        if not below.any():
            return np.inf
        i = int(np.argmax(below))
        if i == 0:
            return float(self.steps[0])
        (x0, x1), (y0, y1) = self.steps[i - 1 : i + 1], self.run.loss[i - 1 : i + 1]
        return float(x0 + (x1 - x0) * (y0 - loss) / (y0 - y1))


def _observed(problem: Problem) -> list[Observable | str]:
    return [
        cosines(class_sums(problem)),
        "outer",
        "stable_rank",
        "spectral_norm",
        Observable("mean_cosines", mean_cosines, ("class",)),
    ]


@cache
def course(
    pair: tuple[int, int], per_class: int | None, method: str, seed: int = 0, steps: int = STEPS
) -> Course:
    """Descent or flow from N(0, 1e-12) weights, with what the figures show.

    Descent is in single precision, as such networks are usually trained.
    """
    problem = digits(*pair, per_class)
    net = small_start(problem, seed)
    seen = _observed(problem)
    if method == "descent":
        run = descend(
            problem,
            net,
            lr=LR,
            steps=steps,
            save=range(0, steps + 1, EVERY),
            observe=seen,
            backend="dense",
            dtype="float32",
        )
    else:
        times = LR * np.arange(0, steps + 1, EVERY)
        run = flow(problem, net, t_end=LR * steps, save=times, observe=seen, kinks=False)
    return Course(problem, run, method)
