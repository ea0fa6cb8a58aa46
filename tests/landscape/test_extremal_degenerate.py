"""Extremal vectors of degenerate data against brute force: samples on one line, one sample, equal
and opposite samples, ranks below the dimension, samples without a pull."""

from itertools import combinations

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.optimize import lsq_linear

from reluflow import Problem
from reluflow.landscape import extremal_vectors


def on_a_line(rng, n, d):
    return rng.normal(size=(n, 1)) * rng.normal(size=d)


def on_a_plane(rng, n, d):
    return rng.normal(size=(n, 2)) @ rng.normal(size=(2, d))


def one_point(rng, n, d):
    return np.tile(rng.normal(size=d), (n, 1))


def opposite_pairs(rng, n, d):
    X = rng.normal(size=(n, d))
    X[n // 2 : 2 * (n // 2)] = -X[: n // 2]
    return X


def on_the_axes(rng, n, d):
    return np.eye(d)[rng.integers(0, d, size=n)] * rng.choice([-1.0, 1.0, 2.0], size=(n, 1))


def on_a_grid(rng, n, d):
    return rng.integers(-1, 2, size=(n, d)).astype(float)


def flat_with_bias(rng, n, d):
    """Features that are the same for all but a constant one: rank one or two."""
    X = np.ones((n, d))
    X[:, : d - 1] = rng.normal(size=d - 1)
    X[:, 0] *= rng.choice([1.0, -0.5, 2.0], size=n) if n % 2 else 1.0
    return X


SHAPES = (
    on_a_line,
    on_a_plane,
    one_point,
    opposite_pairs,
    on_the_axes,
    on_a_grid,
    flat_with_bias,
)


def draw(seed):
    """Samples of a degenerate shape, labels of which some may be 0 or cancel, and a leak."""
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(1, 4)), int(rng.integers(1, 7))
    X = SHAPES[seed % len(SHAPES)](rng, n, d)
    if not X.any():
        X[0, 0] = 1.0
    laws = (rng.normal(size=n), rng.choice([-1.0, 1.0], size=n), rng.choice([-1.0, 0.0, 1.0], n))
    return Problem(X, laws[seed % 3], leak=(0.0, 0.3)[seed % 2])


class BruteForce:
    """G = <m, w> + sum_h kappa_h |<n_h, w>|, samples merged by comparing all pairs."""

    def __init__(self, problem):
        X, c, leak, d = problem.X, problem.pull, problem.leak, problem.d
        normals, kappa = [], []
        for x, pull in zip(X, c, strict=True):
            size = np.linalg.norm(x)
            if size == 0.0 or pull == 0.0:
                continue
            same = [h for h, n in enumerate(normals) if abs(abs(n @ x) - size) < 1e-12 * size]
            if not same:
                normals.append(x / size)
                kappa.append(0.0)
            kappa[same[0] if same else -1] += 0.5 * (1 - leak) * pull * size
        kept = [h for h in range(len(kappa)) if abs(kappa[h]) > 1e-13]
        self.d, self.m = d, 0.5 * (1 + leak) * c @ X
        self.m[np.abs(self.m) < 1e-14] = 0.0
        self.N = np.array([normals[h] for h in kept]).reshape(-1, d)
        self.kappa = np.array([kappa[h] for h in kept])

    def sides(self, w):
        p = self.N @ w
        return np.where(np.abs(p) < 1e-9, 0, np.sign(p)).astype(int)

    def is_critical(self, w):
        """Whether slopes on the hyperplanes through w make the gradient a multiple of w."""
        v = self.sides(w)
        base = self.m + (v * self.kappa) @ self.N
        base = base - (base @ w) * w
        Z = (self.kappa[v == 0, None] * self.N[v == 0]).T
        if Z.size:
            base = base + Z @ lsq_linear(Z, -base, bounds=(-1.0, 1.0), method="bvls", tol=1e-14).x
        return np.linalg.norm(base) < 1e-9

    def value(self, w):
        return w @ self.m + self.kappa @ np.abs(self.N @ w)

    def flats(self):
        """Bases (k, d) of all intersections of hyperplanes, the whole space first."""
        yield np.eye(self.d)
        for size in range(1, self.d):
            for some in combinations(range(len(self.N)), size):
                basis = null_space(self.N[list(some)]).T
                if len(basis):
                    yield basis

    def critical(self, rng):
        """Critical points with G not 0, and directions of the critical faces with G = 0 as
        (direction, sides, whether the face is that direction alone)."""
        points, zeros = [], []
        for basis in self.flats():
            k = len(basis)
            tries = np.array([[1.0], [-1.0]]) if k == 1 else rng.normal(size=(60 * k, k))
            for w in tries @ basis:
                w = w / np.linalg.norm(w)
                D = basis.T @ (basis @ (self.m + (self.sides(w) * self.kappa) @ self.N))
                size = np.linalg.norm(D)
                if size < 1e-11:
                    if self.is_critical(w):
                        zeros.append((w, tuple(self.sides(w)), k == 1))
                    continue
                points += [s * D / size for s in (1, -1) if self.is_critical(s * D / size)]
        unique = []
        for w in points:
            if abs(self.value(w)) > 1e-11 and not any(np.allclose(w, u, atol=1e-8) for u in unique):
                unique.append(w)
        return unique, zeros


def check(seed):
    problem = draw(seed)
    brute = BruteForce(problem)
    found = extremal_vectors(problem)
    assert found.exact
    if len(brute.N) == 0 and not brute.m.any():  # G = 0: the sphere is critical
        assert len(found) == (2 if problem.d == 1 else 1)
        return len(found)
    points, zeros = brute.critical(np.random.default_rng(seed))
    assert all(brute.is_critical(w) for w in found.vectors)
    real = found.vectors[found.values != 0.0]
    assert len(real) == len(points)
    for w in points:
        assert np.linalg.norm(real - w, axis=1).min() < 1e-7
    assert found.zeros == "all faces"
    rest = found.vectors[found.values == 0.0]
    for w, sides, alone in zeros:
        same = [u for u in rest if tuple(brute.sides(u)) == sides]
        assert same, (w, sides)
        if alone:
            assert min(np.linalg.norm(u - w) for u in same) < 1e-7, w
    for u in rest:  # a face is listed once, two opposite points once each
        twins = [v for v in rest if tuple(brute.sides(u)) == tuple(brute.sides(v))]
        assert len(twins) == 1 or (len(twins) == 2 and np.allclose(twins[0], -twins[1]))
    return len(found)


def test_degenerate_data_against_brute_force():
    assert sum(check(seed) for seed in range(42)) > 42


@pytest.mark.slow
def test_many_degenerate_data_against_brute_force():
    for seed in range(1000, 1700):
        check(seed)


def test_samples_on_one_line_in_the_plane_have_four_extremal_vectors():
    """x = (1, 0), y = +-1: G = c max(w_1, 0); (0, 1) and (0, -1) both, and the dead side."""
    problem = Problem(np.array([[1.0, 0.0], [2.0, 0.0]]), np.array([1.0, -0.25]))
    found = extremal_vectors(problem)
    zero = found.vectors[found.values == 0.0]
    for w in ([0.0, 1.0], [0.0, -1.0]):
        assert np.linalg.norm(zero - w, axis=1).min() < 1e-12
    assert len({tuple(w) for w in found.vectors.round(12)}) == len(found) == 4
    assert "4 all" in repr(found)


def test_no_pull_on_the_line_leaves_both_of_its_directions():
    found = extremal_vectors(Problem(np.array([[1.0], [2.0]]), np.zeros(2)))
    np.testing.assert_array_equal(found.vectors, [[1.0], [-1.0]])
    np.testing.assert_array_equal(found.basin_fractions, [[0.5, 0.5], [0.5, 0.5]])
    np.testing.assert_array_equal(found.patterns, [[1, 1], [-1, -1]])
