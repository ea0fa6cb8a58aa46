"""Ends with several outputs: the directions that carry a network, and the late phase."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reluflow.arrays import Array
from reluflow.network import Network
from reluflow.problem import Problem
from reluflow.runtime.plain import to_plain

ANGLE = 0.05  # radians within which neurons are one
LEAST = 0.03  # sqrt(|a||w|) relative to the largest below which a neuron does not count
LATE = 10.0  # least margin at which the conditions of the end are looked at
LATE_WORK = 4e9  # multiplications spent on getting there at most


@dataclass(frozen=True, eq=False)
class VectorGroup:
    """Neurons of one direction and one direction of outer weights.

    Attributes
    ----------
    direction, outer : unit vectors (d,) and (K,)
    neurons : how many
    share : of sum_j |a_j||w_j|
    """

    direction: Array
    outer: Array
    neurons: int
    share: float
    sign: int = 1  # the outer direction has the signs

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return dict(to_plain(self))


def vector_groups(problem: Problem, net: Network) -> tuple[VectorGroup, ...]:
    """Directions that carry the network, by falling share; empty for one that is silent.

    Neurons join the largest one within `ANGLE` of them, in both layers.
    """
    size = net.log_norms + net.log_outer
    if not np.isfinite(size.max()):
        return ()
    weight = np.exp(size - size.max())
    with np.errstate(invalid="ignore", divide="ignore"):
        V = np.nan_to_num(net.W / np.linalg.norm(net.W, axis=1, keepdims=True))
        B = np.nan_to_num(net.a / np.linalg.norm(net.a, axis=1, keepdims=True))
    left = np.flatnonzero(weight > LEAST**2)
    left = left[np.argsort(-weight[left], kind="stable")]
    total, found, near = float(weight[left].sum()), [], np.cos(ANGLE)
    while left.size:
        lead = left[0]
        mine = (V[left] @ V[lead] >= near) & (B[left] @ B[lead] >= near)
        members, left = left[mine], left[~mine]
        v, b = weight[members] @ V[members], weight[members] @ B[members]
        share = float(weight[members].sum()) / total
        found.append(VectorGroup(v / np.linalg.norm(v), b / np.linalg.norm(b), len(members), share))
    return tuple(sorted(found, key=lambda g: -g.share))


def least_margin(problem: Problem, net: Network) -> float:
    """min_k (f_y - max_{c != y} f_c), or of y f where labels are -1 and +1."""
    f = problem.outputs(net)
    if not problem.loss.classes:
        return float(np.min(problem.y * f))
    own = f[np.arange(problem.n), problem.labels]
    return float(np.min(own - np.where(problem.y > 0.0, -np.inf, f).max(axis=1)))


def train_on(problem: Problem, net: Network) -> Network:
    """The network trained on until its least margin is about `LATE`, on the clock of the loss.

    Steps are limited by `LATE_WORK`. The same network where a sample is not in its class yet, or
    the data are too large for a step to be worth while.
    """
    from reluflow.gradientflow.flow import flow
    from reluflow.gradientflow.stops import loss_below

    steps = int(LATE_WORK / (20.0 * net.m * problem.X.size))
    if steps < 20 or not 0.0 < least_margin(problem, net) < LATE:
        return net
    aim = loss_below(log=float(np.log(problem.weight)) - LATE)
    run = flow(problem, net, clock="loss", stop=aim, kinks=False, max_steps=steps, progress=False)
    return run.final
