"""The run of [TLB26]_ Figures 1, 3 and 4: six neurons on 64 orthonormal points, from e^-1000."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.network import Network, initialize
from reluflow.prediction.orthogonal import algorithm1
from reluflow.prediction.orthogonal_process import OrthogonalProcess
from reluflow.problem import Problem, datasets
from reluflow.trajectory import Trajectory

DRAW = 1923  # among 3000: every point covered, first jump near epoch 507,000
L, LR, EPOCHS = 1000.0, 0.01, 1_100_000
INSTANTS = (0, 100_000, 506_000, 508_000, 510_000, 538_000)  # the first two are ours
COLOURS = [f"C{j}" for j in range(6)]
GUESSES = (
    f"The scale e^-{L:.0f} is ours. Among 3000 draws this one was chosen because "
    "every point is covered and the first jump falls near epoch 507,000; agreement with that epoch "
    "is by construction, agreement of run and prediction is not."
)


@cache
def setting() -> tuple[Problem, Network, OrthogonalProcess]:
    """Problem, start and prediction."""
    rng = np.random.default_rng(DRAW)
    problem = datasets.orthonormal(64, rng=rng, loss="square")
    net = initialize(problem, 6, kind="sphere", log_scale=-L, normalize="none", signs=1, rng=rng)
    return problem, net, algorithm1(problem, net)


@dataclass(frozen=True, eq=False)
class Six:
    """The run by one method; times are epochs."""

    name: str
    epochs: Array
    run: Trajectory

    @property
    def process(self) -> OrthogonalProcess:
        """What Algorithm 1 predicts."""
        return setting()[2]

    @cached_property
    def half_fits(self) -> Array:
        """Epoch at which each sample has f = y/2, by interpolation of the logistic curve."""
        f = np.clip(self.run["outputs"] / self.run.problem.y, 1e-300, 1 - 1e-15)
        x = np.log(f / (1 - f))
        k = np.argmax(x >= 0, axis=0)
        at = np.arange(x.shape[1])
        before, after = x[k - 1, at], x[k, at]
        t0, t1 = self.epochs[k - 1], self.epochs[k]
        return np.where(k > 0, t0 - (t1 - t0) * before / (after - before), np.nan)

    @cached_property
    def drops(self) -> list[NDArray[np.int64]]:
        """Samples that are fitted together: half-fits less than 5000 epochs apart."""
        order = np.argsort(self.half_fits)
        return np.split(order, np.flatnonzero(np.diff(self.half_fits[order]) > 5000) + 1)

    @cached_property
    def drop_epochs(self) -> Array:
        """Epoch of each drop: half-fit of its largest label."""
        y = self.run.problem.y
        return np.array([self.half_fits[who[np.argmax(y[who])]] for who in self.drops])

    @cached_property
    def fitted(self) -> NDArray[np.int64]:
        """Number of points with f >= y/2."""
        return np.asarray((self.run["outputs"] >= self.run.problem.y / 2).sum(axis=1))

    def middle(self, i: int) -> NDArray[np.int64]:
        """Records in the middle half of plateau i."""
        nodes = np.concatenate([[0.0], self.process.times * L / LR, [EPOCHS]])
        low, high = nodes[i], nodes[i + 1]
        inside = np.abs(self.epochs - (low + high) / 2) <= 0.25 * (high - low)
        return np.flatnonzero(inside)

    def state(self, epoch: float) -> Network:
        """Recorded network at an epoch."""
        nearest: Network = self.run.path()[int(np.argmin(np.abs(self.epochs - epoch)))]
        return nearest


def lag() -> float:
    """Epochs of descent over those of flow at the first jump: x/log(1 + x), x = lr c v/n."""
    problem, _, process = setting()
    x = LR * problem.known["rate"] * process.sizes[0]
    return float(x / math.log1p(x))


def _positions() -> Array:
    jumps = setting()[2].jump_times(log_scale=-L) / LR
    around = np.arange(-6000, 6001, 100)
    wanted = [np.arange(0, EPOCHS + 1, 2000), *(np.round(j) + around for j in jumps), INSTANTS]
    return np.unique(np.concatenate(wanted)).astype(float)


@cache
def by_flow() -> Six:
    """Gradient flow, its time over lr."""
    from reluflow.gradientflow.flow import flow

    problem, net, _ = setting()
    epochs = np.unique(np.concatenate([_positions(), np.array(INSTANTS) / lag()]))
    run = flow(
        problem,
        net,
        t_end=LR * EPOCHS,
        save=LR * epochs,
        states=True,
        observe=["outputs", "log_norms", "norm2"],
    )
    return Six("gradient flow", run.times / LR, run)


@cache
def by_descent() -> Six:
    """Gradient descent, as in the paper."""
    from reluflow.descent import descend

    problem, net, _ = setting()
    run = descend(
        problem,
        net,
        lr=LR,
        steps=EPOCHS,
        save=_positions().astype(int),
        states=True,
        observe=["outputs", "log_norms", "norm2"],
    )
    return Six("gradient descent", run.steps.astype(float), run)


def runs(descent: bool) -> list[Six]:
    """The flow and, if asked for, the descent."""
    return [by_flow(), by_descent()] if descent else [by_flow()]
