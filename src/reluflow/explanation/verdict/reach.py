"""What the verdict says beyond the samples and beyond the tolerance: unseen rows, the horizon."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reluflow.explanation.verdict.words import SHOWN
from reluflow.runtime.words import count, join, number

if TYPE_CHECKING:
    from reluflow.explanation.explanation import Explanation
    from reluflow.problem.tables import UnseenScores

_EARLIER = 0.02  # share of the loss at the end by which an earlier one must be smaller to be named


def horizon(e: Explanation) -> str:
    """Until when the run can be relied on, where it did not locate its kinks."""
    h = e.horizon
    if h is None:
        return ""
    since = f"From time {h.since:.4g} on kinks" if h.since > 0.0 else "Kinks"
    fine, coarse = h.tolerances
    text = (
        f"{since} were not located. Runs with errors of {fine:.2g} and {coarse:.2g} in a step "
        f"agree in the loss, to {100 * h.close:g} % of the first one, "
    )
    if h.whole:
        return text + f"as far as both go, to time {h.time:.4g}."
    return text + (
        f"until time {h.time:.4g}, the horizon: what comes later depends on details below these "
        "errors."
    )


def unseen(e: Explanation) -> str:
    """How the network does on rows that it was not trained on."""
    u = e.unseen
    if u is None:
        return ""
    rows = count(u.end.rows, "unseen row")
    parts = [f"after jump {i + 1} {_score(scores)}" for i, scores in enumerate(u.plateaus[:SHOWN])]
    text = f"On {rows} the network at the end has loss {number(u.end.loss)}: {_score(u.end)}."
    if u.loss.size and float(u.loss.min()) < (1.0 - _EARLIER) * u.end.loss:
        at = u.best
        what = f"{100 * u.score[at]:.1f} % right" if u.classes else f"error {number(u.score[at])}"
        text += (
            f" Their loss is smallest at time {u.times[at]:.4g}, {number(float(u.loss[at]))} "
            f"({what}): training beyond it fits the samples, not these rows."
        )
    if parts:
        text += f" Networks predicted without training: {join(parts)}."
    return text


def _score(scores: UnseenScores) -> str:
    if scores.accuracy is not None:
        return f"{100 * scores.accuracy:.1f} % right"
    return f"root mean square error {number(scores.error or 0.0)}"
