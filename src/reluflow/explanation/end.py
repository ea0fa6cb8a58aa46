"""The end of a run: its directions, what another neuron would give, and what a larger scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.errors import ReluflowError
from reluflow.network import Network
from reluflow.optimum.embedding import collapse, neuron_groups
from reluflow.optimum.own_size import label_sizes
from reluflow.optimum.stationarity import Stationarity
from reluflow.problem import Problem
from reluflow.runtime.plain import to_plain
from reluflow.trajectory.observables import OBSERVABLES

ANGLE = 0.05  # radians within which neurons at the end count as one direction
LEAST = 1e-3  # of a sample's output or label: a neuron that makes less of each does not count
_ADDED = 6  # neurons added at most in the search for an interpolator
_LARGE_STEPS, _LARGE_WORK = 6_000, 6e8  # of the run from a larger scale: steps, 6 m n d each
_LEAST_STEPS = 100
_LARGE_SECONDS = 2.0  # of its work
_ADDED_SECONDS = 2.0  # of the work of a run with one more neuron
_LOCATED = 5_000  # m n d up to which the run from a larger scale locates its kinks
FITS = 1e-4  # error over its own label up to which a sample counts as fitted: 1e-8 of its loss
SILENT = 1e-6  # output over its own label up to which a sample counts as not learnt


def fitted_samples(problem: Problem, f: Array, share: float = FITS) -> NDArray[np.bool_]:
    """Samples (n,) whose error is at most ``share`` of their own label."""
    return np.asarray(np.abs(f - problem.y) <= share * label_sizes(problem.y))


def silent_samples(problem: Problem, f: Array) -> NDArray[np.bool_]:
    """Samples (n,) on which the outputs f are nothing beside their own label."""
    return np.asarray(np.abs(f) <= SILENT * label_sizes(problem.y))


def carriers(problem: Problem, net: Network) -> NDArray[np.intp]:
    """Group (m,) of each neuron that carries the network, -1 for the others.

    A neuron counts when on some sample its output is at least `LEAST` of the largest one there and
    of the sample's own label: one that fits a small label counts beside those of large ones.
    """
    log_size = net.log_norms + net.log_outer
    p = net.directions @ problem.X.T
    with np.errstate(divide="ignore"):
        felt = log_size[:, None] + np.log(np.abs(np.maximum(p, problem.leak * p)))
        own = np.log(label_sizes(problem.y))
    line = np.maximum(felt.max(axis=0, initial=-np.inf), own) + np.log(LEAST)
    counts = np.flatnonzero(((felt >= line) & (felt > -np.inf)).any(axis=1))
    labels = np.full(net.m, -1, dtype=np.intp)
    if counts.size:
        scale = None if net.log_scale is None else net.log_scale[counts]
        part = Network(net.W[counts], net.a[counts], scale, net.leak, net.bias)
        labels[counts] = neuron_groups(part, angle=ANGLE)[0]
    return labels


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
        """Plain values, for JSON."""
        return dict(to_plain(self))


def log_sizes_of(problem: Problem, net: Network) -> Array:
    """Logarithm of the larger of |f_k| and |y_k| (n,): the size of a sample's own output."""
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(np.abs(problem.outputs(net)), label_sizes(problem.y)))


def leading_share(problem: Problem, net: Network) -> Array:
    """Share of the samples (d,) whose own output comes mostly from each feature."""
    labels, sizes = carriers(problem, net), log_sizes_of(problem, net)
    products, led = net.log_norms + net.log_outer, np.zeros(problem.X.shape, dtype=bool)
    for k in range(int(labels.max(initial=-1)) + 1):
        members = np.flatnonzero(labels == k)
        total = float(np.logaddexp.reduce(products[members]))
        v = np.exp(products[members] - total) @ net.directions[members]
        active = np.flatnonzero((problem.X @ v > 0.0) | (problem.leak > 0.0))
        parts = np.abs(v * problem.X[active])
        first = np.argmax(parts, axis=1)
        with np.errstate(divide="ignore"):
            most = np.log(parts.max(axis=1)) + total >= sizes[active] - np.log(2.0)
        led[active[most], first[most]] = True
    return np.asarray(led.mean(axis=0))


def groups_of(problem: Problem, net: Network) -> tuple[Group, ...]:
    """Directions that carry the network, by falling share; empty for one that is still silent."""
    labels = carriers(problem, net)
    count = int(labels.max(initial=-1)) + 1
    size = net.log_norms + net.log_outer
    if count == 0 or not np.isfinite(size.max()):
        return ()
    weight = np.exp(size - size.max())
    radius = problem.norms
    least = log_sizes_of(problem, net) + np.log(LEAST)
    found = []
    for k in range(count):
        members = np.flatnonzero(labels == k)
        v = weight[members] @ net.directions[members]
        v /= np.linalg.norm(v)
        height = problem.X @ v
        with np.errstate(divide="ignore"):
            output = np.logaddexp.reduce(size[members]) + np.log(np.abs(height))
        edge = (np.abs(height) <= 1e-4 * radius) & (output <= least)
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
    from reluflow.gradientflow.flow import flow
    from reluflow.gradientflow.stops import Worked
    from reluflow.optimum.stationarity import stationarity

    try:
        small, _ = collapse(point.network, carriers(problem, point.network))
    except ReluflowError:
        return None
    budget = Worked(_ADDED_SECONDS)
    try:
        now = stationarity(problem, small)
        for _ in range(_ADDED):
            if not now.gain > 0.0:
                return None
            with np.errstate(over="ignore", invalid="ignore"):  # a run that diverges is no result
                run = flow(problem, now.widened(), max_steps=20_000, stop=budget, progress=False)
                f = problem.outputs(run.final)
            if run.status.code == "interrupted":
                raise KeyboardInterrupt
            if not np.isfinite(f).all():
                return None
            if fitted_samples(problem, f).all():
                return run.final
            now = stationarity(problem, run.final)
    except ReluflowError:
        return None
    return None


@dataclass(frozen=True)
class LargeStart:
    """Where the same draw ends from weights of size 1."""

    loss: float
    normalized_margin: float | None
    directions: int
    finished: bool
    fits: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return dict(to_plain(self))


def train_from_large(problem: Problem, net: Network) -> LargeStart | None:
    """Train the same start enlarged to norm 1 of all inner weights together.

    An estimate, for a comparison: but for the smallest data kinks are not located.
    """
    from reluflow.gradientflow.flow import flow
    from reluflow.gradientflow.stops import Worked, loss_below, stationary

    size = 0.5 * float(np.logaddexp.reduce(2.0 * net.log_norms))
    margin = problem.loss.margin
    first = problem.silent_loss
    located = not margin and net.m * problem.X.size <= _LOCATED
    low = loss_below((1e-5 if margin else 1e-9) * first)
    stops: list[Any] = [low, stationary(1e-6), Worked(_LARGE_SECONDS)]
    try:
        run = flow(
            problem,
            net.scaled(-size),
            clock="loss" if margin else "time",
            stop=stops,
            kinks=located,
            max_steps=int(
                np.clip(_LARGE_WORK / (6.0 * net.m * problem.X.size), _LEAST_STEPS, _LARGE_STEPS)
            ),
            progress=False,
        )
    except ReluflowError:
        return None
    if run.status.code == "interrupted":
        raise KeyboardInterrupt
    f = problem.outputs(run.final)
    with np.errstate(over="ignore"):
        loss = float(np.exp(problem.log_value(f)))
    return LargeStart(
        loss,
        normalized_margin(problem, run.final) if margin else None,
        len(groups_of(problem, run.final)),
        run.status.ok,
        not margin
        and bool(fitted_samples(problem, f, 10 * FITS).all()),  # it stops at a small loss
    )


def normalized_margin(problem: Problem, net: Network) -> float:
    """min_k y_k f(x_k) / |theta|^2."""
    return float(OBSERVABLES["normalized_margin"](problem, net))


def linear_fit(problem: Problem, f: Array) -> bool:
    """Whether outputs are those of the least-squares linear function of the features."""
    beta = np.linalg.lstsq(problem.X, problem.y, rcond=None)[0]
    size = label_sizes(problem.y) + np.abs(f)
    return bool((np.abs(f - problem.X @ beta) <= 1e-5 * size).all())
