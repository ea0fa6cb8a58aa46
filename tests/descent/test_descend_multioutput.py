"""Descent with several outputs against plain loops, PyTorch and the code for one output."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reluflow import Network, Problem, descend, initialize
from reluflow.descent.lumped_multioutput import LumpedVectors

RNG = np.random.default_rng(0)
X = RNG.normal(size=(15, 4))
LABELS = RNG.integers(3, size=15)
REAL = RNG.normal(size=(15, 3))


def problem_of(loss, leak=0.0, reduction="mean"):
    y = LABELS if loss in ("softmax", "multiclass_exponential") else REAL
    return Problem(X, y, loss=loss, leak=leak, reduction=reduction)


def plain_steps(problem, net, lr, steps):
    """Gradient descent written down from the chain rule, sample by sample."""
    W, A = (np.array(v) for v in net.weights())
    for _ in range(steps):
        dW, dA = np.zeros_like(W), np.zeros_like(A)
        for x, y in zip(problem.X, problem.y, strict=True):
            h = W @ x
            phi = np.where(h > 0, h, problem.leak * h)
            f = phi @ A
            if problem.loss.name == "softmax":
                p = np.exp(f - f.max())
                g = p / p.sum() - y
            else:
                g = f - y
            g = g * problem.weight
            dA += np.outer(phi, g)
            dW += (np.where(h > 0, 1.0, problem.leak) * (A @ g))[:, None] * x
        W, A = W - lr * dW, A - lr * dA
    return W, A


@pytest.mark.parametrize("loss", ["softmax", "half_square"])
@pytest.mark.parametrize("leak", [0.0, 0.1])
def test_two_thousand_steps_agree_with_a_plain_loop(loss, leak):
    problem = problem_of(loss, leak)
    net = initialize(problem, 6, scale=0.5, rng=1)
    W, A = plain_steps(problem, net, 0.1, 2000)
    run = descend(problem, net, lr=0.1, steps=2000)
    assert np.abs(run.final.W - W).max() < 1e-10
    assert np.abs(run.final.a - A).max() < 1e-10


@pytest.mark.parametrize("loss", ["softmax", "half_square"])
def test_two_thousand_steps_agree_with_autograd(loss):
    torch = pytest.importorskip("torch")
    problem = problem_of(loss)
    net = initialize(problem, 8, scale=0.5, rng=2)
    W, A = (torch.tensor(np.array(v), requires_grad=True) for v in net.weights())
    x, y = torch.tensor(np.array(X)), torch.tensor(np.array(problem.y))
    for _ in range(2000):
        f = torch.relu(x @ W.T) @ A
        if loss == "softmax":
            value = torch.nn.functional.cross_entropy(f, torch.tensor(problem.labels))
        else:
            value = 0.5 * ((f - y) ** 2).sum() / len(X)
        gradient = torch.autograd.grad(value, (W, A))
        with torch.no_grad():
            W -= 0.1 * gradient[0]
            A -= 0.1 * gradient[1]
    run = descend(problem, net, lr=0.1, steps=2000)
    assert np.abs(run.final.W - W.detach().numpy()).max() < 1e-10
    assert np.abs(run.final.a - A.detach().numpy()).max() < 1e-10
    assert run.loss[-1] == pytest.approx(value.item(), rel=1e-3)


@pytest.mark.parametrize("loss", ["half_square", "logistic", "exponential"])
def test_two_equal_outputs_are_one_at_twice_the_speed(loss):
    y = REAL[:, 0] if loss == "half_square" else np.where(LABELS > 0, 1.0, -1.0)
    number = Problem(X, y, loss=loss)
    both = Problem(np.sqrt(2) * X, np.column_stack([y, y]), loss=loss)
    net = initialize(number, 6, scale=0.3, rng=3)
    pair = Network(net.W, np.column_stack([net.a, net.a]) / np.sqrt(2))
    one = descend(number, net, lr=0.05, steps=500)
    other = descend(both, pair, lr=0.025, steps=500)
    assert np.abs(one.final.W - other.final.W).max() < 1e-12
    assert np.abs(one.final.a[:, None] / np.sqrt(2) - other.final.a).max() < 1e-12
    assert other.loss[-1] == pytest.approx(2 * one.loss[-1], rel=1e-12)


def test_tiny_scales_live_in_exponents():
    problem = problem_of("half_square")
    net = initialize(problem, 5, log_scale=-800.0, rng=0)
    tiny = descend(problem, net, lr=0.1, steps=400).final
    small = descend(
        problem, initialize(problem, 5, log_scale=-60.0, rng=0), lr=0.1, steps=400
    ).final
    assert np.abs(tiny.log_norms - small.log_norms + 740.0).max() < 1e-9
    assert np.abs(tiny.directions - small.directions).max() < 1e-12


@pytest.mark.parametrize("train", ["both", "first"])
def test_batches_first_layer_and_checkpoints(train, tmp_path):
    problem = problem_of("softmax")
    net = initialize(problem, 5, scale=0.3, rng=0)
    options = {"lr": 0.1, "steps": 300, "batch_size": 4, "rng": 5, "train": train}
    run = descend(problem, net, **options)
    half = descend(problem, net, **{**options, "steps": 150})
    assert run.loss[-1] < half.loss[-1] < problem.silent_loss * 1.5
    assert np.array_equal(run.final.a, net.a) == (train == "first")
    again = descend(
        problem, net, **options, checkpoint=tmp_path / "run.npz", checkpoint_seconds=0.0
    )
    assert np.array_equal(run.final.W, again.final.W)


def test_single_precision_follows_double():
    problem = problem_of("softmax")
    net = initialize(problem, 5, scale=0.3, rng=0)
    one = descend(problem, net, lr=0.1, steps=50, backend="dense", dtype="float32").final
    assert np.abs(one.W - descend(problem, net, lr=0.1, steps=50).final.W).max() < 1e-5


@settings(max_examples=10)
@given(seed=st.integers(0, 1000), order=st.permutations([0, 1, 2]))
def test_turned_outputs_and_permuted_classes_train_alike(seed, order):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    labels = np.eye(3)[rng.permutation(15) % 3]
    turned = Problem(X, REAL), Problem(X, REAL @ Q), Q
    moved = Problem(X, labels, loss="softmax"), Problem(X, labels[:, order], loss="softmax")
    for one, other, turn in (turned, (*moved, np.eye(3)[:, order])):
        net = initialize(one, 6, scale=0.3, rng=seed)
        a = descend(one, net, lr=0.05, steps=200)
        b = descend(other, Network(net.W, net.a @ turn), lr=0.05, steps=200)
        assert np.abs(a.final.W - b.final.W).max() < 1e-11
        assert np.abs(a.final.a @ turn - b.final.a).max() < 1e-11
        assert b.loss == pytest.approx(a.loss, rel=1e-12)


@pytest.mark.parametrize("options", [{}, {"batch_size": 5, "rng": 0}, {"train": "first"}])
@pytest.mark.parametrize(("loss", "leak"), [("softmax", 0.0), ("half_square", 0.2)])
def test_cones_take_the_steps_of_neurons(loss, leak, options):
    labels = LABELS if loss == "softmax" else REAL
    problem = Problem(X[:, :2], labels, loss=loss, leak=leak)  # two features: few cones
    net = initialize(problem, 300, scale=0.05, rng=0)
    common = {"lr": 0.2, "steps": 600, **options}
    one = descend(problem, net, backend="dense", **common)
    other = descend(problem, net, backend="lumped", **common)
    assert other.cost["backend"] == "lumped"
    assert other.cost["cones"] < 100
    size = np.abs(one.final.W).max()
    assert np.abs(one.final.W - other.final.W).max() < 1e-11 * size
    assert np.abs(one.final.a - other.final.a).max() < 1e-11 * size
    assert other.loss == pytest.approx(one.loss, rel=1e-12)
    signs = [np.sign(run.final.W @ problem.X.T) for run in (one, other)]
    assert np.array_equal(*signs)


def test_cones_go_on_bit_for_bit_from_what_they_packed():
    problem = Problem(X[:, :2], LABELS, loss="softmax")
    net = initialize(problem, 100, scale=0.05, rng=0)
    rates, none = np.full(200, 0.2), np.empty((200, 0), dtype=np.int64)
    whole, later = (LumpedVectors(problem, net, True, 1e9) for _ in range(2))
    whole.advance(rates, none)
    later.unpack({name: value.copy() for name, value in whole.pack().items()})
    for stepper in (whole, later):
        stepper.advance(rates, none)
    assert whole.looks > 0
    assert np.array_equal(whole.weights()[0], later.weights()[0])
    assert np.array_equal(whole.weights()[1], later.weights()[1])
