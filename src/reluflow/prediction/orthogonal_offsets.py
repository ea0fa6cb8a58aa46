r"""Constants of the jumps on orthonormal inputs at a finite scale, in closed form.

:math:`t_i = L \tau_i + C_i` up to a power of the scale. The C_i come from two facts: what a
neuron gains or loses while it aligns at the start, and while it realigns when another one fits
part of its samples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import gammaln

from reluflow.arrays import Array, Indices, Mask

_BLOCK = 1 << 18  # products <w_j, x_k> treated at once


def aligned_offsets(P: Array, pulls: Array) -> Array:
    r"""lim log|w(t)| - |D| t of neurons with a(0) = 1 on a silent network.

    With :math:`A = \int a\,dt` the components are :math:`p_k + b_k A`, those with b_k < 0 until
    they reach 0 and freeze, and :math:`a^2 - |w|^2` is conserved. So a^2 is a quadratic
    :math:`\alpha A^2 + 2 \beta A + \gamma` between the freezing points -p_k/b_k and
    :math:`t = \int dA / a` is a logarithm on each piece.

    Parameters
    ----------
    P : array (r, n)
        <w, x_k> over a, with |w| <= a; only positive entries take part.
    pulls : array (n,)
        b_k = s c_k, the pull of each sample along the sign of the neurons; in every row at least
        one sample with p_k > 0 must have b_k > 0.

    Notes
    -----
    One-sign labels: log((1 + q)/2) for a balanced neuron, q the cosine with its limit direction
    ([TLB26]_ Lemma 3).
    """
    rows = max(1, _BLOCK // pulls.size)
    parts = [_aligned(P[i : i + rows], pulls) for i in range(0, len(P), rows)]
    return np.concatenate(parts) if parts else np.empty(0)


def _aligned(P: Array, pulls: Array) -> Array:
    kept, lost = (P > 0) & (pulls > 0), (P > 0) & (pulls < 0)
    free = np.where(lost, np.abs(pulls), 1.0)
    A = np.where(lost, P / free, np.inf)  # where each component freezes
    order = np.argsort(A, axis=1, kind="stable")

    def ordered(x: Array) -> Array:
        return np.take_along_axis(np.where(lost, x, 0.0), order, axis=1)

    def remaining(x: Array) -> Array:
        return np.pad(np.cumsum(x[:, ::-1], axis=1)[:, ::-1], ((0, 0), (0, 1)))

    A, b, q = np.take_along_axis(A, order, axis=1), ordered(np.abs(pulls)), ordered(P)
    last = np.max(A, axis=1, where=np.isfinite(A), initial=0.0, keepdims=True)
    # piece i is [A_i, A_{i+1}], of no length for samples that do not freeze; the last has no end
    A = np.pad(np.where(np.isfinite(A), A, last), ((0, 0), (1, 0)))
    alpha = np.sum(np.where(kept, pulls, 0.0) ** 2, axis=1, keepdims=True) + remaining(b * b)
    beta = np.sum(np.where(kept, P * pulls, 0.0), axis=1, keepdims=True) - remaining(b * q)
    gamma = np.maximum(1.0 - np.pad(np.cumsum(q * q, axis=1), ((0, 0), (1, 0))), 0.0)
    D = np.sqrt(alpha)
    g = alpha * A + beta  # <w, D> at the start of each piece
    a = np.sqrt(np.maximum((alpha * A + 2.0 * beta) * A + gamma, 0.0))
    start, g_end = D[:, :-1], alpha[:, :-1] * A[:, 1:] + beta[:, :-1]
    rising = g[:, :-1] + g_end >= 0.0  # (D a + g)(D a - g) is constant: take the larger factor
    ratio = np.where(
        rising,
        (start * a[:, 1:] + g_end) / np.where(rising, start * a[:, :-1] + g[:, :-1], 1.0),
        (start * a[:, :-1] - g[:, :-1]) / np.where(rising, 1.0, start * a[:, 1:] - g_end),
    )
    t = np.sum(np.log(ratio) / start, axis=1)
    end = D[:, -1]
    return np.log((end * a[:, -1] + g[:, -1]) / (2.0 * end)) - end * t


def realigned_offset(fitted: Array, rest: Array, v: float) -> Array:
    r"""Change of log|w| of a dormant neuron while another one fits part of its samples.

    The fit of a group is logistic in time: residuals fall as :math:`\rho(s) = 1/(1 + e^{2s})`
    with :math:`s = \kappa v (t - t_i)`. A dormant neuron with label norms F on the fitted and U
    on its other samples (in units of v) obeys a 2 x 2 linear equation

    .. math:: \psi_1' = (U \psi_1 + F \rho \psi_2)/2, \quad \psi_2' = (F \rho \psi_1 - U \psi_2)/2

    with :math:`a = |\psi|^2`, hypergeometric in :math:`-e^{2s}`. Its connection formula gives,
    against growth at the rates :math:`S = \sqrt{F^2 + U^2}` before and U after :math:`t_i`,

    .. math::
        \lambda = \log\frac{1 + U/S}{2} + 2 \log \frac{\Gamma(1 + S/2)\,\Gamma(1 + U/2)}
            {\Gamma(1 + (S+F+U)/4)\,\Gamma(1 + (S-F+U)/4)}.

    Parameters
    ----------
    fitted, rest : arrays
        Norms of the labels, not divided by v; ``rest`` positive.
    v : float
        Norm of the labels that the jumping group fits.
    """
    F, U = np.asarray(fitted) / v, np.asarray(rest) / v
    S = np.hypot(F, U)
    ratio = gammaln(1 + S / 2) + gammaln(1 + U / 2)
    ratio = ratio - gammaln(1 + (S + F + U) / 4) - gammaln(1 + (S - F + U) / 4)
    return np.log1p(U / S) - math.log(2.0) + 2.0 * ratio


def half_fall(growth: Array) -> Array:
    r"""How long before the half fit f = y/2 of a jump its loss has fallen half of the way.

    With :math:`g = \kappa v` the rate at which the group grew, all residuals of its samples are
    :math:`y_k \rho(s)`, :math:`\rho = 1/(1 + e^{2s})`, :math:`s = g (t - t_i)`. The loss is half
    way where :math:`\rho^2 = 1/2`, that is :math:`s = \tfrac12 \log(\sqrt2 - 1)`.
    """
    return -0.5 * math.log(math.sqrt(2.0) - 1.0) / growth


def jump_offsets(
    starts: Array,
    times: Sequence[float],
    groups: Sequence[int],
    sets: Sequence[Indices],
    sizes: Sequence[Array],
    y: Array,
    M: Mask,
    rate: float,
    tol: float,
) -> Array:
    r"""C_i of every jump: when half of the fall of the loss across jump i is done.

    The log-norm of a group is -L + ``starts`` + rate S t on the first plateau and is changed by
    `realigned_offset` at each jump that takes samples from it; f is y/2 on the samples of jump i
    when it reaches (1/2) log v_i, and the loss is half way `half_fall` before that. nan after two
    jumps at the same time take samples from one group.

    Parameters
    ----------
    starts : array (K,)
        log of the norm that each jumping group has after alignment, less growth.
    times, groups, sets, sizes
        Jump times, who jumps, on which samples, and S_j on each plateau.
    y, M, rate, tol
        Labels, mask of the groups, c/n, and when times count as equal.
    """
    K, who = len(times), np.asarray(groups, dtype=int)
    C, log, last = np.empty(K), np.array(starts, dtype=float), np.full(K, -np.inf)
    before = 0.0
    for i in range(K):
        v = float(sizes[i][who[i]])
        C[i] = before + (0.5 * math.log(v) - log[i]) / (rate * v)
        later = np.arange(i + 1, K)
        log[later] += rate * sizes[i][who[later]] * (C[i] - before)
        fitted = np.sqrt(np.square(y[sets[i]]) @ M[np.ix_(sets[i], who[later])])
        touched = later[fitted > 0.0]
        log[touched] += realigned_offset(
            fitted[fitted > 0.0], np.asarray(sizes[i + 1])[who[touched]], v
        )
        log[touched[times[i] - last[touched] <= tol * times[i]]] = np.nan
        last[touched] = times[i]
        before = C[i]
    growth = np.array([rate * float(sizes[i][who[i]]) for i in range(K)])
    return C - half_fall(growth)
