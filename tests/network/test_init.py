"""Initial laws: distribution facts, balancedness, scale conventions, seeds and refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from reluflow import Problem, ReluflowError, axis_start, initialize
from reluflow.network.init import KINDS

SIGNED = ("balanced", "sphere", "dominated", "dominated_box")
FREE = ("gaussian", "he", "he_uniform", "pytorch")
M = 4000


def problem(d: int = 3) -> Problem:
    return Problem(np.eye(d), np.ones(d), leak=0.1)


def draw(kind: str, d: int = 3, m: int = M, scale: float = 2.0, **options):
    return initialize(problem(d), m, scale=scale, kind=kind, rng=0, **options)


def pvalue(sample, law) -> float:
    return stats.kstest(np.ravel(sample), law.cdf).pvalue


def test_every_kind_is_tested():
    assert set(KINDS) == set(SIGNED + FREE)


@pytest.mark.parametrize("kind", KINDS)
def test_shape_and_inheritance(kind):
    net = initialize(Problem(np.eye(2), np.ones(2), leak=0.3, bias=1.0), 5, kind=kind, rng=1)
    assert (net.m, net.d, net.leak, net.bias) == (5, 3, 0.3, 1.0)
    assert net.log_scale is None


@pytest.mark.parametrize("kind", KINDS)
def test_seeds(kind):
    one, two, other = (initialize(problem(), 6, kind=kind, rng=seed) for seed in (7, 7, 8))
    np.testing.assert_array_equal(one.W, two.W)
    np.testing.assert_array_equal(one.a, two.a)
    assert not np.array_equal(one.W, other.W)
    generator = np.random.default_rng(7)
    same = initialize(problem(), 6, kind=kind, rng=generator)
    np.testing.assert_array_equal(one.W, same.W)
    following = initialize(problem(), 6, kind=kind, rng=generator)
    assert not np.array_equal(one.W, following.W)


@pytest.mark.parametrize("kind", ["balanced", "sphere"])
def test_balanced_laws(kind):
    net = draw(kind)
    np.testing.assert_allclose(np.abs(net.a), np.linalg.norm(net.W, axis=1), rtol=1e-14)


@pytest.mark.parametrize("kind", ["dominated", "dominated_box"])
def test_dominated_laws(kind):
    net = draw(kind)
    norms = np.linalg.norm(net.W, axis=1)
    assert np.all(norms <= np.abs(net.a))
    assert np.any(norms < 0.9 * np.abs(net.a))


@pytest.mark.parametrize("kind", SIGNED)
def test_direction_is_isotropic_or_uniform_in_a_box(kind):
    net = draw(kind, d=3)
    if kind == "dominated_box":
        assert pvalue(net.W * math.sqrt(M) / 2, stats.uniform(-1, 2)) > 1e-3
    else:  # on the sphere of three dimensions every coordinate is uniform
        assert pvalue(net.directions, stats.uniform(-1, 2)) > 1e-3


def test_radial_laws():
    s = 2 / math.sqrt(M)
    balanced = np.linalg.norm(draw("balanced").W, axis=1) / s
    assert pvalue(balanced, stats.chi(3)) > 1e-3
    np.testing.assert_allclose(np.linalg.norm(draw("sphere").W, axis=1), s, rtol=1e-13)
    ball = np.linalg.norm(draw("dominated").W, axis=1) / s
    assert pvalue(ball**3, stats.uniform(0, 1)) > 1e-3
    np.testing.assert_allclose(np.abs(draw("dominated").a), s, rtol=1e-13)
    np.testing.assert_allclose(np.abs(draw("dominated_box").a), s * math.sqrt(3), rtol=1e-13)


@pytest.mark.parametrize("kind", FREE)
def test_independent_laws(kind):
    d, net = 3, draw(kind, d=3, outer_factor=1.5)
    inner, outer = {
        "gaussian": (stats.norm(0, 2 / math.sqrt(M)), stats.norm(0, 3 / math.sqrt(M))),
        "he": (stats.norm(0, 2 * math.sqrt(2 / d)), stats.norm(0, 3 * math.sqrt(2 / M))),
        "he_uniform": (
            stats.uniform(-2 * math.sqrt(6 / d), 4 * math.sqrt(6 / d)),
            stats.uniform(-3 * math.sqrt(6 / M), 6 * math.sqrt(6 / M)),
        ),
        "pytorch": (
            stats.uniform(-2 / math.sqrt(d), 4 / math.sqrt(d)),
            stats.uniform(-3 / math.sqrt(M), 6 / math.sqrt(M)),
        ),
    }[kind]
    assert pvalue(net.W, inner) > 1e-3
    assert pvalue(net.a, outer) > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_scale_is_a_plain_factor(kind):
    one, two = (initialize(problem(), 5, scale=s, kind=kind, rng=0) for s in (1e-3, 1e-6))
    np.testing.assert_allclose(two.W, 1e-3 * one.W, rtol=1e-13)
    np.testing.assert_allclose(two.a, 1e-3 * one.a, rtol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_normalize(kind):
    plain, divided = (
        initialize(problem(), 16, scale=1.0, kind=kind, rng=0, normalize=n)
        for n in ("none", "sqrt_m")
    )
    np.testing.assert_allclose(plain.W, 4 * divided.W, rtol=1e-13)
    np.testing.assert_allclose(plain.a, 4 * divided.a, rtol=1e-13)
    default = initialize(problem(), 16, scale=1.0, kind=kind, rng=0)
    fan_in = kind in ("he", "he_uniform", "pytorch")
    np.testing.assert_array_equal(default.W, (plain if fan_in else divided).W)


def test_sqrt_m_makes_the_size_independent_of_the_width():
    sizes = [np.sum(initialize(problem(), m, scale=0.5, rng=0).a ** 2) for m in (500, 8000)]
    # sum of a^2 has mean 0.25 d and standard deviation 0.25 sqrt(2 d / m)
    for size, m in zip(sizes, (500, 8000), strict=True):
        assert abs(size - 0.75) < 4 * 0.25 * math.sqrt(6 / m)


def test_default_scale():
    np.testing.assert_array_equal(
        initialize(problem(), 3, rng=0).W, initialize(problem(), 3, scale=1e-3, rng=0).W
    )


@pytest.mark.parametrize("kind", KINDS)
def test_log_scale_below_floats(kind):
    net = initialize(problem(), 9, log_scale=-1000.0, kind=kind, rng=0)
    unit = initialize(problem(), 9, scale=1.0, kind=kind, rng=0)
    np.testing.assert_allclose(net.log_norms, unit.log_norms - 1000, rtol=1e-14)
    np.testing.assert_allclose(net.log_outer, unit.log_outer - 1000, rtol=1e-14)
    np.testing.assert_allclose(net.directions, unit.directions, atol=1e-15)
    assert np.abs(net.W).max() > 1e-3


def test_small_scales_move_to_log_scale():
    net = initialize(problem(), 4, scale=1e-300, rng=0)
    assert net.log_scale is not None
    unit = initialize(problem(), 4, scale=1.0, rng=0)
    np.testing.assert_allclose(net.log_norms, unit.log_norms + math.log(1e-300), rtol=1e-14)


@pytest.mark.parametrize("kind", SIGNED)
def test_signs(kind):
    assert np.all(initialize(problem(), 9, kind=kind, signs=1, rng=0).a > 0)
    assert np.all(initialize(problem(), 9, kind=kind, signs=-1, rng=0).a < 0)
    given = np.array([1, -1, -1, 1])
    np.testing.assert_array_equal(
        np.sign(initialize(problem(), 4, kind=kind, signs=given, rng=0).a), given
    )
    positive = int(np.sum(draw(kind).a > 0))
    assert stats.binomtest(positive, M).pvalue > 1e-3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"m": 0}, "m must be a whole number of at least 1 neuron, got 0"),
        ({"m": -3}, "m must be a whole number"),
        ({"m": 2.5}, "m must be a whole number"),
        ({"m": True}, "m must be a whole number"),
        ({"scale": 0.0}, r"scale is 0, so every weight would be zero .* or limit\(\)"),
        ({"scale": -1.0}, "scale must be a positive number, got -1"),
        ({"scale": np.nan}, "scale must be a positive number, got nan"),
        ({"scale": np.inf}, "scale must be a positive number, got inf"),
        ({"scale": 1.0, "log_scale": 0.0}, "give scale or log_scale, not both"),
        ({"log_scale": np.inf}, "log_scale must be finite"),
        ({"kind": "xavier"}, "unknown kind 'xavier': expected one of balanced, sphere"),
        ({"normalize": "m"}, "normalize must be 'sqrt_m' or 'none', got 'm'"),
        ({"signs": "plus"}, r"signs must be 'random', \+1, -1 or an array, got 'plus'"),
        ({"signs": [1, -1]}, "one for all or one for each of the 4 neurons"),
        ({"signs": 0.5}, r"signs must be \+1 or -1"),
        ({"kind": "he", "signs": 1}, "kind 'he' draws its outer weights"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(ReluflowError, match=message):
        initialize(problem(), **{"m": 4, **options})


def test_axis_start():
    net = axis_start(problem(3))
    sizes = np.array([1e-4, 1e-5, 1e-7, 1e-6])
    np.testing.assert_array_equal(net.a, sizes * [1, -1, 1, -1])
    np.testing.assert_array_equal(
        net.W, sizes[:, None] * [[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]]
    )
    assert net.leak == 0.1
    other = axis_start(problem(2), scales=(1, 2, 3, 4), signs=(-1, 1, -1, 1))
    np.testing.assert_array_equal(other.a, [-1, 2, -3, 4])


@pytest.mark.parametrize(
    ("d", "scales", "message"),
    [
        (2, (1, 1, 1), "axis_start needs four positive scales"),
        (2, (1, 1, 1, 0), "axis_start needs four positive scales"),
        (1, (1, 1, 1, 1), "axis_start needs at least two features, got d=1"),
    ],
)
def test_axis_start_refusals(d, scales, message):
    with pytest.raises(ReluflowError, match=message):
        axis_start(problem(d), scales)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"outer_factor": 3.0}, "outer_factor applies to"),
        ({"rng": "a"}, "rng must be a seed >= 0"),
        ({"rng": -1}, "rng must be a seed >= 0"),
        ({"scale": "a"}, "scale must be a number, got 'a'"),
    ],
)
def test_more_refusals(options, message):
    with pytest.raises(ReluflowError, match=message):
        initialize(Problem(np.eye(2), np.ones(2)), 3, **options)
