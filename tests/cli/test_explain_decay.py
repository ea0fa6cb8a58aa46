"""Weight decay through explain, simulate and sweep, and the example that shows it."""

import json
import runpy
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from typer.testing import CliRunner

from reluflow import Trajectory, check_certificate, datasets, explain, ridge, sweep
from reluflow.cli.main import app

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_explain_judges_the_end_by_the_penalised_loss():
    problem = datasets.load("three-points")
    found = explain(problem, m=20, weight_decay=0.1)
    verdict = dict(found.verdict)
    best = ridge(problem, 0.1)
    assert found.penalised.point.kind == "global minimum"
    assert found.penalised.point.value == pytest.approx(best.value, rel=1e-6)
    assert found.process.weight_decay == 0.1
    assert found.run.settings["weight_decay"] == 0.1
    assert "a global minimum of the penalised loss" in verdict["In short"]
    assert "which the end reaches" in verdict["Weight decay"]
    assert "Best possible" not in verdict  # said of the loss alone
    assert found.skipped["claims"] == "it is about training without weight decay"
    (proof,) = found.certificates
    assert (proof.kind, proof.grade) == ("ridge", "PROVED")
    assert proof.arrays["a"].size == 20  # about the end itself
    assert proof.claim["value"] - proof.claim["lower_bound"] < 1e-6 * best.value
    assert "the least penalised loss of any network (to" in verdict["Proofs"]
    assert "KKT conditions of the penalised loss" in verdict["Weight decay"]
    assert found.comparison is not None


@pytest.mark.slow
def test_explain_says_what_one_more_neuron_would_gain(tmp_path):
    data = tmp_path / "four.npz"
    X = np.array([[1.0, 0.2], [1.0, -0.2], [-0.3, 0.4], [-0.3, -0.4]])
    y = np.array([1.0, 1.0, 2.0, -2.0])
    np.savez(data, X=X, y=y)
    out = tmp_path / "out"
    options = ["--m", "2", "--seed", "3", "--weight-decay", "0.05", "-o", str(out), "--json"]
    result = CliRunner().invoke(app, ["explain", str(data), *options])
    assert result.exit_code == 0, result.output
    report = json.loads((out / "report.json").read_text())
    assert "one more neuron would lower the penalised loss by" in str(report["verdict"])
    proofs = {c["kind"]: c["claim"] for c in report["certificates"]}
    below = 100.0 * (1.0 - proofs["ridge"]["value"] / proofs["ridge-not-best"]["value"])
    assert f"{below:.3g} % below that of the end" in str(report["verdict"])
    assert {(c["kind"], c["grade"]) for c in report["certificates"]} == {
        ("ridge", "PROVED"),
        ("ridge-not-best", "PROVED"),
    }
    files = sorted((out / "certificates").iterdir())
    assert [path.name for path in files] == ["ridge-not-best.json", "ridge.json"]
    assert all(check_certificate(path, X=X, y=y).ok for path in files)


def test_bad_decay_is_one_sentence(cli, tmp_path):
    done = cli("explain", "three-points", "--weight-decay", "-1", "-o", tmp_path / "out")
    assert done.code == 2
    assert "weight_decay must be finite and not negative" in done.err


def test_simulate_takes_it_from_the_file(tmp_path):
    config = (ROOT / "examples/three_points_decay.toml").read_text()
    path = tmp_path / "short.toml"
    path.write_text(config.replace("m = 200", "m = 10"))
    out = tmp_path / "run.nc"
    result = CliRunner().invoke(app, ["simulate", str(path), "-o", str(out)])
    assert result.exit_code == 0, result.output
    run = Trajectory.load(out)
    assert run.settings["weight_decay"] == 0.1
    problem = datasets.load("three-points")
    value = run.loss[-1] + 0.05 * run.observables["norm2"][-1]
    assert value == pytest.approx(ridge(problem, 0.1).value, rel=1e-6)


def test_sweep_over_decays():
    fields = {"problem.name": "three-points", "init.m": 6, "init.scale": 0.1}
    grid = {**fields, "clock.t_end": 5.0, "clock.weight_decay": [0.0, 5.0]}
    table = sweep("flow", grid, observe=["norm2"], progress=False)
    rows = sorted(table.rows(), key=lambda row: row["clock.weight_decay"])
    assert rows[1]["norm2"] < 1e-15  # (e^-25 0.1)^2, far above max |G|
    assert rows[0]["norm2"] > 1e-4


@pytest.mark.slow
def test_the_example_runs(monkeypatch, tmp_path, capsys):
    mpl.use("agg")
    picture = tmp_path / "decay.png"
    monkeypatch.setattr("sys.argv", ["weight_decay.py", str(picture)])
    runpy.run_path(str(ROOT / "examples/weight_decay.py"), run_name="__main__")
    assert picture.stat().st_size > 10_000
    said = capsys.readouterr().out
    assert "at decay 0.1 drift ends with [0.8 0. ]" in said
