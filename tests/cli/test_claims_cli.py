"""claims, certify and reproduce on the command line."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reluflow import datasets, flow, initialize
from reluflow.cli.options import DataOptions


def reluflow(*arguments, cwd=None):
    command = [sys.executable, "-m", "reluflow.cli.main", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A good run, and one whose outer weights were changed on the way."""
    folder = tmp_path_factory.mktemp("runs")
    problem = datasets.toy6()
    run = flow(
        problem, initialize(problem, 10, scale=1e-3, rng=0), t_end=5.0, save=np.linspace(0, 5, 11)
    )
    run.save(folder / "good.nc")
    a = run.networks.a.copy()
    a[4:, 3] *= -1.1
    replace(run, networks=replace(run.networks, a=a)).save(folder / "bad.nc")
    (folder / "garbage.nc").write_bytes(b"not a run")
    (folder / "data.csv").write_text("a,b,y\n1,2,0.5\n2,1,1.5\n")
    return folder


def test_ledger_listed():
    shown = reluflow("claims", "LLWA21")
    assert shown.returncode == 0, shown.stderr
    assert "LLWA21-T4.2" in shown.stdout
    assert "77 claims, 77 with a check." in shown.stdout
    entries = json.loads(reluflow("claims", "BF24-T2", "--json").stdout)
    assert [e["id"] for e in entries] == ["BF24-T2"]
    assert entries[0]["module"] == "reluflow.papers.bf24.claims.line"


def test_claims_run():
    done = reluflow("claims", "BF24-A1", "--run")
    assert done.returncode == 0, done.stderr
    assert "HOLDS         BF24-A1 " in done.stdout
    assert "HOLDS         BF24-A1 (slip)" in done.stdout
    assert "printed: Section 2, before Assumption 1" in done.stdout
    (verdict,) = json.loads(reluflow("claims", "TLB26-P7", "--run", "--json", "--seed", 3).stdout)
    assert verdict["status"] == verdict["expected"] == "HOLDS"
    assert verdict["settings"]["seed"] == 3


@pytest.mark.parametrize("claim", ["MMV24-F13", "TK24-F4"])
def test_a_figure_without_its_data_is_out_of_scope(cli, claim, tmp_path, monkeypatch):
    """As `reproduce` has it: exit 0, and what is needed is said."""
    monkeypatch.setenv("RELUFLOW_DATA", str(tmp_path))
    done = cli("claims", claim, "--run", "--workers", 0)
    assert done.code == 0, done.out
    assert done.out.startswith("OUT_OF_SCOPE  " + claim)
    assert "RELUFLOW_DATA" in done.out or "PyTorch" in done.out
    assert "1 verdict: 1 out of scope. 0 not as expected." in done.err


def test_claims_have_three_sizes(cli):
    done = cli("claims", "BF24-A1", "--run", "--scaled", "--workers", 0, "--json")
    assert {v["settings"]["size"] for v in json.loads(done.out)} == {"scaled"}
    done = cli("claims", "BF24-A1", "--run", "--scaled", "--full")
    assert done.code == 2
    assert "--scaled and --full contradict each other" in done.err


def test_reasons_are_shown(cli):
    done = cli("claims", "TLB26-C1", "--run", "--workers", 0)
    assert done.code == 0
    assert "remark: at usual n the union bound" in done.out
    assert "TLB26-C1 OUT_OF_SCOPE: at usual n the union bound" in cli("claims", "TLB26-C1").out
    assert "remark: not decidable in general" in cli("claims", "LLWA21-A4.6").out


def test_certify_a_run(stored):
    good = reluflow("certify", stored / "good.nc", "--json")
    assert good.returncode == 0, good.stderr
    verdicts = {v["id"]: v["status"] for v in json.loads(good.stdout)}
    assert verdicts["BF24-L1"] == verdicts["MMV24-P46"] == "HOLDS"
    bad = reluflow("certify", stored / "bad.nc", "--claims", "BF24-L1", "--claims", "MMV24-B2")
    assert bad.returncode == 1
    assert "FAILS         BF24-L1" in bad.stdout
    assert "FAILS         MMV24-B2" in bad.stdout
    assert "2 fail" in bad.stdout


def test_certify_data_and_write_certificates(stored, tmp_path):
    done = reluflow("certify", stored / "data.csv")
    assert done.returncode == 0, done.stderr
    assert "do not apply (--all lists them)" in done.stdout
    assert "OUT_OF_SCOPE" not in done.stdout
    assert "OUT_OF_SCOPE" in reluflow("certify", stored / "data.csv", "--all").stdout
    done = reluflow("certify", stored / "good.nc", "--claims", "BF24-L1", "-o", tmp_path / "proofs")
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "proofs").glob("*.json"))


def test_certify_takes_the_options_of_the_problem(cli):
    def verdict(*options):
        done = cli("certify", "xor", "--claims", "TK24-L5.2", "--json", *options)
        assert done.code == 0, done.err
        (found,) = json.loads(done.out)
        return found["status"], {h["name"] for h in found["hypotheses"] if h["state"] == "failed"}

    assert verdict("--with", "radius=0.1")[0] == "HOLDS"
    assert verdict("--leak", "0.1") == ("OUT_OF_SCOPE", {"leak 0"})
    assert verdict("--loss", "square")[0] == "OUT_OF_SCOPE"
    assert verdict("--reduction", "sum")[0] == "OUT_OF_SCOPE"
    Path("points.csv").write_text("x,y\n1,1\n-1,2\n")
    assert DataOptions(bias=2.0).problem("points.csv").X[:, 1].tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("claims", "BF25"), "unknown paper or claim 'BF25'"),
        (("claims", "BF24-L99"), "unknown paper or claim 'BF24-L99'"),
        (("claims", "--seed", "-1"), "Invalid value"),
        (("certify",), "Missing argument"),
        (("certify", "nothing"), "unknown dataset 'nothing'"),
        (("certify", "missing.nc"), "missing.nc"),
        (("certify", "toy6", "--claims", "BF24-L99"), "unknown paper or claim 'BF24-L99'"),
        (
            ("certify", "toy6", "--claims", "foo"),
            "unknown paper or claim 'foo': expected one of the papers BF24",
        ),
        (("certify", "toy6", "--claims", "BF24-L3"), "makes its own experiment"),
        (("certify", "toy6", "-o", "made"), "certificates are about a network"),
        (("reproduce", "BF24", "F2", "--quick", "--full"), "contradict each other"),
        (("reproduce", "BF24", "F2", "--device", "tpu"), "device must be one of cpu, cuda, auto"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(arguments, message, tmp_path):
    done = reluflow(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stdout
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_garbage_is_not_a_run(stored):
    done = reluflow("certify", stored / "garbage.nc")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_reproduce_writes_pictures_and_resumes(tmp_path):
    first = reluflow("reproduce", "BF24", "F2", "--quick", "--json", "-o", "made", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert "BF24 F2: done in" in first.stderr
    made = json.loads(first.stdout)
    (figure,) = made["figures"]
    assert figure["numbers"]["mse"] == pytest.approx(0.175042735)
    assert {v["id"] for v in made["claims"]} == {"BF24-T2", "BF24-L7", "BF24-A3", "BF24-A5"}
    assert (tmp_path / "made" / "bf24-f2.png").exists()
    assert (tmp_path / "made" / "index.html").stat().st_size > 100_000
    again = reluflow("reproduce", "BF24", "F2", "--quick", "-o", "made", cwd=tmp_path)
    assert "BF24 F2: already done" in again.stderr
    assert "HOLDS         BF24-F2" in again.stdout
    assert again.returncode == 0
