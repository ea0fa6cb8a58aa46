"""The verdict on a view: `reluflow.explain`, its sentences linked to pictures and definitions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from reluflow.errors import ReluflowError
from reluflow.explanation.explain import explain
from reluflow.explanation.explanation import Explanation
from reluflow.problem import Problem
from reluflow.runtime.words import number
from reluflow.studio.settings import Settings

# topic of a sentence -> picture that shows it, terms that it uses
LINKS: dict[str, tuple[str, tuple[str, ...]]] = {
    "In short": ("data", ("stationary point", "margin")),
    "Directions": ("neurons", ("extremal vector", "early alignment", "dead neuron")),
    "Jumps": ("loss", ("jump", "plateau", "limit process")),
    "End": ("data", ("stationary point", "global minimum")),
    "Best possible": ("data", ("least norm", "margin")),
    "Ignored": ("data", ("dead neuron",)),
    "Width": ("loss", ("limit process",)),
    "Scale": ("sizes", ("scale",)),
    "Proofs": ("data", ("certificate",)),
}


def explain_side(
    settings: Settings, problem: Problem, seconds: float, say: Callable[[str, str], None]
) -> Explanation:
    """The explanation of a view; `ReluflowError` where its start is none that explain takes."""
    start = settings.start
    scale = start.scale if start.log_scale is None else math.exp(max(start.log_scale, -700.0))
    if start.kind != "balanced" or start.signs != "random":
        raise ReluflowError(
            "the full answer is for the balanced law with random signs: choose these, or read the "
            "prediction and the run, which are for any start"
        )
    if scale is None or (start.log_scale is not None and start.log_scale < -690.0):
        raise ReluflowError("the full answer is for scales from 1e-299 on: choose a larger scale")
    if not scale < 1.0:
        raise ReluflowError("the full answer is about small starts: choose a scale below 1")
    return explain(
        problem,
        m=start.m,
        scale=scale,
        seed=start.seed,
        seconds=seconds,
        progress=False,
        on_sentence=say,
    )


def answer_values(e: Explanation) -> dict[str, Any]:
    """The verdict, certificates and claims, as plain values."""
    verdict = []
    for topic, text in e.verdict:
        picture, terms = LINKS.get(topic, ("loss", ()))
        verdict.append({"topic": topic, "text": text, "picture": picture, "terms": list(terms)})
    return {
        "verdict": verdict,
        "certificates": [
            {
                "kind": c.kind,
                "grade": c.grade,
                "claims": [f"{name}: {number(value)}" for name, value in c.claim.items()],
            }
            for c in e.certificates
        ],
        "claims": [
            {"label": v.label, "status": v.status.name, "statement": v.statement} for v in e.claims
        ],
        "missing": e.missing,
        "loss": e.loss,
    }
