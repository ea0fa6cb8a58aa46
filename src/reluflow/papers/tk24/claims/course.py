"""[TK24]_ Theorem 4.4, Appendix C: neurons by rate, and growth as an embedded small network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from reluflow.arrays import Array, Indices, Mask
from reluflow.claims.claim import Found, experiment
from reluflow.claims.invariants import log_size
from reluflow.claims.verdict import Comparison, Hypothesis, at_least, at_most, equals
from reluflow.errors import ReluflowError
from reluflow.gradientflow.flow import flow
from reluflow.landscape.align import Alignment, align
from reluflow.landscape.bound import max_G
from reluflow.landscape.extremal import extremal_vectors
from reluflow.network import Network, initialize
from reluflow.papers.tk24.claims.four_neurons import tight_orbit
from reluflow.problem import Problem, datasets, losses
from reluflow.trajectory import Trajectory

TIE = 1e-9  # relative difference of rates that counts as none
RTOL = 1e-10  # of the flows
LIMIT = 1e-7  # r at which the p-neuron net stands for its limit r -> 0


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
    def groups(self) -> list[Indices]:
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
    raise ReluflowError(f"none of 1000 draws of seed {seed} is regular: expected one in a hundred")


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Slope of log y against log x."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def eps_of(course: Course) -> float:
    """eps = min(Delta, 1/2), P being 2 Delta-regular (xi = 0)."""
    return min(course.regularity / 2, 0.5)


def hypotheses(course: Course) -> list[Hypothesis]:
    """Inputs in the unit ball, odd d, and a positive Delta."""
    size, d = float(course.problem.norms.max()), course.problem.d
    return [
        Hypothesis("inputs in the unit ball", size <= 1, f"max |x| = {size:.3f}"),
        Hypothesis("d is odd", d % 2 == 1, f"d = {d}"),
        Hypothesis("xi below machine precision, as Section 3 allows: the plain ReLU", True),
        Hypothesis(
            "directions of P are regular", course.regularity > 0, f"2 Delta = {course.regularity:g}"
        ),
    ]


def limit_net(course: Course, eps: float) -> Network:
    """chi of the p-neuron net at T2, for r -> 0."""
    return course.embedded(course.small_run(LIMIT, [0.0, course.t4(LIMIT, eps)]).final)


def at_T2(course: Course, r: float, sigma: float, eps: float) -> Network:
    """The wide network at T2."""
    return course.run(sigma, [0.0, course.T1(r, sigma) + course.t4(r, eps)]).final


def gaps(course: Course, net: Network, small: Network) -> tuple[float, float]:
    """On P: largest difference of directions and of outer weights."""
    P = course.prominent
    turn = np.linalg.norm(net.directions - small.directions, axis=1)[P]
    size = np.abs(net.weights()[1] - small.weights()[1])[P]
    return float(turn.max()), float(size.max())


@experiment(
    "TK24-T4.4",
    form="slip",
    part="Eq. 3",
    printed="v_k^e(T_1) = r |u_k^e(T_1)| v_k* (below Eq. 3)",
    meant="v_k^e(T_1) = |u_k^e(T_1)| v_k*: u_k^e(T_1) has the factor r already, and the net is "
    "balanced",
    quick={"m": 24},
    full={"m": 100},
)
def start_of_the_small_net(seed: int, m: int) -> Found:
    """At T2 the p-neuron net has the size of the wide one by the meant start, half by the other."""
    course = orbit_course(seed, m)
    eps, r = eps_of(course), 1e-4
    wide = float(np.abs(at_T2(course, r, r**2, eps).weights()[1]).max())
    made = {}
    for name, extra in (("meant", 1.0), ("printed", r)):
        small = course.small_run(r, [0.0, course.t4(r, eps)], extra=extra).final
        made[name] = float(np.abs(course.embedded(small).a).max()) / wide
    return Found(
        [
            equals(made["meant"], 1.0, tolerance=0.05, what="max |a|, p-net over wide net, meant"),
            equals(made["printed"], 0.5, tolerance=0.05, what="the same by the printed start"),
        ],
        hypotheses(course),
    )


@experiment(
    "TK24-T4.4",
    form="slip",
    part="exponent",
    printed="errors O(r^kappa_j + r^2) for j in P (Theorem 4.4; App. B.3 has kappa_j = "
    "kappa* (1 - lam_j/lam))",
    meant="O(r^kappa + r^2) with the kappa = min(kappa*, min over R of kappa_j) that the theorem "
    "defines, as App. C ends with",
    quick={"m": 20},
    full={"m": 100},
)
def exponent_on_P(seed: int, m: int) -> Found:
    """Errors on P fall like r^kappa or faster, while r^kappa_j would stay as it is."""
    course = regular_course(seed, m)
    kappa, exponents = errors_on_P(course)
    own = float(np.abs(1 - course.shares[course.prominent]).max())
    return Found(
        [
            at_least(min(exponents), kappa, what="least exponent of r on P, against kappa"),
            at_most(own, 1e-9, what="kappa_j / kappa* on P, by the formula of the proof"),
        ],
        hypotheses(course),
    )


def errors_on_P(course: Course) -> tuple[float, tuple[float, float]]:
    """kappa for sigma = r^2, and exponents of r in the errors of directions and outer weights."""
    eps, radii = eps_of(course), [1e-2, 1e-3, 1e-4]
    limit = limit_net(course, eps)
    errors = [gaps(course, at_T2(course, r, r**2, eps), limit) for r in radii]
    kappa = min(1.0, float((1 - course.shares[course.remaining]).min()))
    return kappa, (slope(radii, [e[0] for e in errors]), slope(radii, [e[1] for e in errors]))


@experiment(
    "TK24-T4.4",
    part="prominent",
    quick={"m": 24},
    full={"m": 40},
)  # with more neurons r = 1e-2 lies above the scale sqrt(2 lam eps/m) at T2
def constant_scale(seed: int, m: int) -> Found:
    """At T2, sigma = r^2: scale sqrt(2 lam eps/m), turns below eps, errors falling with r.

    Turns fall like exp(-lam t) until T2, so like sigma = r^2, twice the exponent asked for.
    """
    course = orbit_course(seed, m)
    eps = eps_of(course)
    limit = limit_net(course, eps)
    radii = [1e-2, 1e-3, 1e-4]
    errors = [gaps(course, at_T2(course, r, r**2, eps), limit) for r in radii]
    small = [
        gaps(course, course.embedded(course.small_run(r, [0.0, course.t4(r, eps)]).final), limit)
        for r in radii
    ]
    P = course.prominent
    V = course.alignment.direction
    turn = float(np.linalg.norm(limit.directions - V, axis=1)[P].max())
    expected = math.sqrt(2 * course.lam * eps / m)
    falling = slope(radii, [e[0] for e in errors])
    made = [
        equals(np.abs(limit.a).max() / expected, 1.0, tolerance=0.05, what="max|a| over its scale"),
        at_most(turn, eps, what="turn of the limit from the extremum, against eps"),
        at_least(falling, 1.0, what="exponent of r, turn (kappa = 1)"),
        equals(falling, 2.0, tolerance=0.05, what="exponent of r, turn, against that of sigma"),
        at_least(slope(radii, [e[1] for e in errors]), 1.0, what="exponent of r, size (kappa = 1)"),
        equals(
            slope(radii, [e[1] for e in small]),
            2.0,
            tolerance=0.05,
            what="exponent of r with which the p-net nears its limit",
        ),
    ]
    return Found(made, hypotheses(course))


@experiment("TK24-T4.4", part="remaining", quick={"m": 20}, full={"m": 100})
def remaining_stay_small(seed: int, m: int) -> Found:
    """On R at T2: |a_j| = O(r^kappa_j), kappa_j = kappa (1 - lam_j/lam), with sigma = r^2."""
    course = regular_course(seed, m)
    eps, R = eps_of(course), course.remaining
    radii = [1e-2, 1e-3, 1e-4]
    nets = [at_T2(course, r, r**2, eps) for r in radii]
    kappa = 1 - course.shares[R]
    logs = np.array([net.log_outer[R] for net in nets])
    slopes = np.polyfit(np.log(radii), logs, 1)[0]
    least, (turn, size) = errors_on_P(course)
    made = [
        at_least(R.sum(), 3, what="neurons in R"),
        at_least((slopes - kappa).min(), 0.0, what="exponent of r on R less kappa_j, least"),
        at_least(turn, least, what="exponent of r on P, turn"),
        at_least(size, least, what="exponent of r on P, size"),
    ]
    return Found(made, hypotheses(course))


@experiment("TK24-C1", quick={"m": 20, "records": 60}, full={"m": 100, "records": 400})
def second_phase(seed: int, m: int, records: int) -> Found:
    """On [T1, T2]: turns of the embedded net, and growth of R, record by record."""
    r, sigma = 1e-4, 1e-8
    made: list[Comparison] = []
    held: list[Hypothesis] = []
    for course in (orbit_course(seed, m), regular_course(seed, m)):
        eps, lam, name = eps_of(course), course.lam, course.problem.name
        A0, M = m / 4, float(course.sizes.max())
        later = np.linspace(0.0, course.t4(r, eps), records)
        V = np.array([course.alignment.direction[g[0]] for g in course.groups])
        over = 0.0
        nets = course.small_run(r, later).networks or ()
        for t, net in zip(later[1:], nets[1:], strict=True):
            angle = 2 * np.arcsin(0.5 * np.linalg.norm(net.directions - V, axis=1)).max()
            over = max(over, angle / (2 * A0 / lam * r**2 * M**2 * math.expm1(2 * lam * t)))
        made.append(at_most(over, 1.0, error=1e-3, what=f"turn over its bound, {name}"))
        held += hypotheses(course)
        R = course.remaining
        if R.any():
            run = course.run(sigma, [0.0, *(course.T1(r, sigma) + later)])
            size = np.array([log_size(net)[R].max() for net in (run.networks or ())[1:]])
            grown = float((size - size[0] - lam * later).max())
            what = f"log growth of R less lam t, {name}"
            made.append(at_most(grown, eps, error=1e-8, what=what))
    return Found(made, held)
