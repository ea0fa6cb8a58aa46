"""Several outputs: labels, losses, networks and their files."""

import mpmath
import numpy as np
import pytest

from reluflow import (
    Network,
    Problem,
    ReluflowError,
    Trajectory,
    certify,
    descend,
    every,
    initialize,
    losses,
)
from reluflow.problem.losses import output_bends, scaled_slopes

X = np.random.default_rng(0).normal(size=(6, 3))
WORDS = np.array(["pear", "fig", "fig", "kiwi", "pear", "fig"])


def test_labels_of_any_kind_become_one_hot_rows_in_sorted_order():
    problem = Problem(X, WORDS, loss="softmax")
    assert problem.classes == ("fig", "kiwi", "pear")
    assert problem.labels.tolist() == [2, 0, 0, 1, 2, 0]
    assert problem.y.shape == (6, 3)
    assert (problem.y.sum(axis=1) == 1).all()
    numbers = Problem(X, [10, 2, 2, 3, 10, 2], loss="softmax")
    assert numbers.classes == ("2", "3", "10")
    assert (numbers.K, numbers.several) == (3, True)
    assert Problem(X, problem.y, loss="softmax").classes == ("0", "1", "2")
    assert problem.replace(leak=0.1).classes == problem.classes


def test_pull_on_a_silent_network_is_one_hot_less_the_mean():
    problem = Problem(X, WORDS, loss="softmax")
    assert np.allclose(problem.pull, (problem.y - 1 / 3) / 6, atol=1e-16)
    assert problem.silent_loss == pytest.approx(np.log(3.0), abs=1e-15)
    total = np.linalg.norm(problem.pull, axis=1) @ problem.norms
    assert problem.total_pull == pytest.approx(total, rel=1e-15)


def exact(name, f, k):
    """Loss and slopes of one sample of class k in 400 digits, which 1 + e^-600 needs."""
    with mpmath.workdps(400):
        e = [mpmath.exp(mpmath.mpf(v) - mpmath.mpf(f[k])) for v in f]
        rivals = sum(e) - e[k]
        if name == "softmax":
            slopes = [v / (1 + rivals) for v in e]
            slopes[k] = -rivals / (1 + rivals)
            return mpmath.log(1 + rivals), slopes
        slopes = list(e)
        slopes[k] = -rivals
        return rivals, slopes


@pytest.mark.parametrize("name", ["softmax", "multiclass_exponential"])
@pytest.mark.parametrize("size", [0.0, 1.0, 30.0, 600.0])
def test_losses_of_classes_keep_their_digits_at_any_margin(name, size):
    f = size * np.array([[1.0, 0.2, -0.4], [0.1, 0.3, -1.0]])
    y = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    loss = losses.LOSSES[name](factor=2.0)
    for i in range(2):
        value, slopes = exact(name, f[i], int(y[i].argmax()))
        assert loss.log_value(f, y)[i] == pytest.approx(
            float(mpmath.log(2 * value)), rel=1e-14, abs=1e-14
        )
        assert loss.value(f, y)[i] == pytest.approx(float(2 * value), rel=1e-13)
        unit = float(loss.log_value(f, y)[i])
        scaled = [float(2 * s / mpmath.exp(mpmath.mpf(unit))) for s in slopes]
        assert np.allclose(scaled_slopes(loss, f, y, unit)[i], scaled, rtol=1e-12, atol=0)


@pytest.mark.parametrize("loss", ["softmax", "multiclass_exponential", "half_square", "logistic"])
def test_slopes_and_bends_are_derivatives(loss):
    rng = np.random.default_rng(1)
    f = rng.normal(size=(4, 3))
    y = np.eye(3)[[0, 2, 1, 1]]
    if loss == "logistic":
        y = 2 * y - 1
    law, h = losses.as_loss(loss), 1e-5
    value = lambda f: np.sum(law.value(f, y))  # noqa: E731
    for k in range(4):
        for c in range(3):
            step = np.zeros((4, 3))
            step[k, c] = h
            slope = (value(f + step) - value(f - step)) / (2 * h)
            assert law.slope(f, y)[k, c] == pytest.approx(slope, abs=1e-8)
            bend = (law.slope(f + step, y) - law.slope(f - step, y))[k] / (2 * h)
            assert np.allclose(output_bends(law, f, y)[k, c], bend, atol=1e-8)


def test_a_network_with_several_outputs_is_its_columns():
    rng = np.random.default_rng(2)
    W, A, s = rng.normal(size=(5, 3)), rng.normal(size=(5, 4)), rng.normal(size=5)
    net = Network(W, A, s, leak=0.1)
    assert net.K == 4
    assert net(X).shape == (6, 4)
    for c in range(4):
        assert np.allclose(net(X)[:, c], Network(W, A[:, c], s, leak=0.1)(X), rtol=1e-14)
    Wt, At = net.weights()
    assert net.norm2 == pytest.approx(np.sum(Wt**2) + np.sum(At**2), rel=1e-14)
    assert net.subset([1, 3]).K == 4
    assert net.scaled(2.0)(X[0]).shape == (4,)


def test_a_run_with_several_outputs_is_stored_and_read_back(tmp_path):
    problem = Problem(X, WORDS, loss="softmax", bias=1.0)
    net = initialize(problem, 4, scale=1e-2, rng=0)
    names = ["outputs", "outer", "accuracy", "margin", "invariant"]
    run = descend(problem, net, lr=0.1, steps=20, save=every(5), observe=names, states=True)
    run.save(tmp_path / "run.nc")
    back = Trajectory.load(tmp_path / "run.nc")
    assert back.problem.classes == problem.classes
    assert np.array_equal(back.problem.y, problem.y)
    assert np.array_equal(back.networks.a, run.networks.a)
    assert np.array_equal(back["outputs"], run["outputs"])
    assert back["outputs"].shape == (5, 6, 3)
    assert back.dataset.attrs["format"] == "reluflow-run-2"
    assert back["accuracy"][-1] == np.mean(run.final(X).argmax(axis=1) == problem.labels)
    f = run.final(X)
    own = f[np.arange(6), problem.labels]
    rivals = np.where(problem.y > 0, -np.inf, f).max(axis=1)
    assert run["margin"][-1] == pytest.approx(np.min(own - rivals), abs=1e-15)


def test_balanced_starts_have_outer_rows_of_the_norm_of_the_inner_ones():
    problem = Problem(X, WORDS, loss="softmax")
    net = initialize(problem, 50, log_scale=-1000.0, rng=0)
    assert np.allclose(net.log_norms, net.log_outer, rtol=0, atol=1e-12)
    assert initialize(problem, 3, kind="pytorch", scale=1.0).a.shape == (3, 3)


@pytest.mark.parametrize(
    ("labels", "loss", "words"),
    [
        (["a"] * 6, "softmax", "1 classes"),
        (np.full((6, 3), 0.5), "softmax", "not one-hot"),
        (np.ones((6, 1)), "softmax", "one class only"),
        ([1.0, 2.0, np.nan, 1.0, 2.0, 1.0], "softmax", "not a finite number"),
        (np.ones((6, 0)), "half_square", "no columns"),
        (np.zeros((5, 2)), "half_square", "5 labels but X has 6"),
        (np.zeros((6, 2)), "logistic", "-1 and"),
    ],
)
def test_labels_that_make_no_problem_are_refused(labels, loss, words):
    with pytest.raises(ReluflowError, match=words):
        Problem(X, labels, loss=loss)


def test_outputs_of_network_and_problem_must_agree():
    problem = Problem(X, WORDS, loss="softmax")
    with pytest.raises(ReluflowError, match="what BF24-L20 claims is for one output"):
        certify(problem, initialize(problem, 2), claims="BF24-L20")
    assert certify(problem, initialize(problem, 2)) == []  # nothing about an end carries over
    with pytest.raises(ReluflowError, match=r"expected outer weights of shape \(m, 3\)"):
        descend(problem, Network(np.ones((2, 3)), np.ones(2)), lr=0.1, steps=1)
    tiny = initialize(problem, 2, log_scale=-800.0)
    with pytest.raises(ReluflowError, match="takes weights without log_scale"):
        descend(problem, tiny, lr=0.1, steps=1, backend="lumped")
    with pytest.raises(ReluflowError, match="signs are for one output"):
        initialize(problem, 2, signs=1)
    with pytest.raises(ReluflowError, match="smoothing is for one output"):
        Problem(X, WORDS, loss="softmax", smoothing=0.1)


@pytest.mark.parametrize("y", [[[1], [2, 3]], [[1.0, 2.0], 3.0], [[], [1]]])
@pytest.mark.parametrize("loss", ["half_square", "softmax"])
def test_rows_of_labels_that_differ_in_length_are_one_sentence(y, loss):
    from reluflow import Network, explain

    X = np.eye(2)
    for call in (
        lambda: Problem(X, y, loss=loss),
        lambda: explain(X, y, loss=loss),
        lambda: Network(X, y),
    ):
        with pytest.raises(ReluflowError, match=r"differ in length|are not real numbers") as caught:
            call()
        assert "inhomogeneous" not in str(caught.value)
