"""Tables with three and more classes: read, explained and predicted."""

import json
from dataclasses import replace

import numpy as np
import pytest

from reluflow import Problem, ReluflowError, explain
from reluflow.explanation.multioutput.words import jumps_in_words
from reluflow.problem.tables import unseen_scores


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    rows, kinds = ["long,wide,kind"], ["fig", "kiwi", "pear"]
    for k in range(24):
        x = rng.normal(size=2) * 0.3 + 2.0 * np.array([[1, 0], [-0.5, 0.9], [-0.5, -0.9]])[k % 3]
        rows.append(f"{x[0]:.4f},{x[1]:.4f},{kinds[k % 3]}")
    path = tmp_path / "fruit.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def test_three_classes_of_text_have_three_outputs(table):
    problem = Problem.from_table(table)
    assert (problem.K, problem.loss.name) == (3, "softmax")
    assert problem.classes == ("fig", "kiwi", "pear")
    assert problem.labels[:4].tolist() == [0, 1, 2, 0]
    assert (
        "three classes (fig, kiwi and pear), so the loss is softmax"
        in problem.known["notes"].sentences[0]
    )
    assert Problem.from_table(table, one_vs_rest="fig").several is False
    assert Problem.from_table(table, classes="fig,pear").n == 16
    with pytest.raises(ReluflowError, match="this loss is for one output"):
        Problem.from_table(table, loss="logistic")


def test_numbers_are_classes_for_softmax_and_rows_are_held_out_of_each(tmp_path):
    path = tmp_path / "digits.csv"
    path.write_text("a,b,y\n" + "".join(f"{k},{k % 5},{10 * (k % 3)}\n" for k in range(30)))
    problem = Problem.from_table(path, loss="softmax", holdout=0.2, standardize=True)
    assert problem.classes == ("0", "10", "20")
    unseen = problem.known["unseen"]
    assert unseen.y.shape == (6, 3)
    assert unseen.y.sum(axis=0).tolist() == [2, 2, 2]
    from reluflow import initialize

    net = initialize(problem, 4, scale=1.0, rng=0)
    right = np.mean(unseen.outputs(net).argmax(axis=1) == unseen.labels)
    assert unseen_scores(problem, net).accuracy == right


def test_explanation_of_three_classes(table, tmp_path):
    problem = Problem.from_table(table)
    heard = []
    found = explain(
        problem,
        m=20,
        scale=1e-3,
        out=tmp_path / "out",
        on_sentence=lambda *s: heard.append(s),
        progress=False,
    )
    topics = dict(found.verdict)
    assert found.accuracy == 1.0
    assert "first tells" in topics["In short"]
    assert "tells" in topics["Directions"]
    assert "Predicted without training" in topics["Jumps"]
    assert [topic for topic, _ in heard] == list(topics)
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["problem"]["classes"] == ["fig", "kiwi", "pear"]
    assert sum(map(sum, report["end"]["confusion"])) == 24
    order = [row["time"] for row in report["separations"]]
    assert order == sorted(order)
    assert "fig" in (tmp_path / "out" / "report.html").read_text()
    row = found.comparison.rows[0]
    assert row.simulated == pytest.approx(row.predicted, rel=0.1)
    assert "seen at" in topics["Jumps"]
    late = found.kkt
    assert np.exp(late.log_q_min) > 5.0
    assert late.residual < 0.2
    assert late.margin <= found.optimum.upper_bound
    assert found.optimum.margin <= found.optimum.upper_bound
    assert sum(g.share for g in found.groups) == pytest.approx(1.0)
    assert [sum(map(sum, moment["confusion"])) for moment in report["course"]] == [24] * len(
        report["course"]
    )
    assert report["optimum"]["upper_bound"] == found.optimum.upper_bound
    assert not (tmp_path / "out" / ".explain").exists()  # every file came whole


def test_explanation_of_outputs_that_are_numbers():
    rng = np.random.default_rng(1)
    problem = Problem(rng.normal(size=(8, 2)), rng.normal(size=(8, 2)))
    found = explain(problem, m=8, scale=1e-3, progress=False)
    assert "of the variation of output" in dict(found.verdict)["In short"]
    assert found.run["errors"].shape[1] == 2
    # a jump at another time than predicted is told with the doubt that the limit names
    assert "Why times may differ" not in jumps_in_words(replace(found, comparison=None))
    rows = found.comparison.rows
    late = replace(rows[0], simulated=2.0 * rows[0].predicted, doubt="weights grow for ever")
    other = replace(found, comparison=replace(found.comparison, rows=(late, *rows[1:])))
    assert "Why times may differ from this scale: jump 1 (weights grow for ever)" in jumps_in_words(
        other
    )


def test_simulate_draws_three_classes_and_refuses_to_animate_them(cli, table, tmp_path):
    run = ("simulate", table, "--m", 5, "--t-end", 1, "-o", "run.nc")
    done = cli(*run, "--pictures", "pictures")
    assert done.code == 0, done.err
    assert [path.name for path in (tmp_path / "pictures").iterdir()] == ["curves.png"]
    done = cli("simulate", table, "--m", 5, "--t-end", 1, "-o", "b.nc", "--animation", "a.gif")
    assert done.code == 2
    assert done.err.startswith("reluflow: an animation is for one output, this problem has 3")
    assert not (tmp_path / "b.nc").exists()  # said before the run, not after it
