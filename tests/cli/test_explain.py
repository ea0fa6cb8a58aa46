"""explain: verdicts on data with known answers, files, resuming."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reluflow import Problem, Trajectory, check_certificate, datasets, extremal_vectors, initialize
from reluflow.claims.compare import compare
from reluflow.errors import ReluflowError
from reluflow.explanation.explain import explain
from reluflow.explanation.simulate import Spaced
from reluflow.explanation.verdict.course import jumps
from reluflow.explanation.verdict.words import feature_names, features_read, loss_number, samples
from reluflow.landscape.alignment import G
from reluflow.landscape.estimate import estimated_directions
from reluflow.runtime.words import count, join


@pytest.fixture(scope="module")
def three():
    return explain(datasets.three_points(), progress=False)


def said(found):
    return dict(found.verdict)


def test_three_points_verdict(three):
    found = said(three)
    mse = datasets.three_points().known["limit_mse"]
    assert "behaves as one neuron" in found["In short"]
    assert "least-squares line" in found["In short"]
    assert f"{mse:.6f}" == "0.175043"
    assert "0.175043" in found["In short"]
    assert "not a global minimum" in found["In short"]
    assert "Two neurons would interpolate" in found["Best possible"]
    assert "three neurons, squared norm 11.6276" in found["Best possible"]
    assert "agrees" in found["Jumps"]
    assert three.comparison.agrees
    assert abs(three.comparison.rows[0].difference) < 1e-2
    assert "More width changes nothing" in found["Width"]
    assert three.failed == []


def test_sentences_come_as_they_become_known():
    heard = []
    found = explain(
        datasets.golden(), m=20, progress=False, on_sentence=lambda *part: heard.append(part)
    )
    assert [topic for topic, _ in heard[:3]] == ["Directions", "Jumps", "In short"]
    assert heard[0][1].startswith("At first ")
    assert heard[1][1].startswith("Predicted without training: jump 1 of ")
    assert "simulated" not in heard[1][1]
    by_topic = {topic: [text for name, text in heard if name == topic] for topic, _ in heard}
    assert list(dict(found.verdict)) == list(dict.fromkeys(topic for topic, _ in heard[2:]))
    for topic, text in found.verdict:
        assert text in (by_topic[topic][-1], " ".join(by_topic[topic]))


def test_results_have_one_plain_form(three):
    document = three.to_dict()
    assert json.loads(json.dumps(document)) == document
    assert document["problem"] == three.problem.to_dict()
    assert document["directions"] == three.landscape.to_dict()
    assert document["alignment"] == three.alignment.to_dict()
    assert document["process"] == three.process.to_dict()
    fates = ("growing", "dead", "anti_aligned", "resting", "unresolved")
    assert sum(document["alignment"][name] for name in fates) == document["alignment"]["neurons"]
    assert sum(document["alignment"]["to"].values()) == document["alignment"]["growing"]


def test_small_interpolator_fits(three):
    problem = three.problem
    assert three.small.m == 2
    np.testing.assert_allclose(problem.outputs(three.small), problem.y, atol=1e-3)


def test_comparison_notices_a_wrong_run(three):
    late = three.run.flow_times * 1.5
    scale = float(three.net.log_norms.max())
    assert not compare(three.process, three.run, late, scale, three.loss).agrees
    assert not compare(three.process, three.run, three.run.flow_times, scale, 0.3).ends_meet


def test_comparison_notices_that_other_neurons_jumped(three):
    scale = float(three.net.log_norms.max())
    times = three.run.flow_times
    assert three.comparison.who is True
    assert three.comparison.rows[0].held > 0.999
    order = np.argsort(three.net.m - np.arange(three.net.m))  # the same networks, neurons renamed
    swapped = [net.subset(order) for net in three.run.networks]
    other = compare(three.process, replace(three.run, networks=swapped), times, scale, three.loss)
    assert other.ends_meet
    assert other.who is False
    assert not other.agrees


def test_without_sizes_who_jumps_is_left_open(three):
    blind = replace(three.run, networks=None)
    scale = float(three.net.log_norms.max())
    found = compare(three.process, blind, three.run.flow_times, scale, three.loss)
    assert found.who is None
    assert found.agrees


def test_files_are_whole_and_the_same_again(three, tmp_path):
    three.write(tmp_path)
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names == ["certificates", "report.html", "report.json", "run.nc"]
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.suffix in (".html", ".json")}
    again = explain(datasets.three_points(), out=tmp_path, progress=False)
    assert {n: (tmp_path / n).read_bytes() for n in before} == before
    assert again.run.settings["explain"] == three.run.settings["explain"]
    kinds = {p.stem for p in (tmp_path / "certificates").iterdir()}
    assert kinds == {"stationary", "spurious-minimum", "not-global", "min-norm"}
    assert all(check_certificate(p).ok for p in (tmp_path / "certificates").iterdir())
    assert Trajectory.load(tmp_path / "run.nc").loss[-1] == pytest.approx(three.loss)


def test_resumed_runs_list_their_costs_in_the_same_order(three):
    names = list(three.to_dict()["run"]["cost"])
    assert names == sorted(names)


def test_page_is_self_contained(three, tmp_path):
    three.write(tmp_path)
    html = (tmp_path / "report.html").read_text()
    assert "prefers-color-scheme" in html
    assert "0.175043" in html
    assert not re.search(r'(?:src|href)="(?!data:|#|\$\{data\})', html)
    scripts = re.findall(
        r"<script[^>]*>", html
    )  # data and player of the replay, none from elsewhere
    assert scripts == [
        '<script type="application/json" id="reluflow-recording">',
        '<script type="module">',
    ]
    data = json.loads((tmp_path / "report.json").read_text())
    assert data["end"]["least_squares"] is True
    assert data["verdict"][0]["topic"] == "In short"


def test_margin_loss_finds_the_largest_margin():
    found = explain(datasets.toy6(), progress=False)
    text = said(found)
    assert "behaves as two neurons and separates all samples" in text["In short"]
    share = 100 * found.margin / found.optimum.margin
    assert share < 100.0
    said_share = float(re.search(r"([\d.]+) % of the largest of any network", text["In short"])[1])
    assert said_share <= share < said_share + 1e-3
    assert f"{said_share}" in text["Best possible"]
    assert "no network" not in text["In short"]
    assert found.margin == pytest.approx(found.optimum.margin, rel=1e-4)
    assert [r.jump for r in found.comparison.rows] == [1, 2]
    assert [r.leading for r in found.comparison.rows] == [False, True]
    assert "Jump 2 is predicted at leading order only" in text["Jumps"]
    assert "the neurons that jump are those predicted" in text["Jumps"]
    assert [g.active for g in found.groups] == [(0, 1, 2, 3), (4, 5)]


def test_orthonormal_data_are_fitted_and_close_jumps_are_not_called_failures():
    found = explain(datasets.golden(), progress=False)
    text = said(found)
    assert "fits every label" in text["In short"]
    assert "global minimum" in text["Best possible"]
    assert found.comparison.fragile
    assert "need not show" in text["Jumps"]


def test_columns_of_a_file_are_named_and_noise_is_ignored(tmp_path):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 3))
    y = 1.5 * np.maximum(A[:, 0], 0.0) - np.maximum(-A[:, 1], 0.0)
    lines = [",".join(map(repr, map(float, (*a, b)))) for a, b in zip(A, y, strict=True)]
    path = tmp_path / "farm.csv"
    path.write_text("rain, sun,noise,yield\n" + "\n".join(lines))
    problem = datasets.load(path)
    assert feature_names(problem) == ["rain", "sun", "noise"]
    text = said(explain(problem, m=60, progress=False))
    assert "rain (+)" in text["Directions"]
    assert "sun (-)" in text["Directions"]
    assert "eature noise hardly moves any neuron" in text["Ignored"]


def test_descent_instead_of_flow(three):
    found = explain(datasets.three_points(), m=50, scale=1e-3, lr=0.05, progress=False)
    assert found.run.settings["method"] == "descend"
    assert found.mse == pytest.approx(three.mse, rel=1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"m": 0}, "at least 1 neuron"),
        ({"scale": 0.0}, "between 0 and 1"),
        ({"scale": 2.0}, "between 0 and 1"),
        ({"lr": -1.0}, "positive step size"),
        ({"steps": 10}, "without lr"),
        ({"image_shape": (28, 28)}, "784 pixels"),
        ({"seconds": 0.0}, "positive"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ReluflowError, match=message):
        explain(datasets.three_points(), progress=False, **options)


@pytest.mark.parametrize(
    ("X", "y", "why", "end"),
    [
        (np.eye(2), [0.0, 0.0], "all labels are 0", "The loss is 0"),
        (np.zeros((2, 2)), [1.0, -2.0], "every sample with a label is 0", "stays at 1.25"),
        (
            [[1.0, 2.0], [1.0, 2.0]],
            [0.5, -0.5],
            "the pulls of the samples cancel",
            "stays at 0.125",
        ),
    ],
)
def test_data_without_pull_teach_nothing(X, y, why, end, tmp_path):
    found = explain(Problem(X, y), 20, out=tmp_path, progress=False)
    told = dict(found.verdict)
    assert "has learnt nothing" in told["In short"]
    assert why in told["In short"]
    assert end in told["End"]
    assert "none of 20 neurons grows" in told["Directions"]
    assert not found.failed
    assert "Nothing moves" in (tmp_path / "report.html").read_text()
    assert json.loads((tmp_path / "report.json").read_text())["process"]["jumps"] == []


def test_rounding_of_a_loss_is_told_as_zero(three):
    assert loss_number(8.2e-33, 0.5) == "0"
    assert loss_number(8.2e-20, 0.5) == "8.2e-20"
    rows = tuple(replace(row, loss=1e-33) for row in three.comparison.rows)
    told = jumps(replace(three, comparison=replace(three.comparison, rows=rows)))
    assert "to loss 0" in told
    assert "e-33" not in told


def test_large_data_are_estimated():
    rng = np.random.default_rng(3)
    X = np.vstack([rng.standard_normal((30, 3)) + 4.0 * e for e in np.eye(3)])
    problem = Problem(X, np.repeat([1.0, -1.0, 2.0], 30))
    net = initialize(problem, 60, 1e-6, rng=0)
    exact, found = extremal_vectors(problem), estimated_directions(problem, net)
    assert not found.exact
    assert (found.basin_fractions.sum(axis=0) <= 1.0 + 1e-12).all()
    np.testing.assert_allclose(found.values, G(problem, found.vectors))
    for sign in (1, -1):
        best = (sign * exact.values).max()
        assert (sign * found.values).max() == pytest.approx(best, rel=1e-3)


@pytest.mark.slow
def test_example_file_with_a_column_of_noise():
    problem = datasets.load(Path(__file__).parents[2] / "examples" / "harvest.csv")
    found = explain(problem, progress=False)
    text = said(found)
    assert "behaves as two neurons" in text["In short"]
    assert "reads rain (+)." in text["Directions"]
    assert "reads sun (-)." in text["Directions"]
    assert "feature noise hardly moves any neuron" in text["Ignored"].lower()
    assert found.comparison.agrees
    assert found.comparison.who is True


@pytest.mark.slow
def test_images_of_many_pixels_end_in_a_verdict(tmp_path):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((800, 400)) / 20.0
    y = np.repeat([1.0, -1.0], 400)
    X[:, :40] += 0.3 * y[:, None]
    problem = Problem(X, y, loss="logistic", name="blobs")
    found = explain(problem, m=32, image_shape=(20, 20), out=tmp_path, progress=False)
    text = said(found)
    assert found.run.status.code == "loss"
    assert "two neurons" in text["In short"]
    assert text["Directions"].startswith("At first ")
    assert "of class +1" in text["Directions"]
    assert "1 % of the first loss" in text["End"]
    assert "Kinks were not located" in text["Horizon"]
    assert not any(line.startswith("alignment") for line in found.missing)
    best = X.T @ y / np.linalg.norm(X.T @ y)
    assert all(abs(best @ g.direction) > 0.9 for g in found.groups)
    assert "as images" in (tmp_path / "report.html").read_text()


def test_words():
    assert count(1, "neuron") == "one neuron"
    assert count(12, "neuron") == "12 neurons"
    assert join(["a", "b", "c"]) == "a, b and c"
    assert samples([0, 1], 2) == "both samples"
    assert samples([0, 1, 2], 3) == "all 3 samples"
    assert samples([1], 3) == "sample 1"
    problem = Problem(np.eye(2), np.ones(2))
    assert features_read(problem, np.array([0.01, -1.0])) == "x1 (-)"


def test_records_are_dense_first_and_geometric_later():
    policy = Spaced(2.0, 10)
    assert policy.after(0.0, False) == 2.0
    assert policy.after(3.0, False) == 4.0
    later = policy.after(100.0, False)
    assert 100.0 < later <= 104.0
    assert policy.after(7.0, True) == 8
