"""[TK24]_: what its statements suppose, computed: Sections 3 to 5."""

from __future__ import annotations

from functools import cache

import numpy as np

from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import mean_logistic, no_leak, unit_ball
from reluflow.claims.verdict import Hypothesis
from reluflow.papers.tk24.claims.four_neurons import spread, tight_orbit, xor_symmetric
from reluflow.problem import Problem, datasets

XI = 0.02  # smoothing radius of the smoothed orbit


@cache
def smoothed_orbit() -> Problem:
    """An XOR orbit with everything that Section 5 supposes: delta 0.095, xi 0.02, d = 3."""
    return tight_orbit(0).problem.replace(smoothing=XI)


def general_setting(problem: Problem) -> list[Hypothesis]:
    """Section 3 and Theorem 4.1: the loss, the smoothed activation, |x_i| <= 1 and odd d."""
    evidence, d, xi = Evidence.of(problem), problem.d, problem.smoothing
    return [
        mean_logistic(evidence),
        no_leak(evidence),
        Hypothesis("the smoothed activation, xi > 0", xi > 0, f"xi = {xi:g}"),
        unit_ball(evidence),
        Hypothesis("d >= 2 and odd", d >= 2 and d % 2 == 1, f"d = {d}"),
    ]


def xor_setting(problem: Problem) -> list[Hypothesis]:
    """The setting of Lemma 5.2: beside the general one, Assumption 5.1 and xi + delta < 1/6.

    Item 4 of the assumption is read for all coordinates, as "for all k" may be.
    """
    xi, off = problem.smoothing, float(np.abs(problem.X).min())
    return [
        *general_setting(problem),
        xor_symmetric(Evidence.of(problem)),
        Hypothesis("|e_k^T x_i| > xi for all i and k", off > xi, f"least {off:.3g}"),
        narrow(spread(problem), xi),
    ]


def narrow(delta: float, xi: float) -> Hypothesis:
    """delta + xi < 1/6."""
    return Hypothesis("delta + xi < 1/6", delta + xi < 1 / 6, f"delta {delta:.3g}, xi {xi:g}")


def xor_draw(rng: np.random.Generator, d: int, xi: float, share: float = 0.999) -> Problem:
    """The orbit of one to four random points, delta a share of 1/6 - xi, all else as above.

    The first point is at the distance delta from e1, the others are uniform in that ball.
    """
    delta, count = share * (1 / 6 - xi), int(rng.integers(1, 5))
    points: list[np.ndarray] = []
    while len(points) < count:
        step = rng.standard_normal(d)
        far = delta if not points else delta * rng.random() ** (1 / d)
        x = np.eye(d)[0] + far * step / np.linalg.norm(step)
        if np.linalg.norm(x) <= 1 and np.abs(x).min() > xi + 1e-3 * delta:
            points.append(x)
    return datasets.xor_orbit(np.array(points)).replace(smoothing=xi)
