"""The ledger: every statement of the five papers, and what checks it."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from reluflow.checks import check_arguments
from reluflow.claims.verdict import Status
from reluflow.errors import ReluflowError

if TYPE_CHECKING:
    from reluflow.claims.claim import Check

PAPERS = ("BF24", "TLB26", "MMV24", "LLWA21", "TK24")
NOT_YET = "not yet"
# what the ledger expects of a claim -> status of the forms "stated" and "printed"
EXPECTED = {
    "holds": Status.HOLDS,
    "fails-as-printed": Status.FAILS,
    "out-of-scope-in-practice": Status.OUT_OF_SCOPE,
    "explored": Status.HOLDS,
    "qualitative": Status.HOLDS,
    "needs-gpu": Status.HOLDS,
    "no-check": Status.ILLUSTRATED,
}
AS_PRINTED = "this clause fails as printed; the repaired form holds"


@dataclass(frozen=True)
class Entry:
    """One claim: what it says, what is known to come out, and its checks.

    Attributes
    ----------
    id, paper, kind : str
        Such as "BF24-L1", "BF24", "lemma".
    statement : str
        What it says, in our words.
    expected : str
        What is known to come out.
    hypotheses : str
        Those printed with a clause that does not hold as printed, in full.
    repaired : str
        The form that holds where a printed clause does not.
    slip : str
        What is printed otherwise than meant, beside a statement that holds.
    numbers : str
        Anchors for tests.
    correction : str
        Remarks on the numbers or on the expected outcome.
    checks : tuple of Check
    """

    id: str
    paper: str
    kind: str
    statement: str
    expected: str
    hypotheses: str
    repaired: str
    slip: str
    numbers: str
    correction: str
    checks: tuple[Check, ...] = ()

    def expected_status(self, form: str) -> Status:
        """Status that the given form should have."""
        return EXPECTED[self.expected] if form in ("stated", "printed") else Status.HOLDS

    def status_of(self, check: Check) -> Status:
        """Status that one of its checks should have."""
        status = check.expected or self.expected_status(check.form)
        return Status.MET if status is Status.HOLDS and not check.compares else status

    def reason_of(self, check: Check) -> str:
        """The check's own reason, otherwise what the row says of a status that is not good news."""
        if check.reason or self.status_of(check) in (Status.HOLDS, Status.MET):
            return check.reason
        lead = AS_PRINTED if check.form == "printed" and self.repaired else ""
        return "; ".join(filter(None, (lead, self.correction)))

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
            **{column: getattr(self, column) for column in COLUMNS},
            "module": self.module,
            "checks": [check.name for check in self.checks],
            "statuses": {check.name: self.status_of(check).name for check in self.checks},
            "reasons": {
                check.name: reason for check in self.checks if (reason := self.reason_of(check))
            },
            "sizes": list(self.sizes),
        }


COLUMNS = tuple(field.name for field in fields(Entry) if field.name != "checks")  # of claims.csv


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
    """The row of one id, or a sentence with what there is; case does not matter."""
    known = {row.id.lower(): row for row in rows().values()}
    if id.lower() in known:
        return known[id.lower()]
    close = difflib.get_close_matches(id.lower(), known, n=1)
    hint = f"did you mean {known[close[0]].id}?" if close else "such as BF24-L1"
    raise ReluflowError(
        f"unknown paper or claim {id!r}: expected one of the papers {', '.join(PAPERS)}, or the "
        f"id of a claim ({hint})"
    )


@check_arguments
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
    from reluflow.claims.claim import load_all

    if which is not None and not isinstance(which, str):
        raise ReluflowError(
            f"a ledger is that of a paper or an id, such as 'BF24' or 'BF24-L1', got {which!r}"
        )
    by_id: dict[str, list[Check]] = {}
    for check in load_all().values():
        by_id.setdefault(check.id, []).append(check)
    wanted = list(rows().values())
    if which is not None:
        name = which.lower()
        wanted = [row for row in wanted if row.paper.lower() == name] or [entry(which)]
    return [replace(row, checks=tuple(by_id.get(row.id, ()))) for row in wanted]
