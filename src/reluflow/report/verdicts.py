"""Verdicts as rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reluflow.claims.verdict import Status, Verdict
from reluflow.report.page import Mark


def verdict_rows(verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """One row for each verdict: what is claimed, what was measured, what it rests on."""
    surprise = any(v.surprising for v in verdicts)
    rows = []
    for v in verdicts:
        row: dict[str, Any] = {
            "claim": v.label,
            "status": Mark(v.status.name),
        }
        if surprise:
            row["expected"] = Mark(v.expected.name) if v.surprising and v.expected else ""
        row |= {"statement": v.statement, "measured": _measured(v), "rests on": _rests_on(v)}
        rows.append(row)
    return rows


def _measured(verdict: Verdict) -> list[str]:
    """Print and meaning where they differ, comparisons that do not hold, a remark, those that do,
    and notes."""
    known = verdict.status is Status.FAILS and verdict.expected is Status.FAILS
    bad: list[str] = []
    good: list[str] = []
    for c in verdict.comparisons:
        tolerance = f" within {c.tolerance:.3g}" if c.tolerance else ""
        error = f" (error {c.error:.1e})" if c.error else ""
        what = f"{c.what}: " if c.what else ""
        lead = "counterexample: " if known and c.status is Status.FAILS else ""
        line = f"{lead}{what}{c.measured:.6g} {c.sense} {c.bound:.6g}{tolerance}{error}"
        (good if c.status is Status.HOLDS else bad).append(line)
    remark = [f"remark: {verdict.reason}"] if verdict.reason else []
    return [*verdict.wording(), *bad, *remark, *good, *_lines(verdict.note)]


def _lines(note: str) -> list[str]:
    """A note; one that lists many things, line by line below what it lists."""
    head, _, rest = note.partition(": ")
    items = rest.split("; ")
    if len(items) > 3:
        return [head + ":", *items]
    return [note] if note else []


def _rests_on(verdict: Verdict) -> list[str]:
    if verdict.status is Status.OUT_OF_SCOPE:
        failed = [h for h in verdict.hypotheses if h.ok is False]
        return [
            f"not so: {h.name} ({h.detail})" if h.detail else f"not so: {h.name}" for h in failed
        ]
    marks = {"ok": "", "failed": "not so: ", "unchecked": "unchecked: "}
    # a counterexample shows by numbers that each hypothesis is met
    details = verdict.status is Status.FAILS
    return [
        marks[h.state] + h.name + (f" ({h.detail})" if details and h.detail else "")
        for h in verdict.hypotheses
    ]
