"""[LLWA21]_ Sections 3, B.7 and F.2: the loss goes to zero and the direction to a KKT point."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit

from reluflow.claims.claim import Found, claim, experiment, predicate
from reluflow.claims.evidence import Evidence, once
from reluflow.claims.hypotheses import mean_logistic
from reluflow.claims.limits import tends_to_zero
from reluflow.claims.verdict import Comparison, Hypothesis, at_least, at_most
from reluflow.gradientflow.flow import flow
from reluflow.gradientflow.stops import loss_below
from reluflow.kernels.boxls import box_least_norm
from reluflow.network import initialize
from reluflow.optimum.kkt import kkt, settling_rate
from reluflow.optimum.max_margin import max_margin
from reluflow.papers.llwa21.claims.assumptions import SETTING
from reluflow.papers.llwa21.runs import (
    decade,
    has_decade,
    least_margin,
    log_sums,
    margins_along,
    recorded_run,
    smoothed_margin,
)
from reluflow.problem import datasets
from reluflow.trajectory.observables import velocity

RUN: dict[str, Any] = {
    "example": recorded_run,
    "quick": {"m": 6, "q_min": 500.0},
    "full": {"q_min": 4000.0},
}
EPS = float(np.finfo(float).eps)
LARGE = 500.0  # margin at the end, so that a tenth of it is large too


@once
def late_records(evidence: Evidence) -> list[int]:
    """Records from the first with L < ln 2 / n on."""
    p = evidence.problem
    below = [
        i
        for i, net in enumerate(evidence.path())
        if float(p.log_value(p.outputs(net))) < math.log(math.log(2) / p.n)
    ]
    return list(range(below[0], len(evidence.path()))) if below else []


@predicate("L < ln 2 / n at some record, and q_min of 500 at the end")
def gets_late(evidence: Evidence) -> tuple[bool, str]:
    """There is a late phase to look at."""
    late = late_records(evidence)
    if len(late) < 2:
        return False, "L stays above ln 2 / n"
    q = least_margin(evidence.problem, evidence.path()[-1])
    return q >= LARGE, f"{len(late)} records below ln 2 / n, the last with q_min {q:.4g}"


@predicate("the smoothed margin has settled over the last decade of q_min")
def settled(evidence: Evidence) -> tuple[bool | None, str]:
    """gt grows by no more than smoothing explains, gamma (1 - ln(n)/q_min) <= gt <= gamma.

    A run that still leaves one KKT direction for another is not yet where limits are seen.
    """
    p, path = evidence.problem, evidence.path()
    first, last = decade(evidence)
    growth = smoothed_margin(p, path[last])[0] / smoothed_margin(p, path[first])[0]
    share = min(math.log(p.n) / least_margin(p, path[first]), 1.0)
    detail = f"gt over it a decade ago is {growth:.4g}; smoothing loses at most {share:.2g} of it"
    return (True if growth * (1 - share) <= 1 and share < 1 else None), detail


SETTLED: dict[str, Any] = {
    "needs": ("path", "flow"),
    "given": [mean_logistic, gets_late, has_decade, settled],
    **RUN,
}


@claim("LLWA21-T3.1", **SETTLED)
def direction_to_kkt(evidence: Evidence) -> list[Comparison]:
    """Smoothed margin monotone; L to 0, |theta| to infinity, KKT residual to 0.

    What is left of theta across its limit is kept while |theta| grows as sqrt(q_min), so residuals
    fall at least as fast as 1/sqrt(q_min), unless the limit has a slow mode: with the multipliers
    of the loss, and with the best ones of the samples that are active at the last record's
    tolerance.
    """
    p = evidence.problem
    late = [evidence.path()[i] for i in late_records(evidence)]
    values = np.array([smoothed_margin(p, net)[0] for net in late])
    sizes = np.array([net.norm2 for net in late])
    losses = np.array([float(p.log_value(p.outputs(net))) for net in late])
    shown = settling_records(evidence)
    tol = 10 * math.log(p.n) / least_margin(p, evidence.path()[-1])
    sines = [off_radial(evidence, i) for i in shown]
    near = evidence.near_kink
    residuals = [kkt(p, evidence.path()[i], tol=tol, kink_tol=near).residual for i in shown]
    fall = (np.diff(values) / values[-1]).min()
    return [
        at_least(fall, 0.0, error=100 * evidence.rtol, what="rise of the smoothed margin, least"),
        at_most(np.diff(losses).max(), 0.0, what="change of log L between records, largest"),
        at_least(np.diff(np.log(sizes)).min(), 0.0, what="growth of log |theta|^2, least"),
        settles(evidence, shown, sines, "sine of the angle of theta and -grad L, in q_min"),
        settles(evidence, shown, residuals, "KKT residual, in q_min"),
    ]


def settling_records(evidence: Evidence) -> list[int]:
    """Some records of the last three decades of q_min, from q_min = 10 on, a decade at least."""
    q = margins_along(evidence)
    start = min(max(q[-1] / 1000, 10.0), q[decade(evidence)[0]])
    found = np.flatnonzero(q >= start)
    goals = np.geomspace(q[found[0]], q[-1], 25)
    return sorted({int(found[np.argmin(np.abs(np.log(q[found] / goal)))]) for goal in goals})


def settles(evidence: Evidence, shown: list[int], values: list[float], what: str) -> Comparison:
    """The values at the records tend to 0 as 1/sqrt(q_min), or as slowly as the limit says."""
    q = np.array([least_margin(evidence.problem, evidence.path()[i]) for i in shown])
    slowest_mode = settling_rate(evidence.problem, evidence.path()[-1]) / 2
    return tends_to_zero(
        q, np.array(values), 0.5, what, expected=slowest_mode, floor=100 * evidence.rtol
    )


@once
def at_best_slopes(evidence: Evidence, i: int) -> tuple[float, float, float]:
    """What `smoothed_margin` gives: gt, radial and tangential part, with the best slopes at kinks.

    A neuron that slides on the hyperplane of a sample has <w, x> = 0 up to rounding, whose sign
    says nothing: of the slopes in [leak, 1] that one counts for which the tangential part is least.
    """
    p, net = evidence.problem, evidence.path()[i]
    W, a = net.weights()
    s = p.X @ W.T
    lengths = p.norms[:, None] * np.linalg.norm(W, axis=1)
    kinked = np.abs(s) <= evidence.near_kink * lengths
    value, along, across = smoothed_margin(p, net)
    if not kinked.any():
        return value, along, across
    f = p.outputs(net)
    share = p.y * np.exp(log_expit(-p.y * f) - log_sums(p, f)[1])  # of each sample in the gradient
    weights = share[:, None] * np.where((s > 0) & ~kinked, 1.0, p.leak)
    size = math.sqrt(net.norm2)
    inner, outer = (weights * a).T @ p.X, np.sum(np.where(kinked, 0.0, weights * s), axis=0)
    radial = (float(np.sum(inner * W)) + float(outer @ a)) / size**2
    inner, outer = inner - radial * W, outer - radial * a
    for j in np.flatnonzero(kinked.any(axis=0)):
        k = np.flatnonzero(kinked[:, j])
        Z = ((1 - p.leak) * share[k] * a[j])[:, None] * p.X[k]
        felt = np.linalg.norm(Z, axis=1) > EPS * size  # the others pull by nothing, or underflow
        k, Z = k[felt], Z[felt]
        if len(k):
            box_least_norm(inner[j].copy(), Z, 0.0, np.empty(len(k)), inner[j])
    across = math.sqrt(float(np.sum(inner**2) + np.sum(outer**2))) / size
    return value, along, across


def off_radial(evidence: Evidence, i: int) -> float:
    """Sine of the angle of theta and -grad L: the KKT residual with the loss's own multipliers."""
    value, along, across = at_best_slopes(evidence, i)
    return across / math.hypot(across, along + 2 * value)


def critical_size(evidence: Evidence, i: int) -> float:
    """(1 + |theta|) |subgradient of gt| over gt at record i."""
    value, along, across = at_best_slopes(evidence, i)
    size = math.sqrt(evidence.path()[i].norm2)
    return (1 + 1 / size) * math.hypot(along, across) / value


@claim("LLWA21-TF.9", **SETTLED)
def critical_value(evidence: Evidence) -> Comparison:
    """(1 + |theta|) |subgradient of gt| tends to 0, as 1/sqrt(q_min) or faster but for slow modes
    of the limit; gt to gamma."""
    shown = settling_records(evidence)
    values = [critical_size(evidence, i) for i in shown]
    return settles(evidence, shown, values, "(1 + |theta|)|grad gt|/gt, in q_min")


@predicate("a neuron leads along a separator (B.19)")
def has_leader(evidence: Evidence) -> tuple[bool, str]:
    """Some j with sgn(a_j) <w_j, w*> > 0 and <w_j, w*>^2 > |w_j|^2 - a_j^2."""
    who = leaders(evidence)
    return bool(who.any()), f"{int(who.sum())} such neurons for the max-margin separator"


def leaders(evidence: Evidence) -> NDArray[np.bool_]:
    """Neurons of the start that satisfy the condition for the max-margin separator."""
    net = evidence.first()
    along = net.W @ max_margin(evidence.problem, "linear").w
    lead = along**2 > np.sum(net.W**2, axis=1) - net.a**2
    return np.asarray((np.sign(net.a) * along > 0) & lead)


@claim(
    "LLWA21-TB.19",
    needs=("path", "flow", "start"),
    given=[*SETTING, has_leader],
    **{**RUN, "quick": {**RUN["quick"], "kind": "balanced"}},
)
def loss_vanishes(evidence: Evidence) -> list[Comparison]:
    """L < ln 2 / n in finite time, then to 0; |theta| grows; a_j of a leader is never 0."""
    p, who = evidence.problem, leaders(evidence)
    end = evidence.path()[-1]
    signs = np.array([np.sign(net.a[who]) for net in evidence.path()])
    log_loss, goal = float(p.log_value(p.outputs(end))), math.log(math.log(2) / p.n)
    done = log_loss < goal or evidence.trajectory().status.code == "stationary"
    growth = math.log(end.norm2 / evidence.path()[0].norm2)
    error = 0.0 if done else math.inf  # a run cut short decides nothing
    return [
        at_most(log_loss, goal, error=error, what="log L at the end, against ln(ln 2/n)"),
        at_most(np.abs(signs - signs[0]).max(), 0, what="signs of a_j that change, leaders"),
        at_least(growth, 0.0, what="growth of log |theta|^2"),
    ]


@experiment("LLWA21-TB.19", part="finite time", quick={"starts": 2}, full={"starts": 20})
def loss_gets_small_in_finite_time(seed: int, starts: int) -> Found:
    """Stopped at the first L <= ln 2 / n: there the loss is that, at a finite time."""
    least, worst, latest = math.inf, 0.0, 0.0
    hypotheses: list[Hypothesis] = []
    for i in range(starts):
        problem = datasets.symmetric_separable(rng=seed + i)
        net = initialize(problem, 6, scale=0.1, kind="balanced", normalize="none", rng=seed + i)
        evidence = Evidence.of(problem, start=net)
        hypotheses += [test(evidence) for test in (*SETTING, has_leader)]
        goal = math.log(2) / problem.n
        run = flow(problem, net, stop=loss_below(goal))
        found = problem.loss_of(run.final) / goal
        least, worst = min(least, found), max(worst, found)
        latest = max(latest, float(run.times[-1]))
    return Found(
        [
            at_most(worst, 1 + 1e-9, what="L over ln 2 / n where it stops, largest"),
            at_least(least, 0.9, what="and not much later, least"),
            at_most(latest, 1e4, what="latest time, finite"),
        ],
        hypotheses,
    )


@claim("LLWA21-LB.20", needs=("path",), given=SETTING, **RUN)
def every_neuron_is_pulled(evidence: Evidence) -> Comparison:
    """sgn(a_j) <w_j', w*> >= |a_j| leak gamma* (1 - e^{-nL})/n at every record.

    Every sample adds its slope times something positive, so that at kinks the slope leak, which is
    taken, is the least favourable of all subgradients.
    """
    p = evidence.problem
    best = max_margin(p, "linear")
    least = math.inf
    for net in evidence.path():
        log_S = float(p.log_value(p.outputs(net))) + math.log(p.n)
        if log_S < -600:  # both sides below the smallest floats
            break
        part = -math.expm1(-math.exp(log_S)) / p.n
        speed = np.sign(net.a) * (velocity(p, net)[0] @ best.w)  # in units of exp(log_scale)
        moving = net.a != 0
        bound = np.abs(net.a) * p.leak * best.margin * part
        least = min(least, float((speed[moving] / bound[moving]).min()))
    return at_least(least, 1 - 1e-9, what="sgn(a)<w', w*> over its lower bound, up to rounding")
