"""Flow whose kinks are not located: what it must agree with, and what it says of itself."""

import numpy as np
import pytest

from reluflow import Network, Problem, datasets, descend, initialize
from reluflow.gradientflow import flow, loss_below, settled
from reluflow.trajectory import every


@pytest.fixture(scope="module")
def problem():
    """Sixty samples of two classes in six dimensions."""
    rng = np.random.default_rng(5)
    y = np.where(np.arange(60) < 30, 1.0, -1.0)
    X = rng.standard_normal((60, 6)) + 0.8 * y[:, None] * np.eye(6)[0]
    return Problem(X, y, loss="logistic")


@pytest.fixture(scope="module")
def net(problem):
    return initialize(problem, 16, scale=0.3, kind="gaussian", rng=1)


@pytest.fixture(scope="module")
def located(problem, net):
    return flow(problem, net, t_end=8.0, save=every(1.0))


def gaps(run, other):
    """Largest relative difference of losses, largest 1 - cosine of any neuron."""
    cosines = [
        np.sum(one.directions * two.directions, axis=1)
        for one, two in zip(run.networks, other.networks, strict=True)
    ]
    return np.abs(run.loss / other.loss - 1).max(), 1 - np.min(cosines)


def test_agrees_with_located_kinks(problem, net, located):
    """At the default tolerance to 1e-3; a tenth of it brings both errors down."""
    coarse, fine = (
        flow(problem, net, t_end=8.0, save=every(1.0), kinks=False, rtol=rtol)
        for rtol in (None, 1e-6)
    )
    assert located.loss[-1] < 0.8 * located.loss[0]
    assert "not located" in coarse.status
    assert "0.0001" in coarse.status
    rough, exact = gaps(coarse, located), gaps(fine, located)
    assert rough[0] < 1e-3
    assert rough[1] < 1e-3
    assert exact[0] < 0.5 * rough[0]
    assert exact[1] < 0.5 * rough[1]
    assert coarse.cost["evaluations"] < 0.2 * located.cost["evaluations"]


def test_chosen_when_kinks_are_many():
    problem = Problem(*_cloud(2001, 3), loss="exponential")
    run = flow(problem, initialize(problem, 1000, scale=1e-3, rng=0), t_end=0.2)
    assert "not located" in run.status
    assert run.settings["rtol"] == 1e-4


def _cloud(n, d):
    X = np.random.default_rng(0).standard_normal((n, d))
    return X, np.sign(X[:, 0])


def test_descent_differs_in_first_order(problem, net):
    exact = flow(problem, net, t_end=10.0, kinks=False, rtol=1e-5).final
    off = []
    for steps in (250, 500):
        other = descend(problem, net, lr=10.0 / steps, steps=steps).final
        off.append(np.abs(problem.outputs(other) - problem.outputs(exact)).max())
    assert off[1] < 5e-3
    assert 1.8 < off[0] / off[1] < 2.2


def test_clock_of_the_loss(problem, net):
    """Both clocks reach the same networks at the same times, and log t is recorded."""
    options = dict(clock="loss", stop=loss_below(0.5))
    wide = flow(problem, net, kinks=False, rtol=1e-5, save=every(2.0), **options)
    exact = flow(problem, net, save=every(2.0), **options)
    assert wide.status.code == "loss"
    assert wide.times[:-1].tolist() == exact.times[:-1].tolist()
    assert np.allclose(wide["log_time"][1:], exact["log_time"][1:], atol=1e-4)
    assert np.allclose(wide.loss, exact.loss, rtol=1e-4)
    by_time = flow(problem, net, kinks=False, rtol=1e-5, t_end=np.exp(wide["log_time"][-1]))
    assert by_time.loss[-1] == pytest.approx(0.5, rel=1e-4)


def test_records_inside_steps(problem, net):
    """Dense output costs no evaluation, and is as good as a step that ends there."""
    alone = flow(problem, net, t_end=8.0, kinks=False)
    dense = flow(problem, net, t_end=8.0, kinks=False, save=every(0.5))
    assert dense.cost["evaluations"] == alone.cost["evaluations"]
    assert np.array_equal(dense.final.W, alone.final.W)
    assert len(dense.times) == 17
    ends = flow(problem, net, t_end=3.5, kinks=False)
    assert dense.loss[7] == pytest.approx(ends.loss[-1], rel=1e-4)


def test_stops(problem, net):
    run = flow(problem, net, kinks=False, stop=loss_below(0.5))
    assert run.status.code == "loss"
    assert run.loss[-1] == pytest.approx(0.5, abs=1e-8)
    run = flow(problem, net, kinks=False, stop=lambda p, n, t: t > 3.0)
    assert run.status.code == "predicate"
    run = flow(problem, net, kinks=False, t_end=50.0, max_steps=7)
    assert run.status.code == "max_steps"
    assert run.cost["steps"] == 7
    easy = Problem([[1.0, 0.4], [-1.0, 0.3]], [1.0, -1.0], loss="exponential", leak=0.2)
    start = initialize(easy, 4, scale=0.1, rng=0)
    run = flow(easy, start, clock="loss", kinks=False, stop=settled(1e-3))
    assert run.status.code == "settled"
    exact = flow(easy, start, clock="loss", stop=loss_below(log=run.log_loss[-1]))
    assert np.abs(run.final.directions - exact.final.directions).max() < 1e-3
    still = Problem([[1.0, 0.0]], [1.0])
    run = flow(still, Network([[-1.0, 0.0]], [1.0]), kinks=False, t_end=5.0)
    assert run.status.ok
    assert run.times[-1] == 5.0


def test_any_scale():
    """From e^-300 the same jump, later by log(scale ratio) / rate."""
    problem = datasets.three_points()
    W, a = np.array([[0.5, 1.0], [0.7, 0.7]]), np.array([1.0, 1.0])
    goal = dict(stop=loss_below(0.3), kinks=False, rtol=1e-5)
    times = [flow(problem, Network(W, a, log_scale=-s), **goal).times[-1] for s in (10, 300)]
    exact = [
        flow(problem, Network(W, a, log_scale=-s), stop=loss_below(0.3)).times[-1]
        for s in (10, 300)
    ]
    assert np.allclose(times, exact, rtol=1e-4)


def test_checkpoint_resumes_bit_for_bit(problem, net, tmp_path):
    options = dict(kinks=False, t_end=10.0, clock="loss", save=every(1.0))
    whole = flow(problem, net, **options, stop=Limit(10**9))
    path = tmp_path / "run.npz"
    with pytest.raises(KeyboardInterrupt):
        flow(problem, net, **options, stop=Limit(25), checkpoint=path, checkpoint_seconds=0.0)
    assert path.exists()
    again = flow(problem, net, **options, stop=Limit(10**9), checkpoint=path)
    assert np.array_equal(again.networks.W, whole.networks.W)
    assert np.array_equal(again["log_time"], whole["log_time"])
    assert again.cost == whole.cost
    assert not path.exists()


class Limit:
    """A condition that never holds, and kills the run when asked too often."""

    def __init__(self, calls):
        self.calls = calls

    def __call__(self, problem, net, time):
        self.calls -= 1
        if self.calls < 0:
            raise KeyboardInterrupt
        return False

    def __repr__(self):
        return "Limit"


@pytest.mark.slow
def test_mnist_pair_with_few_evaluations(mnist_folder):
    """[MMV24]_ Figure 5: curves of descent, whose own error halves with lr, from a tenth or less
    of its gradients."""
    problem = datasets.mnist_pair(1, 0, mnist_folder, per_class=200)
    net = initialize(problem, 50, scale=1e-6, kind="gaussian", normalize="none", rng=0)
    run = flow(problem, net, t_end=8.0, kinks=False, save=every(0.5))
    off = []
    for lr in (4e-3, 2e-3):
        other = descend(problem, net, lr=lr, steps=round(8 / lr), save=every(round(0.5 / lr)))
        off.append(gaps(other, run))
    assert run.loss[-1] < 0.15
    assert 1.8 < off[0][0] / off[1][0] < 2.2  # nearly all of the difference is that of descent
    assert off[1][0] < 0.02
    assert off[1][1] < 1e-2
    assert run.cost["evaluations"] < 0.1 * 8.0 / 2e-3


def test_two_features_as_any_number():
    """The kernel for the plane gives what matrix products give on the same data, a zero added."""
    flat = datasets.stewart(rng=0, loss="square")
    solid = Problem(np.column_stack([flat.X, np.zeros(flat.n)]), flat.y, loss="square")
    net = initialize(flat, 40, scale=0.3, kind="gaussian", rng=1)
    more = Network(np.column_stack([net.W, np.zeros(net.m)]), net.a)
    options = dict(t_end=20.0, kinks=False, save=every(5.0))
    one, two = flow(flat, net, **options), flow(solid, more, **options)
    assert np.allclose(one.loss, two.loss, rtol=1e-9)
    assert np.allclose(one.networks.W, two.networks.W[..., :2], atol=1e-7)
