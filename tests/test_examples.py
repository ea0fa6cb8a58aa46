"""The examples: short, made of documented names, and run to their end."""

import ast
import os
import runpy
from pathlib import Path

import matplotlib
import numpy as np
import pytest

from reluflow import Problem

ROOT = Path(__file__).parents[1]
EXAMPLES = (
    "neurons_in_the_plane",
    "flow_beside_pytorch",
    "predicted_jumps",
    "margin_against_svm",
    "sweep_over_scales",
)


def source(name):
    return (ROOT / "examples" / f"{name}.py").read_text()


@pytest.mark.parametrize("name", EXAMPLES)
def test_runs_and_draws(name, tmp_path, monkeypatch, capsys):
    if "torch" in source(name):
        pytest.importorskip("torch.nn", reason="needs torch: pip install 'reluflow[torch]'")
    monkeypatch.chdir(tmp_path)
    before = matplotlib.get_backend()
    matplotlib.use("agg")
    try:
        made = runpy.run_path(str(ROOT / "examples" / f"{name}.py"))
    finally:
        import matplotlib.pyplot as plt

        plt.close("all")
        matplotlib.use(before)
    assert os.path.getsize(tmp_path / f"{name}.png") > 10_000
    if name == "predicted_jumps":
        times = made["process"].jump_times(log_scale=float(made["net"].log_norms.max()))
        run = made["run"]
        for i, t in enumerate(times):
            middle = made["process"].losses[i : i + 2].mean()
            seen = run.times[int((run.loss <= middle).argmax())]
            assert abs(seen - t) <= 0.5 + 0.02 * t  # records are 0.5 apart
    if name == "margin_against_svm":
        reached = made["run"].problem.y * made["run"].final(made["problem"].X)
        assert (reached > 0).all()
        assert made["network"].margin > made["svm"].margin / 4


@pytest.mark.parametrize("name", EXAMPLES)
def test_short_and_made_of_names_that_are_documented(name):
    text = source(name)
    assert len(text.splitlines()) <= 25
    page = (ROOT / "README.md").read_text() + (ROOT / "docs" / "python.md").read_text()
    tree = ast.parse(text)
    used = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module.startswith("reluflow")
        for alias in node.names
    }
    drawn = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "plot"
    }
    assert used
    for word in used | {f"plot.{name}" for name in drawn}:
        assert word in page, f"{word} is in neither README.md nor docs/python.md"


def test_digits_separate_in_an_order_from_both_sizes_of_weights(capsys):
    """The comparison of `digits_classes` on three classes that are far apart."""
    made = runpy.run_path(str(ROOT / "examples" / "digits_classes.py"))
    rng = np.random.default_rng(0)
    centres = np.array([[2.0, 0.0], [-1.0, 1.7], [-1.0, -1.7]])
    labels = np.arange(60) % 3
    problem = Problem(centres[labels] + 0.2 * rng.normal(size=(60, 2)), labels, loss="softmax")
    orders = made["compare"](problem, steps=400, m=20)
    assert set(orders) == {1e-4, 1.0}
    for order in orders.values():
        assert [sorted(pair) for _, *pair in sorted(order, key=lambda row: row[1:])] == [
            [0, 1],
            [0, 2],
            [1, 2],
        ]
    # usual weights need no plateau: every pair is told apart sooner
    assert max(orders[1.0])[0] < min(orders[1e-4])[0]
    said = capsys.readouterr().out
    assert said.count("small neurons grow at rate") >= 1
    assert "from class" in said
