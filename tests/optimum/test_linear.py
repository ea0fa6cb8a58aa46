"""Hard-margin separators: exact, with a certificate either way."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reluflow import Problem, ReluflowError, datasets
from reluflow.optimum import max_margin


def separable(n, d, seed, gap=0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    w = rng.normal(size=d)
    w /= np.linalg.norm(w)
    X += np.sign(X @ w)[:, None] * gap * w
    return Problem(X, np.sign(X @ w))


@pytest.mark.parametrize(("n", "d"), [(1, 1), (5, 2), (30, 3), (64, 10), (500, 4), (200, 60)])
def test_margin_and_bound_meet(n, d):
    problem = separable(n, d, n + d)
    found = max_margin(problem, "linear")
    Z = problem.y[:, None] * problem.X
    radius = np.linalg.norm(Z, axis=1).max()
    assert found.status == "optimal"
    assert 0 <= found.gap <= 1e-12 * radius * max(1, (n + d) / 100)
    assert np.linalg.norm(found.w) == pytest.approx(1, abs=1e-14)
    assert (Z @ found.w).min() == pytest.approx(found.margin, rel=1e-13)
    # the conditions of Karush, Kuhn and Tucker
    assert found.dual.sum() == pytest.approx(1, abs=1e-13)
    assert (found.dual >= 0).all()
    np.testing.assert_allclose(found.dual @ Z, found.margin * found.w, atol=1e-11 * radius)
    np.testing.assert_allclose((Z @ found.w)[found.support], found.margin, rtol=1e-10)


@given(st.integers(0, 10_000))
def test_plane_by_angles(seed):
    problem = separable(6, 2, seed, gap=0.2)
    angles = np.linspace(0, 2 * np.pi, 20_001)
    W = np.stack([np.cos(angles), np.sin(angles)])
    scanned = (problem.y[:, None] * (problem.X @ W)).min(axis=0).max()
    found = max_margin(problem, "linear")
    assert scanned <= found.margin + 1e-12
    assert scanned >= found.margin - 1e-3 * np.linalg.norm(problem.X, axis=1).max()


def test_sides_of_a_single_neuron():
    problem = datasets.figure1_middle()
    plus = max_margin(problem, "linear", sign=1)
    np.testing.assert_allclose(plus.w, problem.known["w_plus"], atol=1e-13)
    assert plus.margin == pytest.approx(problem.known["gamma_plus"], rel=1e-12)
    stretched = problem.X * np.where(problem.y < 0, 1.0, problem.leak)[:, None]
    minus = max_margin(problem, "linear", sign=-1)
    assert minus.margin == pytest.approx(
        max_margin(Problem(stretched, problem.y), "linear").margin, rel=1e-12
    )


@pytest.mark.parametrize("n", [3, 200])
def test_not_separable_is_proved(n):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 2))
    X[:3] = [(1.0, 0.0), (-1.0, 1.0), (-1.0, -1.0)]
    y = np.ones(n)
    found = max_margin(Problem(X, y), "linear")
    assert (found.status, found.margin) == ("infeasible", 0.0)
    assert found.dual.sum() == pytest.approx(1)
    assert (found.dual >= 0).all()
    assert np.linalg.norm(found.dual @ X) <= 1e-12
    assert found.upper_bound <= 1e-12


def test_zero_sample_and_leak_zero_sides_are_infeasible():
    found = max_margin(Problem([[1.0, 0.0], [0.0, 0.0]], [1.0, 1.0]), "linear")
    assert (found.status, found.upper_bound) == ("infeasible", 0.0)
    np.testing.assert_array_equal(found.dual, [0.0, 1.0])
    relu = datasets.symmetric_separable(leak=0.0)  # x+ is 0 for the class -1
    assert max_margin(relu, "linear", sign=1).status == "infeasible"


def test_bad_input():
    with pytest.raises(ReluflowError, match=r"labels -1 and \+1, got 0.5"):
        max_margin(Problem([[1.0]], [0.5]), "linear")
    with pytest.raises(ReluflowError, match="model must be"):
        max_margin(Problem([[1.0]], [1.0]), "tree")
    with pytest.raises(ReluflowError, match="sign must be"):
        max_margin(Problem([[1.0]], [1.0]), "linear", sign=2)


def test_numbers_are_shown_as_numbers():
    assert "np." not in repr(max_margin(datasets.figure1_left(), "linear"))
