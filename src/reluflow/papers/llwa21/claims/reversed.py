"""[LLWA21]_ Theorem A.10: the reversed case, in which training ends in a neuron with a < 0."""

from __future__ import annotations

from typing import Any

from reluflow.claims.claim import Found, claim, experiment
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import balanced_start
from reluflow.claims.verdict import Comparison, at_least, at_most
from reluflow.papers.llwa21.claims.assumptions import (
    large_margins,
    minus_is_longer,
    one_way,
    small_start,
)
from reluflow.papers.llwa21.claims.general import (
    best_other,
    dual_value,
    planar,
    positives_weak,
    positives_weak_at_dual,
)
from reluflow.papers.llwa21.claims.one_neuron import (
    COMMON,
    SIZES,
    SPHERE,
    ends_in_one_neuron,
    has_sign,
    sample,
    sphere_error,
    trained,
    trained_on_counterexample,
)
from reluflow.papers.llwa21.runs import smoothed

REVERSED: dict[str, Any] = {
    "given": [
        *COMMON,
        minus_is_longer,
        positives_weak,
        positives_weak_at_dual,
        balanced_start,
        small_start,
        has_sign(-1),
        one_way,
        large_margins,
    ],
    **SIZES,
}


@claim(
    "LLWA21-TA.10",
    example=trained,
    quick={"mirror": True, "q_min": 100.0},
    full={"q_min": 2000.0},
    **REVERSED,
)
def one_negative_neuron(evidence: Evidence) -> list[Comparison]:
    """-(1/2) phi(-<w-, x>), with A.9 for a >= 0, A.6 mirrored and the mirrored A.5*."""
    return ends_in_one_neuron(evidence, -1)


@experiment(
    "LLWA21-TA.10",
    form="slip",
    quick={"sets": 5},
    full={"sets": 100},
    printed="A.9 supposes a_k <= 0 for all k (Appendix A.3)",
    meant="a_k >= 0, the label flip of A.5 that the text announces; likewise A.6 with "
    "a_k = -|w_k| near -mu-, and A.5* as in TA.7",
)
def sign_in_a9(seed: int, sets: int) -> list[Comparison]:
    """a <= 0 contains the limit itself, so that no data satisfy it; mirrored hints do with >= 0."""
    own = []
    for problem in (sample("hints", True), *(planar(seed + i, 5) for i in range(sets))):
        lower, _, bound = best_other(problem, -1, -1)
        own.append(lower / bound)
    _, upper, bound = best_other(sample("hints", True), -1, 1)
    return [
        at_least(min(own), 1 - 1e-9, what="margin with a <= 0 over gamma-/2, least"),
        at_most(upper / bound, 1 - 1e-6, what="mirrored hints: margin with a >= 0 over gamma-/2"),
    ]


@experiment(
    "LLWA21-TA.10",
    form="control",
    part="A.5*",
    quick={"q_min": 1e4},
    reason="A.9 with a >= 0 holds on the mirrored three points and the mirrored A.5* does not",
)
def mirrored_counterexample(seed: int, q_min: float) -> Found:
    """The margin passes gamma-/2, that of the one neuron."""
    evidence = trained_on_counterexample(seed=seed, mirror=True, q_min=q_min)
    p, net = evidence.problem, evidence.end()
    value, gamma = dual_value(p, -1)
    return Found(
        [
            at_least(value / gamma, 1.0, what="value of the mirrored A.5* over gamma-"),
            at_least(
                smoothed(p, net)[0] / (gamma / 2),
                1.0,
                what="smoothed margin, which never falls, over gamma-/2",
            ),
        ],
        [minus_is_longer(evidence), positives_weak(evidence)],
    )


@experiment("LLWA21-TA.10", **SPHERE)
def one_negative_neuron_everywhere(seed: int, q_min: float) -> Found:
    """-(1/2) phi(-<w-, x>) for all x."""
    return sphere_error(seed, q_min, True)
