"""What a check says: a measured value against a bound, and what it rests on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, SupportsFloat


class Status(Enum):
    """Outcome of a check; the value is the sentence to print."""

    HOLDS = "The bound is met by at least the numerical error."
    FAILS = "The bound is missed by more than the numerical error."
    UNDECIDED = "The numerical error covers the margin: try a smaller rtol or a larger sample."
    OUT_OF_SCOPE = "A hypothesis of the statement does not hold here."


@dataclass(frozen=True)
class Comparison:
    """``measured`` ``sense`` ``bound``, decided with regard to ``error``.

    For the sense "==" the two may differ by ``tolerance``.
    """

    measured: float
    bound: float
    sense: str
    error: float = 0.0
    what: str = ""
    tolerance: float = 0.0

    @property
    def slack(self) -> float:
        """By how much the bound is met; negative when it is missed."""
        if self.sense == "<=":
            return self.bound - self.measured
        if self.sense == ">=":
            return self.measured - self.bound
        return self.tolerance - abs(self.measured - self.bound)

    @property
    def status(self) -> Status:
        """HOLDS, FAILS or UNDECIDED; what is not a number decides nothing."""
        slack = 0.0 if self.measured == self.bound else self.slack  # inf against inf
        if math.isnan(slack) or math.isnan(self.error):
            return Status.UNDECIDED
        if slack >= self.error:
            return Status.HOLDS
        return Status.FAILS if slack < -self.error else Status.UNDECIDED

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "what": self.what,
            "measured": _plain(self.measured),
            "sense": self.sense,
            "bound": _plain(self.bound),
            "tolerance": _plain(self.tolerance),
            "error": _plain(self.error),
            "status": self.status.name,
        }


def at_most(
    measured: SupportsFloat, bound: SupportsFloat, *, error: SupportsFloat = 0.0, what: str = ""
) -> Comparison:
    """measured <= bound, with ``error`` the numerical error of the difference."""
    return Comparison(float(measured), float(bound), "<=", float(error), what)


def at_least(
    measured: SupportsFloat, bound: SupportsFloat, *, error: SupportsFloat = 0.0, what: str = ""
) -> Comparison:
    """measured >= bound, with ``error`` the numerical error of the difference."""
    return Comparison(float(measured), float(bound), ">=", float(error), what)


def equals(
    measured: SupportsFloat,
    bound: SupportsFloat,
    *,
    tolerance: SupportsFloat,
    error: SupportsFloat = 0.0,
    what: str = "",
) -> Comparison:
    """|measured - bound| <= tolerance, with ``error`` the numerical error of the difference."""
    return Comparison(
        float(measured), float(bound), "==", float(error), what, tolerance=float(tolerance)
    )


@dataclass(frozen=True)
class Hypothesis:
    """One assumption of a statement: ``ok`` True, False, or None when it cannot be checked."""

    name: str
    ok: bool | None
    detail: str = ""

    @property
    def state(self) -> str:
        """ "ok", "failed" or "unchecked"."""
        return {True: "ok", False: "failed", None: "unchecked"}[self.ok]


@dataclass(frozen=True)
class Verdict:
    """What one check of one claim found.

    Attributes
    ----------
    id, paper, statement
        The claim, and what it says in our words.
    form : {"stated", "printed", "repaired"}
        Which wording was checked: papers' slips are kept beside their repair.
    status : Status
    comparisons : tuple of Comparison
        Everything measured; the claim holds if all of them do.
    hypotheses : tuple of Hypothesis
    expected : Status or None
        What is known to come out, None for a user's own data.
    note : str
        A remark for the reader.
    settings : mapping
        Problem, run or experiment, size and seed.
    part : str
        Which of several checks of the same wording.
    reason : str
        What a reader should know about the expected status; always there where it is not HOLDS.
    """

    id: str
    paper: str
    statement: str
    form: str
    status: Status
    comparisons: tuple[Comparison, ...] = ()
    hypotheses: tuple[Hypothesis, ...] = ()
    expected: Status | None = None
    note: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    part: str = ""
    reason: str = ""

    @property
    def label(self) -> str:
        """The id, with the form and the part where they tell checks of it apart."""
        told = [word for word in (self.form, self.part) if word not in ("", "stated")]
        return f"{self.id} ({', '.join(told)})" if told else self.id

    @property
    def deciding(self) -> Comparison | None:
        """The comparison that decides: the first of the worst status."""
        worst = (Status.FAILS, Status.UNDECIDED, Status.HOLDS)
        return min(self.comparisons, key=lambda c: worst.index(c.status), default=None)

    @property
    def measured(self) -> float | None:
        """Value of the deciding comparison."""
        return None if self.deciding is None else self.deciding.measured

    @property
    def bound(self) -> float | None:
        """Bound of the deciding comparison."""
        return None if self.deciding is None else self.deciding.bound

    @property
    def sense(self) -> str:
        """ "<=", ">=" or "=="."""
        return "" if self.deciding is None else self.deciding.sense

    @property
    def error(self) -> float | None:
        """Numerical error of the deciding comparison."""
        return None if self.deciding is None else self.deciding.error

    @property
    def surprising(self) -> bool:
        """Whether the status differs from the expected one."""
        return self.expected is not None and self.status is not self.expected

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; :func:`from_dict` reads them back."""
        return {
            "id": self.id,
            "paper": self.paper,
            "statement": self.statement,
            "form": self.form,
            "part": self.part,
            "status": self.status.name,
            "expected": None if self.expected is None else self.expected.name,
            "comparisons": [c.to_dict() for c in self.comparisons],
            "hypotheses": [
                {"name": h.name, "state": h.state, "detail": h.detail} for h in self.hypotheses
            ],
            "note": self.note,
            "reason": self.reason,
            "settings": dict(self.settings),
        }

    def line(self) -> str:
        """One line of text: status, id, the deciding numbers."""
        c = self.deciding
        failed = [h.name for h in self.hypotheses if h.ok is False]
        if self.status is Status.OUT_OF_SCOPE:
            rest = f"not so here: {', '.join(failed)}" if failed else self.note
        elif c is None:
            rest = self.note or "; ".join(h.detail or h.name for h in self.hypotheses)
        else:
            rest = f"{c.what + ': ' if c.what else ''}{c.measured:.6g} {c.sense} {c.bound:.6g}"
        unchecked = [h.name for h in self.hypotheses if h.ok is None]
        if self.status is Status.FAILS and unchecked:
            rest += f"  (unchecked: {'; '.join(unchecked)})"
        mark = f"  [expected {self.expected.name}]" if self.surprising and self.expected else ""
        return f"{self.status.name:<12}  {self.label:<22}  {rest}{mark}"

    def text(self) -> str:
        """The line, and below it what numbers do not say: details of what is not so, the note
        unless the claim holds, the reason of what is expected."""
        line = self.line()
        told = [h.detail for h in self.hypotheses if h.ok is False]
        told += [self.note] if self.status is not Status.HOLDS and self.note not in line else []
        told += [f"remark: {self.reason}"] if self.reason else []
        return "\n    ".join([line, *filter(None, told)])


def from_dict(data: Mapping[str, Any]) -> Verdict:
    """The verdict :meth:`Verdict.to_dict` wrote."""
    known = {"ok": True, "failed": False, "unchecked": None}
    return Verdict(
        id=data["id"],
        paper=data["paper"],
        statement=data["statement"],
        form=data["form"],
        status=Status[data["status"]],
        comparisons=tuple(
            Comparison(
                _number(c["measured"]), _number(c["bound"]), c["sense"], _number(c["error"]),
                c["what"], _number(c["tolerance"]),
            )
            for c in data["comparisons"]
        ),
        hypotheses=tuple(
            Hypothesis(h["name"], known[h["state"]], h["detail"]) for h in data["hypotheses"]
        ),
        expected=None if data["expected"] is None else Status[data["expected"]],
        note=data["note"],
        settings=data["settings"],
        part=data.get("part", ""),
        reason=data.get("reason", ""),
    )  # fmt: skip


def _plain(value: float) -> float | str | None:
    """A number JSON can hold; "inf" and null for what it cannot."""
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else str(value)


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def decide(comparisons: Sequence[Comparison], hypotheses: Sequence[Hypothesis]) -> Status:
    """Status of a claim: a failed hypothesis first, then the worst comparison.

    An assumption is a claim without comparisons, decided by its hypotheses alone; where nothing
    was looked at, nothing is decided.
    """
    if any(h.ok is False for h in hypotheses):
        return Status.OUT_OF_SCOPE
    if not comparisons and not any(h.ok for h in hypotheses):
        return Status.UNDECIDED
    found = {c.status for c in comparisons}
    for status in (Status.FAILS, Status.UNDECIDED):
        if status in found:
            return status
    return Status.HOLDS
