"""The global maximum of |G| and its upper bound."""

import numpy as np
import pytest

from reluflow import Problem, ReluflowError
from reluflow.landscape import G, extremal_vectors, max_G
from reluflow.landscape.canonical import canonical
from reluflow.landscape.multistart import climb, starts


def random_problem(rng, n, d, trial):
    y = rng.normal(size=n) if trial % 2 else rng.choice([-1.0, 1.0], size=n)
    return Problem(rng.normal(size=(n, d)), y, leak=(0.0, 0.2)[trial // 2 % 2])


def test_three_searches_and_the_list_agree():
    rng = np.random.default_rng(0)
    for trial in range(24):
        n, d = int(rng.integers(2, 13)), int(rng.integers(2, 6))
        problem = random_problem(rng, n, d, trial)
        values = extremal_vectors(problem, basin_points=0).values
        for sign in (1, -1):
            best = (sign * values).max()
            if d > np.linalg.matrix_rank(problem.X):
                best = max(best, 0.0)
            for method in ("auto", "enumerate", "cells", "signs"):
                got = max_G(problem, sign=sign, method=method)
                assert got.upper_bound >= best - 1e-15
                assert got.value <= best + 1e-12
                assert sign * G(problem, got.vector) == pytest.approx(got.value, abs=1e-12)
                assert np.linalg.norm(got.vector) == pytest.approx(1.0)
                if best > 0 or method in ("auto", "enumerate"):
                    assert got.value == pytest.approx(best, abs=1e-9)
                    assert got.exact
        both = max_G(problem)
        assert both.exact
        assert both.value == pytest.approx(np.abs(values).max(), abs=1e-9)
        assert both.value <= both.upper_bound <= both.value * (1 + 1e-7)


@pytest.mark.parametrize(
    ("n", "d", "method"), [(40, 3, "cells"), (60, 4, "cells"), (30, 8, "signs")]
)
def test_bound_holds_under_any_budget(n, d, method):
    rng = np.random.default_rng(n)
    for trial in range(4):
        problem = random_problem(rng, n, d, trial)
        full = max_G(problem, method=method)
        assert full.exact
        previous = np.inf
        for budget in (1, 30, 300, 3000):
            cut = max_G(problem, method=method, budget=budget)
            assert cut.upper_bound >= full.value
            assert cut.exact == (cut.upper_bound - cut.value <= 1e-9 * scale(problem))
            assert cut.upper_bound <= previous + 1e-12
            previous = cut.upper_bound


def scale(problem):
    return np.abs(problem.pull) @ np.linalg.norm(problem.X, axis=1)


def test_hundreds_of_samples_in_three_dimensions():
    rng = np.random.default_rng(1)
    problem = random_problem(rng, 300, 3, 0)
    got = max_G(problem)
    assert got.exact
    W = rng.normal(size=(20000, 3))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    assert np.abs(G(problem, W)).max() <= got.upper_bound
    assert np.abs(G(problem, W)).max() >= 0.98 * got.value


def test_any_pull():
    """Multipliers times labels, some of them zero: a margin certificate needs nothing else."""
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(20, 3)), rng.choice([-1.0, 1.0], size=20)
    pull = y * np.maximum(rng.normal(size=20), 0.0)
    problem = Problem(X, y, loss="logistic")
    got = max_G(problem, pull)
    listed = extremal_vectors(problem, pull, basin_points=0)
    assert got.value == pytest.approx(listed.rates.max(), abs=1e-10)
    doubled = max_G(problem, 2 * pull)
    assert doubled.value == pytest.approx(2 * got.value, rel=1e-12)


def test_maximum_below_zero():
    problem = Problem(np.vstack([np.eye(3), -np.eye(3)]), -np.ones(6))  # G = -mean |w_i|
    got = max_G(problem, sign=1)
    assert got.value == pytest.approx(-1 / 6, abs=1e-12)
    assert got.exact
    loose = max_G(problem, sign=1, method="cells", budget=200)
    assert loose.upper_bound >= -1 / 6
    assert max_G(problem, sign=1, method="signs").upper_bound >= -1 / 6
    # one more dimension than the data: G = 0 orthogonal to them
    flat = max_G(Problem(np.hstack([problem.X, np.zeros((6, 1))]), -np.ones(6)), sign=1)
    assert flat.value == 0.0
    assert flat.exact


def test_messages():
    problem = Problem(np.eye(2), np.ones(2))
    with pytest.raises(ReluflowError, match="sign must be"):
        max_G(problem, sign=2)
    with pytest.raises(ReluflowError, match="method must be"):
        max_G(problem, method="luck")
    with pytest.raises(ReluflowError, match="budget must be"):
        max_G(problem, budget=0)


@pytest.mark.parametrize("power", [-1000, -700, -540, -530, 500])
@pytest.mark.parametrize("reduce", [True, False])
def test_paths_of_ascent_do_not_depend_on_the_unit_of_the_pull(power, reduce):
    """Squares of pulls near 1e-161 are no floats, and a start must be of norm 1 all the same."""
    rng = np.random.default_rng(5)
    for d in (1, 2, 3):
        X, c = rng.normal(size=(5, d)), rng.normal(size=5)
        plain = canonical(X, c, 0.0, reduce=reduce)
        tiny = canonical(X, 2.0**power * c, 0.0, reduce=reduce)
        np.testing.assert_array_equal(tiny.m, 2.0**power * plain.m)
        np.testing.assert_array_equal(tiny.basis, plain.basis)
        W = starts(plain, 20, np.random.default_rng(0))
        np.testing.assert_array_equal(starts(tiny, 20, np.random.default_rng(0)), W)
        for sign in (1.0, -1.0):
            np.testing.assert_array_equal(climb(tiny, W, sign)[0], climb(plain, W, sign)[0])


def test_ascent_on_a_line_with_a_tiny_pull():
    """Two opposite samples whose pulls sum to about 1e-161: division by zero once."""
    form = canonical(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([-1.26e-161, -1.74e-161]), 0.0)
    ends, ended = climb(form, starts(form, 20, np.random.default_rng(0)))
    assert ended.all()
    np.testing.assert_allclose(np.abs(ends[:, 0]), 1.0)
