"""[TK24]_ Theorem 4.1: the first phase, its prominent and remaining neurons by exponent."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from reluflow.arrays import Array
from reluflow.claims.claim import Found, experiment
from reluflow.claims.verdict import Comparison, Hypothesis, at_least, at_most, equals
from reluflow.errors import MissingEvidence
from reluflow.gradientflow.flow import flow
from reluflow.landscape.align import align
from reluflow.landscape.extremal import ExtremalVectors, extremal_vectors
from reluflow.network import Network, initialize
from reluflow.papers.tk24.claims.course import orbit_course, remaining_course, slope
from reluflow.papers.tk24.claims.sphere import Sphere, ridge, ridge_sphere
from reluflow.problem import Problem, datasets

SLOPE_TOL = 0.05  # of measured exponents
RIDGE_START = np.array([[1.0, 0.6, 0.2]])  # the inner weights of one neuron


@experiment("TK24-T4.1", form="printed")
def off_regular(seed: int) -> Found:
    """Direction error O(r^kappa) at sigma = r^(1+kappa), for some kappa > 0: for none on the ridge.

    The theorem leaves kappa* open: beside that of its proof, a smaller and a larger one. Every
    other clause holds there.
    """
    _, e1, _, met = ridge()
    end = ridge_sphere().climb(RIDGE_START / np.linalg.norm(RIDGE_START), np.ones(1))[0]
    prominent = Hypothesis(
        "the neuron is prominent: its direction tends to e1, s_j = 1",
        bool(np.linalg.norm(end - e1) < 1e-6),
    )
    balanced = Hypothesis("|u_j^0| = |v_j^0| and theta(0) = sigma theta^0", True, "one neuron")
    kappas = {"kappa* of the proof": kappa_of_the_proof(), "kappa 0.1": 0.1, "kappa 1": 1.0}
    found = [
        at_least(ridge_exponent(kappa), 1.0, error=0.02, what=f"exponent of r over kappa, {name}")
        for name, kappa in kappas.items()
    ]
    return Found(found, [*met, balanced, prominent])


def kappa_of_the_proof() -> float:
    """kappa* = 2/(b1/lam - 1) on the ridge."""
    sphere = ridge_sphere()
    return 2 / (sphere.b1 / sphere.lam - 1)


@cache
def ridge_exponent(kappa: float) -> float:
    """Exponent of r in the direction error at T1, over kappa, at sigma = r^(1 + kappa).

    Scales with kappa log r = -5, -10, -15, or -8, -12, -16 for kappa = 1, so that r^2 stays small.
    """
    sphere, e1 = ridge_sphere(), np.array([1.0, 0.0, 0.0])
    start = Network(
        RIDGE_START, np.linalg.norm(RIDGE_START, axis=1), smoothing=sphere.problem.smoothing
    )
    falls = (-5.0, -10.0, -15.0) if kappa < 1 else (-8.0, -12.0, -16.0)
    errors = []
    for fall in falls:
        log_r, T1 = fall / kappa, -fall / sphere.lam
        run = flow(sphere.problem, start.scaled((1 + kappa) * log_r), t_end=T1, rtol=1e-10)
        errors.append(float(np.linalg.norm(run.final.directions[0] - e1)))
    return float(np.polyfit(falls, np.log(errors), 1)[0])


@experiment("TK24-T4.1", form="repaired", part="smoothed", quick={"m": 6}, full={"m": 24})
def prominent_smoothed(seed: int, m: int) -> list[Comparison]:
    """With the smoothed activation: exponent 1 of sigma/r where regular, rho/lam on the ridge."""
    problem = datasets.xor_orbit().replace(smoothing=0.03)
    net = initialize(problem, m, 1.0, "sphere", seed, normalize="none")
    sphere, r = Sphere(problem), 1e-4
    ends = sphere.climb(net.directions, np.sign(net.a))
    sigmas, turns = [1e-6, 1e-7, 1e-8], []
    for sigma in sigmas:
        T1 = math.log(r / sigma) / sphere.lam
        end = flow(problem, net.scaled(math.log(sigma)), t_end=T1, rtol=1e-9).final
        turns.append(float(np.linalg.norm(end.directions - ends, axis=1).max()))
    bent, e1 = ridge_sphere(), np.array([1.0, 0.0, 0.0])
    rho = bent.lam - float(bent.tangential(e1)[-1])
    return [
        equals(slope(sigmas, turns), 1.0, tolerance=SLOPE_TOL, what="exponent of sigma, regular"),
        equals(
            ridge_exponent(kappa_of_the_proof()),
            rho / bent.lam,
            tolerance=0.01,
            what="exponent on the ridge",
        ),
    ]


@experiment("TK24-T4.1", form="repaired", part="prominent", quick={"m": 24}, full={"m": 100})
def prominent_neurons(seed: int, m: int) -> Found:
    """On P: direction error of order sigma/r, then r^2; |a_j|/r - |u_j*| of order r^2."""
    course = orbit_course(seed, m)
    r = 1e-4
    sigmas = [1e-6, 1e-7, 1e-8]
    turns = [course.errors_of(course.at_T1(r, s), r)[0] for s in sigmas]
    radii = [10**-1.5, 1e-2, 10**-2.5]
    late = [course.errors_of(course.at_T1(q, q**5), q) for q in radii]
    coarse = course.errors_of(course.at_T1(1e-2, 1e-8), 1e-2)
    top = float(course.sizes.max())
    bound = m / 4 / course.lam * 1e-4 * top**2  # (A0/lam) r^2 M^2 of App. C
    made = [
        equals(course.lam, 0.1022917, tolerance=1e-7, what="lam of the orbit"),
        equals(slope(sigmas, turns), 1.0, tolerance=SLOPE_TOL, what="exponent of sigma, turn"),
        equals(
            slope(radii, [e[0] for e in late]), 2.0, tolerance=SLOPE_TOL, what="exponent of r, turn"
        ),
        equals(
            slope(radii, [e[1] for e in late]), 2.0, tolerance=SLOPE_TOL, what="exponent of r, size"
        ),
        at_most(coarse[0], bound, what="direction error at r = 1e-2, sigma = 1e-8"),
        at_most(coarse[1], bound * top, what="error of |a|/r there"),
    ]
    count = int(course.prominent.sum())
    some = Hypothesis("some neurons are prominent", count > 0, f"{count} of {m}")
    return Found(made, [some, Hypothesis("their extrema are regular", course.regularity > 0)])


@experiment("TK24-T4.1", form="repaired", part="remaining", quick={"m": 60}, full={"m": 600})
def remaining_neurons(seed: int, m: int) -> list[Comparison]:
    """On R: |a_j| <= 1.05 |a0_j| sigma (r/sigma)^(lam_j/lam), and that exponent is met."""
    course = remaining_course(seed, m)
    r, R = 1e-2, course.remaining
    made = []
    listed = extremal_vectors(course.problem).rates
    known = course.problem.known["growth_rates"]
    made.append(equals(course.lam, 0.10628, tolerance=5e-6, what="lam of the six points"))
    missing = np.abs(known[:, None] - listed).min(axis=1).max()
    made.append(at_most(missing, 1e-12, what="closed forms against the rates of extremal vectors"))
    far = np.abs(course.shares[R][:, None] - listed / course.lam).min(axis=1).max()
    made.append(at_most(far, 1e-9, what="rates of R against those of extremal vectors"))
    gaps = []
    for sigma in (1e-6, 1e-12):
        net = course.at_T1(r, sigma)
        grown = (net.log_outer - math.log(sigma))[R]
        over = np.exp(grown - course.shares[R] * math.log(r / sigma)).max()
        made.append(at_most(over, 1.05, what=f"|a_j| over its bound on R, sigma = {sigma:g}"))
        gaps.append(np.abs(grown / math.log(r / sigma) - course.shares[R]).max())
    made.append(at_most(gaps[1], 0.6 * gaps[0], what="exponent less lam_j/lam, falling with sigma"))
    return made


def basins_of(found: ExtremalVectors) -> Array:
    """Shares of starts that turn to each extremum; raises where a search did not keep them."""
    if found.basin_fractions is None:
        raise MissingEvidence("the sizes of basins are not known: these data are too large")
    return found.basin_fractions


@experiment("TK24-T4.1b", quick={"draws": 20_000}, full={"draws": 1_000_000})
def missed_extrema(seed: int, draws: int) -> list[Comparison]:
    """A draw of m neurons misses an extremum with probability (1 - q)^m, q half its basin."""
    problem = datasets.remaining_fixture()
    found = extremal_vectors(problem)
    top = int(np.argmax(found.rates))
    q = 0.5 * float(basins_of(found)[top, 0 if found.signs[top] > 0 else 1])
    net = initialize(problem, draws, 1.0, "sphere", seed)
    ends = align(problem, net)
    captured = ends.growing & (np.linalg.norm(ends.direction - found.vectors[top], axis=1) < 1e-6)
    made = []
    for m in (1, 2, 4, 8, 16):
        missed = float((~captured[: draws // m * m].reshape(-1, m).any(axis=1)).mean())
        bound = (1 - q) ** m
        error = 4 * math.sqrt(bound * (1 - bound) / (draws // m))
        made.append(
            equals(missed, bound, tolerance=error, what=f"draws that miss the top extremum, m={m}")
        )
    return made


def climbing_shares(values: Array) -> dict[int, float]:
    """Share of a circle of values from which walking uphill ends at each local maximum.

    A maximum is reached from the places between the two minima around it.
    """
    up = np.roll(values, -1) > values
    tops = np.flatnonzero(np.roll(up, 1) & ~up)
    bottoms = np.flatnonzero(~np.roll(up, 1) & up)
    n, shares = len(values), {}
    for top in tops:
        before, after = np.min((top - bottoms) % n), np.min((bottoms - top) % n)
        shares[int(top)] = float(before + after) / n
    return shares


@experiment("TK24-T4.1b", part="by-scan", quick={"sets": 5, "angles": 200_000}, full={"sets": 50})
def basins_on_a_circle(seed: int, sets: int, angles: int) -> list[Comparison]:
    """In the plane the share of starts that turn to an extremum, q = half of it, by a walk on G.

    Positive neurons climb on G, negative ones descend. Every end of a basin is known to one angle.
    """
    rng = np.random.default_rng(seed)
    t = 2 * np.pi * np.arange(angles) / angles
    circle = np.array([np.cos(t), np.sin(t)])
    worst, far, sums, uneven = 0.0, 0.0, 0.0, 0.0
    for _ in range(sets):
        problem = Problem(rng.standard_normal((5, 2)), rng.standard_normal(5), leak=0.2)
        found = extremal_vectors(problem)
        basins = basins_of(found)
        S = problem.X @ circle
        G = problem.pull @ np.maximum(S, problem.leak * S)
        for column, values in enumerate((G, -G)):
            left = basins[:, column].copy()
            for top, share in climbing_shares(values).items():
                gap = np.linalg.norm(found.vectors - circle[:, top], axis=1)
                row = int(gap.argmin())
                far = max(far, float(gap[row]))
                worst = max(worst, abs(left[row] - share))
                left[row] = 0.0
            sums = max(sums, float(np.abs(left).max()))
        uneven = max(uneven, float(np.ptp(basins, axis=1).max()))
    return [
        at_most(far, 8 * np.pi / angles, what="distance of a top of the circle to an extremum"),
        at_most(worst, 4 / angles, what="share of its basin, error"),
        at_most(sums, 1e-12, what="share of what is no extremum of that sign"),
        at_least(uneven, 0.1, what="difference between the two signs, largest"),
    ]
