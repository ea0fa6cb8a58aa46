"""flow_arrival.arrive_bundle: neurons beside a kink against the path each of them takes."""

import numpy as np
import pytest
from flow_twins import LEAKS, random_problem, state_of
from scipy.linalg import expm

from reluflow.kernels.codes import STAY
from reluflow.kernels.flow_arrival import arrive_bundle, time_to_kink
from reluflow.kernels.flow_types import Members
from reluflow.network import Network


def matrix(D):
    """M = [[0, D], [D^T, 0]]."""
    d = D.size
    M = np.zeros((d + 1, d + 1))
    M[:d, d] = M[d, :d] = D
    return M


def force(problem, u, c):
    """D_u = sum of slope_k c_k x_k."""
    return (np.where(u > 0, 1.0, problem.leak) * c) @ problem.X


def bundle_near_kink(problem, k, seed, spread=1e-3):
    """Neurons of one cone close to the kink of sample k, on their way across it."""
    rng = np.random.default_rng(seed)
    c = np.array(problem.pull)
    while True:
        w = rng.standard_normal(problem.d)
        w -= (w @ problem.X[k]) / (problem.X[k] @ problem.X[k]) * problem.X[k]
        a = rng.choice([-1.0, 1.0]) * np.linalg.norm(w)
        u = np.sign(problem.X @ w).astype(np.int8)
        u[k] = 1 if a * (force(problem, u, c) @ problem.X[k]) < 0 else -1
        before, after = u.copy(), u.copy()
        after[k] = -u[k]
        speeds = [a * (force(problem, v, c) @ problem.X[k]) * -u[k] for v in (before, after)]
        if min(speeds) > 0.05 and np.delete(np.abs(problem.X @ w), k).min() > 0.05:
            break
    W = w + spread * rng.standard_normal((6, problem.d))
    return np.column_stack([W, np.full(6, a)]), before, after, c


@pytest.mark.parametrize("leak", LEAKS)
@pytest.mark.parametrize("seed", range(4))
def test_each_neuron_of_a_bundle_has_crossed_at_its_own_moment(leak, seed):
    problem = random_problem(seed, leak=leak)
    k = 1
    Z, before, after, c = bundle_near_kink(problem, k, seed)
    M = matrix(force(problem, before, c)), matrix(force(problem, after, c))
    state = state_of(problem, Network(Z[:, :-1], Z[:, -1], leak=problem.leak))
    V = np.tile(before, (6, 1))
    unit = Z / np.linalg.norm(Z, axis=1)[:, None]
    members = Members(np.zeros(6, np.int64), np.arange(6), unit, np.log(np.linalg.norm(Z, axis=1)))
    events = np.zeros((100, 4))
    D = force(problem, before, c)
    times = [time_to_kink(state.data, z, D, k) for z in Z]
    arrive_bundle(state.data, np.arange(6), V, members, c, k, D, 2.0, STAY, events)
    assert (after == V).all()
    assert min(times) < 0.0 < max(times)  # some have been there, some are still to come
    np.testing.assert_allclose(events[1:7, 2], 2.0 + np.array(times), rtol=0, atol=1e-12)
    for j, t in enumerate(times):
        there = expm(M[0] * t) @ Z[j]
        assert abs(there[:-1] @ problem.X[k]) <= 1e-13
        want = expm(-M[1] * t) @ there
        got = members.Z[j] * np.exp(members.ls[j])
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-13 * np.linalg.norm(want))
