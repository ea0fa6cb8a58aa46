"""Weight decay with several outputs: descent and flow have it, the rest says that it has not."""

import numpy as np
import pytest

from reluflow import (
    Network,
    Problem,
    ReluflowError,
    certificates,
    descend,
    drift,
    explain,
    flow,
    initialize,
    limit,
    ridge,
    ridge_path,
)
from reluflow.optimum import penalised_stationarity

RNG = np.random.default_rng(3)
X = RNG.normal(size=(9, 3))
LABELS = {"softmax": [0, 1, 2] * 3, "half_square": RNG.normal(size=(9, 3))}


def problem_of(loss, leak=0.0):
    return Problem(X, LABELS[loss], loss=loss, leak=leak)


def force(problem, W, A):
    """Minus the gradient of the loss, written out."""
    S = W @ problem.X.T
    slope = np.where(S > 0.0, 1.0, problem.leak)
    C = problem.pull_at((slope * S).T @ A)
    return (slope * (A @ C.T)) @ problem.X, (slope * S) @ C


@pytest.mark.parametrize("loss", LABELS)
@pytest.mark.parametrize("train", ["both", "first"])
@pytest.mark.parametrize("log_scale", [0.0, -20.0])
def test_descent_against_a_plain_loop(loss, train, log_scale):
    problem, lr, decay = problem_of(loss, leak=0.1), 0.02, 0.03
    net = initialize(problem, 5, scale=0.4, rng=1).scaled(log_scale)
    W, A = (v.copy() for v in net.weights())
    for _ in range(3000):
        dW, dA = force(problem, W, A)
        W, A = W + lr * (dW - decay * W), A + (lr * (dA - decay * A) if train == "both" else 0.0)
    run = descend(problem, net, lr=lr, steps=3000, train=train, weight_decay=decay)
    V, B = run.final.weights()
    assert np.abs(V - W).max() < 1e-10 * np.abs(W).max()
    assert np.abs(B - A).max() < 1e-10 * np.abs(A).max()


def test_descent_against_pytorch():
    torch = pytest.importorskip("torch")
    problem, lr, decay = problem_of("softmax"), 0.05, 0.02
    net = initialize(problem, 6, scale=0.5, rng=2)
    W, A = (torch.tensor(v, requires_grad=True) for v in net.weights())
    optimiser = torch.optim.SGD([W, A], lr=lr, weight_decay=decay)
    samples, labels = torch.tensor(problem.X), torch.tensor(LABELS["softmax"])
    for _ in range(300):
        optimiser.zero_grad()
        f = torch.relu(samples @ W.T) @ A
        torch.nn.functional.cross_entropy(f, labels).backward()
        optimiser.step()
    run = descend(problem, net, lr=lr, steps=300, weight_decay=decay)
    V, B = run.final.weights()
    assert np.abs(V - W.detach().numpy()).max() < 1e-10
    assert np.abs(B - A.detach().numpy()).max() < 1e-10


@pytest.mark.parametrize("loss", LABELS)
@pytest.mark.parametrize("kinks", [True, False])
def test_flow_against_fine_descent(loss, kinks):
    """Where no kink is met descent of step h is off by O(h), and extrapolated by O(h^2)."""
    problem = Problem(np.abs(X), LABELS[loss], loss=loss)
    net = initialize(problem, 5, scale=0.4, rng=1)
    net, decay, t = Network(np.abs(net.W), net.a), 0.1, 2.0
    how = {"t_end": t, "kinks": kinks, "rtol": 1e-10 if kinks else 1e-7}
    run = flow(problem, net, weight_decay=decay, **how)
    assert not kinks or len(run.events["kind"]) == 0
    coarse, fine = (
        descend(problem, net, lr=t / n, steps=n, weight_decay=decay).final(problem.X)
        for n in (2000, 4000)
    )
    assert np.abs(run.final(problem.X) - (2.0 * fine - coarse)).max() < 1e-6
    unpenalised = flow(problem, net, **how)
    assert np.abs(run.final(problem.X) - unpenalised.final(problem.X)).max() > 1e-2


@pytest.mark.parametrize("options", [{"rtol": 1e-11}, {"kinks": False, "rtol": 1e-4, "t_end": 3.0}])
def test_beside_silent_outputs_flow_is_that_of_one(options):
    y = LABELS["half_square"] * [1.0, 0.0, 0.0]
    number, matrix = Problem(X, y[:, 0]), Problem(X, y)
    net = initialize(number, 6, scale=0.3, rng=3)
    wide = Network(net.W, np.pad(net.a[:, None], ((0, 0), (0, 2))))
    how = {"t_end": 9.0, "weight_decay": 0.1, **options}
    one, other = flow(number, net, **how), flow(matrix, wide, **how)
    assert (other.final.a[:, 1:] == 0.0).all()
    assert np.abs(one.final(X) - other.final(X)[:, 0]).max() < 1e2 * options["rtol"]
    if "kinks" not in options:
        kinds = [np.bincount(run.events["kind"], minlength=4)[1:4].tolist() for run in (one, other)]
        assert kinds[0][:2] == kinds[1][:2]
        assert sum(kinds[0]) > 0


def test_an_imbalance_falls_like_exp_of_minus_two_lambda_t():
    problem, decay = problem_of("softmax"), 0.05
    net = initialize(problem, 6, scale=0.3, kind="gaussian", rng=4)
    times = np.linspace(0.0, 12.0, 7)
    run = flow(problem, net, t_end=12.0, save=times, rtol=1e-9, weight_decay=decay)
    gaps = np.array([np.sum(n.W**2, axis=1) - np.sum(n.a**2, axis=1) for n in plain(run.networks)])
    expected = gaps[0] * np.exp(-2.0 * decay * times)[:, None]
    assert np.abs(gaps - expected).max() < 1e-8
    assert len(run.events["kind"]) > 0


def plain(networks):
    """The networks with their scales multiplied in."""
    return [Network(*net.weights()) for net in networks]


def test_a_flow_comes_to_rest_where_the_penalised_loss_does():
    problem, decay = problem_of("softmax"), 0.05
    run = flow(problem, initialize(problem, 5, scale=0.5, rng=0), weight_decay=decay)
    assert run.status.code == "stationary"
    W, A = run.final.weights()
    dW, dA = force(problem, W, A)
    on = np.abs(W @ X.T).min(axis=1) > 1e-6 * np.linalg.norm(W, axis=1)  # on no kink
    assert on.any()
    assert np.abs(dW[on] - decay * W[on]).max() < 1e-6
    assert np.abs(dA - decay * A).max() < 1e-6


def test_a_decay_above_every_pull_silences_all():
    problem = problem_of("softmax")
    net = initialize(problem, 5, scale=0.1, rng=0)
    run = flow(problem, net, t_end=10.0, weight_decay=5.0)
    assert run.final.norm2 < 1e-15


def test_the_rest_refuses_in_a_sentence():
    problem = problem_of("softmax")
    net = initialize(problem, 4, scale=0.1, rng=0)
    for attempt in (
        lambda: limit(problem, net, weight_decay=0.1),
        lambda: explain(problem, m=4, weight_decay=0.1),
        lambda: ridge(problem, 0.1),
        lambda: ridge_path(problem),
        lambda: drift(problem, net, 0.1),
        lambda: penalised_stationarity(problem, net, 0.1),
        lambda: certificates(problem, net, weight_decay=0.1),
    ):
        with pytest.raises(ReluflowError, match="is for one output, this problem has 3"):
            attempt()
    with pytest.raises(ReluflowError, match="clock='loss' is for weights that grow for ever"):
        flow(problem, net, clock="loss", weight_decay=0.1)
