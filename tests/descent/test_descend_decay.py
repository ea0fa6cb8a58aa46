"""Weight decay in descent: against a plain loop, PyTorch, and the same run without it."""

import numpy as np
import pytest

from reluflow import Problem, ReluflowError, datasets, descend, initialize
from reluflow.descent.lumped import Lumped
from reluflow.descent.samples import samples_of
from reluflow.descent.schedules import Batches
from reluflow.network import Network

STEPS = 20_000
BACKENDS = ("lumped", "dense")


def plain_loop(problem, net, rates, decay, both=True, batches=None):
    """The rule of `descend` with decay, written out: every neuron, every step."""
    W, a = (v.copy() for v in net.weights())
    for t, lr in enumerate(rates):
        rows = np.arange(problem.n) if batches is None else batches[t]
        X, y = problem.X[rows], problem.y[rows]
        s = W @ X.T
        slope = np.where(s > 0, 1.0, problem.leak)
        weight = 1.0 / len(rows) if problem.reduction == "mean" else 1.0
        c = -weight * problem.loss.slope(a @ (slope * s), y)
        D = (slope * c) @ X
        dW, da = a[:, None] * D - decay * W, np.sum(W * D, axis=1) - decay * a
        W, a = W + lr * dW, a + (lr * da if both else 0.0)
    return W, a


def random_problem(loss="half_square", leak=0.0, d=5):
    rng = np.random.default_rng(7)
    return Problem(rng.normal(size=(12, d)), rng.choice([-1.0, 1.0], 12), loss=loss, leak=leak)


CASES = {
    "three points": (lambda: datasets.three_points(loss="square"), 40, 1e-2, 0.05),
    "square": (random_problem, 16, 2e-2, 0.1),
    "logistic, leak": (lambda: random_problem("logistic", 0.3), 16, 2e-2, 0.02),
    "exponential, plane": (lambda: random_problem("exponential", 0.0, 2), 30, 1e-2, 0.1),
}


def relative(found, expected):
    return np.max(np.abs(found - expected)) / np.max(np.abs(expected))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("train", ["both", "first"])
def test_against_a_plain_loop(case, train):
    make, m, lr, decay = CASES[case]
    problem = make()
    net = initialize(problem, m, scale=0.3, kind="gaussian", rng=3)
    W, a = plain_loop(problem, net, np.full(STEPS, lr), decay, train == "both")
    for backend in BACKENDS:
        how = {"backend": backend, "train": train, "weight_decay": decay}
        run = descend(problem, net, lr=lr, steps=STEPS, **how)
        assert run.cost["backend"] == backend
        assert relative(run.final.W, W) < 1e-10
        assert relative(run.final.a, a) < 1e-10
        assert run.loss[-1] == pytest.approx(float(problem.value(problem.outputs(run.final))))
        assert run.settings["weight_decay"] == decay


@pytest.mark.slow
def test_against_torch():
    torch = pytest.importorskip("torch")
    problem, lr, decay = random_problem(leak=0.2), 0.02, 0.1
    net = initialize(problem, 16, scale=0.3, rng=3)
    W = torch.tensor(np.array(net.W), requires_grad=True)
    a = torch.tensor(np.array(net.a), requires_grad=True)
    X, y = torch.tensor(np.array(problem.X)), torch.tensor(np.array(problem.y))
    optimizer = torch.optim.SGD([W, a], lr=lr, weight_decay=decay)
    for _ in range(STEPS):
        optimizer.zero_grad()
        f = torch.nn.functional.leaky_relu(X @ W.T, problem.leak) @ a
        (0.5 * ((f - y) ** 2).mean()).backward()
        optimizer.step()
    for backend in BACKENDS:
        run = descend(problem, net, lr=lr, steps=STEPS, backend=backend, weight_decay=decay)
        assert relative(run.final.W, W.detach().numpy()) < 1e-10
        assert relative(run.final.a, a.detach().numpy()) < 1e-10


@pytest.mark.parametrize("backend", BACKENDS)
def test_mini_batches(backend):
    problem, decay, steps = random_problem(leak=0.1), 0.1, 3000
    net = initialize(problem, 16, scale=0.3, rng=3)
    drawn = Batches(problem.n, 5, False, np.random.default_rng(4)).take(steps)
    batches = [row[row >= 0] for row in drawn]
    W, a = plain_loop(problem, net, np.full(steps, 0.02), decay, batches=batches)
    how = {"batch_size": 5, "rng": 4, "backend": backend, "weight_decay": decay}
    run = descend(problem, net, lr=0.02, steps=steps, **how)
    assert relative(run.final.W, W) < 1e-10
    assert relative(run.final.a, a) < 1e-10


def test_matrix_products():
    problem = random_problem(d=5)
    wide = Problem(np.hstack([problem.X, np.zeros((12, 3))]), problem.y)  # features that never act
    net = initialize(wide, 700, scale=0.05, kind="gaussian", rng=3)
    W, a = plain_loop(wide, net, np.full(300, 0.02), 0.1)
    how = {"lr": 0.02, "steps": 300, "backend": "dense", "weight_decay": 0.1}
    run = descend(wide, net, **how)
    assert relative(run.final.W, W) < 1e-12
    assert relative(run.final.a, a) < 1e-12
    assert np.allclose(run.final.W[:, 5:], net.W[:, 5:] * (1 - 0.002) ** 300, rtol=1e-12)
    single = descend(wide, net, dtype="float32", **how)
    assert single.cost["kernel"] == "blas float32"
    assert relative(single.final.W, W) < 1e-3  # 300 roundings to float32, and kinks near them


def test_one_step_of_a_smoothed_activation_loses_its_share():
    problem = Problem(random_problem().X, random_problem().y, smoothing=0.1)
    net = initialize(problem, 6, scale=0.3, rng=3)
    plain = descend(problem, net, lr=0.1, steps=1).final
    decayed = descend(problem, net, lr=0.1, steps=1, weight_decay=0.5).final
    assert np.allclose(plain.W - decayed.W, 0.05 * net.W, atol=1e-15)
    assert np.allclose(plain.a - decayed.a, 0.05 * net.a, atol=1e-15)


def test_lumped_weights_may_decay_beyond_any_power_of_two_of_a_float():
    problem = Problem(np.eye(2), np.array([1.0, -1.0]))
    net = Network(-np.ones((12, 2)), np.linspace(-1, 1, 12))  # silent: decay is all that happens
    for train in ("both", "first"):
        how = {"lr": 0.5, "steps": 400, "weight_decay": 1.5, "backend": "lumped", "train": train}
        run = descend(problem, net, **how)
        assert np.allclose(run.final.W, net.W * 0.25**400, rtol=1e-12)
        assert np.allclose(run.final.a, net.a * (0.25**400 if train == "both" else 1), rtol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_decay_takes_the_same_steps_bit_for_bit(backend):
    problem = random_problem(leak=0.1)
    net = initialize(problem, 16, scale=0.3, rng=3)
    how = {"lr": 0.02, "steps": 2000, "backend": backend}
    plain, none = descend(problem, net, **how), descend(problem, net, weight_decay=0, **how)
    assert np.array_equal(plain.final.W, none.final.W)
    # a decay so small that every factor 1 - lr decay rounds to 1 must not change a bit either
    tiny = descend(problem, net, weight_decay=1e-300, **how)
    assert np.array_equal(plain.final.W, tiny.final.W)
    assert np.array_equal(plain.final.a, tiny.final.a)


@pytest.mark.parametrize("both", [True, False])
def test_a_lumped_state_goes_on_bit_for_bit(both):
    problem = random_problem()
    net = initialize(problem, 16, scale=0.3, rng=3)
    rates, none = np.full(900, 0.05), np.empty((900, 0), np.int64)

    def fresh():
        return Lumped(samples_of(problem, False, decay=2.0), net, both, 1e10, np.inf)

    whole, parts = fresh(), fresh()  # 0.9^900 is 2^-137: the factor is absorbed twice
    whole.advance(rates, none)
    for cut in (slice(0, 17), slice(17, 650), slice(650, 900)):
        packed = {name: value.copy() for name, value in parts.pack().items()}
        parts = fresh()
        parts.unpack(packed)
        parts.advance(rates[cut], none[cut])
    for first, second in zip(whole.weights()[:2], parts.weights()[:2], strict=True):
        assert np.array_equal(first, second)


def test_refusals():
    problem = random_problem()
    net = initialize(problem, 4, rng=0)
    for wrong in (-0.1, np.inf, np.nan, "much"):
        with pytest.raises(ReluflowError, match="weight_decay must be"):
            descend(problem, net, lr=0.1, steps=1, weight_decay=wrong)
    with pytest.raises(ReluflowError, match="lr times weight_decay is 1, expected less than 1"):
        descend(problem, net, lr=0.5, steps=1, weight_decay=2.0)
