r"""How nearly a network satisfies the KKT conditions of the margin, and how fast it settles there.

Late in training on a margin loss the direction :math:`u = \theta/\|\theta\|` follows, with
:math:`r = \log \|\theta\|` as time and p the weights of the samples in the loss,

.. math:: \frac{du}{dr} = \frac{P_u \sum_k p_k \nabla q_k(u)}{2 \sum_k p_k q_k(u)}, \qquad
          q_k = y_k f(x_k).

As margins grow the weights hold the samples with a multiplier at equal margins and the neurons that
slide at their kinks. What is left moves in the space T orthogonal to the gradients of these
samples and to these kinks; at a KKT point, in the scale where
:math:`\theta = \sum_k \lambda_k \nabla q_k`,

.. math:: \frac{d\delta}{dr} = -(1 - P_T H P_T)\, \delta, \qquad
          H = \sum_k \lambda_k \nabla^2 q_k.

H couples w_j and a_j of each neuron by :math:`D_j = \sum_k \lambda_k y_k \phi'_{jk} x_k`, of norm 1
where a_j is not 0: its eigenvalues are 1 (the neuron grows), 0 (it turns), -1 (it loses its
balance). A mode of T that turns falls as :math:`1/\|\theta\|`; one that mostly shifts size between
neurons has an eigenvalue mu near 1 and falls as :math:`\|\theta\|^{-(1 - \mu)}`, slowly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, logsumexp

from reluflow.arrays import Array, Mask
from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.network import Network
from reluflow.optimum.embedding import collapse
from reluflow.optimum.linear import check_labels
from reluflow.problem import Problem
from reluflow.problem.losses import Exponential, Logistic

KINK_TOL = 1e-9
EXACT_TOL = 1e-9
MOST_TOL = 1.0
ANGLE = 0.05  # radians within which neurons are one
LEAST = 0.03  # sqrt(|a||w|) relative to the largest below which a neuron does not count
ON_KINK = 1e-4  # |<w, x>| / (|w||x|) of a neuron that slides: training keeps it there roughly
SOME = 1e-6  # of the largest multiplier: a sample with less has none


class Fit(NamedTuple):
    """Multipliers and slopes for which a network comes nearest to the KKT conditions."""

    residual: float
    multipliers: Array  # (n,)
    kinks: NDArray[np.intp]  # (K, 2): neuron and sample
    slopes: Array  # (K,)


def fit_multipliers(
    problem: Problem, W: Array, a: Array, q_min: float, active: Mask, kink_tol: float
) -> Fit:
    """The best multipliers of the active samples and slopes at their kinks."""
    scale = 1.0 / np.sqrt(q_min)
    W, a = scale * W, scale * a
    used = (np.linalg.norm(W, axis=1) > 0.0) | (a != 0.0)
    samples, neurons = np.flatnonzero(active), np.flatnonzero(used)
    W, a, X, y = W[used], a[used], problem.X[samples], problem.y[samples]
    S = X @ W.T
    sizes = np.linalg.norm(X, axis=1)[:, None] * np.linalg.norm(W, axis=1)
    flat = np.abs(S) <= kink_tol * sizes
    slopes = np.where((S > 0.0) & ~flat, 1.0, problem.leak)
    inner = (y[:, None] * slopes * a)[:, :, None] * X[:, None, :]
    outer = y[:, None] * np.where(flat, 0.0, slopes * S)
    g = np.concatenate([inner.reshape(len(X), -1), outer], axis=1)
    theta = np.concatenate([W.ravel(), a])
    flat &= a != 0.0
    lift = (1.0 - problem.leak) * y[:, None] * a  # e_jk = lift x_k in the block of neuron j

    def generator(i: int, up: Mask) -> Array:
        """Gradient of sample i with slope 1 at the kinks marked."""
        out: Array = g[i].copy()
        for j in np.flatnonzero(up):
            out[j * problem.d : (j + 1) * problem.d] += lift[i, j] * X[i]
        return out

    def steepest(i: int, r: Array) -> Mask:
        """Kinks of sample i whose slope 1 agrees better with the residual r."""
        return np.asarray(flat[i] & (lift[i] * (r[: W.size].reshape(W.shape) @ X[i]) > 0.0))

    weights, owners, marks, r = project_on_cone(theta, generator, steepest, flat)
    at, of = np.nonzero(flat)
    multipliers = np.zeros(problem.n)
    np.add.at(multipliers, samples[owners], weights)
    share = np.zeros(flat.shape)
    np.add.at(share, owners, weights[:, None] * marks)
    total = multipliers[samples[at]]
    with np.errstate(divide="ignore", invalid="ignore"):
        free = problem.leak + (1.0 - problem.leak) * share[at, of] / total
    kinks = np.stack([neurons[of], samples[at]], axis=1).astype(np.intp)
    residual = float(np.linalg.norm(r) / np.linalg.norm(theta))
    decided = total > 1e-13 * multipliers.max(initial=0.0)
    return Fit(residual, multipliers, kinks, np.where(decided, free, np.nan))


def project_on_cone(
    theta: Array,
    generator: Callable[[int, Mask], Array],
    steepest: Callable[[int, Array], Mask],
    flat: Mask,
) -> tuple[Array, NDArray[np.intp], Array, Array]:
    """Nearest point to theta of the cone of all generators, found with few of them.

    Generators are one per sample and choice of slopes at its kinks. Nonnegative least squares on
    those known so far; then for each sample the one that agrees most with the residual, while it
    agrees at all. Returns weights, sample and marked kinks of each generator, and the residual.
    """
    from scipy.optimize import nnls

    known: dict[tuple[int, bytes], int] = {}
    columns: list[Array] = []
    marks: list[Mask] = []
    r, weights = theta, np.zeros(0)
    while True:
        new = 0
        for i in range(len(flat)):
            up = steepest(i, r)
            if (i, up.tobytes()) in known:
                continue
            column = generator(i, up)
            if column @ r > 1e-15 * np.linalg.norm(column) * np.linalg.norm(theta):
                known[i, up.tobytes()] = len(columns)
                columns.append(column)
                marks.append(up)
                new += 1
        if not new:
            break
        A = np.array(columns).T
        sizes = np.linalg.norm(A, axis=0)  # a small sample's gradient is small, not negligible
        Q, R = np.linalg.qr(A / sizes)
        weights, _ = nnls(R, Q.T @ theta, maxiter=100 * len(columns))
        weights = weights / sizes
        r = theta - A @ weights
    owners = np.array([i for i, _ in known], dtype=np.intp)
    marked = np.array(marks, dtype=float).reshape(len(owners), flat.shape[1])
    return weights, owners, marked, r


@dataclass(frozen=True, eq=False)
class KKT:
    r"""The KKT conditions of :math:`\min \frac12\|\theta\|^2` s.t. :math:`y_k f(x_k) \ge 1`.

    All but `log_q_min` and `smoothed_margin` belong to the network scaled to q_min = 1.

    Attributes
    ----------
    residual : float
        |theta - sum_k l_k g_k| / |theta| for the best multipliers and slopes; infinite when some
        sample is not classified rightly.
    multipliers : ndarray of shape (n,)
        l >= 0, zero off the active set; they add up to 1/(2 margin) at a KKT point.
    margin : float
        min_k y_k f(x_k) / (|W|^2 + |a|^2).
    smoothed_margin : float
        The margin with the loss for the minimum, at the network's own size; nan for losses
        without one.
    q : ndarray of shape (n,)
        y_k f(x_k) / min_k y_k f(x_k).
    log_q_min : float
        log of min_k y_k f(x_k) at the network's own size; nan when that is not positive.
    active : ndarray of bool, shape (n,)
        Which samples may have a multiplier: q_k <= 1 + tol.
    tol : float
        That tolerance.
    complementarity : float
        sum_k l_k (q_k - 1) / sum_k l_k.
    imbalance : float
        The largest ||w_j| - |a_j|| / |theta|, 0 at a KKT point.
    kinks : ndarray of int, shape (K, 2)
        Neuron and active sample with <w_j, x_k> = 0.
    slopes : ndarray of shape (K,)
        The slope in [leak, 1] chosen there; nan where the sample's multiplier is 0.
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


@check_arguments
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
    chosen, fit = fit_active_set(
        lambda each: fit_multipliers(problem, W, a, q_min, ratios <= 1.0 + each, kink_tol),
        active_tolerances(problem.n, log_q_min) if tol is None else [float(tol)],
    )
    residual, multipliers, kinks, slopes = fit
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


def active_tolerances(n: int, log_q_min: float) -> list[float]:
    """Tolerances of the active set to try, ascending, none above 10 log(n)/q_min."""
    widest = min(10.0 * np.log(max(n, 2)) * np.exp(-max(log_q_min, 0.0)), MOST_TOL)
    widest = max(float(widest), EXACT_TOL)
    return [t for t in (EXACT_TOL, 1e-6, 1e-3) if t < widest] + [widest]


def fit_active_set(fit_at: Callable[[float], Fit], tols: list[float]) -> tuple[float, Fit]:
    """The narrowest active set that is as good as the widest, and its fit; tols ascend.

    No set fits better than the widest. As good is a residual r of at most twice the r_0 of that
    set, and a part 1 - r explained of at least nine tenths of its: far from a KKT point twice r_0
    is more than 1, the residual without any multiplier, and says nothing.
    """
    widest = fit_at(tols[-1])
    most = max(min(2.0 * widest.residual, 0.1 + 0.9 * widest.residual), EXACT_TOL)
    chosen, best = tols[-1], widest
    for tol in reversed(tols[:-1]):
        fit = fit_at(tol)
        if fit.residual > most:
            break
        chosen, best = tol, fit
    return chosen, best


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


def settling_rate(
    problem: Problem, net: Network, *, angle: float = ANGLE, least: float = LEAST
) -> float:
    """The slowest rate r at which the direction settles, as |theta|^-r = q_min^(-r/2).

    Neurons of one direction are taken as one, those without part in the function left out. 1 where
    all modes turn or no mode is left; negative where the KKT point is a saddle of the margin, from
    which the direction departs; nan when some sample is not classified rightly.
    """
    small, _ = collapse(net, angle=angle, least=least)
    found = kkt(problem, small, kink_tol=ON_KINK)
    if not np.isfinite(found.residual):
        return float(np.nan)
    W, a = _at_unit_margin(problem, small)
    fixed, H = _linearise(problem, W, a, found)
    _, sizes, Vt = np.linalg.svd(fixed)
    Z = Vt[int(np.sum(sizes > 1e-9 * sizes[0])) :].T
    if Z.shape[1] == 0:
        return 1.0
    return min(1.0 - float(np.linalg.eigvalsh(Z.T @ H @ Z)[-1]), 1.0)


def _at_unit_margin(problem: Problem, net: Network) -> tuple[Array, Array]:
    """Weights scaled to q_min = 1."""
    W, a = net.scaled(-float(np.max(np.maximum(net.log_norms, net.log_outer)))).weights()
    p = problem.X @ W.T
    root = np.sqrt(float((problem.y * (np.maximum(p, problem.leak * p) @ a)).min()))
    return W / root, a / root


def _linearise(problem: Problem, W: Array, a: Array, found: KKT) -> tuple[Array, Array]:
    """Rows orthogonal to T, and H, for parameters (all w, all a)."""
    (m, d), p = W.shape, problem.X @ W.T
    slopes = np.where(p > 0.0, 1.0, problem.leak)
    on = np.flatnonzero(found.multipliers > SOME * found.multipliers.max())
    held = [(j, k) for j, k in found.kinks if k in on]
    for (j, k), slope in zip(found.kinks, found.slopes, strict=True):
        slopes[k, j] = slope if np.isfinite(slope) else problem.leak
        p[k, j] = 0.0
    pulls = problem.y[on, None, None] * slopes[on][:, :, None] * problem.X[on][:, None, :]
    gradients = np.hstack(
        [(a[:, None] * pulls).reshape(len(on), m * d), problem.y[on, None] * slopes[on] * p[on]]
    )
    faces = np.zeros((len(held), m * d + m))
    for row, (j, k) in enumerate(held):
        faces[row, j * d : (j + 1) * d] = problem.X[k]
    D = np.einsum("k,kjd->jd", found.multipliers[on], pulls)
    H = np.zeros((m * d + m, m * d + m))
    for j in range(m):
        H[j * d : (j + 1) * d, m * d + j] = D[j]
        H[m * d + j, j * d : (j + 1) * d] = D[j]
    return np.vstack([gradients, faces]), H
