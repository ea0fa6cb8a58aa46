"""Critical points of G_C and early alignment with several outputs, against other ways."""

import numpy as np
import pytest

from reluflow import Network, Problem, ReluflowError, align, extremal_vectors, initialize
from reluflow.landscape.multioutput import largest_G, ride, sides_of, simple_bound, value


def problem_of(seed, n=8, d=3, K=3, leak=0.0):
    rng = np.random.default_rng(seed)
    return Problem(rng.normal(size=(n, d)), rng.permutation(n) % K, loss="softmax", leak=leak)


def small_steps(problem, net, C, t, steps=20_000):
    """The frozen pull by midpoint steps, slopes from the signs of the moment."""
    W, A, h = np.array(net.W), np.array(net.a), t / steps
    for _ in range(steps):
        S = W @ problem.X.T
        s = np.where(S > 0, 1.0, problem.leak)
        W1, A1 = W + 0.5 * h * (s * (A @ C.T)) @ problem.X, A + 0.5 * h * (s * S) @ C
        S = W1 @ problem.X.T
        s = np.where(S > 0, 1.0, problem.leak)
        W, A = W + h * (s * (A1 @ C.T)) @ problem.X, A + h * (s * S) @ C
    return W, A


@pytest.mark.parametrize("leak", [0.0, 0.2])
def test_frozen_paths_agree_with_small_steps_through_crossings_and_slides(leak):
    problem = problem_of(0, n=9, leak=leak)
    net = initialize(problem, 14, scale=1.0, normalize="none", rng=0)
    C = problem.pull
    found = ride(problem, net.W, net.a, sides_of(problem, net.W), C, 8.0)
    W, A = small_steps(problem, net, C, 8.0)
    size = np.exp(found.log)[:, None]
    assert np.abs(size * found.W - W).max() < 2e-3
    assert np.abs(size * found.A - A).max() < 2e-3
    assert found.counts[:, 0].sum() > 0
    assert found.counts[:, 1].sum() > 0


@pytest.mark.parametrize("seed", range(4))
def test_every_maximum_found_by_ascent_is_in_the_full_list(seed):
    problem = problem_of(seed, d=2 + seed % 2)
    full = extremal_vectors(problem)
    some = extremal_vectors(problem, method="multistart", starts=200)
    assert full.exact
    assert not some.exact
    assert np.allclose(full.values, value(problem, full.vectors), atol=1e-12)
    listed = full.vectors[full.of_kind("max")]
    for v in some.vectors:
        assert np.abs(listed - v).max(axis=1).min() < 1e-7
    assert some.values[0] == pytest.approx(full.values[0], rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_no_direction_of_a_grid_is_above_the_largest_value(seed):
    problem = problem_of(seed, d=2)
    angle = np.linspace(0.0, 2 * np.pi, 200_001)
    grid = value(problem, np.column_stack([np.cos(angle), np.sin(angle)]))
    best = largest_G(problem, problem.pull)
    assert best.exact
    assert best.value == pytest.approx(grid.max(), rel=1e-5)  # where it has a kink
    assert best.value >= grid.max() * (1 - 1e-14)
    assert simple_bound(problem, problem.pull) >= best.value


@pytest.mark.parametrize("seed", range(3))
def test_beside_a_silent_output_the_critical_points_are_those_of_one(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(7, 3)), rng.normal(size=7)
    one = extremal_vectors(Problem(X, y))
    column = extremal_vectors(Problem(X, np.column_stack([y, 0 * y])))
    there = one.vectors[one.rates > 1e-9]
    assert len(column) == len(there)
    order, other = np.argsort(-one.rates[one.rates > 1e-9]), np.argsort(-column.values)
    assert np.allclose(there[order], column.vectors[other], atol=1e-12)
    values = one.values[one.rates > 1e-9][order]
    assert np.allclose(values, (column.values * column.outer[:, 0])[other], atol=1e-12)


def test_neurons_align_with_maxima_at_their_value():
    problem = problem_of(1)
    net = initialize(problem, 40, log_scale=-500.0, rng=2)
    found = align(problem, net)
    assert (found.growing | found.dead).all()
    rows = found.destination[found.growing]
    assert (rows >= 0).all()
    assert np.allclose(found.growth[found.growing], found.extremal.values[rows], rtol=1e-12)
    assert np.allclose(found.outer[found.growing], found.extremal.outer[rows], atol=1e-7)
    assert {found.extremal.kinds[i] for i in rows} == {"max"}
    at = ride(problem, net.W, net.a, sides_of(problem, net.W), problem.pull, found.time.max())
    cosines = np.sum(at.W * found.direction, axis=1) / np.linalg.norm(at.W, axis=1)
    assert (cosines[found.growing] > 0.99 - 1e-5).all()


@pytest.mark.parametrize("seed", range(3))
def test_beside_a_silent_output_neurons_align_as_with_one(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(8, 3)), rng.normal(size=8)
    number, matrix = Problem(X, y), Problem(X, np.column_stack([y, 0 * y]))
    net = initialize(number, 30, scale=1.0, rng=seed)
    one = align(number, net)
    column = align(matrix, Network(net.W, np.column_stack([net.a, 0 * net.a])))
    assert np.array_equal(one.growing, column.growing)
    assert np.abs(one.direction - column.direction)[one.growing].max() < 1e-12
    assert np.abs(one.growth - column.growth).max() < 1e-12
    assert np.abs(one.log_offset - column.log_offset)[one.growing].max() < 1e-10


def test_what_is_for_one_output_says_so():
    from reluflow import early, max_G

    problem = problem_of(0)
    with pytest.raises(ReluflowError, match="is for one output, this problem has 3"):
        max_G(problem)
    with pytest.raises(ReluflowError, match="is for one output, this problem has 3"):
        early(problem, initialize(problem, 2), 1.0)
    with pytest.raises(ReluflowError, match="expected \\(8, 3\\)"):
        extremal_vectors(problem, np.zeros(8))
