"""Network: evaluation against a naive loop, log-scales, bias and refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reluflow import Network, Problem, ReluflowError


def naive(W, a, X, leak=0.0):
    out = []
    for x in X:
        total = 0.0
        for w, outer in zip(W, a, strict=True):
            z = sum(wi * xi for wi, xi in zip(w, x, strict=True))
            total += outer * (z if z > 0 else leak * z)
        out.append(total)
    return np.array(out)


@given(
    st.integers(1, 6), st.integers(1, 4), st.integers(1, 5), st.floats(0, 0.9), st.integers(0, 99)
)
def test_evaluate_is_the_naive_loop(m, d, k, leak, seed):
    rng = np.random.default_rng(seed)
    W, a, X = rng.standard_normal((m, d)), rng.standard_normal(m), rng.standard_normal((k, d))
    net = Network(W, a, leak=leak)
    np.testing.assert_allclose(net(X), naive(W, a, X, leak), rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(net.evaluate(X, leak), net(X))


def test_wide_networks_are_evaluated_in_blocks(monkeypatch):
    monkeypatch.setattr("reluflow.network.network._BLOCK", 7)
    rng = np.random.default_rng(0)
    W, a, X = rng.standard_normal((23, 2)), rng.standard_normal(23), rng.standard_normal((3, 2))
    np.testing.assert_allclose(Network(W, a)(X), naive(W, a, X), rtol=1e-12)


def test_one_input_gives_a_number():
    net = Network(np.eye(2), [1.0, 1.0])
    assert net(np.array([2.0, 3.0])) == 5.0
    assert np.ndim(net(np.array([2.0, 3.0]))) == 0


def test_log_scale_multiplies_both_layers():
    rng = np.random.default_rng(1)
    W, a, X = rng.standard_normal((4, 3)), rng.standard_normal(4), rng.standard_normal((5, 3))
    s = np.array([0.0, -1.0, 2.0, -3.5])
    scaled = Network(W, a, log_scale=s)
    plain = Network(np.exp(s)[:, None] * W, np.exp(s) * a)
    np.testing.assert_allclose(scaled(X), plain(X), rtol=1e-13)
    np.testing.assert_allclose(scaled.weights()[0], plain.W, rtol=1e-15)
    np.testing.assert_allclose(scaled.weights()[1], plain.a, rtol=1e-15)
    np.testing.assert_allclose(scaled.log_norms, plain.log_norms, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(scaled.log_outer, plain.log_outer, rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(scaled.directions, Network(W, a).directions)


def test_scales_beyond_floats():
    net = Network([[3.0, 4.0]], [-2.0], log_scale=-1000.0)
    np.testing.assert_allclose(net.log_norms, [-1000 + math.log(5)], rtol=1e-15)
    np.testing.assert_allclose(net.log_outer, [-1000 + math.log(2)], rtol=1e-15)
    np.testing.assert_allclose(net.directions, [[0.6, 0.8]], rtol=1e-15)
    assert net(np.array([[1.0, 1.0]]))[0] == 0.0
    back = net.scaled(1000.0)
    np.testing.assert_allclose(back(np.array([[1.0, 1.0]])), [-14.0], rtol=1e-15)


def test_tiny_weights_keep_their_norm():
    tiny = 5e-324
    net = Network([[3e-200, 4e-200], [tiny, 0.0]], [1.0, 1.0])
    np.testing.assert_allclose(net.log_norms, [np.log(5e-200), np.log(tiny)], rtol=1e-14)
    np.testing.assert_allclose(net.directions, [[0.6, 0.8], [1.0, 0.0]], rtol=1e-14)


def test_a_zero_neuron_has_no_direction():
    net = Network([[0.0, 0.0], [1.0, 0.0]], [0.0, 1.0])
    assert net.log_norms[0] == net.log_outer[0] == -np.inf
    np.testing.assert_array_equal(net.directions, [[0.0, 0.0], [1.0, 0.0]])


def test_bias_is_appended_on_calls():
    net = Network([[1.0, 2.0]], [3.0], bias=0.5)
    assert net(np.array([[4.0]]))[0] == 3.0 * (4.0 + 1.0)
    assert net(np.array([[4.0, 0.5]]))[0] == 15.0
    assert net(np.array([4.0])) == 15.0
    problem = Problem([[4.0], [-9.0]], [1.0, 1.0], bias=0.5)
    np.testing.assert_array_equal(problem.outputs(net), net(np.array([[4.0], [-9.0]])))


def test_subset():
    net = Network(np.eye(3), [1.0, 2.0, 3.0], log_scale=[0.0, 1.0, 2.0], leak=0.1, bias=1.0)
    part = net.subset(np.array([2, 0]))
    np.testing.assert_array_equal(part.a, [3.0, 1.0])
    np.testing.assert_array_equal(part.log_scale, [2.0, 0.0])
    assert (part.leak, part.bias) == (0.1, 1.0)
    assert net.subset(np.array([True, False, True])).m == 2


def test_arrays_are_frozen_copies():
    W = np.eye(2)
    net = Network(W, np.ones(2), log_scale=np.zeros(2))
    W[0, 0] = 5.0
    assert net.W[0, 0] == 1.0
    for array in (net.W, net.a, net.log_scale):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0


@pytest.mark.parametrize(
    ("W", "a", "message"),
    [
        (np.eye(2), np.ones(3), "W has 2 rows but a has 3 entries"),
        (np.zeros((0, 2)), np.ones(0), "the network is empty: expected m >= 1"),
        (np.ones(2), np.ones(2), r"W has 1 dimension\(s\), expected 2"),
        (np.full((1, 2), np.nan), np.ones(1), r"W\[0, 0\] is nan"),
        (np.ones((1, 2)), [np.inf], r"a\[0\] is inf"),
    ],
)
def test_refusals(W, a, message):
    with pytest.raises(ReluflowError, match=message):
        Network(W, a)


def test_wrong_inputs():
    net = Network(np.eye(2), np.ones(2))
    with pytest.raises(ReluflowError, match=r"X has 3 columns but W has 2: expected X of shape"):
        net(np.ones((4, 3)))
    with pytest.raises(ReluflowError, match=r"or \(k, 1\) without the bias feature"):
        Network(np.eye(2), np.ones(2), bias=1.0)(np.ones((4, 3)))
    with pytest.raises(ReluflowError, match=r"W has 2 columns but X has 5 features: .*bias=1.0"):
        net.check_fits(5)


def test_repr():
    assert repr(Network(np.eye(2), np.ones(2), leak=0.5)) == "Network(m=2, d=2, leak=0.5)"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"leak": 2.0}, "leak must satisfy 0 <= leak < 1, got 2"),
        ({"bias": 0.0}, "bias must be a finite non-zero number"),
        ({"log_scale": [0.0, 1.0]}, "log_scale has 2 entries for 1 neurons"),
        ({"log_scale": np.nan}, "log_scale\\[0\\] is nan"),
    ],
)
def test_more_refusals(options, message):
    with pytest.raises(ReluflowError, match=message):
        Network([[1.0, 2.0]], [1.0], **options)


@pytest.mark.parametrize("X", [np.zeros((1, 2, 2)), [[np.nan, 1.0]]])
def test_calls_refuse_what_is_not_a_list_of_finite_inputs(X):
    with pytest.raises(ReluflowError, match="X"):
        Network([[1.0, 2.0]], [1.0])(X)
