"""How nearly a network satisfies the KKT conditions of margin maximisation."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, logsumexp

from reluflow.arrays import Array
from reluflow.errors import ReluflowError
from reluflow.network import Network
from reluflow.optimum.kkt_fit import Fit, fit_multipliers
from reluflow.optimum.linear import check_labels
from reluflow.problem import Problem
from reluflow.problem.losses import Exponential, Logistic

KINK_TOL = 1e-9
EXACT_TOL = 1e-9
MOST_TOL = 1.0


@dataclass(frozen=True, eq=False)
class KKT:
    r"""The KKT conditions of :math:`\min \frac12\|\theta\|^2` s.t. :math:`y_k f(x_k) \ge 1`.

    All but `log_q_min` and `smoothed_margin` belong to the network scaled to q_min = 1.

    residual : |theta - sum_k l_k g_k| / |theta| for the best multipliers and slopes; infinite when
        some sample is not classified rightly.
    multipliers (n,) : l >= 0, zero off the active set; they add up to 1/(2 margin) at a KKT point.
    margin : min_k y_k f(x_k) / (\|W\|^2 + \|a\|^2).
    smoothed_margin : the margin with the loss for the minimum, at the network's own size; nan for
        losses without one.
    q (n,) : y_k f(x_k) / min_k y_k f(x_k).
    log_q_min : log of min_k y_k f(x_k) at the network's own size; nan when that is not positive.
    active (n,) : which samples may have a multiplier: q_k <= 1 + tol.
    tol : that tolerance.
    complementarity : sum_k l_k (q_k - 1) / sum_k l_k.
    imbalance : the largest ||w_j| - |a_j|| / |theta|, 0 at a KKT point.
    kinks (K, 2) : neuron and active sample with <w_j, x_k> = 0.
    slopes (K,) : the slope in [leak, 1] chosen there; nan where the sample's multiplier is 0.
    """

    residual: float
    multipliers: Array = field(repr=False)
    margin: float
    smoothed_margin: float
    q: Array = field(repr=False)
    log_q_min: float
    active: NDArray[np.bool_] = field(repr=False)
    tol: float
    complementarity: float
    imbalance: float
    kinks: NDArray[np.intp] = field(repr=False)
    slopes: Array = field(repr=False)


def kkt(
    problem: Problem, net: Network, *, tol: float | None = None, kink_tol: float = KINK_TOL
) -> KKT:
    r"""Normalised margin, multipliers and KKT residual of a network.

    .. math:: \min_{l \ge 0,\; h_{jk}} \Big\| \theta - \sum_k l_k\, y_k \nabla f(x_k) \Big\| /
              \|\theta\|, \qquad \nabla_{w_j} f(x_k) = a_j h_{jk} x_k

    at the scale where :math:`q_{\min} = \min_k y_k f(x_k) = 1`, over multipliers of the active
    samples and over slopes :math:`h_{jk} \in [\mathrm{leak}, 1]` where neuron j lies on the
    hyperplane of sample k. For each sample the gradients with their multiplier form a cone; the
    projection on the sum of these cones is exact nonnegative least squares on its generators.

    Parameters
    ----------
    problem : Problem
        Samples, labels -1, +1 and leak; the loss enters the smoothed margin alone.
    net : Network
        Any size: everything is computed relative to its largest weight, so log-scales far outside
        the range of floats are fine.
    tol : float, optional
        Samples with q_k <= (1 + tol) q_min are active. By default the least of 1e-9, 1e-6, 1e-3 and
        10 log(n)/q_min (at most 1) that is as good as the last one: a trained network has its
        support vectors equal only up to order 1/q_min.
    kink_tol : float
        \|<w_j, x_k>\| <= kink_tol \|w_j\| \|x_k\| counts as zero.

    Returns
    -------
    KKT

    Notes
    -----
    The conditions are those of [LLWA21]_ Section 3. Neurons that are zero next to the others drop
    out. A KKT point need not be a maximum of the margin: `margin_bound` and `max_margin` tell.

    Examples
    --------
    >>> from reluflow import Network, datasets
    >>> problem = datasets.figure1_left(leak=0.5)
    >>> found = kkt(problem, Network(problem.known["kkt_W"], problem.known["kkt_a"], leak=0.5))
    >>> found.residual < 1e-12, round(found.margin, 6)  # the best is 0.375
    (True, 0.356107)
    """
    check_labels(problem)
    problem.check_kinks("kkt")
    net.check_fits(problem.d)
    if tol is not None and not tol >= 0.0:
        raise ReluflowError(f"tol must be a number >= 0, got {tol!r}: 1e-9 is exact equality")
    W, a, log_size = _unit_weights(net)
    S = problem.X @ W.T
    q = problem.y * (np.maximum(S, problem.leak * S) @ a)  # at |theta| = 1
    q_min = float(q.min())
    smoothed = _smoothed_margin(problem, q, log_size)
    imbalance = float(np.abs(np.linalg.norm(W, axis=1) - np.abs(a)).max())
    if not q_min > 0.0:
        none = np.zeros((0, 2), dtype=np.intp)
        zeros = np.zeros(problem.n)
        ratios = q / abs(q_min) if q_min < 0.0 else np.where(q > 0.0, np.inf, 0.0)
        where = (zeros.astype(bool), 0.0, np.nan, imbalance, none, np.zeros(0))
        return KKT(np.inf, zeros, q_min, smoothed, ratios, np.nan, *where)
    log_q_min = float(np.log(q_min)) + 2.0 * log_size
    ratios = q / q_min
    tols = _tolerances(problem.n, log_q_min) if tol is None else [float(tol)]
    fits: list[Fit] = []
    for each in reversed(tols):  # the widest active set first: none fits better
        fit = fit_multipliers(problem, W, a, q_min, ratios <= 1.0 + each, kink_tol)
        if fits and fit[0] > max(2.0 * fits[0][0], EXACT_TOL):
            break
        fits.append(fit)
    chosen = tols[-len(fits)]
    residual, multipliers, kinks, slopes = fits[-1]
    total = float(multipliers.sum())
    excess = float(multipliers @ (ratios - 1.0)) / total if total > 0.0 else np.nan
    where = (ratios <= 1.0 + chosen, chosen, excess, imbalance, kinks, slopes)
    return KKT(residual, multipliers, q_min, smoothed, ratios, log_q_min, *where)


def _unit_weights(net: Network) -> tuple[Array, Array, float]:
    """W and a of the network divided by its norm |theta|, and the log of that norm."""
    inner, outer = net.log_norms, net.log_outer
    most = float(max(inner.max(), outer.max()))
    if most == -np.inf:
        raise ReluflowError("all weights are zero: expected a network with a direction")
    W = np.exp(inner - most)[:, None] * net.directions
    a = np.sign(net.a) * np.exp(outer - most)
    size = float(np.sqrt((W**2).sum() + (a**2).sum()))
    return W / size, a / size, most + float(np.log(size))


def _tolerances(n: int, log_q_min: float) -> list[float]:
    """Tolerances of the active set to try, ascending, none above 10 log(n)/q_min."""
    widest = min(10.0 * np.log(max(n, 2)) * np.exp(-max(log_q_min, 0.0)), MOST_TOL)
    widest = max(float(widest), EXACT_TOL)
    return [t for t in (EXACT_TOL, 1e-6, 1e-3) if t < widest] + [widest]


def _smoothed_margin(problem: Problem, q: Array, log_size: float) -> float:
    r"""[LLWA21]_ Section 3: :math:`-\log(e^{nL} - 1)/\|\theta\|^2`, of the total loss nL.

    For the exponential loss :math:`-\log(nL)/\|\theta\|^2`. Computed as the margin plus a
    correction between -log n and 0 over the squared norm, so that any size is fine.
    """
    if not isinstance(problem.loss, Logistic | Exponential):
        return np.nan
    q_min = float(q.min())
    with np.errstate(over="ignore"):
        factor = float(np.exp(2.0 * log_size))
        true = factor * q
    if not np.isfinite(true).all():  # the correction is nothing next to the margin
        return q_min
    excess = float(logsumexp(factor * (q_min - q)))  # log of sum exp(-q_k), plus q_min
    S = float(-log_expit(true).sum())  # sum of log(1 + exp(-q_k))
    if isinstance(problem.loss, Exponential):
        correction = -excess
    elif S > 1e-8:
        correction = -(S + float(np.log(-np.expm1(-S)))) - factor * q_min
    else:
        correction = -(excess + 0.5 * S)
    if factor == 0.0:
        return 0.0 if correction == 0.0 else float(np.copysign(np.inf, correction))
    return q_min + correction / factor
