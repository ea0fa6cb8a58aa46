"""The table of mutants fits the code of today, and a few of them are tried."""

import ast

import pytest
import run
from table import KERNELS, ROOT, SOURCE, Mutant, callers, load, rotten

from reluflow.claims.claim import SIZES, load_all

MUTANTS = load()


@pytest.fixture(params=MUTANTS, ids=lambda mutant: mutant.name)
def mutant(request):
    return request.param


def test_it_can_be_applied(mutant):
    assert not rotten(mutant), rotten(mutant)
    assert mutant.old != mutant.new
    text = (SOURCE / mutant.file).read_text(encoding="utf-8")
    changed = text.replace(mutant.old, mutant.new)
    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text)), "nothing but text changes"
    assert mutant.breaks.endswith(".")


def test_its_tests_exist(mutant):
    assert mutant.tests
    for id in mutant.tests:
        path, _, name = id.partition("::")
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert name.partition("[")[0] in names, f"{id} does not exist any more"


def test_its_checks_are_registered(mutant):
    known = load_all()
    for name in mutant.claims:
        assert name in known, f"{name} is no check of the ledger any more"
        assert known[name].runnable, name
    assert mutant.size in SIZES


def test_enough_of_them():
    assert len(MUTANTS) >= 30
    assert sum(bool(mutant.claims) for mutant in MUTANTS) >= 25
    rooms = {mutant.file.split("/")[1] for mutant in MUTANTS}
    wanted = "problem network kernels landscape prediction optimum descent gradientflow trajectory"
    assert rooms >= set(wanted.split())


def test_a_text_that_is_gone_is_told():
    here = Mutant("m", "Nothing.", "reluflow/errors.py", "no such text", "", ())
    assert "does not occur any more in reluflow/errors.py" in rotten(here)
    gone = Mutant("m", "Nothing.", "reluflow/gone.py", "a", "b", ())
    assert "does not exist any more" in rotten(gone)
    often = Mutant("m", "Nothing.", "reluflow/errors.py", "e", "f", ())
    assert "times in reluflow/errors.py, expected once" in rotten(often)


def test_kernels_that_call_a_changed_one_are_compiled_again():
    folder = SOURCE / KERNELS
    assert callers(folder, "codes") > {"codes"}
    reached = callers(folder, "pull")
    assert {"pull", "dense", "planar", "lumped"} <= reached  # planar through dense
    assert "early" not in reached


@pytest.mark.parametrize("said", [None, "assert 1 == 2"])
def test_a_test_that_must_notice_decides(said, monkeypatch, tmp_path, capsys):
    """A silent test makes the whole run fail; without a defect everything must be silent."""
    mutant = Mutant("m", "Something.", "reluflow/errors.py", "class ReluflowError", "class X", ())
    monkeypatch.setattr(run, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(run, "unmutated", lambda mutants: [])
    monkeypatch.setattr(run, "try_mutant", lambda mutant: run.Outcome({"a::b": said}))
    assert run.run([mutant], jobs=1) == (1 if said is None else 0)
    assert ("m (Something.) is not noticed by" in capsys.readouterr().out) == (said is None)
    monkeypatch.setattr(run, "try_mutant", None)  # the stored result is used again
    assert run.run([mutant], jobs=1) == (1 if said is None else 0)
    monkeypatch.setattr(run, "unmutated", lambda mutants: ["a::b: fails"])
    assert run.run([mutant], jobs=1, fresh=True) == 1
    assert "Without any defect, these do not pass" in capsys.readouterr().out


@pytest.mark.slow
def test_some_are_noticed(monkeypatch, tmp_path):
    """Three that need no compiling."""
    monkeypatch.setattr(run, "RESULTS", tmp_path / "results.json")
    some = [mutant for mutant in MUTANTS if mutant.name in ("gaussian-outer", "ties", "ball-law")]
    assert len(some) == 3
    assert run.run(some, jobs=2) == 0


@pytest.mark.slow
def test_a_change_that_breaks_nothing_survives(monkeypatch, tmp_path):
    monkeypatch.setattr(run, "RESULTS", tmp_path / "results.json")
    harmless = Mutant(
        "harmless",
        "Nothing.",
        "reluflow/network/init.py",
        '"gaussian": ("normal"',
        '"gaussian": ("" "normal"',
        ("tests/network/test_init.py::test_independent_laws",),
        ("LLWA21-T4.3/moments",),
    )
    assert run.run([harmless], jobs=1) == 1
