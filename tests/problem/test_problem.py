"""Problem: what it accepts, what it refuses and how it says so."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from reluflow import Network, Problem, ReluflowError, losses

X = np.array([[1.0, 2.0], [3.0, -4.0], [0.5, 0.0]])
y = np.array([1.0, -1.0, 1.0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.where(X == 3.0, np.nan, X)}, r"X\[1, 0\] is nan: expected finite numbers only"),
        ({"X": np.where(X == 3.0, np.inf, X)}, r"X\[1, 0\] is inf: .* the 1 offending entry"),
        ({"X": np.where(X > 1.0, np.nan, X)}, r"X\[0, 1\] is nan: .* the 2 offending entries"),
        ({"y": [1.0, np.nan, 1.0]}, r"y\[1\] is nan"),
        ({"X": np.zeros((0, 2)), "y": []}, r"X is empty: .* got shape \(0, 2\)"),
        ({"X": np.zeros((3, 0))}, r"X is empty: expected at least one sample and one feature"),
        ({"y": y[:2]}, r"y has 2 labels but X has 3 samples: expected y of shape \(3,\)"),
        ({"X": X[:, 0]}, r"X has 1 dimension\(s\), expected 2: .*X.reshape\(-1, 1\)"),
        ({"y": y[:, None, None]}, r"y has 3 dimension\(s\), expected 1: got shape \(3, 1, 1\)"),
        ({"X": [["a", "b"]] * 3}, "X holds entries that are not real numbers"),
        ({"X": [[1.0, 2.0], [3.0]]}, "X holds entries that are not real numbers"),
        ({"loss": "hinge"}, "unknown loss 'hinge': expected one of"),
        ({"leak": -0.1}, "leak must satisfy 0 <= leak < 1, got -0.1"),
        ({"leak": 1.0}, "leak must satisfy 0 <= leak < 1, got 1"),
        ({"leak": np.nan}, "leak must satisfy 0 <= leak < 1, got nan"),
        ({"reduction": "total"}, "reduction must be 'mean' or 'sum', got 'total'"),
        ({"bias": 0.0}, "bias must be a finite non-zero number, got 0: use bias=1.0"),
        ({"bias": np.inf}, "bias must be a finite non-zero number, got inf"),
    ],
)
def test_refusals(change, message):
    with pytest.raises(ReluflowError, match=message):
        Problem(**{"X": X, "y": y, **change})


@pytest.mark.parametrize("loss", ["logistic", "exponential", losses.Logistic(factor=2)])
@pytest.mark.parametrize("labels", [[0.0, 1.0, 1.0], [1.0, 2.0, -1.0]])
def test_margin_losses_need_signs(loss, labels):
    with pytest.raises(ReluflowError, match=r"loss needs labels -1 and \+1, got .*: relabel"):
        Problem(X, labels, loss)


def test_errors_are_value_errors():
    with pytest.raises(ValueError, match="reduction"):
        Problem(X, y, reduction="x")


def test_defaults():
    problem = Problem(X, y)
    assert problem.loss == losses.HalfSquare()
    assert (problem.n, problem.d, problem.leak, problem.reduction) == (3, 2, 0.0, "mean")
    assert problem.bias is None
    assert dict(problem.known) == {}


def test_one_sample_one_feature():
    problem = Problem([[2.0]], [3.0])
    assert (problem.n, problem.d, problem.weight) == (1, 1, 1.0)
    np.testing.assert_array_equal(problem.pull, [3.0])
    assert problem.value(np.zeros(1)) == 4.5


def test_a_zero_sample_is_allowed():
    problem = Problem([[0.0, 0.0], [1.0, 0.0]], [1.0, 1.0])
    np.testing.assert_array_equal(problem.pull, [0.5, 0.5])


def test_arrays_are_frozen_copies():
    mine, labels = X.copy(), y.copy()
    problem = Problem(mine, labels)
    mine[0, 0], labels[0] = 99.0, 99.0
    assert problem.X[0, 0] == 1.0
    assert problem.y[0] == 1.0
    for array in (problem.X, problem.y, Problem(X, y, bias=1.0).X):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0
    assert problem.X.dtype == problem.y.dtype == np.float64


def test_integers_become_floats():
    problem = Problem(np.array([[1, 2]]), np.array([3]))
    assert problem.X.dtype == np.float64


def test_fields_are_frozen():
    problem = Problem(X, y, known={"answer": 42})
    with pytest.raises(AttributeError):
        problem.leak = 0.5
    with pytest.raises(TypeError):
        problem.known["answer"] = 0


def test_bias_appends_a_feature():
    problem = Problem(X, y, bias=0.1)
    assert problem.d == 3
    np.testing.assert_array_equal(problem.X[:, -1], [0.1, 0.1, 0.1])
    np.testing.assert_array_equal(problem.X[:, :-1], X)


def test_replace_keeps_one_bias_feature():
    problem = Problem(X, y, bias=1.0, known={"a": 1})
    again = problem.replace(loss="square")
    np.testing.assert_array_equal(again.X, problem.X)
    assert again.loss == losses.Square()
    assert again.known["a"] == 1
    assert problem.replace(bias=None).d == 2
    np.testing.assert_array_equal(problem.replace(X=2 * X).X[:, -1], 1.0)


def test_sum_is_n_times_the_mean():
    for loss in losses.LOSSES:
        mean, total = Problem(X, y, loss), Problem(X, y, loss, reduction="sum")
        f = np.random.default_rng(0).normal(size=mean.y.shape)
        np.testing.assert_allclose(total.value(f), 3 * mean.value(f), rtol=1e-15)
        np.testing.assert_allclose(total.pull_at(f), 3 * mean.pull_at(f), rtol=1e-15)


@pytest.mark.parametrize("loss", list(losses.LOSSES))
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_pull_is_minus_the_gradient_in_f(loss, reduction):
    problem = Problem(X, y, loss, reduction=reduction)
    shape = problem.y.shape  # (n, K) for the losses of classes
    f, h = 0.3 * np.random.default_rng(0).normal(size=shape), 1e-6
    steps = np.eye(f.size).reshape(-1, *shape)
    gradient = [(problem.value(f + h * e) - problem.value(f - h * e)) / (2 * h) for e in steps]
    np.testing.assert_allclose(problem.pull_at(f), -np.reshape(gradient, shape), atol=1e-9)
    np.testing.assert_array_equal(problem.pull, problem.pull_at(np.zeros(shape)))


def test_stacked_outputs():
    problem = Problem(X, y, "logistic")
    f = np.random.default_rng(0).standard_normal((4, 5, 3))
    assert problem.value(f).shape == problem.log_value(f).shape == (4, 5)
    assert problem.pull_at(f).shape == (4, 5, 3)
    np.testing.assert_allclose(problem.log_value(f), np.log(problem.value(f)), rtol=1e-13)


def test_log_value_beyond_floats():
    problem = Problem(X, y, "logistic")
    f = y * np.array([3000.0, 3001.0, 4000.0])
    want = -3000.0 + np.log1p(np.exp(-1.0)) - np.log(3)
    np.testing.assert_allclose(problem.log_value(f), want, rtol=1e-15)
    assert Problem(X, y).log_value(y) == -np.inf


def test_outputs_use_the_leak_of_the_problem():
    net = Network([[1.0, 0.0]], [1.0])
    problem = Problem([[2.0, 0.0], [-2.0, 0.0]], [1.0, 1.0], leak=0.25)
    np.testing.assert_array_equal(problem.outputs(net), [2.0, -0.5])


def test_repr_says_what_it_is():
    text = repr(Problem(X, y, "logistic", leak=0.1, bias=1.0, name="mine"))
    assert text == "Problem(mine: n=3, d=3, logistic (mean), leak=0.1, bias=1)"


def test_problems_survive_pickling_and_copying():
    problem = Problem([[1.0], [2.0]], [1.0, 0.5], bias=2.0, leak=0.1, known={"answer": 42})
    for twin in (pickle.loads(pickle.dumps(problem)), copy.deepcopy(problem)):
        assert np.array_equal(twin.X, problem.X)
        assert twin.bias == 2.0
        assert twin.known["answer"] == 42
        assert not twin.X.flags.writeable


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.array([[1j]]), "y": [1.0]}, "X holds entries that are not real numbers"),
        ({"leak": "a"}, "leak must be a number, got 'a'"),
        ({"bias": "a"}, "bias must be a number, got 'a'"),
    ],
)
def test_more_refusals(change, message):
    with pytest.raises(ReluflowError, match=message):
        Problem(**{"X": [[1.0]], "y": [1.0], **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": [[1e200, 2.0], [1.0, 1.0]]}, r"X\[0\] has an entry of size 1e\+200.* rescale X"),
        ({"X": [[1e-200, 0.0], [0.0, 2e-200]]}, r"X\[1\] has an entry of size 2e-200"),
        ({"X": [[1.0, 0.0], [0.0, 2e-200]]}, r"X\[1\] has no entry larger than 2e-200"),
        ({"y": [1.0, -1e200]}, r"y\[1\] is of size 1e\+200.* 1e-50 and 1e\+50.* rescale y"),
        ({"y": [1e-200, 0.0]}, r"y\[0\] is of size 1e-200"),
        ({"X": [[1e30, 0.0], [0.0, 1.0]], "y": [1e30, 1.0]}, r"sample 0 has a slope .*5e\+59"),
        ({"bias": 1e60}, r"X\[0\] has an entry of size 1e\+60"),
    ],
)
def test_data_near_the_ends_of_floats_are_refused(change, message):
    with pytest.raises(ReluflowError, match=message):
        Problem(**{"X": np.eye(2), "y": [1.0, -1.0], **change})


def test_zeros_and_small_labels_beside_larger_ones_are_data():
    assert Problem(np.zeros((2, 2)), [0.0, 0.0]).n == 2
    assert Problem([[1e49], [1e-90]], [0.5, np.exp(-400.0)]).n == 2
