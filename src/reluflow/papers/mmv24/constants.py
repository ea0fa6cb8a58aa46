"""[MMV24]_: the constants of Theorem 1, as printed and as the proof uses them, in logarithms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from reluflow.arrays import Array
from reluflow.claims.claim import Predicate, predicate
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import least_cosine
from reluflow.network import Network
from reluflow.problem import Problem

LESS = 1 - 1e-9  # open conditions are met by so much less
ALONG = 1e-28  # sin^2 of an angle that is rounding
# |dl/df| at f = 0 of losses with factor 1, by their formulas: no code of the library's is asked
SLOPES = {"half_square": 1.0, "square": 2.0, "logistic": 0.5, "exponential": 1.0}


@dataclass(frozen=True, eq=False)
class Constants:
    """Constants of the proof of Theorem 1 for a problem and a start eps W_0.

    W_0 is the start with its largest row at norm 1 (so W_max = 1), eps that norm. Times are ours:
    those of the paper, which adds losses of slope 1 at zero, over ``unit``.

    zeta_1 and zeta_2 are any numbers small enough; taken as large as they can be, both uses of
    zeta in App. C.2 need the smaller one. "meant" has zeta = min(zeta_1, zeta_2), and 8 in Eq. 28
    so that Eq. 29 follows from Lemma 3; "printed" has max and 4.
    """

    problem: Problem
    start: Network

    @cached_property
    def unit(self) -> float:
        """Pull of one sample on a silent network: time of the paper over ours."""
        p = self.problem
        slope = SLOPES.get(p.loss.name)
        if slope is None:  # a loss of a user's own
            return float(np.abs(p.pull[0]))
        return slope * p.loss.factor / (p.n if p.reduction == "mean" else 1)

    @cached_property
    def X_max(self) -> float:
        return float(self.problem.norms.max())

    @cached_property
    def X_min(self) -> float:
        return float(self.problem.norms.min())

    @cached_property
    def mu(self) -> float:
        return least_cosine(self.problem)

    @cached_property
    def xi(self) -> float:
        """Lemma 9: mu^2, exactly."""
        return self.mu**2

    @cached_property
    def log_eps(self) -> float:
        return float(np.max(self.start.log_norms))

    @cached_property
    def log_W_min(self) -> float:
        return float(np.min(self.start.log_norms)) - self.log_eps

    @cached_property
    def sums(self) -> dict[int, Array]:
        """x_+ and x_-, by sign."""
        p = self.problem
        return {s: p.X[np.sign(p.y) == s].sum(axis=0) for s in (1, -1)}

    @cached_property
    def counts(self) -> dict[int, int]:
        """n_+ and n_-, by sign."""
        return {s: int((np.sign(self.problem.y) == s).sum()) for s in (1, -1)}

    def cosine(self, s: int, W: Array) -> Array:
        """Cosines of rows with x_s."""
        x = self.sums[s]
        return np.asarray(W @ x / np.linalg.norm(W, axis=1) / np.linalg.norm(x))

    @cached_property
    def zeta_1(self) -> float:
        """Largest cap of x_+ in S_+ and of x_- in S_-: least cos^2 of s x_s and y_i x_i."""
        Z = self.problem.y[:, None] * self.problem.X
        return LESS * min(float(np.min(s * self.cosine(s, Z))) for s in (1, -1)) ** 2

    @cached_property
    def zeta_2(self) -> float:
        """Cap around x_- (x_+) that holds no positive (negative) start."""
        W, a = self.start.directions, self.start.a
        sines = []  # 1 - cos^2 without cancellation, for starts close to the axis
        for s in (1, -1):
            axis = self.sums[-s] / np.linalg.norm(self.sums[-s])
            mine = W[(s * a > 0) & (W @ axis > 0)]
            across = mine - np.outer(mine @ axis, axis)
            sines.append(np.sum(across**2, axis=1).min(initial=1.0))
        return LESS * float(min(sines))

    def zeta(self, form: str) -> float:
        """max of both as printed, min as meant."""
        return (max if form == "printed" else min)(self.zeta_1, self.zeta_2)

    @cached_property
    def T(self) -> float:
        """log(1/(sqrt(width) eps)) / (4 n X_max): until when directions follow the early law."""
        log = -0.5 * math.log(self.start.m) - self.log_eps
        return log / (4 * self.problem.n * self.X_max) / self.unit

    def rate(self, form: str) -> float:
        """min(zeta, xi) sqrt(mu) X_min, over which the times below stand."""
        return min(self.zeta(form), self.xi) * math.sqrt(self.mu) * self.X_min * self.unit

    def t1_bound(self, form: str = "meant") -> float:
        """16 log n / (min(zeta, xi) sqrt(mu) X_min)."""
        return 16 * math.log(self.problem.n) / self.rate(form)

    def dwell(self, active: Any, form: str = "meant") -> Any:
        """4 / (min(zeta, xi) sqrt(mu) X_min n_a): longest time in a pattern."""
        return 4 / (self.rate(form) * active)

    def log_eps_max(self, form: str = "meant") -> float:
        """log of the right side of Eq. 28."""
        n, half = self.problem.n, 0.5 * math.log(self.start.m)
        least = min(self.mu, self.zeta(form), self.xi)
        factor = 4 if form == "printed" else 8
        first = math.log(least * math.sqrt(self.mu) * self.X_min / (factor * n * self.X_max**2))
        least = min(self.zeta(form), self.xi)
        second = -64 * n * self.X_max / (least * math.sqrt(self.mu) * self.X_min) * math.log(n)
        return min(first, second) - half

    @cached_property
    def log_eps_early(self) -> float:
        """log of 1/(4 sqrt(width) X_max), below which eps must be for Lemmas 1 and 3."""
        return -math.log(4 * math.sqrt(self.start.m) * self.X_max)

    @cached_property
    def rate_alpha(self) -> float:
        """(mu X_min)^2 / (32 X_max): free of the unit, since L and 1/t scale alike."""
        return (self.mu * self.X_min) ** 2 / (32 * self.X_max)

    def k(self, s: int) -> float:
        """sqrt(mu) n_s X_min."""
        return math.sqrt(self.mu) * self.counts[s] * self.X_min * self.unit

    def t2_bound(self, s: int, t1: float) -> float:
        """Right side of Eq. 39 for the class s."""
        log = math.log(2 / (math.sqrt(self.mu) * self.X_min)) - 2 * (self.log_eps + self.log_W_min)
        grown = log + 4 * self.problem.n * self.X_max * self.unit * t1
        return t1 + (6 + 4 * grown) / self.k(s)


def constants(evidence: Evidence) -> Constants:
    """Constants of a problem with a known start."""
    return Constants(evidence.problem, evidence.first())


@predicate("labels -1, +1 and a loss whose slope moves by at most 2|f| of that at zero")
def early_loss(evidence: Evidence) -> tuple[bool, str]:
    """Lemma 2 after division by the slope at zero: all four losses have it."""
    p = evidence.problem
    signs = bool((np.abs(p.y) == 1.0).all())
    known = p.loss.margin or p.loss.name in ("half_square", "square")
    return signs and known, f"{p.loss.name} loss" + ("" if signs else ", labels of other sizes")


@predicate("both classes are there")
def both_classes(evidence: Evidence) -> tuple[bool, str]:
    """With one class missing x_- is zero and S_- is the dead cone."""
    y = evidence.problem.y
    return bool((y > 0).any() and (y < 0).any()), f"{int((y > 0).sum())} positive of {y.size}"


@predicate("no start along the sum of the other class (Assumption 2)")
def not_aligned(evidence: Evidence) -> tuple[bool, str]:
    """max over V_+ of cos(w, x_-) < 1, and over V_- of cos(w, x_+) < 1."""
    if evidence.start is None:
        return False, "the start is not known"
    found = constants(evidence)
    return found.zeta_2 > ALONG, f"least sin^2 {found.zeta_2:.3g}"


@predicate("eps <= 1/(4 sqrt(width) X_max W_max^2)")
def early_scale(evidence: Evidence) -> tuple[bool, str]:
    """The scale at which Lemmas 1 and 3 begin to speak, with T > 0."""
    if evidence.start is None:
        return False, "the start is not known"
    c = constants(evidence)
    bound = c.log_eps_early
    return c.log_eps <= bound and c.T > 0, f"log eps = {c.log_eps:.5g}, at most {bound:.5g}"


def small_start(form: str) -> Predicate:
    """eps below the right side of Eq. 28."""

    how = {"meant": "zeta = min, factor 8", "printed": "zeta = max, factor 4"}[form]

    @predicate(f"eps is below Eq. 28 ({how})")
    def test(evidence: Evidence) -> tuple[bool, str]:
        if evidence.start is None:
            return False, "the start is not known"
        c = constants(evidence)
        bound = c.log_eps_max(form)
        return c.log_eps <= bound, f"log eps = {c.log_eps:.5g}, Eq. 28 asks for {bound:.6g}"

    return test
