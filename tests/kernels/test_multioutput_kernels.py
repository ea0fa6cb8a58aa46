"""Pieces of a neuron's path with several outputs against their formulas in NumPy."""

import numpy as np
import pytest

from reluflow.kernels import multioutput as kernel

LEAK = 0.2


@pytest.fixture(params=range(4))
def case(request):
    """Samples, pulls of three outputs, and sides of which two are slid on."""
    rng = np.random.default_rng(request.param)
    X, C = rng.standard_normal((7, 4)), rng.standard_normal((7, 3))
    U = rng.choice([-1, 1], 7).astype(np.int8)
    U[[1, 4]] = 0
    return X, C, U, rng


def test_matrix_of_a_cone_is_a_sum_of_outer_products(case):
    X, C, U, _ = case
    M = np.empty((4, 3))
    kernel.cone_matrix(X, C, U, LEAK, M)
    slope = np.where(U > 0, 1.0, np.where(U < 0, LEAK, 0.0))
    assert pytest.approx(sum(s * np.outer(x, c) for s, x, c in zip(slope, X, C, strict=True))) == M


def test_what_is_slid_on_is_projected_off(case):
    X, _, U, rng = case
    Q, w = np.empty((4, 4)), rng.standard_normal(4)
    rank = kernel.sliding_basis(X, U, Q)
    assert rank == 2
    on = X[U == 0]
    expected = w - on.T @ np.linalg.lstsq(on.T, w, rcond=None)[0]
    left = w.copy()
    kernel.project_off(Q, rank, left)
    assert left == pytest.approx(expected, abs=1e-12)
    M = rng.standard_normal((4, 3))
    off = M - on.T @ np.linalg.lstsq(on.T, M, rcond=None)[0]
    assert kernel.columns_off(Q, rank, M) == pytest.approx(off, abs=1e-12)


def test_samples_on_one_line_count_once(case):
    X, _, U, _ = case
    X[4] = -2.0 * X[1]
    assert kernel.sliding_basis(X, U, np.empty((4, 4))) == 1


def scaled_sum(coef, s, t):
    """A + sum_i B_i e^{s_i t} + D_i e^{-s_i t}, over e^{s_0 t}."""
    r = s.size
    terms = coef[0] + np.exp(s * t) @ coef[1 : 1 + r] + np.exp(-s * t) @ coef[1 + r :]
    return terms * np.exp(-s[0] * t)


@pytest.mark.parametrize("t", [0.0, 0.3, 4.0])
def test_values_of_functions_in_modes(case, t):
    rng = case[3]
    s = np.sort(rng.uniform(0.1, 2.0, 3))[::-1].copy()
    coefs = rng.standard_normal((5, 7))
    out, slopes = np.empty(5), np.empty(5)
    kernel.term_values(coefs, s, t, out, slopes)
    assert out == pytest.approx([scaled_sum(coef, s, t) for coef in coefs], rel=1e-12)
    for coef, value, slope in zip(coefs, out, slopes, strict=True):
        assert kernel.one_value(coef, s, t) == pytest.approx((value, slope), rel=1e-12)
        # the slope is that of the sum itself, over the same factor
        h = 1e-6
        plain = [scaled_sum(coef, s, t + step) * np.exp(s[0] * step) for step in (-h, h)]
        assert slope == pytest.approx((plain[1] - plain[0]) / (2 * h), rel=1e-5, abs=1e-7)


def test_first_zero_is_where_the_sign_changes():
    s = np.array([1.0])
    coef = np.array([3.0, -1.0, 0.0])  # 3 - e^t
    assert kernel.first_zero(coef, s, 0.0, 5.0) == pytest.approx(np.log(3.0), rel=1e-14)
    assert kernel.first_zero(np.array([0.0, -1.0, 0.0]), s, 0.5, 5.0) == 0.5


def test_a_function_that_has_just_left_zero_has_its_next_zero_later():
    """After a crossing rounding may leave a product just below 0: it is no arrival."""
    s = np.array([2.0, 1.0])
    for below in (0.0, 1e-16, 4e-16):
        coef = np.array([-3.0 * (1.0 + below), -1.0, 4.0, 0.0, 0.0])  # -(e^t - 1)(e^t - 3)
        assert kernel.first_zero(coef, s, 0.0, 2.0) == pytest.approx(np.log(3.0), rel=1e-12)
        f, when = kernel.next_event(coef[None], np.ones(1), s, np.inf, 0.0)
        assert (f, when) == (0, pytest.approx(np.log(3.0), rel=1e-12))
    negative = np.array([-3.1, -1.0, 4.0, 0.0, 0.0])  # another event has made it so
    assert kernel.first_zero(negative, s, 0.0, 2.0) == 0.0


@pytest.mark.parametrize("spacing", [0.0, 1e-9, 0.01, 10.0])
def test_the_next_event_is_the_first_of_all(case, spacing):
    """Whatever the first look, and with many functions that pass 0 before the second."""
    rng = case[3]
    s, zeros = np.array([1.0]), rng.uniform(0.1, 0.4, 30)
    coefs = np.column_stack([np.exp(zeros), -np.ones(30), np.zeros(30)])  # e^zero - e^t
    f, when = kernel.next_event(coefs, np.ones(30), s, np.inf, spacing)
    assert f == np.argmin(zeros)
    assert when == pytest.approx(zeros.min(), rel=1e-12)
    assert kernel.next_event(coefs, np.ones(30), s, 0.05, spacing) == (-1, 0.05)


def test_changes_of_sides_keep_the_matrix_of_the_cone(case):
    X, C, U, _ = case
    pull = kernel.Pull(X, C, np.linalg.norm(X, axis=1), LEAK)
    M, anew = np.empty((4, 3)), np.empty((4, 3))
    kernel.cone_matrix(X, C, U, LEAK, M)
    for k, side in ((0, -U[0]), (1, 1), (2, 0), (4, -1), (2, 1)):
        kernel.change_side(pull, U, k, side, M)
        assert U[k] == side
    kernel.cone_matrix(X, C, U, LEAK, anew)
    assert pytest.approx(anew, abs=1e-13) == M


def test_a_ride_leaves_the_neuron_of_its_last_event():
    """From there on there is no event, and the same growth."""
    rng = np.random.default_rng(5)
    from reluflow import Problem, initialize
    from reluflow.landscape.multioutput import ride, sides_of

    problem = Problem(rng.standard_normal((40, 3)), rng.integers(0, 3, 40), loss="softmax")
    net = initialize(problem, 6, rng=1)
    found = ride(problem, net.W, net.a, sides_of(problem, net.W), problem.pull, np.inf)
    assert (found.last > 0.0).all()
    again = ride(problem, found.Z[:, :3], found.Z[:, 3:], found.U, problem.pull, np.inf)
    assert not again.counts.any()
    assert pytest.approx(found.W, abs=1e-12) == again.W
    assert again.rate == pytest.approx(found.rate, rel=1e-12)


def test_least_place_of_a_valley():
    s = np.array([1.0])
    assert kernel.least_place(np.array([0.0, 1.0, 4.0]), s, -3.0, 5.0) == pytest.approx(np.log(2.0))


def test_a_ride_is_that_of_small_steps():
    """The whole path, with its kinks, against Euler's method of vanishing steps."""
    rng = np.random.default_rng(3)
    X, C = rng.standard_normal((5, 3)), 0.3 * rng.standard_normal((5, 2))
    from reluflow import Problem
    from reluflow.landscape.align_multioutput import align
    from reluflow.network import Network

    problem = Problem(X, 5.0 * C, loss="half_square")  # its pull on a silent network is C
    w, a = rng.standard_normal(3), rng.standard_normal(2)
    a *= np.linalg.norm(w) / np.linalg.norm(a)
    found = align(problem, Network(w[None], a[None]))
    step = 2e-4
    for _ in range(200_000):
        slope = (X @ w > 0).astype(float)
        M = (X * slope[:, None]).T @ C
        w, a = w + step * M @ a, a + step * M.T @ w
        size = np.linalg.norm(w)
        w, a = w / size, a / size
    assert found.growth[0] == pytest.approx(float(w @ M @ a), abs=2e-3)
