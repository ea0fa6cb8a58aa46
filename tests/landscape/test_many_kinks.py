"""Sizes at which nothing can be enumerated: no overflow, no endless lists of rays."""

import math
from math import comb

import numpy as np
import pytest

from reluflow import Problem, extremal_vectors
from reluflow.landscape import extremal
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


def one_signed(d):
    rng = np.random.default_rng(d)
    return Problem(rng.standard_normal((16, d)), np.abs(rng.standard_normal(16)))


@pytest.mark.parametrize("d", [8, 18])
def test_sixteen_samples_of_one_sign_are_exact_in_any_dimension(d):
    problem = one_signed(d)
    found = extremal_vectors(problem)
    assert found.exact
    assert found.method == "branch"
    # the points inside cones, by trying all 2^16 patterns: signs of X D_u equal u
    active = (np.arange(2**16)[:, None] >> np.arange(16)) & 1
    D = (active * problem.pull) @ problem.X
    inside = ((D @ problem.X.T > 0) == active).all(axis=1) & active.any(axis=1)
    expected = D[inside] / np.linalg.norm(D[inside], axis=1, keepdims=True)
    ours = found.vectors[[not face for face in found.faces] & (found.values > 0)]
    assert len(ours) == len(expected) > 0
    nearest = (expected @ ours.T).max(axis=1)
    np.testing.assert_allclose(nearest, 1.0, rtol=1e-12)
    # what ascent finds is among them, on faces too
    climbed = extremal_vectors(problem, method="multistart", starts=50)
    assert not climbed.exact
    nearest = (climbed.vectors[climbed.values != 0] @ found.vectors.T).max(axis=1)
    np.testing.assert_allclose(nearest, 1.0, rtol=1e-9)


def test_ascent_takes_over_when_the_nodes_run_out(monkeypatch):
    monkeypatch.setattr(extremal, "TRIED_NODES", 1000)
    found = extremal_vectors(one_signed(8), starts=20)
    assert found.method == "multistart"
    assert not found.exact
    assert extremal_vectors(one_signed(8), method="branch").exact


def test_few_kinks_of_either_sign_keep_the_whole_budget(monkeypatch):
    monkeypatch.setattr(extremal, "TRIED_NODES", 1)
    rng = np.random.default_rng(3)
    y = np.repeat([1.0, -1.0], 8) * rng.uniform(1, 2, 16)
    found = extremal_vectors(Problem(rng.standard_normal((16, 8)), y))
    assert (found.method, found.exact) == ("branch", True)
