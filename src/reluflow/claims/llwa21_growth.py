"""[LLWA21]_ Lemmas G.5, G.8: growth in the cones of separators, and the neuron that remains."""

from __future__ import annotations

import math

import numpy as np

from reluflow.claims.claim import Found, experiment
from reluflow.claims.evidence import Evidence
from reluflow.claims.llwa21 import means_separate, plus_is_longer, sides
from reluflow.claims.llwa21_bounds import m_norm
from reluflow.claims.llwa21_cones import LOGS, Growth, growth
from reluflow.claims.llwa21_near_zero import Departure
from reluflow.claims.llwa21_runs import embed, m_distance
from reluflow.claims.verdict import Comparison, Hypothesis, at_least, at_most
from reluflow.network import Network
from reluflow.problem import Problem

LARGER = (-16.0, -22.0, -28.0)  # log sigma at which negative neurons are still felt
SIZES = (0.08, 0.04, 0.02)  # r times the largest |b_k|


def given(problem: Problem) -> list[Hypothesis]:
    """A.2 and A.3 of the data."""
    evidence = Evidence.of(problem)
    return [means_separate(evidence), plus_is_longer(evidence)]


def _orders(g: Growth, factor: float) -> list[Comparison]:
    """Error of theta(T0 + T1) in r, and how |b_k| depends on sigma, for both signs."""
    log_r = [float(r) for r in np.log(SIZES) - g.unit]
    errors = []
    for r in log_r:
        state = g.at(LOGS[0], [g.after(LOGS[0], r, factor)])[0]
        errors.append(m_distance(state, g.goal(LOGS[0], r)[0]))
    order = float(np.polyfit(log_r, np.log(errors), 1)[0])
    up = g.net.a > 0
    sizes = np.array([g.at(log, [g.after(log, log_r[-1], factor)])[0].log_norms for log in LOGS])
    slopes = np.polyfit(LOGS, sizes, 1)[0]  # of log|b|, r being fixed
    return [
        at_least(order, 2.8, what="order in r of the error, 3 stated"),
        at_most(np.abs(slopes[up]).max(), 0.01, what="|d log|b| / d log sigma|, a > 0: bounded"),
        at_most(np.abs(slopes[~up] - g.kappa).max(), 0.01,
                what="|d log|b| / d log sigma - kappa|, a < 0"),
    ]  # fmt: skip


@experiment("LLWA21-LG.5", form="printed", quick={"m": 4})
def with_the_printed_rates(seed: int, m: int) -> Found:
    """lambda0+ = |mu+|: half the time, and |b| falls with sigma."""
    g = growth(seed, m)
    return Found(_orders(g, 2.0), given(g.problem))


@experiment("LLWA21-LG.5", form="repaired", quick={"m": 4}, full={"m": 40})
def with_the_true_rates(seed: int, m: int) -> Found:
    """lambda0+- = |mu+-|/2, seen as the slopes of log|w_k| after T0."""
    g = growth(seed, m)
    up = g.net.a > 0
    times = [g.after(LOGS[0], math.log(r) - g.unit) for r in (1e-12, 1e-6)]
    first, last = g.at(LOGS[0], times)
    slopes = (last.log_norms - first.log_norms) / (times[1] - times[0])
    off = max(abs(slopes[up] / g.rates[0] - 1).max(), abs(slopes[~up] / g.rates[1] - 1).max())
    rate = at_most(off, 1e-6, what="slopes of log|w_k| against |mu+-|/2, relative")
    return Found([*_orders(g, 1.0), rate], given(g.problem))


def follows_one(seed: int, m: int, factor: float) -> Found:
    """theta(T12 + t) against the embedding of one neuron's limit, and how it depends on sigma."""
    g = growth(seed, m)
    plus = sides(g.problem)[1] / np.linalg.norm(sides(g.problem)[1])
    b = np.where(g.net.a > 0, np.exp(g.goal(LOGS[-1], 0.0)[1] - g.unit), 0.0)
    size = float(np.linalg.norm(b))
    hat = Network(np.array([size * plus, 0 * plus]), np.array([size, 0.0]), leak=g.problem.leak)
    out = Departure(g.problem, hat)
    times = np.array([-2.0, 0.0, 2.0]) / g.rates[0]
    goal = [embed(b, state) for state in out.from_ray(1e-7, times)]
    errors = []
    for log in LARGER:
        states = g.at(log, list(g.after(log, -g.unit, factor) + times))
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


@experiment("LLWA21-LG.8", form="printed", quick={"m": 4})
def one_neuron_with_the_printed_rate(seed: int, m: int) -> Found:
    """T12 with |mu+|: the network is still near zero then."""
    return follows_one(seed, m, 2.0)


@experiment("LLWA21-LG.8", form="repaired", quick={"m": 4}, full={"m": 20})
def one_neuron_with_the_true_rate(seed: int, m: int) -> Found:
    """T12 with lambda0+ = |mu+|/2."""
    return follows_one(seed, m, 1.0)
