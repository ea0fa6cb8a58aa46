"""[BF24]_ Theorems 1 and 3: where neurons turn before they grow.

All constants are kept as logarithms: they leave the range of floats at practical scales, where
the bounds of the theorems say nothing. That the bound is informative is a hypothesis of its own.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.claims.claim import Found, claim, experiment
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import dominated_start, gradient_flow
from reluflow.claims.invariants import kept_by_flow
from reluflow.claims.verdict import Comparison, Hypothesis, Status, at_least, at_most, equals
from reluflow.errors import ReluflowError
from reluflow.gradientflow.flow import flow
from reluflow.landscape import D, extremal_vectors, pattern
from reluflow.landscape.constants import Constants, constants
from reluflow.network import Network, initialize
from reluflow.papers.bf24.claims.landscape import generic_data
from reluflow.papers.bf24.data import (
    MOST_CONES,
    no_saddle,
    number_of_cones,
    smooth_loss,
    stays_on_faces,
)
from reluflow.papers.bf24.runs import (
    EPS,
    NEEDS,
    aligning_run,
    log_gain,
    log_total,
    ratios,
    state_at,
    states_until,
)
from reluflow.problem import Problem

ROUNDING = 1e-13  # of <D, v>/|D|
SMALL_EPS = 1 / 200
ALPHA0 = 0.7  # Condition 1: leaves out neurons within 44 degrees of the wrong end of D


@lru_cache(maxsize=8)
def among_saddles(seed: int, m: int, log_scale: float | None = None, draws: int = 60) -> Evidence:
    """Random data whose G has saddles; of ``draws`` sets the one with the best constants.

    Without ``log_scale`` the scale is one at which the bound of Theorem 3 says something.
    """
    rng = np.random.default_rng(seed)
    best: tuple[float, Problem, Constants] | None = None
    for _ in range(draws):
        problem = Problem(rng.standard_normal((4, 3)), rng.standard_normal(4), name="gaussian")
        found = extremal_vectors(problem, basin_points=0)
        if "saddle" not in found.kinds:
            continue
        known = constants(problem)
        least = float(found.rates[found.rates > 0].min())
        log_c = known.D_max * np.exp(log_settling_time(known, known.alpha_min, 2.0))
        need = -(log_c + 40.0) * known.D_max / (EPS * least)
        if best is None or need > best[0]:
            best = need, problem, known
    if best is None:
        raise ReluflowError(f"none of {draws} random sets has a saddle: draw more")
    need, problem, known = best
    log_scale = need if log_scale is None else log_scale
    net = initialize(problem, m, log_scale=log_scale, kind="dominated", rng=seed)
    tau = known.alignment_time(log_total(net), EPS)
    run = flow(problem, net, t_end=tau, save=np.linspace(0.0, tau, 61))
    return Evidence.of(problem, run)


def known_constants(problem: Problem) -> Constants:
    """Constants of Theorem 1, with a sentence where there are too many cones."""
    if number_of_cones(problem) > MOST_CONES:
        raise ReluflowError("too many activation cones for the constants of the theorem")
    return constants(problem)


def log_settling_time(known: Constants, alpha: float, factor: float = 4.0) -> float:
    """log of the bound t2 <= factor D_max / (D_min^2 alpha^2); 4 in Theorem 1, 2 in Theorem 3."""
    with np.errstate(divide="ignore"):  # no settling time where alpha is 0
        return float(np.log(factor * known.D_max) - 2 * np.log(known.D_min * alpha))


ALIGN = [gradient_flow, smooth_loss, dominated_start, generic_data]
SETTLING = [*ALIGN, no_saddle, stays_on_faces]
ALIGNING: dict[str, Any] = {"needs": NEEDS, "example": aligning_run}
SIZES: dict[str, Any] = {"quick": {"m": 200}, "full": {"m": 5000}}
AMONG_SADDLES: dict[str, Any] = {
    "needs": NEEDS,
    "given": [*ALIGN, stays_on_faces],
    "example": among_saddles,
    "full": {"m": 1000},
}
FAR_BELOW: dict[str, Any] = {
    "quick": {"m": 200, "log_scale": -320.0, "t_end": 120.0},
    "full": {"m": 5000},
}
READINGS = (
    "one clause, and a matter of how lambda* is read: with lambda* of Eq. 22, or any number of "
    "the data and alpha_0 alone, some neurons are still on their way at tau; read as small enough "
    "for the given eps too (t_2 <= tau, so lambda* <= exp(-t_2 D_max/eps)), it holds, and so do "
    "(i) and the bound of (ii) as they are"
)
PRACTICAL = "at practical scales the bound, with the constant of Eq. {}, says nothing"


def log_defect_constant(known: Constants, alpha_0: float | None) -> float:
    """log c of Eq. 37, or of Eq. 40 without ``alpha_0``.

    The paper takes c = 2 D_max instead while t2 > tau.
    """
    alpha = known.alpha_min if alpha_0 is None else min(known.alpha_min, alpha_0)
    factor = 2.0 if alpha_0 is None else 4.0
    first = np.log(known.D_max) + known.D_max * np.exp(log_settling_time(known, alpha, factor))
    if alpha_0 is not None:
        with np.errstate(divide="ignore"):  # no bound where alpha is 0
            first += np.log(4.0) - 2 * np.log(alpha)
    first += np.sqrt(2 * known.mean_square / known.D_max) / np.e
    return float(np.logaddexp(first, 0.5 * np.log(2 * known.D_max * known.mean_square)))


@claim("BF24-T1", form="repaired", part="i", given=[*ALIGN, no_saddle], **ALIGNING, **SIZES)
def outer_weights_stay(evidence: Evidence) -> Found:
    """Theorem 1 (i): lambda^{2 eps} <= |a^t / a^0| <= lambda^{-2 eps} and |w| <= |a| until tau."""
    known = known_constants(evidence.problem)
    log_lambda = log_total(evidence.first())
    tau = known.alignment_time(log_lambda, EPS)
    moved, over = 0.0, -np.inf
    for net in states_until(evidence, tau):
        moved = max(moved, float(np.abs(log_gain(net, evidence.first())).max()))
        with np.errstate(invalid="ignore"):  # zero neurons have no ratio
            gap = net.log_norms - net.log_outer
        over = max(over, float(np.max(gap[np.isfinite(gap)], initial=-np.inf)))
    return Found(
        [
            at_most(
                moved / -log_lambda,
                2 * EPS,
                what=f"max |log |a/a0|| / log(1/lambda) until {tau:.3g}",
            ),
            kept_by_flow(evidence, over, "log |w|/|a|"),
        ],
        [_small_enough(known, log_lambda, 1.0)],
    )


def _tau_not_reached(tau: float) -> Hypothesis:
    return Hypothesis("the run reaches tau", False, f"tau = {tau:.4g}")


def _small_enough(
    known: Constants, log_lambda: float, alpha_0: float, eps: float = EPS
) -> Hypothesis:
    bound = known.log_scale_bound(alpha_0, eps)
    return Hypothesis(
        f"lambda < lambda* (alpha_0 = {alpha_0:g})",
        log_lambda < bound,
        f"log lambda {log_lambda:.4g}, log lambda* {bound:.4g}",
    )


@claim(
    "BF24-T1",
    form="repaired",
    part="ii-practical",
    given=SETTLING,
    **ALIGNING,
    **SIZES,
    expected=Status.OUT_OF_SCOPE,
    reason=PRACTICAL.format(37),
)
@claim("BF24-T1", form="repaired", part="ii", given=SETTLING, **ALIGNING, **FAR_BELOW)
def neurons_align(evidence: Evidence) -> Found:
    """Theorem 1 (ii): at tau D(w, 0) is extremal or 0 and |D| - <D, v> <= c lambda^{eps|D|/Dmax},
    or v is anti-aligned; maxima for a > 0, minima for a < 0."""
    return _alignment_at_tau(evidence, ALPHA0)


@claim(
    "BF24-T3",
    part="ii-practical",
    **AMONG_SADDLES,
    quick={"m": 100, "log_scale": -20.0},
    reason=PRACTICAL.format(40),
)
@claim(
    "BF24-T3",
    part="ii",
    **AMONG_SADDLES,
    quick={"m": 100},
    expected=Status.HOLDS,
    reason="at a scale of about e^-90000 the bound says something",
)
def neurons_align_among_saddles(evidence: Evidence) -> Found:
    """Theorem 3 (ii): the same for Condition-2 neurons, which never have D = 0."""
    return _alignment_at_tau(evidence, None)


def _alignment_at_tau(evidence: Evidence, alpha_0: float | None) -> Found:
    """Theorems 1 and 3 (ii) at tau itself, with the constant of Eq. 37 or, without alpha_0, 40."""
    p, start = evidence.problem, evidence.first()
    known, log_lambda = known_constants(p), log_total(start)
    tau = known.alignment_time(log_lambda, EPS)
    if evidence.times[-1] < tau:
        return Found((), [_tau_not_reached(tau)])
    net = state_at(evidence, tau)
    who = _neurons_meeting_condition(
        p, start, 0.0 if alpha_0 is None else np.sqrt(1 - alpha_0**2), alpha_0 is None
    )
    grad, v = D(p, net.W)[who], ratios(net)[who]
    size = np.linalg.norm(grad, axis=1)
    zero = size <= 1e-12 * known.D_max
    kinds = _kinds(evidence, pattern(p, net.W)[who])
    wanted = np.where(start.a[who] > 0, "max", "min")
    right = (kinds == wanted) if alpha_0 is not None else (kinds != "")
    along = np.sum(grad * v, axis=1)
    anti = ~zero & (np.abs(along + size * np.linalg.norm(v, axis=1)) <= ROUNDING * size)
    defect = np.where(zero | anti, 0.0, 1 - along / np.where(zero, 1.0, size))
    log_c = log_defect_constant(known, alpha_0)
    log_bound = log_c + EPS * size / known.D_max * log_lambda - np.log(np.where(zero, 1.0, size))
    log_bound = np.where(zero, -np.inf, log_bound)
    over = defect / np.maximum(np.exp(np.minimum(log_bound, 0.0)), ROUNDING)
    checks = [
        equals(np.count_nonzero(~right & ~zero), 0, tolerance=0, what="neurons elsewhere at tau"),
        at_most(
            over.max(initial=0.0),
            1.0,
            what=f"1 - <D, v>/|D| over its bound (or over {ROUNDING:g} where that is larger)",
        ),
    ]
    if alpha_0 is None:
        checks.append(equals(zero.sum(), 0, tolerance=0, what="Condition-2 neurons with D = 0"))
    rates = evidence.landscape.rates[evidence.landscape.rates > 0]  # |D| where neurons may settle
    logs = log_c + EPS * rates / known.D_max * log_lambda - np.log(rates)
    informative = Hypothesis(
        "the bound is informative: c lambda^{eps |D|/D_max} < |D|",
        bool((logs < 0).all()),
        f"log c {log_c:.4g}, log bound/|D| up to {logs.max(initial=-np.inf):.4g}",
    )
    note = f"{who.size} neurons satisfy the condition; {int(zero.sum())} have D = 0 at tau."
    return Found(checks, [_small_enough(known, log_lambda, alpha_0 or 1.0), informative], note)


def _neurons_meeting_condition(
    problem: Problem, start: Network, wrong: float, strict: bool
) -> NDArray[np.intp]:
    """Neurons with <D, v> > -wrong |D| at the start; with ``strict`` only those with D != 0."""
    grad, v = D(problem, start.W), ratios(start)
    size, along = np.linalg.norm(grad, axis=1), np.sum(grad * v, axis=1)
    return np.flatnonzero((along > -wrong * size) | ((size == 0) & (not strict)))


def _kinds(evidence: Evidence, patterns: NDArray[np.int8]) -> NDArray[np.str_]:
    """Kind of the extremal vector in each pattern's face, "" where there is none."""
    found = evidence.landscape
    table = {
        u.tobytes(): kind
        for u, kind, value in zip(found.patterns, found.kinds, found.values, strict=True)
        if value != 0
    }
    return np.array([table.get(u.astype(np.int8).tobytes(), "") for u in patterns], dtype="U10")


@claim("BF24-T1", form="printed", part="ii", given=SETTLING, **ALIGNING, **SIZES, reason=READINGS)
def threshold_alone(evidence: Evidence) -> Found:
    """Theorem 1 (ii), first clause alone: D(w, 0) at tau is an extremal vector or 0.

    For lambda below Eq. 22, or any number of the data and alpha_0, whatever eps. The proof meets a
    neuron that has not settled by tau with a larger constant in O(.), which this clause has not.
    """
    return _neurons_settled_by_tau(evidence, EPS)


def _neurons_settled_by_tau(evidence: Evidence, eps: float) -> Found:
    """The first clause of Theorem 1 (ii) at the tau of ``eps``, with its printed hypotheses."""
    p, start = evidence.problem, evidence.first()
    known, log_lambda = known_constants(p), log_total(start)
    tau = known.alignment_time(log_lambda, eps)
    if evidence.times[-1] < tau:
        return Found((), [_tau_not_reached(tau)])
    net = state_at(evidence, tau)
    who = _neurons_meeting_condition(p, start, np.sqrt(1 - ALPHA0**2), False)
    size = np.linalg.norm(D(p, net.W), axis=1)[who]
    settled = (_kinds(evidence, pattern(p, net.W)[who]) != "") | (size <= 1e-12 * known.D_max)
    mean = np.exp(2 * (start.log_outer - log_lambda)).cumsum() * start.m
    largest = float((mean / np.arange(1, start.m + 1)).max())
    return Found(
        [
            equals(
                np.count_nonzero(~settled),
                0,
                tolerance=0,
                what=f"of {who.size} Condition-1 neurons, those with D not extremal nor 0 at tau",
            )
        ],
        [
            Hypothesis("0 < eps < 1/3", 0 < eps < 1 / 3, f"eps = {eps:g}, tau = {tau:.4g}"),
            Hypothesis(
                "running means of the a~^2 are at most 1 (Eq. 5)",
                largest <= 1 + 1e-9,
                f"largest {largest:.6g}",
            ),
            _small_enough(known, log_lambda, ALPHA0, eps),
            Hypothesis(
                "Condition 1 (1) for alpha_0",
                who.size > 0,
                f"alpha_0 = {ALPHA0:g}: {who.size} of {start.m} neurons",
            ),
        ],
    )


@claim(
    "BF24-T1",
    form="printed",
    part="ii-eps",
    given=SETTLING,
    **ALIGNING,
    **FAR_BELOW,
    reason=READINGS,
)
def threshold_of_data_alone(evidence: Evidence) -> Found:
    """The same from a scale far below Eq. 22, at which all neurons settle for eps = 1/4, with a
    smaller eps: a threshold that does not know eps cannot be small enough."""
    return _neurons_settled_by_tau(evidence, SMALL_EPS)


@experiment(
    "BF24-T1",
    form="repaired",
    part="ii-rate",
    quick={"m": 200, "logs": (-6.0, -10.0, -14.0, -20.0)},
    full={"m": 5000},
)
def defect_slope(seed: int, m: int, logs: tuple[float, ...]) -> list[Comparison]:
    """Theorem 1 (ii), as an exponent: the largest defect falls like lambda^{eps |D|/D_max}, or
    faster (1 - tanh(s) ~ 2 e^{-2 s} gives twice that). On Figure 2's data |D*| = D_max."""
    worst = []
    for log in logs:
        known = constants(aligning_run(seed, m).problem)
        tau = known.alignment_time(log, EPS)
        run = aligning_run(seed, m, log, tau)
        who = _neurons_meeting_condition(run.problem, run.first(), 0.0, True)
        who = who[run.first().a[who] > 0]
        grad, v = D(run.problem, run.end().W)[who], ratios(run.end())[who]
        along = np.sum(grad * v, axis=1) / np.linalg.norm(grad, axis=1)
        worst.append(float((1 - along).max()))
    slope = np.polyfit(np.array(logs), np.log(worst), 1)[0]
    return [at_least(slope, EPS, what="exponent of max 1 - <D, v>/|D| at tau in lambda")]
