r"""How fast a direction settles at a KKT point of the margin: the modes of the flow around it.

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

import numpy as np

from reluflow.arrays import Array
from reluflow.network import Network
from reluflow.optimum.embedding import collapse
from reluflow.optimum.kkt import KKT, kkt
from reluflow.problem import Problem

ANGLE = 0.05  # radians within which neurons are one
LEAST = 0.03  # sqrt(|a||w|) relative to the largest below which a neuron does not count
ON_KINK = 1e-4  # |<w, x>| / (|w||x|) of a neuron that slides: training keeps it there roughly
SOME = 1e-6  # of the largest multiplier: a sample with less has none


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
    fixed, H = _linearised(problem, W, a, found)
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


def _linearised(problem: Problem, W: Array, a: Array, found: KKT) -> tuple[Array, Array]:
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
