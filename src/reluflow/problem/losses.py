r"""Losses l(f, y) with values and slopes that stay meaningful at any margin.

===============  ==================================  ===================  ===========
name             l(f, y)                             -dl/df at f = 0      labels
===============  ==================================  ===================  ===========
half_square      factor * (f - y)^2 / 2              factor * y           any
square           factor * (f - y)^2                  2 * factor * y       any
logistic         factor * log(1 + exp(-y f))         factor * y / 2       -1, +1
exponential      factor * exp(-y f)                  factor * y           -1, +1
===============  ==================================  ===================  ===========

``log_value`` and ``log_slope`` are computed without forming the value, so that margins of
thousands (losses of e^-1000) keep all their digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit, log_expit

from reluflow.arrays import Array
from reluflow.errors import ReluflowError
from reluflow.kernels.codes import EXPONENTIAL, LOGISTIC, SQUARE


@dataclass(frozen=True)
class Loss:
    """A loss of one sample; subclasses give ``value``, ``slope`` and their logarithms."""

    factor: float = 1.0

    name: ClassVar[str] = "loss"
    margin: ClassVar[bool] = False  # labels are -1, +1 and the loss depends on y f alone
    kernel: ClassVar[int] = -1  # codes.LossKind, by which kernels compute it; -1: none

    def __post_init__(self) -> None:
        number = isinstance(self.factor, int | float | np.number)
        if not (number and np.isfinite(self.factor) and self.factor > 0):
            raise ReluflowError(
                f"loss factor must be a positive number, got {self.factor!r}: use factor=1.0"
            )

    @property
    def kernel_factor(self) -> float:
        """Multiplier of the kernel's own normalisation (square: slope = multiplier * (f-y))."""
        return self.factor

    def value(self, f: Array, y: Array) -> Array:
        """l(f, y)."""
        raise NotImplementedError

    def slope(self, f: Array, y: Array) -> Array:
        """dl/df (f, y)."""
        raise NotImplementedError

    def log_value(self, f: Array, y: Array) -> Array:
        """log l(f, y); -inf where the loss is exactly zero."""
        raise NotImplementedError

    def log_slope(self, f: Array, y: Array) -> Array:
        """log |dl/df (f, y)|; -inf where the slope is exactly zero."""
        raise NotImplementedError

    def bend(self, f: Array, y: Array) -> Array:
        """d2l/df2 (f, y), the curvature of the loss of a sample."""
        raise NotImplementedError

    def slope_at_zero(self, y: Array) -> Array:
        """dl/df (0, y): minus the pull of a sample on a silent network."""
        return self.slope(np.zeros_like(y, dtype=float), y)

    @property
    def curvature(self) -> float:
        """sup over f of d2l/df2 (infinite for the exponential loss)."""
        raise NotImplementedError


@dataclass(frozen=True)
class HalfSquare(Loss):
    """factor * (f - y)^2 / 2."""

    name: ClassVar[str] = "half_square"
    kernel: ClassVar[int] = SQUARE

    def value(self, f: Array, y: Array) -> Array:
        return 0.5 * self.kernel_factor * np.square(f - y)

    def slope(self, f: Array, y: Array) -> Array:
        return self.kernel_factor * (np.asarray(f, dtype=float) - y)

    def log_value(self, f: Array, y: Array) -> Array:
        with np.errstate(divide="ignore"):
            log: Array = np.log(0.5 * self.kernel_factor) + 2.0 * np.log(np.abs(f - y))
        return log

    def log_slope(self, f: Array, y: Array) -> Array:
        with np.errstate(divide="ignore"):
            log: Array = np.log(self.kernel_factor) + np.log(np.abs(f - y))
        return log

    def bend(self, f: Array, y: Array) -> Array:
        return np.full_like(np.asarray(f, dtype=float), self.kernel_factor)

    @property
    def curvature(self) -> float:
        return self.kernel_factor


@dataclass(frozen=True)
class Square(HalfSquare):
    """factor * (f - y)^2, PyTorch's MSELoss for a single output."""

    name: ClassVar[str] = "square"

    @property
    def kernel_factor(self) -> float:
        return 2.0 * self.factor


@dataclass(frozen=True)
class Logistic(Loss):
    """factor * log(1 + exp(-y f))."""

    name: ClassVar[str] = "logistic"
    margin: ClassVar[bool] = True
    kernel: ClassVar[int] = LOGISTIC

    def value(self, f: Array, y: Array) -> Array:
        loss: Array = -self.factor * log_expit(np.multiply(y, f))
        return loss

    def slope(self, f: Array, y: Array) -> Array:
        slope: Array = -self.factor * y * expit(-np.multiply(y, f))
        return slope

    def log_value(self, f: Array, y: Array) -> Array:
        q = np.asarray(np.multiply(y, f), dtype=float)
        far = q > 36.0  # e^-36 squared is below rounding: log1p(e) = e - e^2/2
        small = np.exp(-np.where(far, q, 36.0))
        near = np.log(-log_expit(np.where(far, 0.0, q)))
        log: Array = np.log(self.factor) + np.where(far, -q - 0.5 * small, near)
        return log

    def log_slope(self, f: Array, y: Array) -> Array:
        log: Array = np.log(self.factor) + log_expit(-np.multiply(y, f))
        return log

    def bend(self, f: Array, y: Array) -> Array:
        q = np.multiply(y, f)
        bend: Array = self.factor * expit(q) * expit(-q)
        return bend

    @property
    def curvature(self) -> float:
        return 0.25 * self.factor


@dataclass(frozen=True)
class Exponential(Loss):
    """factor * exp(-y f)."""

    name: ClassVar[str] = "exponential"
    margin: ClassVar[bool] = True
    kernel: ClassVar[int] = EXPONENTIAL

    def value(self, f: Array, y: Array) -> Array:
        return self.factor * np.exp(-np.multiply(y, f))

    def slope(self, f: Array, y: Array) -> Array:
        return -self.factor * y * np.exp(-np.multiply(y, f))

    def log_value(self, f: Array, y: Array) -> Array:
        log: Array = np.log(self.factor) - np.multiply(y, f)
        return log

    def log_slope(self, f: Array, y: Array) -> Array:
        log: Array = np.log(self.factor) - np.multiply(y, f)
        return log

    def bend(self, f: Array, y: Array) -> Array:
        return self.value(f, y)

    @property
    def curvature(self) -> float:
        return np.inf


LOSSES: dict[str, type[Loss]] = {
    cls.name: cls for cls in (HalfSquare, Square, Logistic, Exponential)
}


def as_loss(loss: str | Loss) -> Loss:
    """Turn a name into a loss of factor 1; a loss object passes through."""
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str) and loss in LOSSES:
        return LOSSES[loss]()
    raise ReluflowError(
        f"unknown loss {loss!r}: expected one of {', '.join(LOSSES)} "
        "or a loss object such as losses.Logistic(factor=2)"
    )
