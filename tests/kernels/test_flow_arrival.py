"""flow_arrival: what happens at a kink, against the two velocities of the definition."""

import numpy as np
import pytest
from flow_twins import LEAKS, force_of, random_problem, side_after
from scipy.optimize import lsq_linear

from reluflow import Problem
from reluflow.gradientflow.terms import data_of
from reluflow.kernels import flow_arrival
from reluflow.kernels.codes import BRANCH, CROSS, EVENT_NAMES, EXIT, LEAVE, SLIDE, STAY


def arrive(data, u, z, c, k, policy=STAY, when=1.5):
    """Pattern, vector and events (sample, kind) after an arrival."""
    u, z, log = u.astype(np.int8), z.copy(), flow_arrival.empty_log(u.size)
    flow_arrival.arrive(data, u, z, c, k, when, log, policy)
    rows = log[1 : 1 + int(log[0, 0])]
    assert (rows[:, 1] == when).all()
    return u, z, [(int(row[0]), int(row[2])) for row in rows]


def at_kink(data, k, rng, a=None):
    """A unit neuron on the hyperplane of sample k, and the signs of the others; u_k random."""
    x = data.X[k] / data.norms[k]
    w = rng.normal(size=x.size)
    w -= (w @ x) * x
    z = np.append(w, rng.normal() if a is None else a)
    z /= np.linalg.norm(z)
    u = np.sign(data.X @ z[:-1]).astype(np.int8)
    u[k] = rng.choice([-1, 1])
    return u, z


@pytest.mark.parametrize("leak", LEAKS)
def test_one_kink_at_a_time(leak):
    met = {CROSS: 0, SLIDE: 0}
    for seed in range(80):
        rng = np.random.default_rng(seed)
        data = data_of(random_problem(seed, leak=leak), "time")
        k, c = int(rng.integers(6)), rng.normal(size=6)
        u, z = at_kink(data, k, rng)
        rest = u.copy()
        rest[k] = -1
        base = force_of(data, rest, np.where(np.arange(6) == k, 0.0, c))
        slope = leak if u[k] < 0 else 1.0
        arrives = u[k] * z[-1] * (base + slope * c[k] * data.X[k]) @ data.X[k] < 0
        if not arrives:  # moving away from its kink: nobody comes here this way
            continue
        now, moved, events = arrive(data, u, z, c, k)
        side = side_after(data, u, z, c, k)
        assert now[k] == side
        np.testing.assert_array_equal(np.delete(now, k), np.delete(u, k))
        kind = CROSS if side else SLIDE
        assert events == [(k, kind)], [EVENT_NAMES[e] for _, e in events]
        assert abs(moved[:-1] @ data.X[k]) < 1e-14
        met[kind] += 1
    assert min(met.values()) > 3


@pytest.mark.parametrize("leak", LEAKS)
def test_several_kinks_at_once_give_the_least_force(leak):
    """The pattern found moves as the element of minimal norm over all slopes at the kinks."""
    slid = 0
    for seed in range(60):
        rng = np.random.default_rng([1, seed])
        problem = random_problem(seed, n=6, d=4, leak=leak)
        data = data_of(problem, "time")
        w = np.linalg.svd(data.X[:2])[2][2:].T @ rng.normal(size=2)  # on the first two hyperplanes
        z = np.append(w, rng.choice([-1.0, 1.0]) * np.linalg.norm(w))
        z /= np.linalg.norm(z)
        u = np.sign(data.X @ z[:-1]).astype(np.int8)
        u[:2] = 0
        c = rng.normal(size=6)
        c[:2] = -np.sign(z[-1]) * np.abs(c[:2])  # a c_k < 0: attracting, solutions are unique
        rest = (np.where(u > 0, 1.0, np.where(u < 0, leak, 0.0)) * c) @ data.X
        A = (c[:2, None] * data.X[:2]).T
        found = lsq_linear(A, -rest, (leak, 1.0), method="bvls", tol=1e-15)
        now = u.copy()
        flow_arrival.resolve(data, now, z, c, STAY)
        np.testing.assert_allclose(force_of(data, now, c), rest + A @ found.x, atol=1e-9)
        inside = (found.x > leak + 1e-9) & (found.x < 1.0 - 1e-9)
        np.testing.assert_array_equal(now[:2] == 0, inside)
        slid += int(inside.sum())
    assert slid > 5


def test_w_that_has_become_zero_goes_on_with_the_signs_of_its_velocity():
    found = 0
    for seed in range(20):
        rng = np.random.default_rng([2, seed])
        data = data_of(random_problem(seed, leak=0.3), "time")
        z, c = np.array([0.0, 0.0, 0.0, 1.0]), rng.normal(size=6)
        u = rng.choice([-1, 1], size=6)
        now, *_ = arrive(data, u, z, c, int(rng.integers(6)))
        v = data.X @ force_of(data, now, c)
        if (now != 0).all():
            np.testing.assert_array_equal(now, np.sign(v))
            found += 1
        else:
            np.testing.assert_allclose(v[now == 0], 0.0, atol=1e-12)
    assert found > 5


@pytest.mark.parametrize(("policy", "side"), [(STAY, 0), (LEAVE, 1)])
def test_an_outer_weight_that_changes_sign_makes_a_ridge(policy, side):
    data = data_of(Problem(np.eye(2), np.ones(2)), "time")
    z = np.array([0.0, 1.0, 1e-17])
    now, moved, events = arrive(data, np.array([0, 1]), z, np.ones(2), -1, policy)
    assert now.tolist() == [side, 1]
    assert moved[-1] == 0.0
    assert events == [(0, BRANCH)]


def test_a_slope_at_its_bound_leaves_the_face():
    """x_0 = (1, 0), the rest pushes across by 1.5 against c_0 = -1: the slope 1.5 is above 1."""
    X = np.array([[1.0, 0.0], [1.5, 1.0]])
    data = data_of(Problem(X, np.ones(2)), "time")
    z, c = np.array([0.0, np.sqrt(0.5), np.sqrt(0.5)]), np.array([-1.0, 1.0])
    now, _, events = arrive(data, np.array([0, 1]), z, c, 0)
    assert now.tolist() == [1, 1]
    assert events == [(0, EXIT)]


def test_parallel_samples_are_met_together():
    X = np.array([[1.0, 0.0], [-2.0, 0.0], [0.0, 1.0]])
    data = data_of(Problem(X, np.ones(3), leak=0.1), "time")
    z, c = np.array([0.0, np.sqrt(0.5), np.sqrt(0.5)]), np.array([0.5, -0.1, 1.0])
    now, _, events = arrive(data, np.array([-1, 1, 1]), z, c, 0)
    assert now.tolist() == [1, -1, 1]  # pulled to the side of x_0, which is away from x_1
    assert sorted(events) == [(0, CROSS), (1, CROSS)]


def test_logs_drop_what_finds_no_place_but_lists_count_it():
    log, events = flow_arrival.empty_log(1), np.zeros((4, 4))
    for i in range(100):
        flow_arrival.note(log, i, 0.5 * i, CROSS)
    assert int(log[0, 0]) == log.shape[0] - 1
    assert log[3].tolist() == [2.0, 1.0, CROSS]
    flow_arrival.flush(log, 7, events)
    assert int(events[0, 0]) == log.shape[0] - 1
    assert events[2].tolist() == [7.0, 1.0, 0.5, CROSS]
