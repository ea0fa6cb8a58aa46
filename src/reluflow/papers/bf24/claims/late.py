"""[BF24]_ Lemmas 19 to 24 and Corollary 1: near the line the bundle converges (phase 3).

As in :mod:`reluflow.papers.bf24.claims.growth`, O(.) is replaced by the constant of the proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from reluflow.arrays import Array
from reluflow.claims.claim import Found, claim, experiment
from reluflow.claims.invariants import distance_between
from reluflow.claims.verdict import Comparison, Hypothesis, at_least, at_most, equals
from reluflow.landscape import D, pattern
from reluflow.network import Network
from reluflow.papers.bf24.claims.growth import GROWTH, PHASED, RATE, check_of_phases
from reluflow.papers.bf24.data import margins, negative_neurons_fade
from reluflow.papers.bf24.runs import PhasedRun, ratios, run_in_phases

ROUNDING = 1e-13  # of losses near 1, below which their excess over the limit says nothing


@dataclass(frozen=True, eq=False)
class Late(PhasedRun):
    """The records from tau3 on."""

    reaching: ClassVar[str] = "the run reaches the end of phase 2"

    @cached_property
    def records(self) -> range:
        return range(self.end_of("third"), len(self.times))

    @cached_property
    def since(self) -> Array:
        """t - tau3 of the late records."""
        return np.asarray(self.times[self.records.start :] - self.times[self.records.start])

    @cached_property
    def anchor(self) -> Network:
        """The network at tau3."""
        return self.path[self.records.start]

    @cached_property
    def slack(self) -> float:
        """sum of a^2 over N at tau3 times max |x|: what negative neurons add to f at most."""
        a = self.anchor.weights()[1][self.negative]
        return float(np.sum(a**2) * self.problem.norms.max())

    @cached_property
    def excess(self) -> Array:
        """L - L_beta* at the late records."""
        rest = self.problem.y - self.problem.X @ self.beta
        return np.asarray(
            self.evidence.trajectory().loss[self.records.start :] - np.mean(rest**2) / 2
        )

    @cached_property
    def rate(self) -> float:
        """sigma_min |beta*| / 2: the rate a of Lemma 22 is the least of it and c4/4."""
        return self.spectrum[0] * float(np.linalg.norm(self.beta)) / 2

    @cached_property
    def total_push(self) -> float:
        """Integral of |D^t| from tau3 on, by the trapezoidal rule (an upper bound: convex)."""
        sizes = np.linalg.norm(self.residual[self.records.start :], axis=1)
        return float(np.trapezoid(sizes, self.since))

    @cached_property
    def eps4(self) -> float:
        """How far theta may move after tau3 by Lemma 24, J the integral of |D|."""
        J, a = self.total_push, self.anchor.weights()[1]
        positive = np.hypot(np.expm1(J), np.expm1(J) + J) * np.linalg.norm(a[self.positive])
        return float(positive + (2 + 2 * J) * math.sqrt(2) * np.linalg.norm(a[self.negative]))


LATE: dict[str, Any] = {"given": [*GROWTH, negative_neurons_fade], **PHASED}
EPS3S: dict[str, Any] = {"m": 100, "eps3": (1e-4, 1e-5)}


def mixed_neurons(run: Late, net: Network) -> NDArray[np.bool_]:
    """Neurons with active and inactive samples."""
    side = pattern(run.problem, net.W)
    on, off = (side > 0).any(axis=1), (side < 0).any(axis=1)
    return np.asarray(on & off & np.isfinite(net.log_norms))


@claim("BF24-L19", **LATE)
@check_of_phases("third", kind=Late)
def outputs_near_line(run: Late) -> Comparison:
    """Lemma 19: |f - <beta*, x>| <= |x| (eps3 + sum_N a^2 + 2 (|a at tau3| + eps4) eps4)."""
    p, eps4 = run.problem, run.eps4
    a = run.anchor.weights()[1]
    bound = run.eps3 + np.sum(a[run.negative] ** 2) + 2 * (np.linalg.norm(a) + eps4) * eps4
    gaps = [np.abs(p.outputs(run.path[i]) - p.X @ run.beta) for i in run.records]
    worst = float((np.array(gaps) / p.norms).max())
    return at_most(worst, float(bound), what="|f - <beta*, x>| / |x|")


@claim("BF24-L20", **LATE)
@check_of_phases("third", kind=Late)
def mixed_neurons_fade(run: Late) -> Found:
    """Lemma 20: mixed neurons are never more, R_t starts below lambda^{2 - 2 eps}/2 and falls at
    a rate of at least c4/2, as the proof has it.

    c4 is a least value of <D~_u, w>/|w| over mixed cones shrunk by a constant that the paper
    leaves open; that over the rays of these cones takes its place.
    """
    masks = [mixed_neurons(run, run.path[i]) for i in run.records]
    new = sum(int(np.count_nonzero(b & ~a)) for a, b in pairwise(masks))
    logs = np.array(
        [
            logsumexp(2 * run.path[i].log_norms[mask]) if mask.any() else -np.inf
            for i, mask in zip(run.records, masks, strict=True)
        ]
    )
    found = [
        equals(new, 0, tolerance=0, what="neurons that become mixed after tau3"),
        equals(masks[-1].sum(), 0, tolerance=0, what="mixed neurons at the end"),
        at_most(logs[0], (2 - 2 * run.eps) * run.log_lambda, what="log 2 R at tau3"),
    ]
    there = np.isfinite(logs)
    if np.count_nonzero(there) > 1:
        slope = np.polyfit(run.since[there], logs[there], 1)[0]
        c4 = margins(run.problem).decay
        found.append(at_most(slope, -c4 / 2, what="slope of log R, c4/2 of the proof"))
    some = Hypothesis("some neuron is mixed after tau3", any(mask.any() for mask in masks))
    note = f"{int(masks[0].sum())} neurons are mixed at tau3."
    return Found(found, [some], note)


@claim("BF24-L21", **LATE)
@check_of_phases("third", kind=Late)
def gradient_dominates(run: Late) -> Found:
    """Lemma 21: |grad|^2 >= sigma_min |beta*| (L - L_beta*) - O(lambda^{2 - 2 eps})."""
    p, worst, count = run.problem, np.inf, 0
    for i, excess in zip(run.records, run.excess, strict=True):
        if excess > max(ROUNDING, run.slack):
            count += 1
            net = run.path[i]
            push = D(p, net.W, p.pull_at(p.outputs(net)))
            W, a = net.weights()
            grad2 = np.sum(a**2 * np.sum(push**2, axis=1)) + np.sum(np.sum(W * push, axis=1) ** 2)
            worst = min(worst, float(grad2 / excess))
    return Found(
        [at_least(worst, 2 * run.rate, what="least |grad|^2 / (L - L_beta*) after tau3")],
        [Hypothesis("some late record has L - L_beta* above rounding", count > 0)],
        f"{count} records after tau3 tell the gradient from rounding.",
    )


@claim("BF24-L22", **LATE)
@check_of_phases("third", kind=Late)
def excess_decays(run: Late) -> Found:
    """Lemma 22: L - L_beta* <= (sigma_max eps3^2/2 + slack) e^{-a (t - tau3)}."""
    first = run.spectrum[1] * run.eps3**2 / 2 + run.slack
    seen = run.excess > ROUNDING
    some = Hypothesis(
        "two late records have L - L_beta* above rounding", int(np.count_nonzero(seen)) > 1
    )
    if not some.ok:
        return Found((), [some])
    rate = -np.polyfit(run.since[seen], np.log(run.excess[seen]), 1)[0]
    over = run.excess / (first * np.exp(-run.rate * run.since) + ROUNDING)
    return Found(
        [
            at_most(over.max(), 1.0, what="L - L_beta* over (sigma_max eps3^2/2 + slack) e^{-a t}"),
            at_least(rate, run.rate, what="fitted rate of L - L_beta*"),
        ],
        [some],
    )


@claim("BF24-L23", **LATE)
@check_of_phases("third", kind=Late)
def push_is_integrable(run: Late) -> Comparison:
    """Lemma 23: the integral of |D| after tau3 is at most 2 sigma_max eps3 / a."""
    bound = 2 * run.spectrum[1] * run.eps3 / run.rate
    return at_most(run.total_push, bound, what="integral of |D| after tau3")


@experiment("BF24-L23", part="rate", quick=EPS3S, **RATE)
def push_is_of_order_eps3(seed: int, m: int, eps3: tuple[float, ...]) -> list[Comparison]:
    """Lemma 23: the integral of |D| shrinks at least like eps3."""
    runs = [Late(run_in_phases(seed, m), eps3=e) for e in eps3]
    slope = _exponents(runs, np.array([[s.total_push] for s in runs]))[0]
    return [at_least(slope, 0.95, what="exponent of the integral of |D| in eps3")]


@experiment("BF24-L24", part="rate", quick=EPS3S, **RATE)
def moves_are_of_order_eps3(seed: int, m: int, eps3: tuple[float, ...]) -> list[Comparison]:
    """Lemma 24: relative moves of a, w and v of the positive neurons shrink at least like eps3."""
    runs = [Late(run_in_phases(seed, m), eps3=e) for e in eps3]
    slopes = _exponents(runs, np.array([_moves(s)[:3] for s in runs]))
    return [
        at_least(slope, 0.95, what=f"exponent of the move of {name} in eps3")
        for slope, name in zip(slopes, "awv", strict=True)
    ]


def _exponents(runs: list[Late], values: Array) -> Array:
    """Slopes of log values between the two smallest eps3, as they are at the records of tau3."""
    eps3 = [s.gap[s.records.start] for s in runs[-2:]]
    return np.asarray(np.log(values[-1] / values[-2]) / np.log(eps3[1] / eps3[0]))


def _moves(run: Late) -> Array:
    """Largest relative moves after tau3: a, w and v of positive neurons, either of negative."""
    ref, bundle, negative = run.anchor, run.positive, run.negative
    before, worst = ratios(ref), np.zeros(4)
    for i in run.records:
        net = run.path[i]
        ratio = np.sign(net.a) * np.sign(ref.a) * np.exp(net.log_outer - ref.log_outer)
        change, v = np.abs(ratio - 1), ratios(net)
        w = np.linalg.norm(ratio[:, None] * v - before, axis=1)
        here = [
            change[bundle].max(initial=0.0),
            w[bundle].max(initial=0.0),
            np.linalg.norm(v - before, axis=1)[bundle].max(initial=0.0),
            max(change[negative].max(initial=0.0), w[negative].max(initial=0.0)),
        ]
        worst = np.maximum(worst, here)
    return worst


@claim("BF24-L24", **LATE)
@check_of_phases("third", kind=Late)
def neurons_stay(run: Late) -> list[Comparison]:
    """Lemma 24: with J the integral of |D|: a moves by e^J - 1, w by e^J + J - 1, v by 2 J."""
    J, worst = run.total_push, _moves(run)
    return [
        at_most(worst[0], np.expm1(J), what="relative move of a, positive neurons"),
        at_most(worst[1], np.expm1(J) + J, what="move of w over a, positive neurons"),
        at_most(worst[2], 2 * J, what="move of v, positive neurons"),
        at_most(worst[3], 2 + 2 * J, what="relative move of negative neurons"),
    ]


@claim("BF24-C1", **LATE)
@check_of_phases("third", kind=Late)
def neighbourhood_is_kept(run: Late) -> list[Comparison]:
    """Corollary 1: theta stays within eps4 of tau3, <v, x_k> above delta4 |x_k|, to rest."""
    size = run.problem.norms
    cosines = [
        (ratios(run.path[i])[run.positive] @ run.problem.X.T / size).min() for i in run.records
    ]
    far = max(distance_between(run.anchor, run.path[i]) for i in run.records)
    return [
        at_most(far, run.eps4, what="|theta - theta at tau3|, eps4 of the proof"),
        at_least(min(cosines), cosines[0] - 2 * run.total_push, what="least <v, x_k>/|x_k|"),
        at_least(min(cosines), 0.0, what="which is positive"),
    ]
