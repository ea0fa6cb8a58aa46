"""[TK24]_ Appendix B.2: how near a run from small weights stays to the linearised flow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from reluflow.claims.claim import Found, claim, experiment, predicate
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import balanced_start, gradient_flow, mean_logistic, unit_ball
from reluflow.claims.invariants import DRIFT, ROUNDING, balance_and_signs, log_size
from reluflow.claims.verdict import Comparison, Hypothesis, at_least, at_most
from reluflow.gradientflow.flow import flow
from reluflow.network import Network, initialize
from reluflow.papers.tk24.claims.sphere import Sphere, ball_draw
from reluflow.problem import Problem, datasets, losses

RTOL = 1e-10
QUICK: dict[str, Any] = {"m": 12, "records": 60}
SMOOTHED: dict[str, Any] = {**QUICK, "xi": 0.1}
FULL: dict[str, Any] = {"m": 60, "records": 400}


def lam_of(evidence: Evidence) -> tuple[float, Hypothesis]:
    """lam, and whether it is known to be the largest."""
    problem = evidence.problem
    if problem.smoothing:
        return Sphere(problem).lam, Hypothesis("lam is the largest |G|, not only found", None)
    found = evidence.landscape
    exact = Hypothesis("the list of extremal vectors is complete", found.exact or None)
    return float(found.rates.max()), exact


def coupling(problem: Problem, m: int) -> float:
    """A0 = m (1 + xi)^2 / 4."""
    return m * (1 + problem.smoothing) ** 2 / 4


@cache
def small_start(seed: int, m: int, records: int, xi: float = 0.0, scale: float = 1e-2) -> Evidence:
    """A flow on the XOR orbit from balanced neurons, to about the end t1 of Lemma B.6."""
    problem = datasets.xor_orbit().replace(smoothing=xi)
    net = initialize(problem, m, scale, "sphere", seed, normalize="none")
    t_end = math.log(0.1 / (2 * coupling(problem, m) * scale**2)) / 0.2
    run = flow(problem, net, t_end=t_end, save=np.linspace(0.0, t_end, records), rtol=RTOL)
    return Evidence.of(problem, run)


PULL: dict[str, Any] = {
    "needs": ("end",),
    "given": [mean_logistic, unit_ball],
    "example": small_start,
    "full": FULL,
}


@claim("TK24-PB.5", part="smoothed", quick=SMOOTHED, **PULL)
@claim("TK24-PB.5", quick=QUICK, **PULL)
def pull_changes_little(evidence: Evidence) -> list[Comparison]:
    """The change of the pull, against phi and grad phi of any unit vector, over A0 |theta|^2."""
    return _below_one(change_of_pull(evidence.problem, evidence.states))


def _below_one(ratios: Sequence[float]) -> list[Comparison]:
    """Both ratios of :func:`change_of_pull` against their bound."""
    return [
        at_most(ratios[0], 1.0, what="change against phi, over A0 |theta|_M^2"),
        at_most(ratios[1], 1.0, what="change against grad phi, over A0 |theta|_M^2"),
    ]


@experiment("TK24-PB.5", part="random", quick={"draws": 100}, full={"draws": 2000})
def random_weights(seed: int, draws: int) -> list[Comparison]:
    """Random weights of many sizes, width 1 to 64, data in the unit ball, with and without xi."""
    rng = np.random.default_rng(seed)
    worst = [0.0, 0.0]
    for draw in range(draws):
        d, m = int(rng.integers(1, 7)), int(rng.integers(1, 65))
        problem = ball_draw(rng, int(rng.integers(1, 12)), d, 0.3 * (draw % 2))
        net = Network(rng.standard_normal((m, d)), rng.standard_normal(m))
        found = change_of_pull(problem, [net.scaled(rng.uniform(-7, 2))])
        worst = [max(*pair) for pair in zip(worst, found, strict=True)]
    return _below_one(worst)


def change_of_pull(p: Problem, nets: Sequence[Network]) -> tuple[float, float]:
    """Largest ratio of both sides of Prop. B.5, over networks and 50 and more unit vectors."""
    rng = np.random.default_rng(0)
    V = np.vstack([rng.standard_normal((50, p.d)), nets[-1].directions, p.X])
    V = V[np.linalg.norm(V, axis=1) > 0]
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    worst = [0.0, 0.0]
    for net in nets:
        change = p.pull_at(p.outputs(net)) - p.pull
        if p.smoothed is not None:
            value, D = p.smoothed.value(V, p.X), p.smoothed.pulled(V, p.X, change)
        else:
            z = p.X @ V.T
            value = np.maximum(z, p.leak * z)
            D = (np.where(z > 0, 1.0, p.leak) * change[:, None]).T @ p.X
        top = float(np.max(log_size(net)))
        bound = coupling(p, net.m) * math.exp(2 * top)
        slack = ROUNDING * float(np.abs(p.pull).sum())
        worst[0] = max(worst[0], (float(np.abs(change @ value).max()) - slack) / bound)
        worst[1] = max(worst[1], (float(np.linalg.norm(D, axis=1).max()) - slack) / bound)
    return worst[0], worst[1]


@experiment("TK24-PB.5", part="sharp")
def bound_is_sharp(seed: int) -> Comparison:
    """One neuron along one unit sample: the ratio tends to 1 with the weights."""
    problem = Problem(np.eye(1, 3), np.ones(1), losses.Logistic())
    ratio, _ = change_of_pull(problem, [Network(1e-3 * np.eye(1, 3), np.full(1, 1e-3))])
    return at_least(ratio, 0.999, what="ratio for weights of 1e-3")


@predicate("a smoothed activation")
def smoothed(evidence: Evidence) -> tuple[bool, str]:
    """xi > 0."""
    return evidence.problem.smoothing > 0, f"xi = {evidence.problem.smoothing:g}"


@claim(
    "TK24-INV",
    part="smoothed",
    needs=("path",),
    given=[gradient_flow, balanced_start, smoothed],
    example=small_start,
    quick=SMOOTHED,
    full=FULL,
)
def smoothed_balance_and_signs(evidence: Evidence) -> list[Comparison]:
    """a_j^2 - |w_j|^2 and sign(a_j) are kept with the smoothed activation too."""
    return balance_and_signs(evidence)


RUN: dict[str, Any] = {
    "needs": ("path", "start", "time"),
    "given": [gradient_flow, balanced_start, mean_logistic, unit_ball],
    "example": small_start,
    "full": FULL,
}


@claim("TK24-LB.6", part="smoothed", quick=SMOOTHED, **RUN)
@claim("TK24-LB.6", quick=QUICK, **RUN)
def norms_stay_below(evidence: Evidence) -> Found:
    """Up to t1: |theta|_M^2 against q0 E/(1 - (A0/lam) q0 (E - 1)) and against 2 q0 E."""
    lam, known = lam_of(evidence)
    A0 = coupling(evidence.problem, evidence.path()[0].m)
    log_q0 = 2 * float(log_size(evidence.path()[0]).max())
    t1 = (math.log(lam / (2 * A0)) - log_q0) / (2 * lam)
    sharp = loose = -math.inf
    for t, net in zip(evidence.times, evidence.path(), strict=True):
        if t > t1:
            break
        gained = 2 * float(log_size(net).max()) - log_q0 - 2 * lam * t
        left = math.log1p(-A0 / lam * math.exp(log_q0) * math.expm1(2 * lam * t))
        sharp, loose = max(sharp, gained + left), max(loose, gained - math.log(2))
    error = DRIFT * evidence.rtol + ROUNDING
    inside = Hypothesis("weights small enough for t1 > 0", t1 > 0, f"t1 = {t1:.3g}")
    return Found(
        [
            at_most(sharp, error, error=error, what="log of |theta|^2 over the sharper bound"),
            at_most(loose, 0.0, error=error, what="log of |theta|^2 over 2 q0 e^{2 lam t}"),
        ],
        [known, inside],
    )


@predicate("smoothed activation, xi >= 0.05")
def smooth_enough(evidence: Evidence) -> tuple[bool, str]:
    """The constants of App. B.2 grow like 1/xi; without smoothing they are infinite."""
    return evidence.problem.smoothing >= 0.05, f"xi = {evidence.problem.smoothing:g}"


@claim("TK24-B2", quick=SMOOTHED, **{**RUN, "given": [*RUN["given"], smooth_enough]})
def near_the_linearised_flow(evidence: Evidence) -> Found:
    """Directions and outer weights against the linearised flow, over the bounds of App. B.2."""
    p, first = evidence.problem, evidence.path()[0]
    sphere = Sphere(p)
    lam, b0, b1, A0 = sphere.lam, sphere.b0, sphere.b1, coupling(p, first.m)
    q0 = math.exp(2 * float(log_size(first).max()))
    t1 = math.log(lam / (2 * A0 * q0)) / (2 * lam)
    signs = np.sign(first.a)
    keep = evidence.times <= t1
    times = evidence.times[keep]
    linear = sphere.turn(first.directions, signs, times)
    ends = sphere.climb(linear[-1, :, :-1], signs)
    rates = np.maximum(signs * sphere.G(ends), 0.0)
    c1 = A0 * math.sqrt(2) / lam + 2 * A0 * b0 / (b1 - 2 * lam) ** 2
    turn = size = 0.0
    for k in range(1, len(times)):
        t, net = times[k], evidence.path()[k]
        gap = np.linalg.norm(net.directions - linear[k, :, :-1], axis=1)
        turn = max(turn, float(gap.max()) / (2 * A0 / (b1 - 2 * lam) * q0 * math.exp(b1 * t)))
        a, b = np.exp(net.log_outer), np.exp(first.log_outer + linear[k, :, -1])
        bound = c1 * q0**1.5 * np.exp(np.minimum((rates + b1) * t, 700.0))
        size = max(size, float((np.abs(a - b) / bound).max()))
    says = math.log((b1 - 2 * lam) / (A0 * q0)) / b1
    wide = Hypothesis("b1 >= 4 lam", b1 >= 4 * lam, f"b1 = {b1:.3g}, lam = {lam:.3g}")
    known = Hypothesis("lam is the largest |G|, not only found", None)
    error = 100 * evidence.rtol / (2 * A0 / (b1 - 2 * lam) * q0)
    return Found(
        [
            at_most(turn, 1.0, error=error, what="largest turn over its bound, to t1"),
            at_most(size, 1.0, error=error, what="largest change of |a| over its bound, to t1"),
        ],
        [wide, known],
        f"The bound on directions says something (is below 2) until t = {says:.3g}; t1 = {t1:.3g}.",
    )
