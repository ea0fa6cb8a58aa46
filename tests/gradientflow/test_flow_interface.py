"""What a user of flow sees: records, stops, budgets, files, refusals."""

import numpy as np
import pytest

from reluflow import Network, Problem, datasets, initialize, losses
from reluflow.errors import ReluflowError
from reluflow.gradientflow import flow, loss_below, stationary
from reluflow.trajectory import Trajectory, every, geometric
from reluflow.trajectory.phases import phases


@pytest.fixture
def problem():
    return datasets.three_points()


@pytest.fixture
def net(problem):
    return initialize(problem, 12, scale=1e-2, rng=0)


def test_records_are_where_asked(problem, net):
    run = flow(problem, net, t_end=20.0, save=[0.0, 1.5, 7.0, 20.0])
    assert run.times.tolist() == [0.0, 1.5, 7.0, 20.0]
    assert np.all(np.diff(run.steps) >= 0)
    assert len(run.networks) == 4
    assert np.allclose(run.networks[0].weights()[0], net.W, rtol=1e-14)
    run = flow(problem, net, t_end=20.0, save=every(5.0), observe="norm2")
    assert run.times.tolist() == [0.0, 5.0, 10.0, 15.0, 20.0]
    assert run.networks is None
    run = flow(problem, net, t_end=20.0, save=geometric(2.0))
    assert run.times.tolist() == [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 20.0]
    assert run.status.code == "finished"


def test_stops(problem, net):
    run = flow(problem, net)
    assert run.status.code == "stationary"
    assert np.allclose(problem.outputs(run.final), problem.known["limit_outputs"], atol=1e-8)
    run = flow(problem, net, stop=loss_below(0.1))
    assert run.status.code == "loss"
    assert abs(run.loss[-1] - 0.1) < 1e-12
    run = flow(problem, net, stop=[stationary(), lambda p, n, t: t > 3.0])
    assert run.status.code == "predicate"
    run = flow(problem, net, max_steps=5, t_end=1e3)
    assert run.status.code == "max_steps"
    assert not run.status.ok
    assert run.cost["steps"] == 5


def test_far_end_costs_nothing(problem, net):
    near, far = (flow(problem, net, t_end=t).cost["steps"] for t in (1e4, 1e9))
    assert far <= near + 20


def test_checkpoint_resumes_bit_for_bit(problem, tmp_path):
    net = initialize(problem, 60, scale=0.03, rng=2)
    options = dict(t_end=60.0, save=every(4.0))
    whole = flow(problem, net, **options)
    path = tmp_path / "run.npz"

    class Kill(Exception):
        pass

    count, last = 0, 25

    def killer(p, n, t):
        nonlocal count
        count += 1
        if count > last:
            raise Kill
        return False

    with pytest.raises(Kill):
        flow(problem, net, **options, stop=killer, checkpoint=path, checkpoint_seconds=0.0)
    assert path.exists()
    with pytest.raises(ReluflowError, match="other data, weights or settings"):
        flow(problem, net, **options, checkpoint=path)
    last = 10**9
    again = flow(problem, net, **options, stop=killer, checkpoint=path)
    assert np.array_equal(again.networks.W, whole.networks.W)
    assert np.array_equal(again.networks.log_scale, whole.networks.log_scale)
    assert np.array_equal(again.events["time"], whole.events["time"])
    assert again.cost == whole.cost
    assert not path.exists()


@pytest.mark.parametrize(
    "other",
    [
        {"problem": {"loss": losses.Logistic(factor=2.0)}},
        {"problem": {"leak": 0.1}},
        {"problem": {"smoothing": 0.1}, "kinks": False},
        {"observe": "norm2"},
        {"observe": "norm2", "states": True},
        {"states": False},
        {"kinks": False},
        {"stop": lambda p, n, t: False},
    ],
)
def test_checkpoint_of_another_run_is_refused(other, tmp_path):
    """Whatever changes results or records is part of what a checkpoint is known by."""
    path = tmp_path / "run.npz"
    problem = datasets.separable(rng=0, loss="logistic")
    net = initialize(problem, 4, scale=0.1, rng=0)
    options = {"t_end": 20.0, "save": every(1.0), "checkpoint": path}
    with pytest.raises(ZeroDivisionError):
        flow(problem, net, **options, stop=_fail_late, checkpoint_seconds=0.0)
    changed = {"stop": _fail_late, **other}
    problem = problem.replace(**changed.pop("problem", {}))
    with pytest.raises(ReluflowError, match="other data, weights or settings"):
        flow(problem, net, **options, **changed)


def _fail_late(problem, net, time):
    return time > 5 and 1 / 0


def test_store_keeps_events(problem, net, tmp_path):
    run = flow(problem, net, t_end=30.0)
    run.save(tmp_path / "run.nc")
    back = Trajectory.load(tmp_path / "run.nc")
    assert len(run.events["time"]) > 0
    for name in run.events:
        assert np.array_equal(run.events[name], back.events[name])


def test_refusals(problem, net):
    with pytest.raises(ReluflowError, match="rtol"):
        flow(problem, net, rtol=0.0)
    with pytest.raises(ReluflowError, match="t_end"):
        flow(problem, net, t_end=np.nan)
    with pytest.raises(ReluflowError, match="clock"):
        flow(problem, net, clock="loss")
    with pytest.raises(ReluflowError, match="clock"):
        flow(problem, net, clock="steps")
    with pytest.raises(ReluflowError, match="on_branch"):
        flow(problem, net, on_branch="maybe")
    with pytest.raises(ReluflowError, match="stop"):
        flow(problem, net, stop=3)
    with pytest.raises(ReluflowError, match="W of shape"):
        flow(problem, Network([[1.0]], [1.0]))


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (3, 1)])
def test_smallest_problems(shape):
    rng = np.random.default_rng(0)
    problem = Problem(rng.standard_normal(shape), rng.standard_normal(shape[0]))
    run = flow(problem, initialize(problem, 3, scale=0.1, rng=1))
    assert run.status.ok


def test_odd_data():
    """A zero sample, duplicate and opposite samples, a label 0, a zero neuron."""
    X = [[1.0, 0.5], [1.0, 0.5], [-1.0, -0.5], [0.0, 0.0], [0.3, -1.0]]
    problem = Problem(X, [1.0, 0.8, -0.5, 1.0, 0.0])
    net = initialize(problem, 8, scale=0.1, rng=4)
    net = Network(np.vstack([net.W, [0.0, 0.0]]), np.append(net.a, 0.0))
    run = flow(problem, net, t_end=100.0, save=every(1.0), max_seconds=20)
    assert run.status.code == "finished"
    assert np.all(np.diff(run.loss) <= 1e-13)
    assert np.array_equal(run.final.weights()[0][-1], [0.0, 0.0])


@pytest.mark.parametrize("rtol", [1e-6, 1e-8, 1e-10])
def test_a_zero_neuron_changes_nothing(rtol):
    """It is moved along a step and has no size to measure an error by."""
    made = datasets.figure1_right()
    problem = Problem(made.X / made.known["radius"], made.y, made.loss, made.leak)
    w = 0.3 * made.known["mu_plus"] / np.linalg.norm(made.known["mu_plus"])
    net = Network([w, 0 * w], [0.3, 0.0], log_scale=np.log(1e-4), leak=0.5)
    both, one = (flow(problem, start, t_end=70.0, rtol=rtol) for start in (net, net.subset([0])))
    assert both.loss[-1] == one.loss[-1]
    assert np.array_equal(both.final.W[1], [0.0, 0.0])


def test_wide_path_says_so_and_agrees(problem, net):
    exact = flow(problem, net, t_end=15.0)
    wide = flow(problem, net, t_end=15.0, kinks=False, rtol=1e-7, save=[7.0, 15.0])
    assert "not located" in wide.status
    assert wide.times.tolist() == [7.0, 15.0]
    assert np.allclose(problem.outputs(wide.final), problem.outputs(exact.final), atol=1e-5)
    run = flow(problem, net, kinks=False, rtol=1e-6, stop=stationary(1e-6))
    assert run.status.code == "stationary"


def test_phases_of_the_golden_case():
    problem = Problem(np.eye(4), [4.0, 3.0, 2.0, 1.0])
    rows = np.array([[1, 1, -1, -1], [-1, 1, 1, -1], [-1, -1, 1, 1.0]]) / 2
    L = 100.0
    run = flow(problem, Network(rows, np.ones(3), log_scale=-L), t_end=280.0, save=every(0.1))
    found = phases(run)
    assert len(found.jumps) == 3
    assert np.allclose(found.jumps / L, [0.8, 1.3578, 2.3217], atol=0.02)
    assert np.allclose(found.plateaus[:, 2], np.array([30, 5, 1, 0]) / 8, atol=1e-3)
    assert found.alignment_end is not None
    assert found.alignment_end < 10.0
    assert found.convergence is not None


@pytest.mark.parametrize(
    ("seed", "said"),
    [(0, "as small as rtol 1e-08 can tell"), (3, "as small as"), (4, "Nothing moves any more")],
)
def test_a_run_at_rest_ends_and_says_why(seed, said):
    """Steps of relative error rtol leave a subgradient above some tolerances: once it has stopped
    falling the run ends. The end is recorded."""
    rng = np.random.default_rng(seed)
    problem = Problem(rng.standard_normal((5, 3)), rng.standard_normal(5), "square")
    net = initialize(problem, 5, scale=1e-6, rng=seed)
    run = flow(problem, net, rtol=1e-8, stop=stationary(1e-15), max_steps=20_000)
    assert run.status.ok
    assert said in str(run.status)
    exact = flow(problem, net, rtol=1e-11, stop=stationary(1e-10), max_steps=20_000)
    assert run.loss[-1] == pytest.approx(exact.loss[-1], abs=1e-8)
    assert run.loss[-1] == problem.value(problem.outputs(run.final))
