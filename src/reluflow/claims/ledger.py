"""The ledger: every statement of the five papers, and what checks it."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from reluflow.claims.verdict import Status
from reluflow.errors import ReluflowError

if TYPE_CHECKING:
    from reluflow.claims.claim import Check

PAPERS = ("BF24", "TLB26", "MMV24", "LLWA21", "TK24")
NOT_YET = "not yet"
COLUMNS = ("id", "paper", "kind", "statement", "expected", "repaired", "numbers", "correction")
# the ledger's word on a claim -> status of the form "stated"
EXPECTED = {
    "holds": Status.HOLDS,
    "fails-as-printed": Status.FAILS,
    "out-of-scope-in-practice": Status.OUT_OF_SCOPE,
    "explored": Status.HOLDS,
    "qualitative": Status.HOLDS,
    "needs-gpu": Status.HOLDS,
}
AS_PRINTED = "fails as printed; the repaired form holds"


@dataclass(frozen=True)
class Entry:
    """One claim: what it says, what is known to come out, and its checks.

    ``repaired`` is the form that holds where the printed one does not; ``numbers`` are anchors for
    tests; ``correction`` says where they or the expected outcome need a word.
    """

    id: str
    paper: str
    kind: str
    statement: str
    expected: str
    repaired: str
    numbers: str
    correction: str
    checks: tuple[Check, ...] = ()

    def expected_status(self, form: str) -> Status:
        """Status that the given form should have."""
        return Status.HOLDS if form == "repaired" else EXPECTED[self.expected]

    def status_of(self, check: Check) -> Status:
        """Status that one of its checks should have."""
        return check.expected or self.expected_status(check.form)

    def reason_of(self, check: Check) -> str:
        """The check's own reason, otherwise what the row says where the status is not HOLDS."""
        if check.reason or self.status_of(check) is Status.HOLDS:
            return check.reason
        slip = AS_PRINTED if check.form == "printed" and self.repaired else ""
        return "; ".join(filter(None, (slip, self.correction)))

    @property
    def module(self) -> str:
        """Modules that check it, or "not yet"."""
        found = dict.fromkeys(check.module for check in self.checks)
        return ", ".join(found) or NOT_YET

    @property
    def sizes(self) -> tuple[str, ...]:
        """Sizes at which it can be run without evidence brought by a user.

        "scaled" only where that is not the full size.
        """
        made = [check.sizes for check in self.checks if check.runnable]
        if not made:
            return ()
        own = any(sizes["scaled"] != sizes["full"] for sizes in made)
        return ("quick", "scaled", "full") if own else ("quick", "full")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "id": self.id,
            "paper": self.paper,
            "kind": self.kind,
            "statement": self.statement,
            "expected": self.expected,
            "repaired": self.repaired,
            "numbers": self.numbers,
            "correction": self.correction,
            "module": self.module,
            "checks": [check.name for check in self.checks],
            "statuses": {check.name: self.status_of(check).name for check in self.checks},
            "reasons": {
                check.name: reason for check in self.checks if (reason := self.reason_of(check))
            },
            "sizes": list(self.sizes),
        }


@cache
def rows() -> Mapping[str, Entry]:
    """The table without its checks, by id."""
    text = files("reluflow.claims").joinpath("claims.csv").read_text(encoding="utf-8")
    entries: dict[str, Entry] = {}
    for row in csv.DictReader(text.splitlines()):
        if row["id"] in entries:
            raise ReluflowError(f"claims.csv lists {row['id']} twice")
        if row["expected"] not in EXPECTED:
            raise ReluflowError(f"claims.csv: {row['id']} expects {row['expected']!r}, unknown")
        fields: dict[str, Any] = {column: row[column] for column in COLUMNS}
        entries[row["id"]] = Entry(**fields)
    return entries


def entry(id: str) -> Entry:
    """The row of one id."""
    if id not in rows():
        close = difflib.get_close_matches(id, rows(), n=1)
        hint = f"did you mean {close[0]!r}?" if close else "`reluflow claims` lists them"
        raise ReluflowError(f"unknown claim {id!r}: {hint}")
    return rows()[id]


def ledger(which: str | None = None) -> list[Entry]:
    """Every claim of the five papers with the checks that exist for it.

    Parameters
    ----------
    which : str, optional
        A paper ("BF24") or an id ("BF24-L1"); all by default. Case does not matter.

    Returns
    -------
    list of Entry

    Examples
    --------
    >>> ledger("bf24-l1")[0].statement
    'Balancedness: a_j^2-|w_j|^2 is constant along the flow'
    """
    from dataclasses import replace

    from reluflow.claims.claim import load_all

    by_id: dict[str, list[Check]] = {}
    for check in load_all().values():
        by_id.setdefault(check.id, []).append(check)
    wanted = [row for row in rows().values() if _matches(row, which)]
    if not wanted:
        assert which is not None
        if "-" in which:
            entry(which)
        raise ReluflowError(
            f"unknown paper or claim {which!r}: expected one of {', '.join(PAPERS)} or an id "
            "such as BF24-L1"
        )
    return [replace(row, checks=tuple(by_id.get(row.id, ()))) for row in wanted]


def _matches(row: Entry, which: str | None) -> bool:
    return which is None or which.lower() in (row.id.lower(), row.paper.lower())
