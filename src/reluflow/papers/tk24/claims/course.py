"""[TK24]_ Section 4: neurons by the rate of the linearised flow, and runs beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array, Mask
from reluflow.landscape.align import Alignment, align
from reluflow.landscape.bound import max_G
from reluflow.landscape.extremal import extremal_vectors
from reluflow.network import Network, initialize
from reluflow.papers.tk24.claims.four_neurons import tight_orbit
from reluflow.problem import Problem, datasets, losses
from reluflow.trajectory import Trajectory

TIE = 1e-9  # relative difference of rates that counts as none
RTOL = 1e-10  # of the flows


@dataclass(frozen=True, eq=False)
class Course:
    """Balanced neurons ``net`` of size 1, to be started at sigma times that."""

    problem: Problem
    net: Network

    @cached_property
    def lam(self) -> float:
        """Largest |G| on the sphere."""
        return float(max_G(self.problem).value)

    @cached_property
    def alignment(self) -> Alignment:
        """Limits of the linearised flow: directions, rates lam_j and log |u_j*|."""
        return align(self.problem, self.net)

    @cached_property
    def shares(self) -> Array:
        """lam_j / lam."""
        return np.asarray(self.alignment.growth / self.lam)

    @cached_property
    def prominent(self) -> Mask:
        """P: neurons whose rate is the largest one."""
        return np.asarray(self.alignment.growing & (self.shares >= 1 - TIE))

    @cached_property
    def remaining(self) -> Mask:
        """R: the neurons that grow more slowly."""
        return np.asarray(self.alignment.growing & ~self.prominent)

    @cached_property
    def sizes(self) -> Array:
        """|u_j*| on P, 0 elsewhere."""
        return np.where(self.prominent, np.exp(self.alignment.log_offset), 0.0)

    @cached_property
    def groups(self) -> list[NDArray[np.intp]]:
        """P_k: prominent neurons of one direction."""
        left, found = list(np.flatnonzero(self.prominent)), []
        V = self.alignment.direction
        while left:
            same = [j for j in left if np.linalg.norm(V[j] - V[left[0]]) < 1e-6]
            found.append(np.array(same))
            left = [j for j in left if j not in same]
        return found

    @cached_property
    def regularity(self) -> float:
        """Least |<v, x_i>| over the directions of P."""
        V = self.alignment.direction[self.prominent]
        return float(np.abs(self.problem.X @ V.T).min())

    def T1(self, r: float, sigma: float) -> float:
        """Time at which the fastest neurons have grown from sigma to r."""
        return math.log(r / sigma) / self.lam

    def t4(self, r: float, eps: float) -> float:
        """Time from r to the constant scale sqrt(2 lam eps / m)."""
        q = 2 * (self.net.m / 4) * r**2 * self.sizes.max() ** 2
        return math.log(self.lam * eps / q) / (2 * self.lam)

    def run(self, sigma: float, times: Sequence[float] | Array) -> Trajectory:
        """Flow from sigma times the start, recorded at the given times."""
        from reluflow.gradientflow.flow import flow

        start = self.net.scaled(math.log(sigma))
        return flow(self.problem, start, t_end=times[-1], save=list(times), rtol=RTOL)

    def at_T1(self, r: float, sigma: float) -> Network:
        """The network at T1."""
        return self.run(sigma, [0.0, self.T1(r, sigma)]).final

    def errors_of(self, net: Network, r: float) -> tuple[float, float]:
        """On P at T1: largest error of a direction, and of |a_j| / r against |u_j*|."""
        turn = np.linalg.norm(net.directions - self.alignment.direction, axis=1)[self.prominent]
        size = np.abs(np.exp(net.log_outer - math.log(r)) - self.sizes)[self.prominent]
        return float(turn.max()), float(size.max())

    def small(self, r: float, extra: float = 1.0) -> Network:
        """The p-neuron net at T1 (Eq. 3); ``extra`` multiplies its inner weights."""
        U = np.array([np.sqrt(np.sum(self.sizes[g] ** 2)) for g in self.groups])
        V = np.array([self.alignment.direction[g[0]] for g in self.groups])
        signs = np.array([float(self.alignment.sign[g[0]]) for g in self.groups])
        return Network(extra * r * U[:, None] * V, signs * r * U)

    def embedded(self, small: Network, sizes: Array | None = None) -> Network:
        """chi: the m-neuron net of a p-neuron net, shares by ``sizes``; zero outside P."""
        sizes = self.sizes if sizes is None else sizes
        W, a = np.zeros_like(self.net.W), np.zeros(self.net.m)
        V, b = small.weights()
        for k, g in enumerate(self.groups):
            share = sizes[g] / np.sqrt(np.sum(sizes[g] ** 2))
            W[g], a[g] = share[:, None] * V[k], share * b[k]
        return Network(W, a)

    def small_run(self, r: float, times: Sequence[float] | Array, extra: float = 1.0) -> Trajectory:
        """Flow of the p-neuron net from T1, recorded at times after T1."""
        from reluflow.gradientflow.flow import flow

        start = self.small(r, extra)
        return flow(self.problem, start, t_end=times[-1], save=list(times), rtol=RTOL)


@cache
def orbit_course(seed: int, m: int) -> Course:
    """Balanced neurons of size 1 on the XOR orbit."""
    problem = datasets.xor_orbit()
    return Course(problem, initialize(problem, m, 1.0, "sphere", seed, normalize="none"))


@cache
def tight_course(seed: int, m: int) -> Course:
    """The same on the orbit of points within 1/6 of the axes, as Section 5 asks."""
    problem = tight_orbit(seed).problem
    return Course(problem, initialize(problem, m, 1.0, "sphere", seed, normalize="none"))


@cache
def remaining_course(seed: int, m: int) -> Course:
    """The same on the six points whose neurons grow at six rates."""
    problem = datasets.remaining_fixture()
    return Course(problem, initialize(problem, m, 1.0, "sphere", seed, normalize="none"))


@cache
def regular_course(seed: int, m: int) -> Course:
    """Six random points with a regular extremum and neurons in R.

    The first draw whose largest |G| lies at least 0.1 off every kink, whose second lies at least
    10 % below it, and whose neurons take both ways.
    """
    for index in range(1000):
        rng = np.random.default_rng([seed, index])
        X = rng.standard_normal((6, 3))
        X *= rng.uniform(0.5, 1.0, (6, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
        problem = Problem(X, np.array([1.0, 1, 1, -1, -1, -1]), losses.Logistic(), name="regular")
        found = extremal_vectors(problem)
        if np.abs(X @ found.vectors[0]).min() < 0.1 or found.rates[1] > 0.9 * found.rates[0]:
            continue
        net = initialize(problem, m, 1.0, "sphere", rng, normalize="none")
        course = Course(problem, net)
        if course.prominent.sum() >= 3 and course.remaining.sum() >= 3:
            return course
    raise AssertionError("no draw passes")


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Slope of log y against log x."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])
