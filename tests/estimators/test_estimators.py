"""Estimators in pipelines and searches, by each method, and what they know beyond a score."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reluflow import JumpProcess, ReluflowError, Trajectory, align, initialize, ridge
from reluflow.estimators import SmallInitClassifier, SmallInitRegressor
from reluflow.estimators.training import growth_rate

GOLDEN = np.eye(4), np.array([4.0, 3.0, 2.0, 1.0])  # orthonormal: features are learned one by one
AS_IT_IS = {"bias": None, "standardize": False, "random_state": 4}


@pytest.mark.parametrize("method", ["flow", "descent", "limit"])
def test_regression_by_each_method(method):
    X = np.array([[-1.0], [-0.5], [0.5], [1.0]])
    y = np.abs(X[:, 0])
    model = SmallInitRegressor(20, 1e-4, method, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9
    kind = JumpProcess if method == "limit" else Trajectory
    assert isinstance(model.result_, kind)
    assert model.directions_.shape[1] == 2  # the feature and the constant
    assert np.allclose(np.linalg.norm(model.directions_, axis=1), 1.0)
    assert np.abs(model.shares_).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("method", ["flow", "descent", "limit"])
def test_classification_by_each_method(method):
    X = np.array([[0.0, 1.0], [1.0, 0.1], [0.1, -1.0], [-1.0, 0.0]])
    y = ["up", "side", "up", "side"]
    model = SmallInitClassifier(40, 1e-4, method, random_state=0).fit(X, y)
    assert model.classes_.tolist() == ["side", "up"]
    assert model.predict(X).tolist() == y
    stages = list(model.staged_predict_proba(X))
    assert len(stages) == len(list(model.staged_predict(X))) == len(model.stages_)
    assert np.allclose(stages[0], 0.5, atol=0.01)  # the first plateau is the silent network
    assert np.array_equal(stages[-1], model.predict_proba(X))
    for classes, shares in zip(model.staged_predict(X), stages, strict=True):
        assert np.allclose(shares.sum(axis=1), 1.0)
        # an output of 1e-17 decides a class, while its probability rounds to a half
        assert (shares[classes == "up", 1] >= 0.5).all()
        assert (shares[classes == "side", 0] >= 0.5).all()
    p = model.predict_proba(X)
    assert np.allclose(p.sum(axis=1), 1.0)
    assert np.allclose(p[:, 1], 1 / (1 + np.exp(-model.decision_function(X))))
    assert model.problem_.label_names == ("side", "up")
    if method == "limit":
        margins = model.problem_.y * model.decision_function(X)
        assert margins.min() == pytest.approx(5.0)


def test_stages_are_the_features_in_the_order_of_learning():
    X, y = GOLDEN
    exact = SmallInitRegressor(40, 1e-20, "limit", **AS_IT_IS).fit(X, y)
    stages = np.array(list(exact.staged_predict(X)))
    learned = (np.abs(stages - y) < 1e-6).sum(axis=1)
    assert learned[0] == 0
    assert (np.diff(learned) >= 1).all()  # each jump fits at least one label more
    assert np.abs(stages[1] - y)[0] < 1e-6  # the largest label first
    assert len(exact.jumps_) == len(stages) - 1 == len(exact.stage_losses_) - 1
    assert (np.diff(exact.jumps_) > 0).all()
    trained = SmallInitRegressor(40, 1e-20, "flow", duration=3.0, **AS_IT_IS).fit(X, y)
    assert np.array_equal(list(trained.staged_predict(X))[-1], trained.predict(X))
    assert trained.jumps_[0] == pytest.approx(exact.jumps_[0], rel=0.02)
    assert np.allclose(list(trained.staged_predict(X))[1], stages[1], atol=0.02)


@pytest.mark.parametrize("method", ["flow", "descent", "limit"])
def test_weight_decay_by_each_method(method):
    """One direction: the output is thresholded softly, 2 - lambda; above lambda = 2 it is 0."""
    X, y = np.array([[1.0], [1.0]]), np.array([2.0, 2.0])
    how = {**AS_IT_IS, "duration": 12.0}
    model = SmallInitRegressor(8, 1e-3, method, weight_decay=0.5, **how).fit(X, y)
    assert model.predict(X) == pytest.approx([1.5, 1.5], abs=1e-3)
    assert len(model.jumps_) == 1
    assert model.network_.norm2 == pytest.approx(ridge(model.problem_, 0.5).norm2, rel=1e-2)
    above = SmallInitRegressor(8, 1e-3, method, weight_decay=2.1, **AS_IT_IS).fit(X, y)
    assert np.abs(above.predict(X)).max() < 1e-6
    assert len(above.jumps_) == 0


def test_weight_decay_reaches_classifiers_searches_and_explain():
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:120], y[:120]
    model = SmallInitClassifier(10, 1e-2, random_state=0)
    search = GridSearchCV(model, {"weight_decay": [0.0, 0.05]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.85
    free, held = (SmallInitClassifier(10, 1e-2, weight_decay=v, random_state=0) for v in (0, 0.05))
    assert held.fit(X, y).network_.norm2 < 0.7 * free.fit(X, y).network_.norm2
    tiny = SmallInitRegressor(4, 1e-3, weight_decay=0.3, **AS_IT_IS).fit(*GOLDEN)
    assert tiny.explain(progress=False).settings.weight_decay == 0.3
    with pytest.raises(ReluflowError, match="weight_decay must be finite and not negative"):
        SmallInitClassifier(weight_decay=-1.0).fit(X, y)


def test_longer_training_learns_more():
    X, y = GOLDEN
    scores = [
        SmallInitRegressor(40, 1e-20, duration=d, **AS_IT_IS).fit(X, y).score(X, y)
        for d in (0.5, 3.0)
    ]
    assert scores[0] < -1.0  # before the first jump the network is silent
    assert scores[1] > 0.99


def test_predictions_are_in_the_units_of_the_labels():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = np.maximum(X[:, 0], 0.0)
    near = SmallInitRegressor(30, random_state=0).fit(X, y)
    far = SmallInitRegressor(30, random_state=0).fit(100.0 * X - 7.0, 1000.0 * y + 5.0)
    assert np.allclose(far.predict(100.0 * X - 7.0), 1000.0 * near.predict(X) + 5.0, rtol=1e-6)
    constant = SmallInitRegressor(30).fit(X, np.full(40, 3.5))
    assert np.allclose(constant.predict(X), 3.5)
    assert constant.result_ is None


def test_frames_bring_names():
    frame = pd.DataFrame({"length": [1.0, 2.0, 3.0, 4.0], "width": [1.0, 0.0, 1.0, 0.0]})
    model = SmallInitClassifier(10, random_state=0).fit(frame, ["a", "a", "b", "b"])
    assert model.feature_names_in_.tolist() == ["length", "width"]
    assert model.problem_.feature_names == ("length", "width")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"length": "breadth"}))


def test_a_pipeline_and_a_search_over_scales():
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:200], y[:200]
    model = SmallInitClassifier(20, standardize=False, random_state=0)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), model),
        {"smallinitclassifier__scale": [1e-1, 1e-4]},
        cv=3,
    ).fit(X, y)
    assert search.best_score_ > 0.93
    assert len(search.cv_results_["params"]) == 2


@pytest.mark.parametrize(("method", "loss"), [("flow", "logistic"), ("descent", "exponential")])
def test_more_than_two_classes_are_one_network(method, loss):
    X, y = load_iris(return_X_y=True)
    y = np.array(["c", "a", "b"])[y]
    model = SmallInitClassifier(20, method=method, loss=loss, random_state=0).fit(X, y)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.problem_.classes == ("a", "b", "c")
    assert model.score(X, y) > 0.93
    f = model.decision_function(X)
    assert f.shape == (150, 3)
    p = model.predict_proba(X)
    ratio = np.log(p[:, 0] / p[:, 1]) / (f[:, 0] - f[:, 1])
    assert np.allclose(ratio, {"logistic": 1.0, "exponential": 2.0}[loss])
    assert np.allclose(p.sum(axis=1), 1.0)
    assert model.outer_.shape == (len(model.directions_), 3)
    assert np.allclose(np.linalg.norm(model.outer_, axis=1), 1.0)
    assert model.shares_.sum() == pytest.approx(1.0)
    assert np.array_equal(list(model.staged_predict(X))[-1], model.predict(X))


def test_the_limit_process_of_three_classes():
    X = 2.0 * np.array([[1.0, 0.0], [-0.5, 0.9], [-0.5, -0.9], [1.1, 0.1], [-0.6, 1.0]])
    y = [0, 1, 2, 0, 1]
    model = SmallInitClassifier(8, 1e-4, "limit", bias=None, random_state=0).fit(X, y)
    assert isinstance(model.result_, JumpProcess)
    assert len(model.stages_) == model.result_.n_jumps + 1
    assert model.score(X, y) == 1.0


def test_seeds_decide():
    X, y = make_moons(60, noise=0.1, random_state=0)
    first, again = (SmallInitClassifier(10, random_state=1).fit(X, y) for _ in range(2))
    other = SmallInitClassifier(10, random_state=2).fit(X, y)
    assert np.array_equal(first.decision_function(X), again.decision_function(X))
    assert not np.array_equal(first.decision_function(X), other.decision_function(X))


def test_the_rate_is_that_of_the_fastest_neuron():
    X, y = GOLDEN
    model = SmallInitRegressor(30, 1e-3, **AS_IT_IS).fit(X, y)
    net = initialize(model.problem_, 30, 1e-3, rng=model.seed_)
    assert growth_rate(model.problem_, net) == pytest.approx(
        align(model.problem_, net).growth.max(), rel=1e-2
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"method": "magic"}, "method must be one of 'flow', 'descent', 'limit'"),
        ({"duration": 0.0}, "duration must be positive"),
        ({"duration": "long"}, "duration must be a number"),
        ({"max_steps": 0}, "max_steps must be a whole number"),
        ({"learning_rate": -1.0}, "learning_rate must be positive"),
        ({"n_neurons": 0}, "m must be a whole number"),
        ({"scale": 0.0}, "scale is 0"),
        ({"loss": "hinge"}, "loss must be one of"),
    ],
)
@pytest.mark.parametrize("kind", [SmallInitRegressor, SmallInitClassifier])
def test_wrong_parameters_are_refused_when_fitting(kind, options, sentence):
    with pytest.raises(ReluflowError, match=sentence):
        kind(**options).fit(np.eye(3), [0, 1, 1])


def test_too_few_steps_are_said_and_unfitted_models_too():
    X, y = GOLDEN
    with pytest.warns(ConvergenceWarning, match="steps"):
        SmallInitRegressor(10, max_steps=2).fit(X, y)
    with pytest.raises(NotFittedError):
        SmallInitRegressor().predict(X)
    with pytest.raises(NotFittedError):
        SmallInitClassifier().explain()


@pytest.mark.slow
def test_a_model_explains_itself():
    X = np.array([[-1.0], [-0.5], [0.5], [1.0]])
    model = SmallInitRegressor(20, 1e-4, random_state=0).fit(X, np.abs(X[:, 0]))
    found = model.explain(seconds=10.0, progress=False)
    assert found.problem is model.problem_
    assert found.settings.m == 20
    assert np.array_equal(found.net.W, initialize(model.problem_, 20, 1e-4, rng=model.seed_).W)
