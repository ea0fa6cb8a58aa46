"""Losses against high-precision arithmetic, finite differences and their own definitions."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reluflow import ReluflowError, losses

ALL = [losses.HalfSquare, losses.Square, losses.Logistic, losses.Exponential]
MARGIN = [losses.Logistic, losses.Exponential]
MARGINS = [0.0, 1e-9, 0.3, 1.0, 20.0, 35.0, 35.999, 36.0, 36.001, 37.0, 50.0, 700.0, 745.0, 5000.0]


def exact(name: str, f: float, y: float, factor: float) -> tuple[mpmath.mpf, mpmath.mpf]:
    """Value and slope in 60 digits, from the definition."""
    f_, y_, c = mpmath.mpf(f), mpmath.mpf(y), mpmath.mpf(factor)
    if name == "half_square":
        return c * (f_ - y_) ** 2 / 2, c * (f_ - y_)
    if name == "square":
        return c * (f_ - y_) ** 2, 2 * c * (f_ - y_)
    if name == "exponential":
        return c * mpmath.exp(-y_ * f_), -c * y_ * mpmath.exp(-y_ * f_)
    return c * mpmath.log1p(mpmath.exp(-y_ * f_)), -c * y_ / (1 + mpmath.exp(y_ * f_))


@pytest.fixture(autouse=True)
def _digits():
    # log1p of e^-5000 needs no extra digits, the reference value of 1 + e^5000 does
    with mpmath.workdps(60):
        yield


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("factor", [1.0, 2.0, 0.3])
@pytest.mark.parametrize("y", [-1.0, 1.0])
@pytest.mark.parametrize("f", [-20.0, -1.5, 0.0, 1e-9, 0.7, 1.0, 30.0])
def test_value_and_slope(cls, factor, y, f):
    loss = cls(factor=factor)
    value, slope = exact(loss.name, f, y, factor)
    args = np.array([f]), np.array([y])
    np.testing.assert_allclose(loss.value(*args), float(value), rtol=4e-15)
    np.testing.assert_allclose(loss.slope(*args), float(slope), rtol=4e-15)


@pytest.mark.parametrize("cls", MARGIN)
@pytest.mark.parametrize("q", MARGINS + [-q for q in MARGINS if q])
def test_logarithms_at_any_margin(cls, q):
    loss = cls(factor=2.0)
    for y in (-1.0, 1.0):
        value, slope = exact(loss.name, q * y, y, 2.0)
        args = np.array([q * y]), np.array([y])
        scale = max(1.0, abs(q))
        for got, want in ((loss.log_value, value), (loss.log_slope, slope)):
            log = float(mpmath.log(abs(want)))
            assert abs(got(*args)[0] - log) <= 1e-14 * scale


def test_logistic_log_value_keeps_relative_digits_where_it_is_used():
    # differences of log losses decide which sample is on the margin
    q = np.array([35.9, 36.0, 36.1, 4000.0, 4000.5])
    got = losses.Logistic().log_value(q, np.ones(5))
    want = [float(mpmath.log(mpmath.log1p(mpmath.exp(-mpmath.mpf(x))))) for x in q]
    np.testing.assert_allclose(got, want, rtol=3e-16 * 4)


def test_values_underflow_where_logarithms_do_not():
    loss = losses.Exponential()
    assert loss.value(np.array([5000.0]), np.ones(1))[0] == 0.0
    assert loss.log_value(np.array([5000.0]), np.ones(1))[0] == -5000.0


@pytest.mark.parametrize("cls", [losses.HalfSquare, losses.Square])
def test_square_logarithms(cls):
    loss = cls(factor=3.0)
    f, y = np.array([0.5, 2.0, -7.0]), np.array([1.0, 2.0, 0.25])
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(loss.log_value(f, y), np.log(loss.value(f, y)), rtol=1e-14)
        np.testing.assert_allclose(loss.log_slope(f, y), np.log(np.abs(loss.slope(f, y))))
    assert loss.log_value(f, y)[1] == -np.inf
    assert loss.log_slope(f, y)[1] == -np.inf


@pytest.mark.parametrize(
    ("loss", "at_zero"),
    [
        (losses.HalfSquare(), 1.0),
        (losses.Square(), 2.0),
        (losses.Logistic(), 0.5),
        (losses.Logistic(factor=2), 1.0),
        (losses.Exponential(), 1.0),
        (losses.Square(factor=0.5), 1.0),
    ],
)
def test_slope_at_zero(loss, at_zero):
    y = np.array([1.0, -1.0])
    np.testing.assert_array_equal(loss.slope_at_zero(y), -at_zero * y)


def test_slope_at_zero_of_real_labels():
    y = np.array([3.0, -0.25, 0.0])
    np.testing.assert_array_equal(losses.HalfSquare().slope_at_zero(y), -y)


@given(
    st.sampled_from(ALL),
    st.floats(-5, 5),
    st.sampled_from([-1.0, 1.0]),
    st.floats(0.1, 10),
)
def test_slope_is_the_derivative(cls, f, y, factor):
    loss, h = cls(factor=factor), 1e-5
    up, down = (loss.value(np.array([f + s * h]), np.array([y]))[0] for s in (1, -1))
    slope = loss.slope(np.array([f]), np.array([y]))[0]
    third = factor * np.exp(abs(f) + 1)  # bounds the third derivative of all four
    rounding = 4e-16 * (abs(up) + abs(down)) / h
    assert abs((up - down) / (2 * h) - slope) <= third * h**2 / 6 + rounding


@pytest.mark.parametrize("cls", [losses.HalfSquare, losses.Square, losses.Logistic])
def test_curvature_bounds_the_second_derivative(cls):
    loss = cls(factor=1.7)
    f = np.linspace(-6, 6, 4001)
    slopes = loss.slope(f, np.ones_like(f))
    steepest = np.max(np.diff(slopes) / np.diff(f))
    assert steepest <= loss.curvature * (1 + 1e-9)
    assert steepest >= loss.curvature * (1 - 1e-5)


def test_exponential_has_no_bounded_curvature():
    assert losses.Exponential().curvature == np.inf


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("factor", [0.0, -1.0, np.nan, np.inf])
def test_bad_factor(cls, factor):
    with pytest.raises(ReluflowError, match="loss factor must be a positive number"):
        cls(factor=factor)


def test_names():
    of_numbers = {"half_square", "square", "logistic", "exponential"}
    assert set(losses.LOSSES) == of_numbers | {"softmax", "multiclass_exponential"}
    assert losses.as_loss("square") == losses.Square()
    made = losses.Logistic(factor=2)
    assert losses.as_loss(made) is made
    assert [cls().margin for cls in ALL] == [False, False, True, True]


@pytest.mark.parametrize("wrong", ["hinge", 3, None])
def test_unknown_loss(wrong):
    with pytest.raises(ReluflowError, match=r"unknown loss .* expected one of half_square, square"):
        losses.as_loss(wrong)


def test_shapes_broadcast():
    f, y = np.zeros((5, 2, 3)), np.array([1.0, -1.0, 1.0])
    for cls in ALL:
        for method in ("value", "slope", "log_value", "log_slope"):
            assert getattr(cls(), method)(f, y).shape == (5, 2, 3)
