"""flow_scan: nobody who meets a kink is missed, whatever the deadlines say."""

import numpy as np
import pytest
from flow_twins import LEAKS, random_network, random_problem, slopes_of, state_of
from numba import njit

from reluflow import Network
from reluflow.gradientflow.present import Present
from reluflow.gradientflow.trial import Trial
from reluflow.kernels import flow_scan
from reluflow.kernels.codes import STAY
from reluflow.kernels.wheel import NONE


@njit
def slack(data, u, z, faces):
    """slack_of."""
    return flow_scan.slack_of(data, u, z, faces)


def trial_of(problem, net, h):
    trial = Trial(Present(state_of(problem, net), 1e-8, STAY))
    trial.attempt(h)
    trial.dense()
    return trial


def neurons_at(trial, x):
    """w_j in units of their scales, from columns at x."""
    state = trial.now.state
    return np.array([state.vectors(g, j, trial.columns_at(x)) for j, g in enumerate(state.gid)])


def crossings(trial, points=201):
    """(first grid interval, sample) of each neuron whose sign falls; None for the others."""
    state = trial.now.state
    grid = np.linspace(0.0, 1.0, points)
    U = state.U[state.gid]
    least = np.array([U * (neurons_at(trial, x)[:, :-1] @ state.data.X.T) for x in grid])
    found = {}
    for j in range(U.shape[0]):
        falls = (least[:-1, j] > 0) & (least[1:, j] <= 0) & (U[j] != 0)
        if falls.any():
            i = falls.any(axis=1).argmax()
            found[j] = (grid[i], grid[i + 1], set(np.flatnonzero(falls[i]).tolist()))
    return found


@pytest.mark.parametrize("leak", LEAKS)
@pytest.mark.parametrize("m", [6, 150])
def test_scan_finds_those_who_meet_kinks(leak, m):
    met = 0
    for seed in range(3):
        problem = random_problem(seed, leak=leak)
        trial = trial_of(problem, random_network(problem, m, seed), 0.8)
        exact = crossings(trial)
        which = trial.scan().tolist()
        assert set(exact) <= set(which)
        for j in which:
            theta, k = trial.theta[j], trial.kink[j]
            if j in exact:
                low, high, samples = exact[j]
                assert low - 1e-9 <= theta <= high + 1e-9
                assert k in samples
        # those found without a fall on the grid: at rest on a kink, or a dip between two points
        assert len(set(which) - set(exact)) <= 1
        met += len(exact)
    assert met > (5 if m > 6 else 0)


@pytest.fixture
def wheels_for_all(monkeypatch):
    """Every lumped cone has a wheel, however few its neurons are."""
    monkeypatch.setattr("reluflow.gradientflow.cones.CROWDED", 0)


@pytest.mark.usefixtures("wheels_for_all")
def test_the_way_of_a_cone_bounds_every_row():
    problem = random_problem(5, leak=0.3)
    trial = trial_of(problem, random_network(problem, 150), 0.5)
    trial.scan()
    state = trial.now.state
    x = problem.X / problem.norms[:, None]
    for g in np.flatnonzero(state.cones.lumped):
        rows = slice(state.cones.offset[g], state.cones.offset[g + 1])
        start = state.C[rows, :-1] @ x.T
        for theta in np.linspace(0.0, 1.0, 21):
            moved = np.linalg.norm(trial.columns_at(theta)[rows, :-1] @ x.T - start, axis=0)
            assert moved.max() <= trial.ways[state.wheel.row[g]]


@pytest.mark.usefixtures("wheels_for_all")
def test_neurons_are_filed_before_their_slack_is_used_up():
    problem = random_problem(6)
    state = state_of(problem, random_network(problem, 200))
    wheel = state.wheel
    filed = 0
    for g in np.flatnonzero(state.cones.lumped):
        i = wheel.row[g]
        for slot in np.flatnonzero(wheel.head[i] != NONE):
            j = wheel.head[i, slot]
            while j != NONE:
                s = np.abs(problem.X @ state.Z[j, :-1]) / problem.norms
                own = slack(state.data, state.U[g], state.Z[j], False)
                assert own == pytest.approx(s.min(), rel=1e-13)
                assert state.gid[j] == g
                assert wheel.mark[i, slot] <= own
                filed += 1
                j = wheel.link[j]
    assert filed == np.sum(state.cones.lumped[state.gid])


def test_neurons_with_a_wheel_and_without_meet_the_same_kinks(monkeypatch):
    problem = random_problem(5, leak=0.3)
    net = random_network(problem, 150)
    alone = trial_of(problem, net, 0.8)
    found = alone.scan()
    monkeypatch.setattr("reluflow.gradientflow.cones.CROWDED", 0)
    wheeled = trial_of(problem, net, 0.8)
    np.testing.assert_array_equal(wheeled.scan(), found)
    assert found.size > 5
    np.testing.assert_array_equal(wheeled.theta[found], alone.theta[found])


def test_slack_on_a_face_counts_the_outer_weight_and_not_the_face():
    problem = random_problem(7)
    data = state_of(problem, random_network(problem, 5)).data
    z = np.array([0.6, 0.3, 0.2, -1e-3])
    u = np.sign(problem.X @ z[:-1]).astype(np.int8)
    u[2] = 0
    s = np.delete(np.abs(problem.X @ z[:-1]) / problem.norms, 2)
    assert slack(data, u, z, False) == pytest.approx(s.min())
    assert slack(data, u, z, True) == pytest.approx(min(s.min(), 1e-3))


def test_a_whole_cone_leaves_its_face():
    """Neurons slide on x_0 until the pull of x_1 is too weak to hold them: all are found."""
    from reluflow import Problem

    X = np.array([[1.0, 0.0], [0.4, 1.0]])
    problem = Problem(X, np.array([-0.5, 2.0]))
    W = np.array([[0.0, 1.0], [0.0, 0.9]])
    state = state_of(problem, Network(W, np.array([1.0, 0.9])))
    assert (state.U[state.gid][:, 0] == 0).all()  # both slide
    trial = Trial(Present(state, 1e-8, STAY))
    trial.attempt(1.0)
    trial.dense()
    which = trial.scan()
    if which.size:
        assert which.tolist() == [0, 1]
        assert trial.kink[which].tolist() == [0, 0]
        assert trial.theta[0] == trial.theta[1]
    grid = np.linspace(0.0, 1.0, 2001)
    slope = [_slope(problem, trial.outputs_at(x)) for x in grid]
    bad = np.flatnonzero((np.array(slope) < 0.0) | (np.array(slope) > 1.0))
    assert which.size == (2 if bad.size else 0)
    if bad.size:
        assert trial.theta[0] == pytest.approx(grid[bad[0]], abs=1e-3)


def _slope(problem, f):
    """s with s c_0 |x_0|^2 + c_1 <x_1, x_0> = 0."""
    c = problem.pull_at(f)
    return -c[1] * (problem.X[1] @ problem.X[0]) / (c[0] * problem.norms[0] ** 2)


def test_slopes_of_faces_are_zero():
    assert slopes_of(np.array([1, 0, -1]), 0.3).tolist() == [1.0, 0.0, 0.3]
