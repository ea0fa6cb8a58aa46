"""Each sample and each neuron judged at its own size: badly scaled data and networks."""

from fractions import Fraction

import numpy as np
import pytest

from reluflow import Network, Problem
from reluflow.optimum import kkt, max_margin, min_norm, stationarity
from reluflow.optimum.own_size import on_range, terms


def directions(rng, n, d):
    X = rng.normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def spread(rng, n, decades):
    """Factors over so many decades."""
    return 10.0 ** rng.uniform(-decades / 2, decades / 2, n)


# ---------------------------------------------------------------- projections


def exact_projection(A, g):
    """Projection of g on the range of A in rational numbers."""
    columns: list[list[Fraction]] = []
    for column in A.T:
        v = [Fraction(float(x)) for x in column]
        for q in columns:
            share = sum(a * b for a, b in zip(v, q, strict=True)) / sum(b * b for b in q)
            v = [a - share * b for a, b in zip(v, q, strict=True)]
        if any(v):
            columns.append(v)
    out = [Fraction(0)] * len(g)
    for q in columns:
        share = sum(Fraction(float(a)) * b for a, b in zip(g, q, strict=True))
        share /= sum(b * b for b in q)
        out = [a + share * b for a, b in zip(out, q, strict=True)]
    return np.array([float(x) for x in out])


@pytest.mark.parametrize("seed", range(40))
def test_projection_on_rows_of_any_size(seed):
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(2, 8)), int(rng.integers(1, 4))
    A = rng.integers(-4, 5, size=(n, p)) * (2.0 ** rng.integers(-60, 60, n))[:, None]
    A[:, -1] = A[:, 0] if seed % 3 == 0 else A[:, -1]  # a column that depends on another
    g = rng.normal(size=n)
    np.testing.assert_allclose(on_range(A, g), exact_projection(A, g), atol=1e-11)


# ---------------------------------------------------------------- stationarity


def test_the_smaller_label_is_not_forgotten():
    problem = Problem(np.eye(2), [1e8, 1.0])
    found = stationarity(problem, Network([[1e4, 0.0]], [1e4]))
    assert (found.kind, found.local) == ("stationary, not global", "saddle")
    assert found.excess == pytest.approx(0.25)
    assert found.descent.direction == pytest.approx([0.0, 1.0])
    both = stationarity(problem, Network([[1e4, 0.0], [0.0, 1.0]], [1e4, 1.0]))
    assert both.kind == "global minimum"
    valley = stationarity(Problem(np.eye(2), [1e8, -1.0]), Network([[1e4, 0.0]], [1e4]))
    assert (valley.kind, valley.local) == ("stationary, not global", "minimum")


@pytest.mark.parametrize("size", [1e-10, 1.0, 1e10, 1e100])
def test_a_dead_neuron_of_any_size_changes_nothing(size):
    problem = Problem(np.eye(2), [1.0, 1.0])
    for W, a in (([[0.5, 0.5]], [0.5]), ([[1.0, 1.0]], [1.0]), ([[1.0, 0.0]], [1.0])):
        alone = stationarity(problem, Network(W, a))
        dead = stationarity(problem, Network([*W, [-size, -size]], [*a, size]))
        assert (dead.kind, dead.local) == (alone.kind, alone.local)
        assert dead.relative == pytest.approx(alone.relative)
        assert (dead.residual, dead.excess) == pytest.approx((alone.residual, alone.excess))
    far = stationarity(problem, Network([[0.5, 0.5], [-size, -size]], [0.5, size]))
    assert far.kind == "not stationary"


def balanced_network(rng, factors):
    """A network at rest, not global, on samples times factors, the pulls divided by them.

    c lies in the null space of all D_j, in which c_k and x_k appear as c_k x_k alone. Samples and
    neurons lie in the positive quadrant, so that every neuron reads every sample.
    """
    n, d = len(factors), 2
    X = np.abs(rng.normal(size=(n, d))) + 0.1
    W, a = np.abs(rng.normal(size=(2, d))) + 0.1, np.array([1.0, -0.7])
    null = np.linalg.svd(X.T)[2][d:]
    c = rng.normal(size=len(null)) @ null
    X, c = factors[:, None] * X, c / factors
    net = Network(W, a)
    f = Problem(X, np.ones(n)).outputs(net)
    return X, f, c, net


@pytest.mark.parametrize("seed", range(30))
def test_rest_does_not_depend_on_the_sizes_of_samples_and_dead_neurons(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 8))
    X, f, c, net = balanced_network(rng, spread(rng, n, 6 if seed else 0))
    found = stationarity(Problem(X, f + n * c), net)
    assert (found.kind, found.local) == ("stationary, not global", "minimum")
    dead = Network(np.vstack([net.W, -np.ones(2)]), np.append(net.a, 1.0), [0.0, 0.0, 40.0])
    more = stationarity(Problem(X, f + n * c), dead)
    assert (more.kind, more.local) == (found.kind, found.local)
    noticed = 0
    for k in range(n):  # one pull off by a thousandth of its own size
        y = f + n * c
        y[k] += 1e-3 * (abs(y[k]) + abs(f[k]))
        size = (np.abs(y) + np.abs(f)) / n
        # what the others may take over, each within its own size, in rational numbers
        share = np.abs(exact_projection(size[:, None] * X, (y - f) / n / size)).max()
        if share > 1e-6 or share < 1e-8:
            kind = "not stationary" if share > 1e-6 else "stationary, not global"
            assert stationarity(Problem(X, y), net).kind == kind
            assert stationarity(Problem(X, y), dead).kind == kind
            noticed += share > 1e-6
    assert noticed >= 2


@pytest.mark.parametrize("seed", range(30))
def test_global_minima_with_labels_and_samples_of_all_sizes(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 6)), int(rng.integers(2, 4))
    X = directions(rng, n, d) * spread(rng, n, 8)[:, None]
    net = Network(directions(rng, 6, d) * spread(rng, 6, 4)[:, None], rng.normal(size=6))
    y = Problem(X, np.ones(n)).outputs(net)
    assert stationarity(Problem(X, y), net).kind == "global minimum"
    rounding = 1e-13 * terms(Problem(X, y), net)
    for k in np.flatnonzero(np.abs(y) > 1e4 * rounding):
        other = y.copy()
        other[k] *= 1.001
        found = stationarity(Problem(X, other), net)
        assert found.kind != "global minimum"
        assert found.excess == pytest.approx((other[k] - y[k]) ** 2 / (2 * n), rel=1e-6)


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-11, 1e-8, 1e-3])
def test_nearly_parallel_samples_are_not_parallel(angle):
    """On one line labels 2, -1 at x, 2 x leave no network a gain; off it some network has both."""
    problem = Problem([[1.0, 0.0], [2.0, 2.0 * angle]], [2.0, -1.0])
    found = stationarity(problem, Network([[0.0, 0.0]], [0.0]))
    if angle == 0.0:
        assert found.kind == "global minimum"
        assert min_norm(problem).status == "infeasible"
        return
    assert (found.kind, found.local) == ("stationary, not global", "saddle")
    assert found.excess == pytest.approx(found.loss)
    assert 0.0 < found.escape <= found.escape_bound
    least = min_norm(problem)
    assert least.status != "infeasible"
    # f = 2 at x alone: a w with <w, x> = 2 and <w, 2 x'> <= 0, and -1 at 2 x' alone
    assert least.lower_bound <= 2 * (2.0 / angle + 0.5 / angle) * (1 + 1e-6)
    assert least.lower_bound >= 1e-2 / angle
    margin = max_margin(problem.replace(y=[1.0, -1.0]))
    assert margin.status != "infeasible"
    assert margin.upper_bound > 0.1 * angle


# ---------------------------------------------------------------- optima over all networks


@pytest.mark.parametrize("seed", range(25))
def test_least_norm_is_that_of_rescaled_samples(seed):
    """f is homogeneous in x: rescaling a sample with its label changes no interpolator."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 6)), int(rng.integers(2, 4))
    X, y, s = directions(rng, n, d), rng.normal(size=n), spread(rng, n, 16)
    plain, scaled = min_norm(Problem(X, y)), min_norm(Problem(X * s[:, None], y * s))
    assert scaled.status == plain.status == "optimal"
    assert scaled.norm2 == pytest.approx(plain.norm2, rel=1e-8)
    assert scaled.lower_bound == pytest.approx(plain.lower_bound, rel=1e-8)
    f = Problem(X * s[:, None], y * s).outputs(scaled.network)
    np.testing.assert_allclose(f / (y * s), 1.0, rtol=1e-8)


@pytest.mark.parametrize("seed", range(10))
def test_every_label_is_fitted_at_its_own_size(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    y = rng.choice([-1.0, 1.0], n) * spread(rng, n, 16)
    orthonormal = min_norm(Problem(np.eye(n), y))  # 2 (|y+| + |y-|)
    sides = [np.linalg.norm(y[y > 0]), np.linalg.norm(y[y < 0])]
    assert orthonormal.lower_bound == pytest.approx(2 * sum(sides), rel=1e-8)
    X = directions(rng, n, 3)
    found = min_norm(Problem(X, y))
    assert found.status != "infeasible"
    for each, samples in ((orthonormal, np.eye(n)), (found, X)):
        if each.network is None:
            assert each.status == "gap left"
        else:
            np.testing.assert_allclose(Problem(samples, y).outputs(each.network), y, rtol=1e-5)


@pytest.mark.parametrize("seed", range(25))
def test_margins_of_samples_of_all_sizes(seed):
    """Samples s_k e_k: v+, v- = sum of e_k / s_k over a class, margin 1/(2 (|v+| + |v-|))."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    y, s = rng.choice([-1.0, 1.0], n), spread(rng, n, 12)
    problem = Problem(np.diag(s), y)
    total = sum(np.linalg.norm(1 / s[y == sign]) for sign in (1.0, -1.0))
    found = max_margin(problem)
    assert found.status == "optimal"
    assert found.margin == pytest.approx(1 / (2 * total), rel=1e-8)
    v = [np.where(y == sign, 1 / s, 0.0) for sign in (1.0, -1.0) if (y == sign).any()]
    roots = np.sqrt([np.linalg.norm(each) for each in v])
    signs = [sign for sign in (1.0, -1.0) if (y == sign).any()]
    best = kkt(problem, Network(np.array(v) / roots[:, None], signs * roots))
    assert best.residual < 1e-12
    assert 2 * best.multipliers.sum() * best.margin == pytest.approx(1.0)
    line = max_margin(problem, "linear")
    assert line.status == "optimal"
    assert line.margin == pytest.approx(1 / np.linalg.norm(1 / s), rel=1e-8)


@pytest.mark.parametrize("seed", range(25))
def test_separable_data_of_all_sizes_are_separated(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 8)), int(rng.integers(2, 5))
    X, w = directions(rng, n, d), rng.normal(size=d)
    problem = Problem(X * spread(rng, n, 12)[:, None], np.sign(X @ w))
    found = max_margin(problem, "linear")
    assert found.status != "infeasible"
    assert (problem.y * (problem.X @ found.w)).min() == pytest.approx(found.margin)
    assert found.margin <= found.upper_bound <= found.margin * (1 + 1e-3)
