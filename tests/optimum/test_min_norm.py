"""Smallest interpolating networks: closed forms, bounds that hold, brute force."""

import itertools

import numpy as np
import pytest
from enumeration import best_norm
from hypothesis import given, settings
from hypothesis import strategies as st

from reluflow import Network, Problem, ReluflowError, datasets
from reluflow.optimum import min_norm, norm_bound
from reluflow.optimum.pool import Pool
from reluflow.optimum.program import Task


def norm2(net):
    W, a = net.weights()
    return (W**2).sum() + (a**2).sum()


def check(problem, found):
    """The network fits and has the norm stated, and the dual gives the bound stated."""
    size = np.abs(problem.y).max()
    np.testing.assert_allclose(problem.outputs(found.network), problem.y, atol=1e-9 * size)
    assert found.error <= 1e-9 * size
    assert norm2(found.network) == pytest.approx(found.norm2, rel=1e-12)
    assert norm_bound(problem, found.dual) == pytest.approx(found.lower_bound, rel=1e-9)
    assert 2 * found.dual @ problem.y == pytest.approx(found.lower_bound, rel=1e-9)


@pytest.mark.parametrize("law", ["half_normal", "normal", "signs"])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (5, 5), (12, 15)])
def test_orthonormal_data(n, d, law):
    """TLB26: 2 (|y+| + |y-|), one neuron for each sign."""
    problem = datasets.orthonormal(n, law=law, d=d, rotate=True, rng=n)
    found = min_norm(problem)
    check(problem, found)
    assert found.exact
    assert found.norm2 == pytest.approx(problem.known["min_norm2"], rel=1e-9)
    assert found.lower_bound == pytest.approx(problem.known["min_norm2"], rel=1e-9)
    assert found.network.m <= 2


def test_orthonormal_data_of_the_paper():
    problem = datasets.orthonormal()  # 64 samples
    found = min_norm(problem)
    assert found.exact
    assert found.norm2 == pytest.approx(problem.known["min_norm2"], rel=1e-8)


def test_three_points():
    """The smallest interpolator has three neurons; the best with two is larger, and is found."""
    problem = datasets.three_points()
    found = min_norm(problem)
    check(problem, found)
    assert found.exact
    assert found.norm2 == pytest.approx(26 / np.sqrt(5), rel=1e-12)
    assert found.network.m == 3
    # every pair of cones, each with its own sign: the best network of two neurons
    task = Task.of(Problem(problem.X, problem.y), False, None)
    angles = np.linspace(0, 2 * np.pi, 1000)
    cones = np.unique(task.patterns(np.stack([np.cos(angles), np.sin(angles)], axis=1)), axis=0)
    values = []
    for (u, s), (v, t) in itertools.combinations(itertools.product(cones, (1.0, -1.0)), 2):
        pool = Pool(task)
        pool.patterns, pool.s = np.array([u, v]), np.array([s, t])
        pool.walls, pool.idle = np.ones((2, len(task.normals)), dtype=bool), np.zeros(2, dtype=int)
        point = pool.solve(0.1)
        values.append(0.0 if point is None else point.t)
        if point is not None and point.t == max(values):
            best = point
    root = np.sqrt(np.linalg.norm(best.v, axis=1) / best.t)
    pair = Network(best.v / best.t / root[:, None], best.s * root)
    np.testing.assert_allclose(problem.outputs(pair), problem.y, atol=1e-7)
    assert norm2(pair) == pytest.approx(11.7188, abs=1e-4)


def test_zero_labels_are_fitted():
    rng = np.random.default_rng(0)
    problem = Problem(rng.normal(size=(6, 3)), [1.0, 0.0, -2.0, 0.0, 0.5, 3.0], leak=0.2)
    found = min_norm(problem)
    check(problem, found)
    assert found.exact
    freed = problem.replace(X=problem.X[problem.y != 0], y=problem.y[problem.y != 0])
    assert min_norm(freed).norm2 <= found.norm2
    nothing = min_norm(problem.replace(y=np.zeros(6)))
    assert (nothing.norm2, nothing.lower_bound, nothing.status) == (0.0, 0.0, "optimal")
    assert not problem.outputs(nothing.network).any()


def grid(low, high, *shape):
    count = int(np.prod(shape))
    numbers = st.lists(st.integers(low, high), min_size=count, max_size=count)
    return numbers.map(lambda v: np.array(v, dtype=float).reshape(shape))


@given(st.data())
@settings(max_examples=60)
def test_no_interpolator_is_below_the_bounds(data):
    """Labels made by a network, so that one of known norm interpolates."""
    n, d = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 3))
    X = data.draw(grid(-4, 4, n, d)) / 2
    leak = data.draw(st.sampled_from([0.0, 0.25, 0.7]))
    seed, width = data.draw(st.integers(0, 1000)), data.draw(st.integers(1, 4))
    sign = data.draw(st.sampled_from([None, 1, -1]))
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(width, d))
    a = rng.choice([-1.0, 1.0], width) * np.linalg.norm(W, axis=1)
    a = a if sign is None else sign * np.abs(a)
    teacher = Network(W, a, leak=leak)
    problem = Problem(X, Problem(X, np.ones(n), leak=leak).outputs(teacher), leak=leak)
    found = min_norm(problem, sign=sign)
    assert found.lower_bound <= norm2(teacher) * (1 + 1e-12)
    assert norm_bound(problem, rng.normal(size=n), sign=sign) <= norm2(teacher) * (1 + 1e-12)
    assert found.exact
    assert found.norm2 <= norm2(teacher) * (1 + 1e-8)


@pytest.mark.parametrize("seed", range(6))
def test_against_all_cones_at_once(seed):
    rng = np.random.default_rng(seed)
    d, leak = 2 + seed % 2, [0.0, 0.3][seed // 2 % 2]
    problem = Problem(rng.normal(size=(5, d)), rng.normal(size=5), leak=leak)
    found = min_norm(problem)
    check(problem, found)
    assert found.exact
    assert found.norm2 == pytest.approx(2 * best_norm(problem, margin=False), rel=1e-6)


def test_one_sided():
    problem = Problem(np.eye(3), [3.0, 0.0, 4.0])
    assert min_norm(problem, sign=1).norm2 == pytest.approx(10, rel=1e-9)
    never = min_norm(problem, sign=-1)
    assert (never.status, never.norm2, never.network) == ("infeasible", np.inf, None)
    assert never.lower_bound > 1e9


def test_units():
    rng = np.random.default_rng(2)
    problem = Problem(rng.normal(size=(6, 3)), rng.normal(size=6))
    least = min_norm(problem).norm2
    for X, y in ((1e5, 1.0), (1.0, 1e-8), (1e-4, 1e7)):
        scaled = Problem(X * problem.X, y * problem.y)
        found = min_norm(scaled)
        check(scaled, found)
        assert found.norm2 == pytest.approx(least * y / X, rel=1e-9)


def test_no_network_fits():
    for X, y in (
        ([[1.0, 1.0], [2.0, 2.0]], [1.0, 1.0]),
        ([[1.0, 0.0], [0.0, 0.0]], [1.0, 1.0]),
        ([[0.0]], [1.0]),
    ):
        found = min_norm(Problem(X, y))
        assert (found.status, found.norm2, found.network) == ("infeasible", np.inf, None)
        assert found.lower_bound > 1e9


def test_bad_input():
    with pytest.raises(ReluflowError, match="sign must be"):
        min_norm(datasets.three_points(), sign=0)
    with pytest.raises(ReluflowError, match="pull has shape"):
        norm_bound(datasets.three_points(), [1.0])
