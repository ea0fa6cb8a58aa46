"""The smoothed ReLU of [TK24]_ against quadrature, sampling and differences."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import gamma

from reluflow import Network, Problem, ReluflowError
from reluflow.problem.activation import SmoothedRelu

DIMENSIONS = pytest.mark.parametrize("d", range(1, 9))


def quadrature(w, x, xi):
    """The average over the ball, as an integral over the coordinate along w, t = sin(angle)."""
    d, size, z = w.size, np.linalg.norm(w), float(w @ x)
    K = gamma(d / 2 + 1) / (math.sqrt(math.pi) * gamma((d + 1) / 2))
    c = np.clip(z / (xi * size), -1.0, 1.0)
    inside = (-np.arcsin(c), np.pi / 2)
    weight = lambda t: K * np.cos(t) ** d  # noqa: E731
    value = quad(lambda t: (z + xi * size * np.sin(t)) * weight(t), *inside, epsrel=1e-13)[0]
    gradient = [
        quad(
            lambda t, i=i: (x[i] + xi * np.sin(t) * w[i] / size) * weight(t), *inside, epsrel=1e-13
        )[0]
        for i in range(d)
    ]
    return value, np.array(gradient)


@DIMENSIONS
@pytest.mark.parametrize("xi", [0.05, 0.3, 2.0])
def test_against_quadrature(d, xi):
    rng = np.random.default_rng(d)
    W, X = rng.standard_normal((4, d)), 0.5 * rng.standard_normal((4, d))
    smooth = SmoothedRelu(xi)
    value, gradient = smooth.value(W, X), smooth.gradient(W, X)
    for k, x in enumerate(X):
        for j, w in enumerate(W):
            v, g = quadrature(w, x, xi)
            assert abs(value[k, j] - v) <= 1e-12
            assert np.abs(gradient[k, j] - g).max() <= 1e-12


@pytest.mark.parametrize("d", [1, 3])
def test_polynomials_of_odd_dimensions(d):
    c = np.linspace(-1, 1, 41)
    form = (1 + c) ** 2 / 4 if d == 1 else (3 + 8 * c + 6 * c**2 - c**4) / 16
    xi, size = 0.2, 3.0
    w, X = np.zeros((1, d)), np.zeros((41, d))
    w[0, 0], X[:, 0] = size, xi * c
    assert np.abs(SmoothedRelu(xi).value(w, X)[:, 0] - xi * size * form).max() <= 1e-15


@pytest.mark.parametrize("d", [2, 5])
def test_is_the_mean_over_the_ball(d):
    rng = np.random.default_rng(0)
    ball = rng.standard_normal((400_000, d))
    ball *= (rng.random(len(ball)) ** (1 / d) / np.linalg.norm(ball, axis=1))[:, None]
    w, x, xi, leak = rng.standard_normal(d), 0.1 * rng.standard_normal(d), 0.4, 0.2
    z = (x + xi * ball) @ w
    sample = np.maximum(z, leak * z)
    got = SmoothedRelu(xi, leak).value(w[None], x[None])[0, 0]
    assert abs(got - sample.mean()) <= 4 * sample.std() / math.sqrt(len(ball))


@DIMENSIONS
def test_gradient_and_hessian_by_differences(d):
    rng = np.random.default_rng(d)
    W, X = rng.standard_normal((3, d)), 0.3 * rng.standard_normal((4, d))
    smooth, h = SmoothedRelu(0.5, 0.1), 1e-5
    H, g = smooth.hessian(W, X), smooth.gradient(W, X)
    assert np.abs(H - np.swapaxes(H, 2, 3)).max() <= 1e-14
    for i in range(d):
        up, down = W.copy(), W.copy()
        up[:, i] += h
        down[:, i] -= h
        slope = (smooth.value(up, X) - smooth.value(down, X)) / (2 * h)
        bend = (smooth.gradient(up, X) - smooth.gradient(down, X)) / (2 * h)
        assert np.abs(g[:, :, i] - slope).max() <= 1e-8
        assert np.abs(H[:, :, :, i] - bend).max() <= (1e-8 if d > 2 else 1e-5)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(0, 10**6), st.floats(0.01, 3.0), st.floats(0.0, 0.9))
def test_homogeneous_convex_and_above_the_plain_one(d, seed, xi, leak):
    rng = np.random.default_rng(seed)
    W, X = rng.standard_normal((3, d)), rng.standard_normal((5, d))
    smooth = SmoothedRelu(xi, leak)
    value, z = smooth.value(W, X), X @ W.T
    plain = np.maximum(z, leak * z)
    assert np.allclose(smooth.value(3.0 * W, X), 3.0 * value)
    assert np.allclose(np.einsum("kji,ji->kj", smooth.gradient(W, X), W), value)
    assert (value >= plain - 1e-12).all()
    outside = np.abs(z) >= xi * np.linalg.norm(W, axis=1)
    assert np.allclose(value[outside], plain[outside])
    c = rng.standard_normal(5)
    D = np.einsum("k,kji->ji", c, smooth.gradient(W, X))
    assert np.allclose(smooth.pulled(W, X, c), D)
    assert np.linalg.eigvalsh(smooth.hessian(W, X)).min() >= -1e-12


def test_tiny_and_zero_neurons():
    smooth, X = SmoothedRelu(0.3), np.eye(2)
    tiny = smooth.value(np.array([[1e-250, 2e-250]]), X)
    assert np.allclose(tiny, 1e-250 * smooth.value(np.array([[1.0, 2.0]]), X), rtol=1e-13, atol=0)
    zero = np.zeros((1, 2))
    assert not smooth.value(zero, X).any()
    assert not smooth.hessian(zero, X).any()


def test_problem_and_network_carry_it():
    problem = Problem(0.1 * np.eye(3), [1.0, -1.0, 2.0], leak=0.1, smoothing=0.4)
    net = Network(np.eye(3), [1.0, 1.0, 2.0], leak=0.1, smoothing=0.4)
    f = SmoothedRelu(0.4, 0.1).value(net.W, problem.X) @ net.a
    assert np.allclose(problem.outputs(net), f)
    assert np.allclose(net(problem.X), f)
    assert pickle.loads(pickle.dumps(problem)).smoothing == 0.4
    assert problem.replace(name="other").smoothing == 0.4
    assert "smoothing=0.4" in repr(problem)
    assert "smoothing" not in repr(problem.replace(smoothing=0.0))
    for wrong in (-1.0, math.nan, math.inf, "much"):
        with pytest.raises(ReluflowError, match="smoothing must be"):
            problem.replace(smoothing=wrong)
    with pytest.raises(ReluflowError, match="must be positive"):
        SmoothedRelu(0.0)


def test_rooms_of_kinks_refuse_it():
    from reluflow import (
        align,
        early,
        extremal_vectors,
        kkt,
        limit,
        max_G,
        max_margin,
        min_norm,
        stationarity,
    )

    p = Problem(np.eye(2), [1.0, -1.0], "logistic", smoothing=0.1)
    net = Network(np.eye(2), [1.0, -1.0])
    rooms = [
        lambda: extremal_vectors(p),
        lambda: max_G(p),
        lambda: align(p, net),
        lambda: limit(p),
        lambda: early(p, net, t=1.0),
        lambda: kkt(p, net),
        lambda: stationarity(p, net),
        lambda: max_margin(p),
        lambda: min_norm(p),
    ]
    for room in rooms:
        with pytest.raises(
            ReluflowError, match=r"piecewise linear activations, got smoothing=0\.1"
        ):
            room()
