"""[TK24]_ Theorem 4.4 and Appendix C: growth to a constant scale as an embedded small network."""

from __future__ import annotations

import math

import numpy as np

from reluflow.claims.claim import Found, experiment
from reluflow.claims.invariants import log_size
from reluflow.claims.verdict import Comparison, Hypothesis, at_least, at_most, equals
from reluflow.network import Network
from reluflow.papers.tk24.claims.course import Course, orbit_course, regular_course, slope

LIMIT = 1e-7  # r at which the p-neuron net stands for its limit r -> 0


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
