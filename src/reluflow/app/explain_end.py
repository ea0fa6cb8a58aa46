"""The end of a run: its directions, what another neuron would give, and what a larger scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.errors import ReluflowError
from reluflow.network import Network
from reluflow.optimum.embedding import collapse, neuron_groups
from reluflow.optimum.stationarity_result import Stationarity
from reluflow.problem import Problem
from reluflow.trajectory.observables import OBSERVABLES

Array = NDArray[np.float64]

ANGLE = 0.05  # radians within which neurons at the end count as one direction
LEAST = 0.03  # sqrt(|a||w|) relative to the largest below which a neuron does not count
_ADDED = 6  # neurons added at most in the search for an interpolator
_LOCATED = 5_000  # m n d up to which the run from a larger scale locates its kinks
_FITS = 1e-8  # loss relative to the first one that counts as interpolation


@dataclass(frozen=True)
class Group:
    """Neurons of one direction and output sign.

    Attributes
    ----------
    direction : unit vector; sign : of the outer weights; neurons : how many
    share : of sum_j |a_j||w_j|
    active : samples on which it is active; edge : samples on whose hyperplane it lies
    """

    direction: Array
    sign: int
    neurons: int
    share: float
    active: tuple[int, ...]
    edge: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "direction": self.direction, "sign": self.sign, "neurons": self.neurons,
            "share": self.share, "active": self.active, "edge": self.edge,
        }  # fmt: skip


def groups_of(problem: Problem, net: Network) -> tuple[Group, ...]:
    """Directions that carry the network, by falling share; empty for one that is still silent."""
    labels, count = neuron_groups(net, angle=ANGLE, least=LEAST)
    size = net.log_norms + net.log_outer
    if count == 0 or not np.isfinite(size.max()):
        return ()
    weight = np.exp(size - size.max())
    radius = np.linalg.norm(problem.X, axis=1)
    found = []
    for k in range(count):
        members = np.flatnonzero(labels == k)
        v = weight[members] @ net.directions[members]
        v /= np.linalg.norm(v)
        height = problem.X @ v
        edge = np.abs(height) <= 1e-4 * radius
        found.append(
            Group(
                v,
                int(np.sign(net.a[members[0]])),
                len(members),
                float(weight[members].sum() / weight.sum()),
                tuple(np.flatnonzero((height > 0) & ~edge).tolist()),
                tuple(np.flatnonzero(edge & (radius > 0)).tolist()),
            )
        )
    return tuple(sorted(found, key=lambda g: -g.share))


def interpolator(problem: Problem, point: Stationarity) -> Network | None:
    """A small network that fits every label, found by adding the best neuron and training on.

    Starts from the end with each direction as one neuron. None when none is found.
    """
    from reluflow.flow.flow import flow
    from reluflow.optimum.stationarity import stationarity

    try:
        small, _ = collapse(point.network, angle=ANGLE, least=LEAST)
    except ReluflowError:
        return None
    first = float(problem.value(np.zeros(problem.n)))
    try:
        now = stationarity(problem, small)
        for _ in range(_ADDED):
            if not now.gain > 0.0:
                return None
            with np.errstate(over="ignore", invalid="ignore"):  # a run that diverges is no result
                run = flow(problem, now.widened(), max_steps=20_000, progress=False)
                loss = float(problem.value(problem.outputs(run.final)))
            if run.status.code == "interrupted":
                raise KeyboardInterrupt
            if not np.isfinite(loss):
                return None
            if loss <= _FITS * first:
                return run.final
            now = stationarity(problem, run.final)
    except ReluflowError:
        return None
    return None


@dataclass(frozen=True)
class LargeStart:
    """Where the same draw ends from weights of size 1."""

    loss: float
    margin: float | None
    directions: int
    finished: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "loss": self.loss, "normalized_margin": self.margin, "directions": self.directions,
            "finished": self.finished,
        }  # fmt: skip


def from_large(problem: Problem, net: Network) -> LargeStart | None:
    """Train the same start enlarged to norm 1 of all inner weights together.

    An estimate, for a comparison: but for the smallest data kinks are not located.
    """
    from reluflow.flow.flow import flow
    from reluflow.flow.stops import loss_below, stationary

    size = 0.5 * float(np.logaddexp.reduce(2.0 * net.log_norms))
    margin = problem.loss.margin
    first = float(problem.value(np.zeros(problem.n)))
    located = not margin and net.m * problem.X.size <= _LOCATED
    stops = [loss_below((1e-5 if margin else 1e-9) * first), stationary(1e-6)]
    try:
        run = flow(
            problem, net.scaled(-size), clock="loss" if margin else "time", stop=stops,
            kinks=located, max_steps=6_000, progress=False,
        )  # fmt: skip
    except ReluflowError:
        return None
    if run.status.code == "interrupted":
        raise KeyboardInterrupt
    with np.errstate(over="ignore"):
        loss = float(np.exp(problem.log_value(problem.outputs(run.final))))
    return LargeStart(
        loss,
        normalized_margin(problem, run.final) if margin else None,
        len(groups_of(problem, run.final)),
        run.status.ok,
    )


def normalized_margin(problem: Problem, net: Network) -> float:
    """min_k y_k f(x_k) / |theta|^2."""
    return float(OBSERVABLES["normalized_margin"](problem, net))


def linear_fit(problem: Problem, f: Array) -> bool:
    """Whether outputs are those of the least-squares linear function of the features."""
    beta = np.linalg.lstsq(problem.X, problem.y, rcond=None)[0]
    reach = max(float(np.abs(problem.y).max()), 1e-300)
    return bool(np.abs(f - problem.X @ beta).max() <= 1e-5 * reach)
