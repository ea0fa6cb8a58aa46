"""Products of the samples: when they are kept, and that nothing else depends on them."""

import numpy as np

from reluflow import Problem, align, initialize
from reluflow.landscape import products


def middle(seed=0, n=400, d=30):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 0.3
    y = np.sign(X[:, 0] + 0.5 * X[:, 1] * X[:, 2])
    return Problem(X, y, "logistic")


def test_alignment_with_and_without(monkeypatch):
    problem = middle()
    net = initialize(problem, 20, 1e-6, rng=0)
    assert products.products_pay(problem)
    kept = align(problem, net)
    monkeypatch.setattr(products, "_ENTRIES", 10**9)
    other = middle()
    assert products.sample_products(other) is None
    plain = align(other, net)
    np.testing.assert_array_equal(kept.counts, plain.counts)
    np.testing.assert_array_equal(kept.ends, plain.ends)
    np.testing.assert_allclose(kept.direction, plain.direction, atol=1e-12)
    np.testing.assert_allclose(kept.growth, plain.growth, rtol=1e-12)
    np.testing.assert_allclose(kept.time, plain.time, rtol=1e-9)
    np.testing.assert_allclose(kept.log_offset, plain.log_offset, atol=1e-9)


def test_kept_once_and_let_go(monkeypatch):
    first, second = middle(0, 200, 10), middle(1, 200, 10)
    K = products.sample_products(first)
    np.testing.assert_allclose(K, first.X @ first.X.T)
    assert products.sample_products(first) is K
    assert not K.flags.writeable
    monkeypatch.setattr(products, "_BYTES", 8.0 * 200**2)  # room for one
    products.sample_products(second)
    assert first not in products._kept
    assert products.sample_products(first) is not K


def test_where_they_do_not_pay_or_have_no_room(monkeypatch):
    assert products.sample_products(middle(0, 400, 3)) is None
    assert products.sample_products(middle(0, 20, 10)) is None
    monkeypatch.setattr(products, "_BYTES", 1e5)
    assert products.sample_products(middle(2, 200, 10)) is None
