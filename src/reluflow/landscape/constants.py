"""The constants of early alignment: how long it takes and how small the start must be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from reluflow.arrays import Array, Sides
from reluflow.errors import ReluflowError
from reluflow.landscape import arrangement
from reluflow.landscape.canonical import ZERO_TOL, Canonical, as_pull, canonical, row_space
from reluflow.landscape.kinds import balanced, project
from reluflow.problem import Problem

MAX_WORK = 2e6


@dataclass(frozen=True)
class Constants:
    r"""Constants of [BF24]_ for one problem; all scale with the pull.

    D_max, D_min : largest and smallest norm of D_u, the latter over faces with 0 outside the box.
    alpha_plus, alpha_minus, alpha_min : Eq. 24, Eq. 25 (with the mirrored set), their minimum.
    delta_0 : how far the outputs may move before an extremal face changes (Lemma 10).
    mean_square : mean |x_k|^2.  least_pull : min_k |l'(0, y_k)| / |x_k|.
    """

    D_max: float
    D_min: float
    alpha_plus: float
    alpha_minus: float
    alpha_min: float
    delta_0: float
    mean_square: float
    least_pull: float

    def log_scale_bound(self, alpha_0: float = 1.0, eps: float = 0.25) -> float:
        r"""log of the scale below which the theorems speak ([BF24]_ Eq. 22).

        .. math:: \lambda^* = B^{1 / (2 - 4 \varepsilon)}, \quad B = \min\Big(
            \frac{\min(\alpha_{\min}^2 D_{\min} / 8, \alpha_0^2 D_{\min} / 4, \delta_0)}
            {\frac1n \sum_k \|x_k\|^2}, \min_k \frac{|\ell'(0, y_k)|}{\|x_k\|}\Big)
        """
        if not 0.0 < alpha_0 <= 1.0:
            raise ReluflowError(f"alpha_0 must satisfy 0 < alpha_0 <= 1, got {alpha_0:g}")
        if not 0.0 < eps < 1.0 / 3.0:
            raise ReluflowError(f"eps must satisfy 0 < eps < 1/3, got {eps:g}")
        first = min(self.alpha_min**2 * self.D_min / 8, alpha_0**2 * self.D_min / 4, self.delta_0)
        B = min(first / self.mean_square, self.least_pull)
        return float(np.log(B) / (2 - 4 * eps)) if B > 0 else -np.inf

    def alignment_time(self, log_scale: float, eps: float = 0.25) -> float:
        """End of early alignment, tau = -eps log(scale) / D_max."""
        return -eps * log_scale / self.D_max


def constants(
    problem: Problem,
    pull: ArrayLike | None = None,
    *,
    clip: bool = False,
    tol: float = 1e-10,
) -> Constants:
    """D_max, D_min, alpha_min and delta_0 of [BF24]_, by enumeration of all faces.

    Parameters
    ----------
    problem : Problem
        Samples, labels, loss and leak.
    pull : array, shape (n,), optional
        The c_k; default ``problem.pull``.
    clip : bool
        Count a largest cosine below 0 as 0. Eq. 24 squares it, which is harsher than the proof
        needs; the default follows the paper.
    tol : float
        Tolerance of patterns.

    Notes
    -----
    Eq. 25 of the paper repeats the faces of Eq. 24, which would make alpha_minus 0 whenever some
    D_u points opposite to its own cone; the faces are meant with D_u outside the *negative* cone.
    Enumeration is for small data: at most 2e6 faces around rays. On data outside general position
    a minimum over no face is inf, and D_min, alpha_min or delta_0 may be 0.
    """
    c = as_pull(problem, pull)
    form = canonical(problem.X, c, problem.leak, tol)
    if form.r == 0:
        raise ReluflowError("the pull vanishes on every sample: expected some c_k x_k not 0")
    if arrangement.work(form.H, form.r) > MAX_WORK:
        raise ReluflowError(
            f"the constants need all cones of {form.H} hyperplanes in dimension {form.r}, more "
            "than can be listed: use fewer samples or lower the dimension"
        )
    faces = _faces(form)
    basis = row_space(form.N, tol)
    lines, ray_patterns, _ = arrangement.rays(arrangement.in_span(form.N, tol), tol)
    lines = lines @ basis if len(basis) < form.r else lines
    D = np.array([_least(form, v) for v in faces])
    size = np.linalg.norm(D, axis=1)
    moving = size > ZERO_TOL * form.scale
    cosines = {1: -np.inf, -1: -np.inf}
    delta = np.inf
    for v, grad, length in zip(faces[moving], D[moving], size[moving], strict=True):
        unit = grad / length
        side = form.pattern(unit)
        for s in (1, -1):
            if (s * side == v).all():
                delta = min(delta, _delta(problem, c, form, v, s * unit, grad))
            else:
                cosines[s] = max(cosines[s], _cosine(form, v, s * unit, lines, ray_patterns))
    alphas = [_alpha(cosines[s], clip) for s in (1, -1)]
    norms = problem.norms
    with np.errstate(divide="ignore"):
        least = np.min((np.abs(c) / problem.weight)[norms > 0] / norms[norms > 0])
    return Constants(
        D_max=float(size.max()),
        D_min=float(size[moving].min(initial=np.inf)),
        alpha_plus=alphas[0],
        alpha_minus=alphas[1],
        alpha_min=min(alphas),
        delta_0=float(delta),
        mean_square=float(np.mean(norms**2)),
        least_pull=float(least),
    )


def _faces(form: Canonical) -> Sides:
    faces = arrangement.faces(form.N, form.tol)
    if len(row_space(form.N, form.tol)) == form.r and form.H:
        faces = faces[(faces != 0).any(axis=1)]  # the origin alone is no direction
    return faces


def _least(form: Canonical, v: Sides) -> Array:
    """D_v of minimal norm."""
    from reluflow.kernels.landscape_ascent import least_gradient

    D = np.empty(form.r)
    least_gradient(form.N, form.m, form.kappa, v, D)
    P = project(form, v)  # the same but cleaner where the slopes are inside the box
    if np.linalg.norm(D - P) <= 1e-12 * form.scale and balanced(form, v, P):
        return P
    return D


def _alpha(cosine: float, clip: bool) -> float:
    if cosine == -np.inf:
        return float("inf")
    cosine = max(cosine, 0.0) if clip else cosine
    return float(np.sqrt(max(0.0, 1.0 - cosine**2)))


def _cosine(form: Canonical, v: Sides, unit: Array, lines: Array, ray_patterns: Sides) -> float:
    """Largest cosine between a unit vector and the closed cone of face v."""
    # nearest point of {v_h <n_h, w> >= 0, = 0 on the face}: w = unit + sum mu_h v_h n_h, mu >= 0
    rows = np.vstack([form.N[v != 0] * v[v != 0, None], form.N[v == 0], -form.N[v == 0]])
    if len(rows) == 0:
        return 1.0
    mu, _ = nnls(rows.T, -unit)
    size = float(np.linalg.norm(unit + mu @ rows))
    if size > 1e-9:
        return size
    touching = ((ray_patterns == v) | (ray_patterns == 0)).all(axis=1)
    return float((lines[touching] @ unit).max(initial=-1.0))


def _delta(problem: Problem, c: Array, form: Canonical, v: Sides, z: Array, grad: Array) -> float:
    """min(delta_0', delta_0'') at one extremal face, from its samples."""
    w, D = z @ form.basis, grad @ form.basis
    norms = problem.norms
    side = np.where(form.member >= 0, v[form.member], 0) if form.H else np.zeros(problem.n)
    on = (form.member >= 0) & (side == 0)
    off = (norms > 0) & ~on
    second = float(np.min(np.abs(problem.X[off] @ D) / norms[off], initial=np.inf))
    if not on.any():
        return second
    Z = c[on, None] * problem.X[on]
    p = problem.X[~on] @ w
    base = np.where(p > 0, 1.0, problem.leak) * c[~on] @ problem.X[~on]
    slopes = np.linalg.lstsq(Z.T, D - base, rcond=None)[0]
    slack = np.minimum(slopes - problem.leak, 1.0 - slopes).min()
    least = np.linalg.svd(Z, compute_uv=False)[-1] if len(Z) <= problem.d else 0.0
    return min(second, float(least * max(slack, 0.0)))
