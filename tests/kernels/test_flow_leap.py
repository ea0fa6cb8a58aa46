"""flow_leap: neurons under a constant pull against an integrator that stops at kinks."""

import numpy as np
import pytest
from flow_twins import LEAKS, follow, random_network, random_problem, state_of
from numba import njit

from reluflow.kernels import flow_leap
from reluflow.kernels.codes import STAY
from reluflow.kernels.flow_types import Members
from reluflow.landscape.align import align


@njit
def first_root(A, B, up, down, side):
    """first_root."""
    return flow_leap.first_root(A, B, up, down, side)


@njit
def advance(z, D, rate, t):
    """advance."""
    return flow_leap.advance(z, D, rate, t)


def leap(state, c, H, held=None, times=()):
    """Z, log-scales, patterns and events after a leap; with times, what was kept at them too."""
    Z, ls = state.Z.copy(), state.ls.copy()
    V = np.empty((Z.shape[0], state.U.shape[1]), np.int8)
    events = np.zeros((1000, 4))
    held = np.zeros(state.U.shape[0], bool) if held is None else held
    members = Members(state.gid, state.col, Z, ls)
    gram = state.data.X @ state.data.X.T
    places = np.full((len(times), *Z.shape), np.nan), np.full((len(times), ls.size), np.nan)
    kept = flow_leap.OnTheWay(np.array(times, dtype=float), *places)
    reached = flow_leap.leap_all(
        state.data, gram, state.U, members, held, c, H, 0.0, STAY, V, events, kept
    )
    assert reached == H
    found = Z, ls, V, events[1 : 1 + int(events[0, 0])]
    return (*found, kept) if len(times) else found


@pytest.mark.parametrize("leak", LEAKS)
@pytest.mark.parametrize("seed", range(3))
def test_neurons_under_a_constant_pull(leak, seed):
    problem = random_problem(seed, leak=leak)
    net = random_network(problem, 8, seed)
    state, H = state_of(problem, net), 6.0
    Z, ls, V, events = leap(state, np.array(problem.pull), H)
    for j in range(1, 8):
        start = np.append(net.W[j], net.a[j])
        z, u, met = follow(state.data, start, state.U[state.gid[j]], lambda t: problem.pull, H)
        np.testing.assert_allclose(Z[j] * np.exp(ls[j]), z, rtol=0, atol=1e-8 * np.linalg.norm(z))
        np.testing.assert_array_equal(V[j], u)
        mine = events[events[:, 0] == j]
        assert mine[:, 1].astype(int).tolist() == [k for k, _, _ in met]
        assert mine[:, 3].astype(int).tolist() == [kind for _, _, kind in met]
        np.testing.assert_allclose(mine[:, 2], [t for _, t, _ in met], atol=1e-8)
    np.testing.assert_array_equal(Z[0], 0.0)  # the zero neuron


@pytest.mark.parametrize("leak", LEAKS)
def test_neurons_kept_on_the_way_are_those_of_shorter_leaps(leak):
    """Moving ones, the zero neuron, and those of a cone that is held."""
    problem = random_problem(7, leak=leak)
    net = random_network(problem, 9, 7)
    state = state_of(problem, net)
    held = np.zeros(state.U.shape[0], bool)
    held[state.gid[3]] = True
    times, c = [0.0, 0.3, 1.7, 4.0, 6.0], np.array(problem.pull)
    *_, events, kept = leap(state, c, 6.0, held, times)
    assert len(events)  # some kinks are met
    for t, Z, ls in zip(times, kept.Z, kept.ls, strict=True):
        there, logs, _, _ = leap(state, c, t, held)
        np.testing.assert_allclose(Z, there, rtol=0, atol=1e-12)
        np.testing.assert_allclose(ls, logs, rtol=0, atol=1e-12)


def test_growth_far_beyond_the_floats():
    """After e^1000 of growth: the direction of early alignment, and its rate and offset."""
    problem = random_problem(4, leak=0.3)
    net = random_network(problem, 12)
    state = state_of(problem, net)
    H = 1000.0 / np.abs(problem.pull @ problem.X).max()
    Z, ls, _, _ = leap(state, np.array(problem.pull), H)
    found = align(problem, net)
    w = Z[:, :-1] / np.linalg.norm(Z[:, :-1], axis=1, keepdims=True).clip(1e-300)
    log_w = ls + np.log(np.linalg.norm(Z[:, :-1], axis=1).clip(1e-300))
    grows = np.flatnonzero(found.growing & (found.growth > 0))
    assert grows.size > 3
    np.testing.assert_allclose(w[grows], found.direction[grows], atol=1e-10)
    np.testing.assert_allclose(
        log_w[grows], (found.log_offset + found.growth * H)[grows], rtol=1e-12
    )


def test_held_cones_do_not_move():
    problem = random_problem(5)
    state = state_of(problem, random_network(problem, 20))
    held = np.arange(state.U.shape[0]) == state.gid[3]
    Z, ls, V, _ = leap(state, np.array(problem.pull), 2.0, held)
    stays = held[state.gid]
    np.testing.assert_array_equal(Z[stays], state.Z[stays])
    np.testing.assert_array_equal(ls[stays], state.ls[stays])
    np.testing.assert_array_equal(V[stays], state.U[state.gid][stays])
    assert (Z[~stays] != state.Z[~stays]).any()


def test_first_root_of_random_quadratics():
    rng = np.random.default_rng(6)
    logs = np.linspace(0.0, 12.0, 240_001)
    met = 0
    for _ in range(40):
        A, B, up, down = rng.normal(size=4)
        for side in (-1, 1):
            value = side * (A + B * (up * np.exp(logs) + down * np.exp(-logs)))
            falls = np.flatnonzero((value[:-1] > 0) & (value[1:] <= 0))
            found = first_root(A, B, up, down, side)
            if falls.size:
                assert found == pytest.approx(logs[falls[0]], abs=6e-5)
                met += 1
            else:
                assert found > 12.0 or (found == 0.0 and abs(value[0]) < 1e-9)
    assert met > 10


@pytest.mark.parametrize("t", [0.0, 0.7, 40.0, 2000.0])
def test_advance_keeps_parts_of_any_size(t):
    """exp(M t) z in units of the largest part, in logarithms."""
    rng = np.random.default_rng(7)
    rate = 0.5
    D, z = np.array([rate, 0.0, 0.0]), rng.normal(size=4)
    z[3] = -z[0] * (1.0 - 2.0**-30)  # hardly any growing part, without rounding in p + a
    out = z.copy()
    log = advance(out, D, rate, t)
    p = z[:3] @ D / rate
    up, down = 0.5 * (p + z[3]), 0.5 * (p - z[3])
    across = np.append(z[:3] - p * D / rate, 0.0)
    g = rate * t
    parts = [
        (0.0, across),
        (g, up * np.append(D / rate, 1.0)),
        (-g, down * np.append(D / rate, -1.0)),
    ]
    top = max(e + np.log(np.abs(v).max()) for e, v in parts)
    exact = sum(v * np.exp(max(e - top, -700.0)) for e, v in parts)
    size = np.linalg.norm(exact)
    np.testing.assert_allclose(out, exact / size, rtol=0, atol=1e-13)
    assert log == pytest.approx(top + np.log(size), rel=1e-13, abs=1e-13)
