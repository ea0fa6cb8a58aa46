"""Tables with three and more classes: read, explained and predicted."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from reluflow import Problem, ReluflowError, datasets, explain
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
    assert {v.status.name for v in found.claims} == {"HOLDS"}  # balancedness along the flow
    assert "claims" not in found.skipped


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


def test_numbers_as_names_of_classes_are_called_classes():
    from reluflow.explanation.multioutput.words import spoken, told_apart

    digits, fruit = tuple("0123456789"), ("fig", "kiwi", "pear")
    assert spoken(digits, [4]) == "class 4"
    assert spoken(digits, [4, 6]) == "classes 4 and 6"
    assert spoken(fruit, [0, 2]) == "fig and pear"
    b = np.full(10, -0.2)
    b[[4, 6]] = 1.0
    assert told_apart(digits, b) == "tells classes 4 and 6 from the rest"
    assert told_apart(digits, -b, several=True) == "tell classes 4 and 6 from the rest"
    assert told_apart(fruit, np.array([1.0, -1.0, 0.1])) == "tells fig from kiwi"
    outputs = ("output 0", "output 1")
    assert told_apart(outputs, np.array([1.0, 0.1]), rest=False) == "raises output 0"
    assert told_apart(outputs, np.array([0.1, -1.0]), rest=False) == "lowers output 1"


@pytest.fixture
def numbered():
    """Four clouds, called by numbers."""
    rng = np.random.default_rng(3)
    labels = np.arange(24) % 4
    centres = np.array([[2.0, 0.0], [0.0, 2.0], [-2.0, 0.0], [0.0, -2.0]])
    X = centres[labels] + 1.2 * rng.normal(size=(24, 2))
    return Problem(X, labels, loss="softmax")


def test_verdict_on_classes_that_are_numbers(numbered, tmp_path):
    found = explain(numbered, m=12, scale=1e-3, out=tmp_path, seconds=8, progress=False)
    text = " ".join(text for _, text in found.verdict)
    assert re.search(r"first tells class \d from class \d", text)
    assert not re.search(r"\d+ of \d+ \d", text)  # "90 of 180 9 are taken for 3"
    assert found.accuracy < 1.0  # the clouds overlap
    assert re.search(r"\d+ of \d+ samples of class \d are taken for class \d", text)
    wrong = round(24 * (1.0 - found.accuracy))
    assert "so that there is no margin" in text
    assert "late phase" not in found.skipped  # there is none, which is no omission
    assert found.kkt is None
    page = (tmp_path / "report.html").read_text()
    assert "When two classes are told apart" in page
    assert wrong == np.sum(found.outputs.argmax(axis=1) != numbered.labels)


def test_reports_of_one_output_and_of_several_open_alike(numbered):
    from reluflow.explanation.files import common_fields

    several = explain(numbered, m=6, scale=1e-3, seconds=8, progress=False)
    one = explain(datasets.three_points(), m=6, scale=1e-3, progress=False)
    head = list(common_fields(one))
    for found in (one, several):
        assert list(found.to_dict())[: len(head)] == head
        assert {"cost", "status", "code", "ok"} == set(found.to_dict()["run"])


def test_large_data_have_an_answer_from_every_stage(numbered, monkeypatch):
    """Directions estimated, a descent in batches, bounds alone: said, and right as far as said."""
    from reluflow.explanation.multioutput import stages

    for name, size in {"ENTRIES": 10, "WORK": 1e4, "BATCH": 8, "LOCATED": 0, "MARGINS": 0}.items():
        monkeypatch.setattr(stages, name, size)
    found = explain(numbered, m=12, scale=1e-2, seconds=8, progress=False)
    text = dict(found.verdict)
    assert "this is descent" in found.skipped["claims"]
    assert "(estimated)" in text["Directions"]
    assert "on random batches of 8 of the 24 samples" in text["Simulation"]
    assert "No network has a normalised margin above" in text["End"]
    assert "optimum" not in found.skipped
    assert found.accuracy > 0.5
    plain = stages.extremal_vectors(numbered)
    assert found.landscape.values[0] == pytest.approx(plain.values[0], rel=0.01)


def test_a_jump_that_was_cut_short_is_said_to_be(numbered):
    """Its loss is where the budget ended, and no plateau."""
    from dataclasses import replace

    from reluflow.explanation.multioutput.words import jumps_in_words

    found = explain(numbered, m=6, scale=1e-3, seconds=8, progress=False)
    levels = len(found.process.losses)
    process = replace(found.process, relaxation=np.ones(levels), residuals=np.zeros(levels))
    last = f"{process.losses[-1]:.4g}"
    words = jumps_in_words(replace(found, process=process))
    assert f"loss {last} after it" in words
    assert "not to its end" not in words
    nearly = replace(process, residuals=np.full(levels, 1e-3))
    assert f"loss about {last} after it" in jumps_in_words(replace(found, process=nearly))
    stopped = np.append(np.ones(levels - 1), np.nan)  # what a phase that was stopped leaves
    cut = replace(found, process=replace(process, relaxation=stopped, ending="budget"))
    said = f"followed to loss {last} within the time for it, not to its end"
    assert said in jumps_in_words(cut)


def test_jumps_at_other_times_are_named_with_a_reason(numbered):
    from dataclasses import replace

    from reluflow.explanation.multioutput.words import jumps_in_words

    found = explain(numbered, m=6, scale=1e-3, seconds=8, progress=False)
    first = found.comparison.rows[0]
    near = replace(first, simulated=1.02 * first.predicted)
    late = replace(first, simulated=2.0 * first.predicted, doubt="the plateau is short")
    for row, said in ((near, False), (late, True)):
        compared = replace(found.comparison, rows=(row, *found.comparison.rows[1:]))
        rows = tuple(replace(r, simulated=r.predicted) for r in compared.rows[1:])
        words = jumps_in_words(replace(found, comparison=replace(compared, rows=(row, *rows))))
        assert (
            "Why times may differ from this scale: jump 1 (the plateau is short)." in words
        ) is said


def test_records_are_dense_within_the_horizon():
    from reluflow.explanation.multioutput.stages import records

    steps = records(480, 6000)
    assert steps[0] == 0
    assert steps[-1] == 6000
    assert max(np.diff([k for k in steps if k <= 480])) == 2
    assert max(np.diff([k for k in steps if k >= 480])) == 92
    assert records(5, 5) == [0, 1, 2, 3, 4, 5]
    assert len(records(900, 1200, all_samples=False)) <= 101


def test_step_of_large_data_is_that_of_small(numbered):
    from reluflow.explanation.multioutput.stages import largest

    top = np.linalg.norm(numbered.X, 2) ** 2
    assert top <= largest(numbered) <= 1.02 * top


@pytest.mark.slow
@pytest.mark.parametrize("name", ["iris", "wine", "digits"])
def test_ordinary_tables_with_classes_are_whole(name, tmp_path):
    """No stage is left out but the theorems, and no fast phase is cut by its budget."""
    from sklearn import datasets as made

    frame = getattr(made, f"load_{name}")(as_frame=True).frame
    frame["target"] = [f"class {label}" for label in frame["target"]]
    found = explain(frame, standardize=True, out=tmp_path, progress=False)
    assert set(found.skipped) == {"claims"}
    assert found.alignment is not None
    assert found.run.status.ok
    assert found.process.n_jumps >= 2
    assert np.isfinite(found.process.losses).all()
    assert not np.isnan(found.process.relaxation).any()  # of phases that were cut
    first = found.comparison.rows[0]
    assert abs(first.difference) < 0.08
    said = dict(found.verdict)["Jumps"]
    assert "not to its end" not in said
    if name == "digits":
        # one neuron for each direction does not part, and has its second jump at 61
        assert found.process.parting.tolist() == [False, True]
        leaves = found.run.loss < found.process.losses[1] - 0.05
        begins = found.run.flow_times[int(np.argmax(leaves))]
        assert begins == pytest.approx(found.comparison.rows[1].predicted, rel=0.05)
        assert "the neurons of a direction that jumped before part" in said
        assert "were not together when they jumped" in said
        assert "Half of the neurons that were followed still turn at time" in said
