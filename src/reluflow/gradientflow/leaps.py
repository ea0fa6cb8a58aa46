r"""How far the pull may be taken as constant.

While c is constant every neuron moves by cosh and sinh, kinks included. Let B_u bound
:math:`\sum_{j \in u} |a_j||w_j|`, K the change of D per unit of B, :math:`\rho` the largest
|D_u| of a *dormant* cone (one too small to matter). Cones that matter are *held*: they must be
stationary. The error of D, integrated over the leap, stays below rtol/10 (relative to the growth
of log-norms when that exceeds 1) if

* dormant cones stay below :math:`B_{tol} = \tfrac1{10} rtol\, \rho / K`, and
* held ones have :math:`|D_u| \le \tfrac1{10} rtol\, \rho`.

On a held cone the Hessian is the Gauss-Newton one, so held cones only relax, and the limit of
their relaxation is known: c projected on the set where their forces vanish (:func:`relaxed`).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array


def leap_length(
    log_B: Array, rates: Array, K: float, rtol: float
) -> tuple[float, float, NDArray[np.bool_], float]:
    """Leap that dormant cones allow, that held cones allow, which are held, and log B_tol.

    Parameters
    ----------
    log_B : array, shape (G,)
        Logarithm of B_u of each cone.
    rates : array, shape (G,)
        |D_u|.
    K : float
        Change of D per unit of B.
    rtol : float
        Relative tolerance.
    """
    share = 0.1 * rtol
    dormant = np.ones(rates.size, dtype=bool)
    log_tol = -math.inf
    for _ in range(3):
        rho = float(rates[dormant].max(initial=0.0))
        log_tol = math.log(share * rho / K) if rho > 0 and K > 0 else -math.inf
        if K == 0.0:
            log_tol = math.inf
        smaller = dormant & (log_B <= log_tol)
        if (smaller == dormant).all():
            break
        dormant = smaller
    rho = float(rates[dormant].max(initial=0.0))
    held = ~dormant
    still, room_left = math.inf, math.inf
    if held.any():
        fast = float(rates[held].max())
        if fast > share * rho:
            still = share / fast
    moving = dormant & (rates > 0) & np.isfinite(log_B)
    if moving.any() and math.isfinite(log_tol):
        room = log_tol - math.log(2 * moving.sum()) - log_B[moving]
        room_left = max(0.0, float(np.min(room / (2 * rates[moving]))))
    return room_left, still, held, log_tol


def relaxed(X: Array, S: Array, N: list[Array], bend: Array, c: Array) -> Array:
    """Pull after held cones have relaxed: D_u = 0 on each, nearest to c in the metric 1/bend.

    ``S`` (held, n) are slopes, ``N[g]`` orthonormal rows spanning the samples of a face.
    """
    root = np.sqrt(bend)
    blocks = []
    for slopes, face in zip(S, N, strict=True):
        J = slopes[:, None] * X
        blocks.append(root[:, None] * (J - (J @ face.T) @ face))
    u, s, _ = np.linalg.svd(np.hstack(blocks), full_matrices=False)
    u = u[:, s > 1e-10 * s[0]] if s[0] > 0 else u[:, :0]
    gamma = np.divide(c, root, out=np.zeros_like(c), where=root > 0)
    gamma -= u @ (u.T @ gamma)
    gamma -= u @ (u.T @ gamma)
    limit = np.where(root > 0, root * gamma, c)
    limit[np.abs(limit) < 1e-14 * np.max(np.abs(c), initial=0.0)] = 0.0
    return limit


def stiffest(X: Array, S: Array, aa: Array, ww: Array, bend: Array) -> float:
    """Largest rate at which outputs relax: top eigenvalue of bend^(1/2) Theta bend^(1/2).

    Theta is the tangent kernel of the cones with slopes ``S`` (G, n), sums of a^2 ``aa`` (G,) and
    of w w^T ``ww`` (G, d, d). A few power iterations, with a margin.
    """
    root = np.sqrt(bend)
    v = root * (1.0 + 1e-3 * np.arange(bend.size))
    value = 0.0
    for _ in range(12):
        size = float(np.linalg.norm(v))
        if size == 0.0:
            return 0.0
        p = (S * (root * v / size)) @ X
        q = aa[:, None] * p + np.einsum("gij,gj->gi", ww, p)
        v = root * np.sum(S * (q @ X.T), axis=0)
        value = float(np.linalg.norm(v))
    return 1.1 * value
