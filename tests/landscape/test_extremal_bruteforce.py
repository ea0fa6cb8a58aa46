"""Extremal vectors against brute force in the plane and in space, and the methods against each
other above."""

import numpy as np
import oracle
import pytest

from reluflow import Problem
from reluflow.landscape import extremal_vectors


def check_against_oracle(d, trials, seed, methods, grid_every):
    rng = np.random.default_rng(seed)
    points = extrema = 0
    for trial in range(trials):
        X, y, leak = oracle.random_problem(rng, d, trial)
        problem = Problem(X, y, leak=leak)
        c = problem.pull
        expected = oracle.extremal(X, c, leak, oracle.sampled_directions(X, rng))
        for method in methods:
            got = extremal_vectors(problem, method=method, basin_points=0)
            assert got.exact
            real = np.flatnonzero(np.abs(got.values) > 0)
            assert {tuple(got.patterns[i]) for i in real} == set(expected), (trial, method)
            for i in real:
                w, value = expected[tuple(got.patterns[i])]
                np.testing.assert_allclose(got.vectors[i], w, atol=1e-8)
                assert got.values[i] == pytest.approx(value, rel=1e-10, abs=1e-14)
            for i in range(len(got)):
                kind = oracle.local_kind(X, c, leak, got.vectors[i])
                assert got.kinds[i].replace("degenerate ", "") == kind, (trial, method, i)
        points += len(got)
        if trial % grid_every == 0:
            for w, kind in oracle.grid_extrema(X, c, leak):
                if abs(oracle.G(X, c, leak, w)) < 1e-12:
                    continue  # somewhere on a face with D = 0, whose kind was checked above
                gap = np.linalg.norm(got.vectors - w, axis=1)
                assert gap.min() < 1e-5, (trial, w)
                assert got.kinds[gap.argmin()] == kind
                extrema += 1
    return points, extrema


def test_plane_300_problems():
    points, extrema = check_against_oracle(2, 300, 11, ["arrangement", "sweep"], 3)
    assert points > 1000
    assert extrema > 150


def test_space_220_problems():
    points, extrema = check_against_oracle(3, 220, 12, ["branch", "arrangement"], 11)
    assert points > 1000
    assert extrema > 20


@pytest.mark.slow
def test_space_many_more():
    check_against_oracle(3, 1500, 13, ["branch", "arrangement"], 5)


def rows(found):
    """What two methods must share: everything with D not 0, and the open flat cones."""
    return sorted(
        (tuple(found.patterns[i]), found.kinds[i], bool(found.degenerate[i]))
        for i in range(len(found))
        if found.values[i] != 0 or found.kinds[i] == "flat"
    )


def agree(seed, trials, biggest):
    rng = np.random.default_rng(seed)
    for trial in range(trials):
        d = int(rng.integers(4, 9))
        n = int(rng.integers(2, biggest[d] + 1))
        X = rng.normal(size=(n, d))
        if trial % 4 == 0:
            X = np.round(X)  # coincident and dependent hyperplanes
        y = rng.normal(size=n) if trial % 3 else rng.choice([-1.0, 1.0], size=n)
        problem = Problem(X, y, leak=(0.0, 0.2)[trial % 2])
        one = extremal_vectors(problem, method="arrangement")
        two = extremal_vectors(problem, method="branch")
        assert one.exact
        assert two.exact
        assert rows(one) == rows(two), trial


def test_arrangement_and_branch_agree():
    agree(3, 40, {4: 14, 5: 11, 6: 9, 7: 9, 8: 9})


@pytest.mark.slow
def test_arrangement_and_branch_agree_up_to_14():
    agree(4, 40, {4: 14, 5: 14, 6: 14, 7: 13, 8: 12})


@pytest.mark.parametrize("d", [2, 3, 4, 5, 6, 10])
def test_poincare_hopf(d):
    """With leak > 0 and general data no face is flat: the signs of the indices add up to the Euler
    characteristic of the sphere, so that no point is missing or extra."""
    rng = np.random.default_rng(d)
    for _ in range(10):
        n = int(rng.integers(2, 13))
        problem = Problem(rng.normal(size=(n, d)), rng.normal(size=n), leak=0.2)
        found = extremal_vectors(problem, basin_points=0)
        if found.degenerate.any() or n < d:
            continue
        assert found.exact
        assert np.sum((-1.0) ** found.indices) == 1 + (-1) ** (d - 1)
