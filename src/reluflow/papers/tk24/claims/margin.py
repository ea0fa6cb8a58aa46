"""[TK24]_ Proposition 5.7: four neurons reach margins above 4.67."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expi

from reluflow.claims.claim import Found, experiment
from reluflow.claims.verdict import Hypothesis, at_least, equals
from reluflow.network import Network, axis_start
from reluflow.papers.tk24.claims.four_neurons import spread
from reluflow.problem import Problem, datasets

Q, LEAST = 8 / 3, 9 / 4  # max|a| at which the proof stops, and the least |a| it finds then


@dataclass(frozen=True)
class Proof:
    """Constants of Appendix D.3 for delta + xi <= a, max|a| >= b and ratios of |a| up to c."""

    a: float = 0.01
    b: float = 1e-3
    c: float = 1e3

    @property
    def C(self) -> float:
        """e^{-4 q^2 a}."""
        return math.exp(-4 * Q * Q * self.a)

    def h(self, x: float) -> float:
        """Integral of (1 + C e^z)/z from 1 to x."""
        return math.log(x) + self.C * float(expi(x) - expi(1.0))

    @property
    def reached(self) -> float:
        """Lower bound of h(X(T)), X = (1 - 2a) min|a|^2."""
        a = self.a
        A = ((1 - 2 * a) * math.exp(-7 * Q * Q * a) - 4 * a) / 2
        B = (1 + a) / 2
        start = (1 + self.C * math.e) * math.log((1 - 2 * a) * self.b**2)
        uneven = (1 + self.C * math.exp((1 - 2 * a) / 4)) * math.log(self.c**2)
        return A / B * self.h((1 - 2 * a) * Q * Q) + (B - A) / B * start - uneven

    @property
    def needed(self) -> float:
        """h at min|a| = 9/4."""
        return self.h((1 - 2 * self.a) * LEAST**2)

    @property
    def margin(self) -> float:
        """Least y f that follows."""
        return (1 - 2 * self.a) * LEAST**2 - 4 * Q * Q * self.a


def tall(problem: Problem, net: Network, t: float) -> bool:
    """Whether some outer weight has reached 8/3."""
    return bool(np.abs(net.weights()[1]).max() >= Q)


@experiment("TK24-P5.7", quick={"starts": 2}, full={"starts": 12})
def margin_of_the_proof(seed: int, starts: int) -> Found:
    """The proof's chain of constants, and runs until max|a| = 8/3 from uneven starts."""
    from reluflow.gradientflow.flow import flow

    proof, rng = Proof(), np.random.default_rng(seed)
    p = datasets.symmetric_xor(seed, duplicates=False)
    delta = spread(p)
    least = margin = math.inf
    scales = [np.array([0.3, 0.01, 1e-3, 0.1])]
    for _ in range(starts - 1):
        ratio = np.append([1.0, 1e-3], 10 ** rng.uniform(-3, 0, 2))
        scales.append(
            10 ** rng.uniform(math.log10(0.002), math.log10(0.5)) * rng.permutation(ratio)
        )
    for start in scales:
        net = flow(p, axis_start(p, tuple(start)), t_end=1e6, stop=tall).final
        least = min(least, float(np.abs(net.weights()[1]).min()))
        margin = min(margin, float(np.min(p.y * p.outputs(net))))
    top, uneven = np.array([s.max() for s in scales]), max(s.max() / s.min() for s in scales)
    held = [
        Hypothesis("delta + xi <= 0.01", delta <= 0.01, f"delta {delta:.4f}"),
        Hypothesis("ratios of |a| up to 1000", uneven <= 1000 * (1 + 1e-9), f"{uneven:.4g}"),
        Hypothesis("max|a| in (0.001, 0.5)", bool(((top > 1e-3) & (top < 0.5)).all())),
    ]
    made = [
        equals(proof.reached, 31.52, tolerance=0.01, what="lower bound of h(X(T))"),
        at_least(proof.reached, proof.needed, what="against h at min|a| = 9/4"),
        at_least(proof.margin, 4.67, what="margin that follows"),
        at_least(least, LEAST, what=f"min|a| when max|a| = 8/3, {starts} runs"),
        at_least(margin, 4.67, what="least y f then"),
    ]
    return Found(made, held)
