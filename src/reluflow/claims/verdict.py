"""What a check says: a measured value against a bound, and what it rests on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, SupportsFloat

from reluflow._views import MAKERS
from reluflow.runtime.plain import to_plain
from reluflow.runtime.words import plural

# fields of a Verdict and of a Comparison that are plain text and plain numbers
WORDS = ("id", "paper", "statement", "form", "part", "note", "reason", "printed", "meant", "quoted")
NUMBERS = ("measured", "bound", "tolerance", "error")
STATES = {True: "ok", False: "failed", None: "unchecked"}  # of a hypothesis


class Status(Enum):
    """Outcome of a check; the value is the sentence to print."""

    HOLDS = "The bound is met by at least the numerical error."
    FAILS = "The bound is missed by more than the numerical error."
    UNDECIDED = "The numerical error covers the margin: try a smaller rtol or a larger sample."
    OUT_OF_SCOPE = "A hypothesis of the statement does not hold here."
    MET = "An assumption, met by these data; nothing is compared with a bound."
    ILLUSTRATED = "Beyond what a computation can decide: seen on the instances named."


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
        numbers = {name: to_plain(getattr(self, name)) for name in NUMBERS}
        return {"what": self.what, "sense": self.sense, **numbers, "status": self.status.name}


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
    """One assumption of a statement.

    Attributes
    ----------
    name : str
    ok : bool or None
        None where it cannot be checked.
    detail : str
        The numbers that decide.
    """

    name: str
    ok: bool | None
    detail: str = ""

    def __post_init__(self) -> None:
        # a NumPy boolean is neither True nor False by identity, by which verdicts are decided
        object.__setattr__(self, "ok", None if self.ok is None else bool(self.ok))

    @property
    def state(self) -> str:
        """ "ok", "failed" or "unchecked"."""
        return STATES[self.ok]


class Verdicts(list["Verdict"]):
    """Verdicts in the order of the ledger; a list that notebooks show as a table."""

    def _repr_html_(self) -> str:
        return str(MAKERS["html"]()(self))


@dataclass(frozen=True)
class Verdict:
    """What one check of one claim found.

    Attributes
    ----------
    id, paper, statement
        The claim, and what it says in our words.
    form : {"stated", "slip", "printed", "repaired", "control"}
        Which wording was checked, as :data:`reluflow.claims.claim.FORMS` says.
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
    printed, meant : str
        Of a slip: the formula in print, and the one that its context shows to be meant.
    quoted : str
        Of a wording that fails as printed: its printed hypotheses, all of which are met here.
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
    printed: str = ""
    meant: str = ""
    quoted: str = ""

    @property
    def label(self) -> str:
        """The id, with the form and the part where they tell checks of it apart."""
        which = [name for name in (self.form, self.part) if name not in ("", "stated")]
        return f"{self.id} ({', '.join(which)})" if which else self.id

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
            **{name: getattr(self, name) for name in WORDS},
            "status": self.status.name,
            "expected": None if self.expected is None else self.expected.name,
            "comparisons": [c.to_dict() for c in self.comparisons],
            "hypotheses": [
                {"name": h.name, "state": h.state, "detail": h.detail} for h in self.hypotheses
            ],
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
        mark = f"  [expected {self.expected.name}]" if self.surprising and self.expected else ""
        return f"{self.status.name:<12}  {self.label:<22}  {rest}{mark}"

    def text(self) -> str:
        """The line, and below it what numbers do not say.

        That is the printed and the meant formula of a slip, the hypotheses of a statement that
        fails, details of what is not so, the note unless the claim holds, and the reason of what
        is expected.
        """
        line = self.line()
        more = self.wording()
        if self.status is Status.FAILS:
            more += [
                f"met here: {h.name}" + (f" ({h.detail})" if h.detail else "")
                for h in self.hypotheses
                if h.ok
            ]
        more += [h.detail for h in self.hypotheses if h.ok is False]
        more += [self.note] if self.status is not Status.HOLDS and self.note not in line else []
        more += [f"remark: {self.reason}"] if self.reason else []
        return "\n    ".join([line, *filter(None, more)])

    def wording(self) -> list[str]:
        """What is printed and meant where the two differ; what is supposed where that fails."""
        lines = [f"printed: {self.printed}", f"meant: {self.meant}"] if self.printed else []
        if self.quoted and self.status is Status.FAILS:
            lines.append(f"hypotheses as printed: {self.quoted}")
        return lines


def from_dict(data: Mapping[str, Any]) -> Verdict:
    """The verdict :meth:`Verdict.to_dict` wrote."""
    states = {state: ok for ok, state in STATES.items()}
    comparisons = tuple(
        Comparison(sense=c["sense"], what=c["what"], **{name: _number(c[name]) for name in NUMBERS})
        for c in data["comparisons"]
    )
    hypotheses = tuple(
        Hypothesis(h["name"], states[h["state"]], h["detail"]) for h in data["hypotheses"]
    )
    return Verdict(
        **{name: data.get(name, "") for name in WORDS},
        status=Status[data["status"]],
        comparisons=comparisons,
        hypotheses=hypotheses,
        expected=None if data["expected"] is None else Status[data["expected"]],
        settings=data["settings"],
    )


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def decide(comparisons: Sequence[Comparison], hypotheses: Sequence[Hypothesis]) -> Status:
    """Status of a claim: a failed hypothesis first, then the worst comparison.

    An assumption is a claim without comparisons: its hypotheses alone say whether it is MET, and
    where nothing was looked at, nothing is decided. A missed bound refutes a statement only if
    every hypothesis of it is known to be met; with one unchecked it is UNDECIDED.
    """
    if any(h.ok is False for h in hypotheses):
        return Status.OUT_OF_SCOPE
    if not comparisons:
        return Status.MET if any(h.ok for h in hypotheses) else Status.UNDECIDED
    found = {c.status for c in comparisons}
    if Status.FAILS in found and not any(h.ok is None for h in hypotheses):
        return Status.FAILS
    return Status.HOLDS if found == {Status.HOLDS} else Status.UNDECIDED


def count_statuses(verdicts: Sequence[Verdict]) -> str:
    """How many verdicts came out how, assumptions that compare nothing apart from the rest."""
    counts = Counter(v.status for v in verdicts)
    met, seen = counts.pop(Status.MET, 0), counts.pop(Status.ILLUSTRATED, 0)
    tested = counts.total()
    parts = [f"{n} {status.name.replace('_', ' ').lower()}" for status, n in counts.most_common()]
    sentences = {
        f"{tested} {plural(tested, 'verdict')}: {', '.join(parts)}.": tested,
        f"{met} {plural(met, 'assumption is', 'assumptions are')} met.": met,
        f"{seen} {plural(seen, 'is', 'are')} illustrated only.": seen,
    }
    return " ".join(sentence for sentence, number in sentences.items() if number)
