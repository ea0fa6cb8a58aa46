"""[TK24]_ Section 5: indices of Assumption 5.1, smoothed extrema, caps and who starts in them."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from reluflow.claims.claim import Found, claim, experiment
from reluflow.claims.evidence import Evidence
from reluflow.claims.tk24 import (
    FOUR,
    GIVEN,
    angles_stay_small,
    spread,
    tight_orbit,
)
from reluflow.claims.tk24 import stays_in_the_plane as stays
from reluflow.claims.tk24_sphere import Sphere
from reluflow.claims.verdict import Comparison, Hypothesis, at_least, at_most, equals
from reluflow.network import axis_start

Array = NDArray[np.float64]


@experiment("TK24-A5.1", form="printed")
def printed_indices(seed: int) -> list[Comparison]:
    """S_1..S_4 near e1, e2, -e1, -e2, as the proofs use them: not by the printed indices."""
    made = []
    for k, used in zip(range(1, 5), ([1, 0], [0, 1], [-1, 0], [0, -1]), strict=True):
        axis, side = k % 2, 2 * ((k - 1) // 2) - 1  # a(k) and b(k) as printed
        printed = side * np.eye(2)[axis]
        gap = float(np.linalg.norm(printed - np.array(used)))
        made.append(at_most(gap, 1e-12, what=f"printed centre of S_{k} against that of the proofs"))
    return made


def sphere_sample(rng: np.random.Generator, count: int, d: int) -> Array:
    """Uniform unit vectors."""
    V = rng.standard_normal((count, d))
    return np.asarray(V / np.linalg.norm(V, axis=1, keepdims=True))


def narrow(delta: float, xi: float) -> Hypothesis:
    """delta + xi < 1/6."""
    return Hypothesis("delta + xi < 1/6", delta + xi < 1 / 6, f"delta {delta:.3g}, xi {xi:g}")


@experiment("TK24-L5.2", part="smoothed", quick={"draws": 20_000, "xi": 0.02},
            full={"draws": 1_000_000})  # fmt: skip
def four_extrema_smoothed(seed: int, draws: int, xi: float) -> Found:
    """With the smoothed activation: |G| is largest at +-e1 and +-e2, lam >= (1-3 delta-2 xi)/8."""
    problem = tight_orbit(seed).problem.replace(smoothing=xi)
    sphere, delta = Sphere(problem), spread(problem)
    e1 = np.eye(3)[:1]
    lam = float(sphere.G(e1)[0])
    sampled = max(
        float(np.abs(sphere.G(block)).max())
        for block in np.array_split(
            sphere_sample(np.random.default_rng(seed), draws, 3), max(1, draws // 20_000)
        )
    )
    W, signs = sphere.extrema
    top = signs * sphere.G(W) >= lam * (1 - 1e-9)
    axes = np.abs(W[top]).argmax(axis=1)
    right = (axes <= 1).all() and (signs[top] == np.where(axes == 0, 1, -1)).all()
    off = float(np.abs(problem.X[:, :2]).min())
    made = [
        equals(top.sum(), 4, tolerance=0, what="global extrema found"),
        at_most(1 - np.abs(W[top]).max(axis=1).min(), 1e-12, what="their distance to the axes"),
        equals(right, 1, tolerance=0, what="signs as stated"),
        at_most(
            sampled, lam, error=1e-15, what=f"largest |G| of {draws:,} directions, against lam"
        ),
        at_least(lam, (1 - 3 * delta - 2 * xi) / 8, what="lam against (1 - 3 delta - 2 xi)/8"),
    ]
    return Found(made, [narrow(delta, xi), Hypothesis("off the axes by more than xi", off > xi)])


def miss_one(d: int, t: float) -> float:
    """h: probability that a random neuron does not start in a given cap with the right sign."""
    return float(1 - betainc((d - 1) / 2, 0.5, 1 - t * t) / 4)


def caught(rng: np.random.Generator, m: int, d: int, t: float, draws: int) -> float:
    """Share of draws of m balanced neurons that start in all four caps with the right signs."""
    W = rng.standard_normal((draws, m, d))
    W /= np.linalg.norm(W, axis=2, keepdims=True)
    s = rng.choice([-1.0, 1.0], (draws, m))
    all_four = np.ones(draws, dtype=bool)
    for axis, side, sign in ((0, 1, 1), (0, -1, 1), (1, 1, -1), (1, -1, -1)):
        all_four &= ((side * W[:, :, axis] >= t) & (s == sign)).any(axis=1)
    return float(all_four.mean())


@experiment("TK24-L5.3", form="printed", quick={"draws": 20_000}, full={"draws": 200_000})
def product_bound(seed: int, draws: int) -> list[Comparison]:
    """(1 - h^m)^4 is no lower bound: occupied caps exclude each other."""
    rng = np.random.default_rng(seed)
    made = []
    for m in (1, 4):
        share = caught(rng, m, 3, 0.0, draws)
        error = 3 * math.sqrt(max(share * (1 - share), 1 / draws) / draws)
        bound = (1 - miss_one(3, 0.0) ** m) ** 4
        made.append(at_least(share, bound, error=error, what=f"share with all four, m={m}"))
    return made


@experiment("TK24-L5.3", form="repaired", quick={"draws": 20_000}, full={"draws": 200_000})
def union_bound(seed: int, draws: int) -> list[Comparison]:
    """1 - 4 h^m is a lower bound; inclusion and exclusion give the value itself."""
    rng = np.random.default_rng(seed)
    made = []
    for m in (1, 4):
        share, p = caught(rng, m, 3, 0.0, draws), 1 - miss_one(3, 0.0)
        exact = sum((-1) ** i * math.comb(4, i) * (1 - i * p) ** m for i in range(5))
        tolerance = 4 * math.sqrt(exact * (1 - exact) / draws)
        made.append(equals(share, exact, tolerance=tolerance, what=f"share with all four, m={m}"))
    for m in (10, 20, 40):
        share = caught(rng, m, 3, 0.1, draws)
        error = 3 * math.sqrt(max(share * (1 - share), 1 / draws) / draws)
        bound = 1 - 4 * miss_one(3, 0.1) ** m
        made.append(at_least(share, bound - error, what=f"share, m={m}; bound less 3 s.e."))
    return made


@experiment("TK24-L5.3", form="repaired", part="speed", quick={"draws": 20_000},
            full={"draws": 1_000_000})  # fmt: skip
def neurons_turn_fast(seed: int, draws: int) -> Found:
    """In the cap <w, e1> >= delta + xi: d alpha/dt <= -(1/16) sin alpha towards e1."""
    problem = tight_orbit(seed).problem
    delta = spread(problem)
    V = sphere_sample(np.random.default_rng(seed), draws, 3)
    V = V[V[:, 0] >= delta]
    D = np.where(V @ problem.X.T > 0, problem.pull, 0.0) @ problem.X
    toward = D[:, 0] - V[:, 0] * np.sum(D * V, axis=1)  # d cos(alpha)/dt
    speed = toward / (1 - V[:, 0] ** 2)  # -(d alpha/dt) / sin(alpha)
    return Found(
        [at_least(speed.min(), 1 / 16, what="-(d alpha/dt)/sin(alpha), least in the cap")],
        [narrow(delta, 0.0)],
    )


@cache
def smoothed_run(seed: int, t_end: float, records: int) -> Evidence:
    """Four neurons on the three-dimensional orbit, smoothed."""
    from reluflow.flow.flow import flow

    problem = tight_orbit(seed).problem.replace(smoothing=0.02)
    times = np.linspace(0.0, t_end, records)
    return Evidence.of(problem, flow(problem, axis_start(problem), t_end=t_end, save=times))


claim("TK24-LD.1", part="smoothed", needs=("path", "start"), given=GIVEN, example=smoothed_run,
      quick=FOUR, full={"records": 1000})(stays)  # fmt: skip
claim("TK24-PD.2", part="smoothed", needs=("path", "start"), given=GIVEN, example=smoothed_run,
      quick=FOUR, full={"records": 1000})(angles_stay_small)  # fmt: skip
