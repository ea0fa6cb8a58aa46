"""Names of features and labels travel with a problem, whatever the data came in as."""

import pickle

import numpy as np
import pandas as pd
import pytest

from reluflow import Problem, ReluflowError, Trajectory, descend, explain, initialize
from reluflow.problem.given import problem_of

FRAME = pd.DataFrame({"length": [1.0, 2.0, 3.0], "width": [0.5, -1.0, 2.0]})
YIELD = pd.Series([1.0, 2.0, 0.5], name="yield")


def test_frame_and_series_bring_their_names():
    problem = Problem(FRAME, YIELD, bias=1.0)
    assert problem.feature_names == ("length", "width")
    assert problem.label_names == ("yield",)
    assert problem.axis_names == ["length", "width", "the constant"]
    assert problem.label_name == "yield"
    assert np.array_equal(problem.X[:, :2], FRAME.to_numpy())
    assert problem.to_dict()["features"] == ["length", "width"]
    assert problem.to_dict()["labels"] == ["yield"]


def test_arrays_have_no_names_and_axes_have():
    problem = Problem(FRAME.to_numpy(), YIELD.to_numpy())
    assert problem.feature_names is None
    assert problem.label_names is None
    assert problem.axis_names == ["x0", "x1"]
    assert Problem(pd.DataFrame(FRAME.to_numpy()), YIELD).feature_names is None  # columns 0, 1


def test_given_names_win_and_classes_are_called_by_them():
    problem = Problem(
        FRAME, [1, -1, 1], loss="logistic", feature_names=["a", "b"], label_names=["fig", "pear"]
    )
    assert problem.feature_names == ("a", "b")
    assert (problem.class_name(-1.0), problem.class_name(1.0)) == ("fig", "pear")
    assert Problem(FRAME, [1, -1, 1]).class_name(1.0) == "+1"


def test_names_survive_copies_pickles_and_files(tmp_path):
    problem = Problem(FRAME, YIELD, bias=1.0)
    assert problem.replace(leak=0.1).feature_names == ("length", "width")
    assert problem.replace(X=FRAME.to_numpy()).feature_names == ("length", "width")
    assert problem.replace(X=np.ones((3, 1))).feature_names is None
    assert pickle.loads(pickle.dumps(problem)).label_names == ("yield",)
    run = descend(problem, initialize(problem, 3, rng=0), lr=0.1, steps=2)
    run.save(tmp_path / "run.nc")
    stored = Trajectory.load(tmp_path / "run.nc").problem
    assert (stored.feature_names, stored.label_names) == (("length", "width"), ("yield",))


def test_a_table_names_features_and_classes():
    frame = FRAME.assign(kind=["pear", "fig", "fig"])
    problem = Problem.from_table(frame)
    assert problem.feature_names == ("length", "width")
    assert problem.label_names == ("fig", "pear")  # -1, +1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"feature_names": ["a"]}, "feature_names has one name, expected two names"),
        ({"feature_names": 3}, "feature_names must be a list of names"),
        ({"label_names": ["a", "b", "c"]}, "label_names has three names, expected one name or two"),
    ],
)
def test_wrong_names_are_refused(options, sentence):
    with pytest.raises(ReluflowError, match=sentence):
        Problem(FRAME, YIELD, **options)


def test_arrays_frames_and_tables_give_the_same_problem():
    kinds = pd.Series(["pear", "fig", "fig"], name="kind")
    table = problem_of(FRAME.assign(kind=kinds))
    frame = problem_of(FRAME, kinds)
    arrays = problem_of(FRAME.to_numpy(), kinds.to_numpy(), feature_names=["length", "width"])
    named = problem_of(FRAME.assign(kind=kinds), "kind", standardize=True)
    for problem in (table, frame, arrays):
        assert problem.loss.name == "logistic"
        assert np.array_equal(problem.y, [1.0, -1.0, -1.0])
        assert np.array_equal(problem.X, FRAME.to_numpy())
        assert problem.feature_names == ("length", "width")
        assert problem.label_names == ("fig", "pear")
    assert named.X.mean(axis=0) == pytest.approx(0.0, abs=1e-15)
    assert problem_of(FRAME, YIELD).loss.name == "half_square"
    assert problem_of(FRAME, YIELD).label_names == ("yield",)
    assert problem_of(table) is table


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda: problem_of(FRAME, [1.0, 2.0]), "y has shape .2,. but X has 3 samples"),
        (lambda: problem_of(np.ones((3, 2))), "without labels: give explain.X, y."),
        (lambda: problem_of(Problem(FRAME, YIELD), YIELD), "a Problem holds its labels"),
        (lambda: problem_of(Problem(FRAME, YIELD), leak=0.1), "leak belongs to the data"),
        (lambda: problem_of(FRAME, YIELD, label="yield"), "label names a column of a table"),
        (lambda: problem_of(FRAME, ["a", "b", "c"], loss="logistic"), "3 classes"),
    ],
)
def test_what_cannot_be_is_refused(ask, sentence):
    with pytest.raises(ReluflowError, match=sentence):
        ask()


@pytest.mark.slow
def test_explain_takes_a_frame_and_a_series_and_names_what_is_read():
    frame = pd.DataFrame({"rain": [-0.75, -0.5, 0.125]})
    yields = pd.Series([1.1, 0.1, 0.8], name="yield")
    found = explain(frame, yields, bias=1.0, m=20, scale=1e-4, seconds=10.0, progress=False)
    assert found.problem.axis_names == ["rain", "the constant"]
    assert found.problem.label_names == ("yield",)
    assert "rain" in found.text
    assert found.to_dict()["problem"]["features"] == ["rain"]
