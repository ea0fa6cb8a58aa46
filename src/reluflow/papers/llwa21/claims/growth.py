"""[LLWA21]_ Lemmas G.5, G.8: growth in the cones of separators, and the neuron that remains."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reluflow.arrays import Array
from reluflow.claims.claim import Found, experiment
from reluflow.claims.evidence import Evidence
from reluflow.claims.verdict import Comparison, Hypothesis, at_least, at_most
from reluflow.network import Network
from reluflow.papers.llwa21.claims.assumptions import means_separate, plus_is_longer, sides
from reluflow.papers.llwa21.claims.bounds import m_norm
from reluflow.papers.llwa21.claims.cones import LOGS, Growth, growth
from reluflow.papers.llwa21.claims.near_zero import Departure
from reluflow.papers.llwa21.runs import embed, m_distance
from reluflow.problem import Problem

LARGER = (-16.0, -22.0, -28.0)  # log sigma at which negative neurons are still felt
SIZES = (0.08, 0.04, 0.02)  # r times the largest |b_k|


def given(problem: Problem) -> list[Hypothesis]:
    """A.2 and A.3 of the data."""
    evidence = Evidence.of(problem)
    return [means_separate(evidence), plus_is_longer(evidence)]


def _orders(g: Growth) -> list[Comparison]:
    """Error of theta(T0 + T1) in r, and how |b_k| depends on sigma, for both signs."""
    log_r = [float(r) for r in np.log(SIZES) - g.unit]
    errors = []
    for r in log_r:
        state = g.at(LOGS[0], [g.after(LOGS[0], r)])[0]
        errors.append(m_distance(state, g.goal(LOGS[0], r)[0]))
    order = float(np.polyfit(log_r, np.log(errors), 1)[0])
    up = g.net.a > 0
    sizes = np.array([g.at(log, [g.after(log, log_r[-1])])[0].log_norms for log in LOGS])
    slopes = np.polyfit(LOGS, sizes, 1)[0]  # of log|b|, r being fixed
    return [
        at_least(order, 2.8, what="order in r of the error, 3 stated"),
        at_most(np.abs(slopes[up]).max(), 0.01, what="|d log|b| / d log sigma|, a > 0: bounded"),
        at_most(
            np.abs(slopes[~up] - g.kappa).max(),
            0.01,
            what="|d log|b| / d log sigma - kappa|, a < 0",
        ),
    ]


def slopes_after_t0(g: Growth) -> Array:
    """d log|w_k| / dt of each neuron while it is small and in its cone."""
    times = [g.after(LOGS[0], math.log(r) - g.unit) for r in (1e-12, 1e-6)]
    first, last = g.at(LOGS[0], times)
    return np.asarray((last.log_norms - first.log_norms) / (times[1] - times[0]))


@experiment("LLWA21-LG.5", quick={"m": 4}, full={"m": 40})
def grows_in_its_cone(seed: int, m: int) -> Found:
    """Order 3 in r, |b_k| of both signs, and the rates |mu+-|/2 as slopes of log|w_k|."""
    g = growth(seed, m)
    rate = at_most(
        _off(slopes_after_t0(g), g, 0.5).max(),
        1e-6,
        what="slopes of log|w_k| against |mu+-|/2, relative",
    )
    return Found([*_orders(g), rate], given(g.problem))


def _off(slopes: Array, g: Growth, factor: float) -> Array:
    """|slope / (factor |mu+-|) - 1| of each neuron, mu+ for a > 0 and mu- for a < 0."""
    _, plus, minus = (float(np.linalg.norm(v)) for v in sides(g.problem))
    rates = factor * np.where(g.net.a > 0, plus, minus)
    return np.asarray(np.abs(slopes / rates - 1))


RATES: dict[str, Any] = {
    "form": "slip",
    "printed": "lambda0+ = |mu+| and lambda0- = |mu-|, from G(w) = <w, mu+-> (G.3.2, before (64))",
    "meant": "lambda0+- = |mu+-|/2, from G(w) = <w, mu+->/2 as G is defined in G.3",
}


@experiment("LLWA21-LG.5", **RATES, quick={"m": 4}, full={"m": 40})
def rates_in_the_proof(seed: int, m: int) -> Found:
    """Slopes of log|w_k| against both; with the printed rates |b_k| would fall with sigma."""
    g = growth(seed, m)
    slopes, up = slopes_after_t0(g), g.net.a > 0
    times = [g.T0 + (g.after(log, math.log(SIZES[-1]) - g.unit) - g.T0) / 2 for log in LOGS]
    sizes = [g.at(log, [time])[0].log_norms for log, time in zip(LOGS, times, strict=True)]
    falls = np.polyfit(LOGS, np.array(sizes), 1)[0][up]
    comparisons = [
        at_most(_off(slopes, g, 0.5).max(), 1e-6, what="slopes of log|w_k| against |mu+-|/2"),
        at_least(_off(slopes, g, 1.0).min(), 0.4, what="and against |mu+-| (1/2)"),
        at_least(falls.min(), 0.4, what="d log|b| / d log sigma at half of T1, a > 0 (1/2)"),
    ]
    return Found(comparisons, given(g.problem))


@experiment("LLWA21-LG.8", quick={"m": 4}, full={"m": 20})
def follows_one(seed: int, m: int) -> Found:
    """theta(T12 + t) against the embedding of one neuron's limit, and how it depends on sigma."""
    g = growth(seed, m)
    times, goal = embedded_limit(g)
    errors = []
    for log in LARGER:
        states = g.at(log, list(g.after(log, -g.unit) + times))
        errors.append([m_distance(a, c) / m_norm(c) for a, c in zip(states, goal, strict=True)])
    worst = np.array(errors).max(axis=1)
    slope = float(np.polyfit(LARGER, np.log(worst), 1)[0])
    up = int(np.sum(g.net.a > 0))
    return Found(
        [
            at_least(min(m_norm(c) for c in goal), 1e-3, what="the limit is not zero"),
            at_most(worst[-1], 1e-3, what="relative error at log sigma = -28"),
            at_least(slope, 0.8 * g.kappa, what="order of the error in sigma, kappa expected"),
            at_least(up, 1, what="neurons with a > 0"),
        ],
        given(g.problem),
    )


def embedded_limit(g: Growth) -> tuple[Array, list[Network]]:
    """Times around T12, and one neuron's limit r -> 0 there, embedded by the limit of b."""
    plus = sides(g.problem)[1] / np.linalg.norm(sides(g.problem)[1])
    b = np.where(g.net.a > 0, np.exp(g.goal(LOGS[-1], 0.0)[1] - g.unit), 0.0)
    size = float(np.linalg.norm(b))
    hat = Network(np.array([size * plus, 0 * plus]), np.array([size, 0.0]), leak=g.problem.leak)
    times = np.array([-2.0, 0.0, 2.0]) / g.rates[0]
    rays = Departure(g.problem, hat).from_ray(1e-7, times)
    return times, [embed(b, state) for state in rays]


@experiment("LLWA21-LG.8", **RATES, quick={"m": 4}, full={"m": 20})
def one_neuron_with_the_printed_rate(seed: int, m: int) -> Found:
    """T12 - T0 with |mu+| is half as long: the network is still near zero then."""
    g = growth(seed, m)
    log = LARGER[-1]
    times, goal = embedded_limit(g)
    wait = g.after(log, -g.unit) - g.T0
    meant = m_norm(g.at(log, [g.T0 + wait + float(times[1])])[0]) / m_norm(goal[1])
    printed = m_norm(g.at(log, [g.T0 + wait / 2 + float(times[1])])[0]) / m_norm(goal[1])
    comparisons = [
        at_most(abs(meant - 1), 1e-3, what="||theta(T12)|_M over its limit's - 1|, |mu+|/2"),
        at_most(printed, 1e-3, what="|theta(T12)|_M over its limit's with |mu+|"),
    ]
    return Found(comparisons, given(g.problem))
