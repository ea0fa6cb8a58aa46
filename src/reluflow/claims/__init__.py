"""Claims: the statements of the five papers as checks with hypotheses, numbers and a status."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from reluflow._lazy import make_lazy

if TYPE_CHECKING:
    from reluflow.claims.certify import certify
    from reluflow.claims.claim import assumption, claim, experiment, predicate
    from reluflow.claims.evidence import Evidence
    from reluflow.claims.ledger import ledger
    from reluflow.claims.verdict import Hypothesis, Status, Verdict, at_least, at_most, equals

_HOMES = {
    "certify": "reluflow.claims.certify",
    "assumption": "reluflow.claims.claim",
    "claim": "reluflow.claims.claim",
    "experiment": "reluflow.claims.claim",
    "predicate": "reluflow.claims.claim",
    "Evidence": "reluflow.claims.evidence",
    "ledger": "reluflow.claims.ledger",
    "Hypothesis": "reluflow.claims.verdict",
    "Status": "reluflow.claims.verdict",
    "Verdict": "reluflow.claims.verdict",
    "at_least": "reluflow.claims.verdict",
    "at_most": "reluflow.claims.verdict",
    "equals": "reluflow.claims.verdict",
}

__all__ = [
    "Evidence",
    "Hypothesis",
    "Status",
    "Verdict",
    "assumption",
    "at_least",
    "at_most",
    "certify",
    "claim",
    "equals",
    "experiment",
    "ledger",
    "predicate",
]

#: Called before the registry is read. The frame stands below the papers and does not import them:
#: ``reluflow/__init__.py`` adds a function that does.
SOURCES: list[Callable[[], None]] = []
#: The same for checks that make their own experiments, which no evidence of a user needs.
EXPERIMENTS: list[Callable[[], None]] = []

make_lazy(__name__, _HOMES)
