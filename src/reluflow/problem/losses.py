r"""Losses l(f, y) with values and slopes that stay meaningful at any margin.

===============  ==================================  ===================  ===========
name             l(f, y)                             -dl/df at f = 0      labels
===============  ==================================  ===================  ===========
half_square      factor * (f - y)^2 / 2              factor * y           any
square           factor * (f - y)^2                  2 * factor * y       any
logistic         factor * log(1 + exp(-y f))         factor * y / 2       -1, +1
exponential      factor * exp(-y f)                  factor * y           -1, +1
===============  ==================================  ===================  ===========

Labels (n, K) make a problem with K outputs, each with such a term of its own. The losses of classes
look at all outputs of a sample at once, y being its class, and depend on the gaps f_c - f_y alone:

=======================  =========================================  ==========================
name                     l(f, y)                                    -dl/df_c at f = 0
=======================  =========================================  ==========================
softmax                  factor * log sum_c exp(f_c - f_y)          factor * ([c = y] - 1/K)
multiclass_exponential   factor * sum_{c != y} exp(f_c - f_y)       factor * (K [c = y] - 1)
=======================  =========================================  ==========================

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
    """A loss of one sample; subclasses give ``value``, ``slope`` and their logarithms.

    Parameters
    ----------
    factor : float
        Positive; multiplies the loss.
    """

    factor: float = 1.0

    name: ClassVar[str] = "loss"
    margin: ClassVar[bool] = False  # labels are -1, +1 and the loss depends on y f alone
    classes: ClassVar[bool] = False  # labels are one-hot rows, see `reluflow.problem.classes`
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


def gaps(f: Array, y: Array) -> Array:
    """f_c - f_y (..., n, K) for outputs (..., n, K) and one-hot rows y; 0 at the class itself."""
    own = np.sum(np.where(y > 0.0, f, 0.0), axis=-1, keepdims=True)
    return np.asarray(np.where(y > 0.0, 0.0, f - own))


def _rival_logs(f: Array, y: Array) -> Array:
    """log sum_{c != y} exp(f_c - f_y) (..., n), -inf-free for finite outputs."""
    others = np.where(y > 0.0, -np.inf, gaps(f, y))
    top = np.max(others, axis=-1, keepdims=True)
    return np.asarray(top[..., 0] + np.log(np.sum(np.exp(others - top), axis=-1)))


@dataclass(frozen=True)
class ClassLoss(Loss):
    """A loss of all K outputs of a sample, its class given as a one-hot row.

    ``value`` and ``log_value`` have one entry for each sample, ``slope`` one for each output.
    """

    margin: ClassVar[bool] = True  # it vanishes as the gaps to the other classes grow
    classes: ClassVar[bool] = True

    def log_slopes(self, f: Array, y: Array) -> Array:
        """log of dl/df_c for c != y, -inf at the class itself; slopes of a sample add up to 0."""
        raise NotImplementedError

    def slope(self, f: Array, y: Array) -> Array:
        return self.scaled_slope(f, y, 0.0)

    def scaled_slope(self, f: Array, y: Array, log_unit: float) -> Array:
        """dl/df divided by exp(log_unit), without underflow on the way."""
        rivals = np.exp(self.log_slopes(f, y) - log_unit)
        return np.asarray(rivals - y * np.sum(rivals, axis=-1, keepdims=True))


@dataclass(frozen=True)
class Softmax(ClassLoss):
    """factor * log sum_c exp(f_c - f_y), the cross-entropy of the softmax."""

    name: ClassVar[str] = "softmax"

    def value(self, f: Array, y: Array) -> Array:
        return np.asarray(self.factor * np.logaddexp(0.0, _rival_logs(f, y)))

    def log_value(self, f: Array, y: Array) -> Array:
        rival = _rival_logs(f, y)
        far = rival < -36.0  # log(1 + e) = e - e^2/2 to rounding
        small = np.exp(np.where(far, rival, -36.0))
        near = np.log(np.logaddexp(0.0, np.where(far, 0.0, rival)))
        return np.asarray(np.log(self.factor) + np.where(far, rival - 0.5 * small, near))

    def slope(self, f: Array, y: Array) -> Array:
        # the probabilities less y, as `scaled_slope` has it without its logarithms: a flow asks
        # for nothing more often. The entry of the class is summed from the others, since 1 - p
        # would lose it at large margins.
        rivals = np.exp(f - np.max(f, axis=-1, keepdims=True))
        rivals *= self.factor / np.sum(rivals, axis=-1, keepdims=True)
        rivals *= 1.0 - y
        return np.asarray(rivals - y * np.sum(rivals, axis=-1, keepdims=True))

    def log_slopes(self, f: Array, y: Array) -> Array:
        total = np.logaddexp(0.0, _rival_logs(f, y))[..., None]
        logs = np.log(self.factor) + gaps(f, y) - total
        return np.where(y > 0.0, -np.inf, logs)

    def bends(self, f: Array, y: Array) -> Array:
        """Hessian of the loss of each sample in its outputs, (..., n, K, K)."""
        p = np.exp(gaps(f, y) - np.logaddexp(0.0, _rival_logs(f, y))[..., None])
        eye = np.eye(p.shape[-1])
        return np.asarray(self.factor * (p[..., None] * eye - p[..., None] * p[..., None, :]))

    @property
    def curvature(self) -> float:
        return 0.5 * self.factor


@dataclass(frozen=True)
class MulticlassExponential(ClassLoss):
    """factor * sum_{c != y} exp(f_c - f_y)."""

    name: ClassVar[str] = "multiclass_exponential"

    def value(self, f: Array, y: Array) -> Array:
        return np.asarray(self.factor * np.exp(_rival_logs(f, y)))

    def log_value(self, f: Array, y: Array) -> Array:
        return np.asarray(np.log(self.factor) + _rival_logs(f, y))

    def log_slopes(self, f: Array, y: Array) -> Array:
        return np.where(y > 0.0, -np.inf, np.log(self.factor) + gaps(f, y))

    def bends(self, f: Array, y: Array) -> Array:
        """Hessian of the loss of each sample in its outputs, (..., n, K, K)."""
        e = np.where(y > 0.0, 0.0, self.factor * np.exp(gaps(f, y)))
        total = e.sum(axis=-1)[..., None, None]
        H = e[..., None] * np.eye(e.shape[-1]) + total * y[..., None] * y[..., None, :]
        cross = e[..., None] * y[..., None, :]
        return np.asarray(H - cross - np.swapaxes(cross, -1, -2))

    @property
    def curvature(self) -> float:
        return np.inf


LOSSES: dict[str, type[Loss]] = {
    cls.name: cls
    for cls in (HalfSquare, Square, Logistic, Exponential, Softmax, MulticlassExponential)
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


def output_bends(loss: Loss, f: Array, y: Array) -> Array:
    """Hessian of each sample's loss in its outputs, (n, K, K), for any loss with K outputs."""
    if isinstance(loss, Softmax | MulticlassExponential):
        return loss.bends(f, y)
    return np.asarray(loss.bend(f, y)[..., None] * np.eye(y.shape[-1]))


def scaled_slopes(loss: Loss, f: Array, y: Array, log_unit: float) -> Array:
    """dl/df of every output divided by exp(log_unit), without underflow for margin losses."""
    if isinstance(loss, ClassLoss):
        return loss.scaled_slope(f, y, log_unit)
    if not loss.margin:
        return np.asarray(loss.slope(f, y) * np.exp(-log_unit))
    return np.asarray(-y * np.exp(loss.log_slope(f, y) - log_unit))
