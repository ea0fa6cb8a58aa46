"""[TK24]_ Lemma 5.5 and Proposition 5.8 in the wide weight space: shares inside a group.

chi(theta^mm) has groups of neurons along +-e1 and +-e2. Moving norm from one neuron of a group to
another changes neither the network nor its norm, so nothing pulls the shares to those of chi.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.claims.claim import Found, experiment
from reluflow.claims.verdict import Comparison, Hypothesis, at_least, at_most
from reluflow.network import Network, axis_start
from reluflow.papers.tk24.claims.late import Ending, distance, ending, margin_ratio, unit_norm
from reluflow.papers.tk24.claims.setting import smoothed_orbit, xor_setting
from reluflow.papers.tk24.claims.sphere import Sphere
from reluflow.problem import Problem

RTOL = 1e-10
EARLY, LATE = -30.0, -300.0  # log L at which shares are read
UNEVEN = 1.3  # size of the neurons of one group over those of the others
# one neuron of each orbit: direction and size
FIRST = (((0.8, 0.5, 0.3), 1.0), ((0.5, -0.3, 0.9), 0.7))


@dataclass(frozen=True, eq=False)
class WideStart:
    """A balanced start with eight neurons for each extremum, and what phase 1 makes of it."""

    problem: Problem
    net: Network
    sizes: Array  # |u_j*|
    ends: Array  # v_j*, rows
    groups: list[NDArray[np.intp]]

    @property
    def group_sizes(self) -> Array:
        """U_k = sqrt(sum over P_k of u_j*^2)."""
        return np.array([math.sqrt(np.sum(self.sizes[g] ** 2)) for g in self.groups])

    def embedded(self, shares: Array) -> Network:
        """Neurons along their extremum, equal group norms, shares inside a group as given."""
        a = np.zeros(self.net.m)
        for g in self.groups:
            a[g] = shares[g] / math.sqrt(np.sum(shares[g] ** 2))
        return unit_norm(Network(a[:, None] * self.ends, np.sign(self.net.a) * a))


@cache
def wide_start() -> WideStart:
    """Orbits of two neurons under the symmetries of the data, one group ``UNEVEN`` times as large.

    With all groups alike the pull on a group is along its axis for ever and the shares do tend to
    those of chi; for that, exactly equal groups are needed.
    """
    problem = smoothed_orbit()
    W, a = [], []
    for direction, size in FIRST:
        w = size * np.array(direction) / np.linalg.norm(direction)
        for flips in product((1.0, -1.0), repeat=3):
            image = w * np.array(flips)
            W += [image, image[[1, 0, 2]]]
            a += [size, -size]
    rows, outer = np.array(W), np.array(a)
    larger = np.where((outer < 0) & (rows[:, 1] > 0), UNEVEN, 1.0)
    net = Network(larger[:, None] * rows, larger * outer, smoothing=problem.smoothing)
    sphere, signs = Sphere(problem), np.sign(outer)
    end = np.array([0.0, 25.0 / sphere.lam])  # e^-25 of the turn is left
    course = sphere.turn(net.directions, signs, end)[-1]
    sizes = np.abs(net.a) * np.exp(course[:, -1] - sphere.lam * end[-1])
    axes = np.asarray(problem.known["directions"])
    home = np.argmax(course[:, :-1] @ axes.T, axis=1)
    groups = [np.flatnonzero(home == k) for k in range(4)]
    return WideStart(problem, net, sizes, axes[home], groups)


def states_at_losses(problem: Problem, net: Network) -> tuple[Network, Network]:
    """The flow from a start at log L = ``EARLY`` and ``LATE``."""
    from reluflow.gradientflow.flow import flow
    from reluflow.gradientflow.stops import loss_below

    states = []
    for log_loss in (EARLY, LATE):
        net = flow(problem, net, clock="loss", stop=loss_below(log=log_loss), rtol=RTOL).final
        states.append(net)
    return states[0], states[1]


@cache
def wide_ends(sigma: float) -> tuple[Ending, Ending]:
    """Distances of the wide network from chi(theta^mm), early and late."""
    wide = wide_start()
    states = states_at_losses(wide.problem, wide.net.scaled(math.log(sigma)))
    early, late = (ending(wide.problem, net, wide.groups, wide.sizes, wide.ends) for net in states)
    return early, late


def small_net_tends_to_theta_mm(problem: Problem, sizes: Array) -> Hypothesis:
    """Assumption 5.4 for these data and this start, as far as a run shows it."""
    states = states_at_losses(problem, axis_start(problem, tuple(1e-3 * sizes)))
    quarters, ones = [np.array([k]) for k in range(4)], np.ones(4)
    early, late = (
        ending(problem, net, quarters, ones, np.asarray(problem.known["directions"]))
        for net in states
    )
    falls = late.norms < 0.7 * early.norms and late.turn < 0.7 * early.turn
    return Hypothesis(
        "Assumption 5.4: the four-neuron net tends to theta^mm",
        bool(falls and late.margin > 0.9999),
        f"log L {EARLY:g} to {LATE:g}: spread of norms {early.norms:.1e} to {late.norms:.1e}, "
        f"angles {early.turn:.1e} to {late.turn:.1e}; margin {late.margin:.6f} of theta^mm's",
    )


@experiment(
    "TK24-L5.5",
    form="printed",
    quick={"sigmas": (1e-2, 1e-3)},
    full={"sigmas": (1e-1, 1e-2, 1e-3, 1e-4)},
)
def limit_is_chi(seed: int, sigmas: tuple[float, ...]) -> Found:
    """Convergence to chi(theta^mm) itself, below some sigma*: shares inside a group stay off it."""
    wide = wide_start()
    found = []
    for sigma in sigmas:
        early, late = wide_ends(sigma)
        what = f"error of the shares, log L {EARLY:g} to {LATE:g}, sigma = {sigma:g}"
        found.append(at_most(late.shares, 0.5 * early.shares, error=1e-8, what=what))
    captured = Hypothesis(
        "all four extrema are captured",
        all(len(g) for g in wide.groups),
        ", ".join(f"{len(g)} neurons" for g in wide.groups),
    )
    balanced = Hypothesis("|u_j^0| = |v_j^0|", True, f"{wide.net.m} neurons")
    small = small_net_tends_to_theta_mm(wide.problem, wide.group_sizes)
    return Found(found, [*xor_setting(wide.problem), balanced, captured, small])


@experiment("TK24-P5.8", form="printed")
def strict_when_wide(seed: int) -> Found:
    """chi(theta^mm) is strict in the wide weight space: not where a group has two neurons."""
    wide = wide_start()
    centre, group = wide.embedded(wide.sizes), wide.groups[0]
    found: list[Comparison] = []
    for change in (1e-1, 1e-2, 1e-3):
        shares = wide.sizes.copy()
        shares[group[0]] *= 1 + change  # another distribution, at the same group norm
        other = wide.embedded(shares)
        lost = margin_ratio(wide.problem, centre) - margin_ratio(wide.problem, other)
        apart = distance(centre, other)
        found.append(
            at_least(
                lost, 1e-6 * apart**2, error=1e-14, what=f"loss of margin at distance {apart:.1e}"
            )
        )
    several = Hypothesis("a group of two neurons or more", len(group) > 1, f"{len(group)} of them")
    top = margin_ratio(wide.problem, centre)
    mm = Hypothesis("theta is chi(theta^mm)", abs(top - 1) < 1e-12, f"margin {top:.12f}")
    return Found(found, [*xor_setting(wide.problem), several, mm])
