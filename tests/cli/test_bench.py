"""The benchmarks give rows of plain values, and one that cannot run does not stop the others."""

import inspect
import json
import sys

import numpy as np
import pytest

from reluflow import Network, Problem
from reluflow.cli.commands import bench
from reluflow.runtime.plain import json_text
from reluflow.sweeps import Table
from reluflow.torch import has_torch

QUICK = {"lr": 0.1, "steps": 20, "probe": 5, "asked": 1}


def load(name):
    return bench._load(name, bench.available()[name])


def plain(rows):
    """The rows as a reader of --json gets them."""
    assert rows
    back = json.loads(json_text(rows))
    assert all(isinstance(row, dict) and "name" in row for row in back)
    return back


@pytest.mark.parametrize("name", bench.available())
def test_every_benchmark_says_that_it_returns_rows(name):
    declared = inspect.signature(load(name).run).return_annotation
    assert declared.startswith("list[")


def test_monitor_without_torch_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    lines = []
    assert bench.run_benchmarks("monitor", lines.append) == {"monitor": []}
    assert len(lines) == 1
    assert "pip install 'reluflow[torch]'" in lines[0]


def test_descend_rows(monkeypatch):
    problem = Problem(np.eye(2), [1.0, 2.0])
    case = {"name": "tiny", "problem": problem, "net": Network(np.eye(2), np.ones(2)), **QUICK}
    module = load("descend")
    monkeypatch.setattr(module, "cases", lambda: [case])
    monkeypatch.setattr(module, "torch_step", lambda problem, net, steps: 1.0)
    (row,) = plain(module.run(lambda line: None))
    assert row["steps"] == 20
    assert row["seconds"] > 0
    assert row.get("ratio") == (20.0 / row["seconds"] if has_torch() else None)


def test_accuracy_and_growth_of_flow():
    module = load("flow")
    (close,) = plain(module.accuracy(lambda line: None))
    assert close["radians"] < close["asked"]
    assert close["log_size"] < 1e-7
    (growth,) = plain(module.scales(lambda line: None))
    assert growth["ratio"] <= growth["asked"]


def test_closed_form_of_one_sample_solves_its_equation():
    times = np.linspace(0.0, 30.0, 200_001)
    p, a = load("flow").one_sample(2.0, 3e-5, 1e-4, times)
    assert p[0] == pytest.approx(3e-5, rel=1e-9)
    assert a[0] == pytest.approx(1e-4, rel=1e-9)
    rest = 2.0 - a * p
    slope = np.gradient(p, times)[1:-1]
    assert np.abs(slope - (a * rest)[1:-1]).max() < 1e-6
    assert np.abs(np.gradient(a, times)[1:-1] - (p * rest)[1:-1]).max() < 1e-6
    assert a[-1] * p[-1] == pytest.approx(2.0)


def test_startup_rows(monkeypatch):
    module = load("startup")
    monkeypatch.setattr(module, "TRIES", 1)
    rows = plain(module.run(lambda line: None))
    assert [row["name"] for row in rows] == ["import reluflow", "import numpy"]
    assert all(row["seconds"] > 0 for row in rows)


def test_sweep_rows(monkeypatch):
    module = load("sweep")
    table = Table(
        None, {"points": 4}, [{"index": i, "status": "ok", "seconds": 1e-3} for i in range(4)]
    )
    monkeypatch.setattr(module, "timed", lambda *arguments: (1.0, table))
    row = module.row(lambda line: None, "tiny", "limit", {}, 4, "serial", 1, 0.5)
    assert plain([row])[0]["overhead_ms"] == pytest.approx(1e3 * (0.5 - 0.004) / 4)


def test_landscape_rows(monkeypatch):
    module = load("landscape")
    monkeypatch.setattr(module, "SIZES", [(9, 4, "one")])
    monkeypatch.setattr(module, "BOUNDS", [(6, 3)])
    rows = plain(module.run(lambda line: None))
    assert [row["name"] for row in rows] == ["extremal vectors"] * 2 + ["max |G|"]
    assert all(row["exact"] for row in rows)


def test_tabular_rows(monkeypatch):
    module = load("tabular")
    frame = module.frames()["iris, 2 classes"]()
    assert frame.shape == (100, 5)
    small = frame.iloc[::10]
    monkeypatch.setattr(module, "frames", lambda: {"few irises": lambda: small})
    monkeypatch.setattr(module, "WIDTH", 4)
    monkeypatch.setattr(module, "STEPS", 10)
    lines = []
    (row,) = plain(module.run(lines.append))
    assert (row["rows"], row["features"]) == (10, 5)
    assert row["whole"]
    assert row["jumps"] >= 1
    assert lines[-1].startswith("few irises")
    if has_torch():
        assert row["torch_steps"] == 10
        assert not row["torch_reached"]
        assert "not reached in 10 steps" in lines[-1]


@pytest.mark.skipif(not has_torch(), reason="needs PyTorch")
def test_the_loop_of_tabular_ends_at_the_loss_asked_for():
    problem = Problem(np.eye(2), [1.0, 1.0])
    net = Network(0.5 * np.eye(2), 0.5 * np.ones(2))
    done = load("tabular").torch_loop(problem, net, 0.1)
    assert done["torch_reached"]
    assert done["torch_loss"] <= 0.1
    W, a = net.weights()
    steps = 0
    while problem.value(problem.outputs(Network(W, a))) > 0.1:  # the same descent in NumPy
        H = problem.X @ W.T
        r = (np.maximum(H, 0.0) @ a - problem.y) / 2.0
        W, a = (
            W - 0.05 * (np.where(H > 0.0, r[:, None] * a, 0.0).T @ problem.X),
            a - 0.05 * (np.maximum(H, 0.0).T @ r),
        )
        steps += 1
    assert done["torch_steps"] == steps
