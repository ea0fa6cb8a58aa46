"""The limit process on large data, on data of a middle size where both ways can be taken."""

import numpy as np
import pytest

from reluflow import Problem, align, initialize, limit
from reluflow.errors import ReluflowError
from reluflow.prediction import arrival, crew, smooth, transit
from reluflow.prediction.crew import Crew
from reluflow.prediction.large import newton


def two_clusters(seed=0, n=120, d=20):
    """Two classes far apart, as digits are: each is fitted by one group of neurons."""
    rng = np.random.default_rng(seed)
    y = np.repeat([1.0, -1.0], n // 2)
    X = rng.normal(size=(n, d))
    X[:, 0] += 4.0 * y
    X[:, 1] += 1.0
    return X, y


@pytest.fixture
def all_large(monkeypatch):
    """Everything counts as large."""
    monkeypatch.setattr(arrival, "ENTRIES", 0)
    monkeypatch.setattr(transit, "ENTRIES", 0)
    monkeypatch.setattr(crew, "_LARGE", 0)
    monkeypatch.setattr(smooth, "_JACOBIAN", 0.0)


def process(seed, loss):
    problem = Problem(*two_clusters(seed), loss)
    net = initialize(problem, 12, 1e-6, rng=seed)
    return limit(problem, net, seconds=5.0, max_jumps=2, alignment=align(problem, net))


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_jumps_of_the_large_way(loss, request):
    usual = process(0, loss)
    request.getfixturevalue("all_large")
    large = process(0, loss)
    assert usual.n_jumps >= 2
    np.testing.assert_allclose(large.times, usual.times, rtol=1e-3)
    assert [list(a) for a in large.neurons] == [list(a) for a in usual.neurons]
    np.testing.assert_allclose(large.losses, usual.losses, atol=2e-3)
    both = np.isfinite(usual.offsets) & np.isfinite(large.offsets)
    assert both.any()
    np.testing.assert_allclose(large.offsets[both], usual.offsets[both], atol=5e-3)


def beside_the_minimum(leak, slides):
    """A crew of two near the minimum of a square loss on its patterns."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 5))
    V = rng.normal(size=(2, 5))
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    if slides:
        V[0] -= X[0] * (V[0] @ X[0]) / (X[0] @ X[0])
        V[0] /= np.linalg.norm(V[0])
    U = np.where(V @ X.T > 0, 1, -1).astype(np.int8)
    if slides:
        U[0, 0] = 0
    s, log = np.array([1.0, -1.0]), np.array([0.1, 0.3])
    z = V @ X.T
    f = np.where(z > 0, z, leak * z).T @ (s * np.exp(2 * log))
    problem = Problem(X, f + 1e-5 * rng.normal(size=60), leak=leak)
    return Crew.of(problem, V, s, log, U, 2)


@pytest.mark.parametrize(("leak", "slides"), [(0.0, False), (0.3, False), (0.3, True)])
def test_newton_by_products_finds_what_dense_systems_find(leak, slides):
    crew = beside_the_minimum(leak, slides)
    dense = arrival.polish(crew)
    u, f, way, rate, c = newton(crew.acting, None, 1e-2)
    exact = (dense.crew.s * np.exp(2.0 * dense.crew.log))[:, None] * dense.crew.V
    assert 1e-7 < dense.distance < 1e-2
    np.testing.assert_allclose(u, exact, atol=1e-9)
    np.testing.assert_allclose(c, dense.pull, atol=1e-10)
    assert dense.linear.values.min() <= rate <= dense.linear.values.max()
    np.testing.assert_allclose(way, f - crew.outputs(), atol=1e-9)
    assert newton(crew.acting, None, 0.5 * dense.distance) is None


def test_alignment_of_another_network_is_refused():
    problem = Problem(*two_clusters())
    net = initialize(problem, 4, 1e-6, rng=0)
    other = align(problem, net.subset(np.arange(3)))
    with pytest.raises(ReluflowError, match="the 4 neurons of net"):
        limit(problem, net, alignment=other)
    with pytest.raises(ReluflowError, match="another problem"):
        limit(Problem(*two_clusters()), net, alignment=align(problem, net))
    with pytest.raises(ReluflowError, match="without the network"):
        limit(problem, alignment=align(problem, net))
