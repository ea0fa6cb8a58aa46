"""Every claim has an entry, every entry is a claim, and forms agree with what is expected."""

import ast
import csv
from dataclasses import replace
from pathlib import Path

import pytest

import reluflow.claims as room
from reluflow import ReluflowError
from reluflow.claims import Status, ledger
from reluflow.claims.claim import load_all
from reluflow.claims.ledger import EXPECTED, NOT_YET, PAPERS, rows

FOLDER = Path(room.__file__).parent


def test_the_table_is_whole():
    with open(FOLDER / "claims.csv", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    ids = [row["id"] for row in table]
    assert len(ids) == len(set(ids)) == 248
    for row in table:
        assert row["id"].startswith(row["paper"] + "-")
        assert row["paper"] in PAPERS
        assert row["statement"]
        assert row["expected"] in EXPECTED
        assert bool(row["repaired"]) == (row["expected"] == "fails-as-printed"), row["id"]


@pytest.mark.parametrize("paper", PAPERS)
def test_what_fails_as_printed_has_its_printed_hypotheses(paper):
    """A counterexample refutes nothing unless it meets what was supposed."""
    for row in rows().values():
        if row.paper == paper:
            assert bool(row.hypotheses) == (row.expected == "fails-as-printed"), row.id
            assert not (row.slip and row.expected == "fails-as-printed"), row.id


def test_every_entry_is_in_the_ledger_and_every_check_has_an_entry():
    entries = ledger()
    assert [entry.id for entry in entries] == list(rows())
    known = {entry.id for entry in entries}
    for check in load_all().values():
        assert check.id in known, f"{check.name} of {check.module} is not in claims.csv"
    for entry in entries:
        assert (entry.module == NOT_YET) == (not entry.checks)


def test_every_module_of_a_paper_is_listed_in_its_package():
    """What registers claims or figures is imported by name, none by being in a folder."""
    for paper in PAPERS:
        for kind in ("claims", "figures"):
            folder = FOLDER.parent / "papers" / paper.lower() / kind
            there = {path.stem for path in folder.glob("*.py")} - {"__init__"}
            listed = ast.parse((folder / "__init__.py").read_text())
            names = {
                alias.name
                for node in listed.body
                if isinstance(node, ast.ImportFrom)
                for alias in node.names
            }
            assert there == names, folder


@pytest.mark.parametrize("paper", PAPERS)
def test_forms_agree_with_the_rows(paper):
    """What fails has a printed and a repaired form, a slip stands beside a statement that holds."""
    for entry in ledger(paper):
        forms = {check.form for check in entry.checks} - {"control"}
        if entry.expected == "fails-as-printed":
            assert {"printed", "repaired"} <= forms <= {"stated", "printed", "repaired"}, entry.id
        else:
            assert forms <= {"stated", "slip"}, entry.id
            assert ("slip" in forms) == bool(entry.slip), entry.id
            assert "stated" in forms, entry.id
        for check in entry.checks:
            if check.expected is not None:
                assert check.reason, f"{check.name} expects another status without a reason"


def test_a_status_other_than_holds_has_its_reason():
    """On the check itself or in its row; what fails as printed has its repaired form."""
    others = 0
    for entry in ledger():
        for check in entry.checks:
            if entry.status_of(check) in (Status.HOLDS, Status.MET):
                continue
            others += 1
            assert entry.reason_of(check), check.name
    assert others > 20
    told = {entry.id: entry.to_dict() for entry in ledger("TLB26")}
    assert told["TLB26-C1"]["statuses"] == {"TLB26-C1": "OUT_OF_SCOPE"}
    assert "union bound" in told["TLB26-C1"]["reasons"]["TLB26-C1"]
    assert told["TLB26-A1"]["reasons"] == {}


def test_reasons_come_from_the_check_or_from_the_row():
    (row,) = ledger("BF24-T1")
    reasons = row.to_dict()["reasons"]
    assert "Eq. 37" in reasons["BF24-T1/repaired/ii-practical"]
    assert "how lambda* is read" in reasons["BF24-T1/printed/ii"]  # its own, both readings
    assert "BF24-T1/repaired/i" not in reasons  # it holds: nothing to explain
    (other,) = ledger("BF24-T4")
    reason = other.to_dict()["reasons"]["BF24-T4/printed"]
    assert reason.startswith("this clause fails as printed; the repaired form holds; ")
    assert reason.endswith(other.correction)


def test_selection():
    assert {entry.paper for entry in ledger("tlb26")} == {"TLB26"}
    (one,) = ledger("BF24-t2")
    assert {"BF24-T2/repaired", "BF24-T2/printed"} <= set(one.to_dict()["checks"])
    assert one.sizes == ("quick", "full")
    (dominoes,) = ledger("TK24-F4")
    assert dominoes.sizes == ("quick", "scaled", "full")
    assert replace(one, checks=()).sizes == ()
    with pytest.raises(ReluflowError, match="unknown paper or claim 'BF25'"):
        ledger("BF25")
    with pytest.raises(ReluflowError, match="did you mean BF24-L22"):
        ledger("BF24-L122")
