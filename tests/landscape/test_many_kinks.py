"""Sizes at which nothing can be enumerated: no overflow, no endless lists of rays."""

import math
from math import comb

import numpy as np
import pytest

from reluflow import Problem, extremal_vectors
from reluflow.landscape.arrangement import log_subsets, null_vectors, rays, work
from reluflow.landscape.canonical import row_space
from reluflow.landscape.kinds import _tangents


def test_work_of_an_arrangement_does_not_overflow():
    assert math.isfinite(work(12_665, 600))
    assert work(12_665, 600) > 1e300
    assert work(10, 3) == pytest.approx(2 * comb(10, 2) * 9)
    assert work(3, 0) == 1.0
    assert log_subsets(3, 5) == -math.inf
    assert math.exp(log_subsets(30, 12)) == pytest.approx(comb(30, 12))


def test_rays_of_independent_normals_are_the_dual_basis():
    rng = np.random.default_rng(0)
    N = rng.standard_normal((14, 14))
    N /= np.linalg.norm(N, axis=1, keepdims=True)
    found, sides, clear = rays(N, 1e-10)
    assert clear
    assert ((sides == 0).sum(axis=1) == 13).all()
    blocks = np.array([np.delete(N, i, axis=0) for i in range(14)])
    lines, _ = null_vectors(blocks, 1e-10)
    np.testing.assert_allclose(np.abs(np.sum(found[:14] * lines, axis=1)), 1.0, rtol=1e-10)


def test_too_many_rays_are_replaced_by_random_tangents():
    rng = np.random.default_rng(1)
    N = rng.standard_normal((60, 30))
    tangents, complete = _tangents(N, 1e-10)
    assert not complete
    np.testing.assert_allclose(np.linalg.norm(tangents, axis=1), 1.0)
    assert _tangents(N[:5, :3], 1e-10)[1]


def test_row_space_of_many_rows_is_that_of_the_data():
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((300, 5)) @ rng.standard_normal((5, 40))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    basis = row_space(rows, 1e-10)
    assert basis.shape == (5, 40)
    np.testing.assert_allclose(rows @ basis.T @ basis, rows, atol=1e-12)


def test_centred_samples_in_many_dimensions_are_classified():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 200))
    X[:30, :4] += 3.0
    X -= X.mean(axis=0)  # dependent: sums to zero
    y = np.repeat([1.0, -1.0], 30)
    found = extremal_vectors(Problem(X, y), method="multistart", starts=8)
    assert not found.exact
    assert found.kinds[-1] == "degenerate saddle"  # orthogonal to all samples
    assert {"max", "min"} <= set(found.kinds)
