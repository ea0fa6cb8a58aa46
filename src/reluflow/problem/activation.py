r"""The activation: its leak; the ReLU averaged over a ball of inputs, in closed form ([TK24]_)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import beta, betainc

from reluflow.arrays import Array, real_number
from reluflow.errors import ReluflowError


def check_leak(value: Any) -> float:
    """Slope of the activation on negative inputs."""
    leak = real_number(value, "leak")
    if not 0.0 <= leak < 1.0:
        raise ReluflowError(
            f"leak must satisfy 0 <= leak < 1, got {leak:g}: 0 is ReLU, 0.01 a common leak"
        )
    return leak


def check_smoothing(value: Any) -> float:
    """Radius of the ball of inputs; 0 is the plain activation."""
    try:
        radius = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ReluflowError(f"smoothing must be a number, got {value!r}") from None
    if not (math.isfinite(radius) and radius >= 0.0):
        raise ReluflowError(
            f"smoothing must be a finite radius >= 0, got {radius:g}: 0 is the plain activation"
        )
    return radius


@dataclass(frozen=True)
class SmoothedRelu:
    r"""Mean of max(z, leak z) over inputs in a ball of radius xi around x ([TK24]_ Prop. B.2).

    With :math:`z = \langle w, x\rangle`, c = z / (xi |w|) clipped to [-1, 1],
    :math:`K = 1 / \mathrm{B}(\tfrac12, \tfrac{d+1}2)`, F the regularised incomplete beta function
    :math:`I_{(1+c)/2}(\tfrac{d+1}2, \tfrac{d+1}2)` and
    :math:`B = K (1 - c^2)^{(d+1)/2} / (d + 1)`,

    .. math::
        \phi = z F + \xi |w| B, \quad \nabla_w \phi = F x + \xi B \hat w, \quad
        \nabla_w^2 \phi = \frac1{|w|} \Big(\xi B P + \frac{K}{\xi} (1 - c^2)^{(d-1)/2}
        P x x^\top P\Big)

    where P projects off w and the last line is 0 for |c| = 1. It is a function of the pair (w, x),
    homogeneous of degree 1 in w, equal to the plain activation where \|z\| >= xi |w|, and twice
    continuously differentiable in w != 0 for d >= 2. A leak adds leak z and multiplies the rest by
    1 - leak.

    Parameters
    ----------
    radius : float
        xi > 0.
    leak : float
        Slope on negative inputs.
    """

    radius: float
    leak: float = 0.0

    def __post_init__(self) -> None:
        if check_smoothing(self.radius) == 0.0:
            raise ReluflowError("the radius of a smoothed ReLU must be positive, got 0")

    def value(self, W: Array, X: Array) -> Array:
        """phi(w_j, x_k), shape (n, m); 0 for a zero neuron."""
        sizes, unit = _polar(W)
        z = X @ unit.T
        F, B = self._parts(z, X.shape[1])
        return np.asarray(sizes * (z * F + B))

    def gradient(self, W: Array, X: Array) -> Array:
        """Gradient in w_j at x_k, shape (n, m, d)."""
        unit = _polar(W)[1]
        F, B = self._parts(X @ unit.T, X.shape[1])
        return F[:, :, None] * X[:, None, :] + B[:, :, None] * unit

    def hessian(self, W: Array, X: Array) -> Array:
        """Hessian in w_j at x_k, shape (n, m, d, d); 0 for a zero neuron."""
        sizes, unit = _polar(W)
        z, d = X @ unit.T, X.shape[1]
        B = self._parts(z, d)[1]
        c = np.clip(z / self.radius, -1.0, 1.0)
        inside = np.abs(z) < self.radius
        bend = np.where(inside, ((1 - c) * (1 + c)) ** ((d - 1) / 2), 0.0)
        bend *= (1.0 - self.leak) / (beta(0.5, (d + 1) / 2) * self.radius)
        P = np.eye(d) - unit[:, :, None] * unit[:, None, :]
        across = X[:, None, :] - z[:, :, None] * unit
        H = B[:, :, None, None] * P + bend[:, :, None, None] * (
            across[:, :, :, None] * across[:, :, None, :]
        )
        return np.divide(
            H, sizes[:, None, None], out=np.zeros_like(H), where=sizes[:, None, None] > 0
        )

    def pulled(self, W: Array, X: Array, c: Array) -> Array:
        """D_j = sum_k c_k grad phi(w_j, x_k), shape (m, d): the gradient of G_c at w_j."""
        unit = _polar(W)[1]
        F, B = self._parts(X @ unit.T, X.shape[1])
        return (c[:, None] * F).T @ X + (c @ B)[:, None] * unit

    def _parts(self, z: Array, d: int) -> tuple[Array, Array]:
        """F and xi B at products z of inputs with unit vectors."""
        c = np.clip(z / self.radius, -1.0, 1.0)
        F, B = np.where(c > 0, 1.0, 0.0), np.zeros_like(c)
        inside = np.abs(c) < 1.0
        c = c[inside]
        F[inside] = betainc((d + 1) / 2, (d + 1) / 2, 0.5 * (1 + c))
        B[inside] = ((1 - c) * (1 + c)) ** ((d + 1) / 2) / (beta(0.5, (d + 1) / 2) * (d + 1))
        return self.leak + (1.0 - self.leak) * F, (1.0 - self.leak) * self.radius * B


def _polar(W: Array) -> tuple[Array, Array]:
    """Norms and unit rows, safe for tiny entries; a zero row stays zero."""
    top = np.max(np.abs(W), axis=1)
    scaled = W / np.where(top > 0, top, 1.0)[:, None]
    norms = np.linalg.norm(scaled, axis=1)
    return top * norms, scaled / np.where(norms > 0, norms, 1.0)[:, None]
