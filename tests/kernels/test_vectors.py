"""Products and norms of vectors against NumPy; functions without an entry from Python."""

import numpy as np
import pytest
from numba import njit

from reluflow.kernels import inner, vectors


@njit
def _all(X, z, norms, i, k):
    return (
        vectors.dot(X, k, z),
        vectors.along(z, X[k]),
        vectors.norm(X[k]),
        vectors.parallel(X, norms, i, k),
    )


def look(X, z, i=0, k=0):
    X = np.array(X, dtype=float)
    return _all(X, np.array(z, dtype=float), np.hypot.reduce(X, axis=1), i, k)


@pytest.mark.parametrize("d", [1, 2, 7])
def test_products_and_norms(d):
    rng = np.random.default_rng(d)
    X, z = rng.normal(size=(5, d)), rng.normal(size=d + 1)  # z = (w, a): as far as x_k goes
    for k in range(5):
        dot, along, norm, _ = look(X, z, 0, k)
        assert dot == pytest.approx(X[k] @ z[:d], rel=1e-14, abs=1e-15)
        assert along == dot
        assert norm == pytest.approx(np.linalg.norm(X[k]), rel=1e-15)


@njit
def _sums(XT, weights):
    return np.array([vectors.weighted_sum(XT, e, weights) for e in range(XT.shape[0])])


@pytest.mark.parametrize("n", [1, 3, 8, 601])
def test_sums_over_samples(n):
    rng = np.random.default_rng(n)
    XT, weights = rng.normal(size=(4, n)), rng.normal(size=n)
    room = 1e-15 * n * np.abs(XT) @ np.abs(weights)  # of sums in any order
    assert (np.abs(_sums(XT, weights) - XT @ weights) <= room).all()


@pytest.mark.parametrize("size", [1e-300, 1e-170, 1e160, 1e300, 5e-324])
def test_a_norm_whose_square_is_no_float(size):
    norm = look([[3.0 * size / 4.0, size]], [1.0, 1.0])[2]
    exact = size * np.hypot(0.75, 1.0) if size > 1e-320 else size * np.sqrt(2.0)  # 0.75 rounds to 1
    assert norm == pytest.approx(exact, rel=1e-15, abs=5e-324)


def test_norms_of_zero_and_of_what_is_no_number():
    assert look([[0.0, 0.0]], [1.0, 1.0])[2] == 0.0
    assert look([[np.inf, 1.0]], [1.0, 1.0])[2] == np.inf
    assert np.isnan(look([[np.nan, 1.0]], [1.0, 1.0])[2])


def test_parallel_is_the_sign_of_a_cosine_of_size_one():
    X = [[1.0, 2.0], [3.0, 6.0], [-0.5, -1.0], [1.0, 2.1], [0.0, 0.0], [1.0, 2.0 + 1e-7]]
    assert [look(X, [0.0, 0.0], 0, k)[3] for k in range(6)] == [1, 1, -1, 0, 0, 1]


def test_a_function_for_kernels_has_no_entry_from_python_but_kernels_may_call_it():
    half = inner.inner(lambda x: 0.5 * x)
    third = inner.inlined(lambda x: x / 3.0)

    @njit
    def sixth(x):
        return third(half(x))

    assert sixth(6.0) == 1.0
    for function in (half, third):
        assert function.targetoptions["no_cpython_wrapper"]
