r"""The gradient of a cone and its products with all samples, kept up to date kink by kink.

With the products :math:`K_{ki} = \langle x_k, x_i \rangle` of the samples at hand, a sample that
changes sides changes

.. math:: D = \sum_k \sigma_k c_k x_k \quad\text{and}\quad X D = \sum_k \sigma_k c_k K_k

by one row each: d + n operations, where the sums themselves take 2 n d. Rows are added with the
rounding error of the sum carried along (Kahan), so that thousands of kinks leave it as it was.
"""

from typing import NamedTuple

import numpy as np

from reluflow.kernels.early_face import cone_gradient, products
from reluflow.kernels.inner import inner


class Force(NamedTuple):
    """The gradient over the samples off the face, and what rounding took from its sums."""

    D: np.ndarray  # (d,)
    P: np.ndarray  # (n,) <D, x_k>
    lost: np.ndarray  # (d,)
    lost_P: np.ndarray  # (n,)


@inner
def slope_of(u, leak):
    """Slope on a side of a hyperplane, 0 for a sample on the face."""
    return 1.0 if u > 0 else (leak if u < 0 else 0.0)


@inner
def renew(force, frozen, u):
    """The force of the pattern u, from all samples."""
    cone_gradient(frozen, u, force.D)
    products(frozen, force.D, force.P)
    for i in range(force.D.size):
        force.lost[i] = 0.0
    for k in range(force.P.size):
        force.lost_P[k] = 0.0


@inner
def _add_row(total, lost, factor, row):
    """total += factor * row, with the error of the sum in ``lost``."""
    for i in range(total.size):
        part = factor * row[i] - lost[i]
        new = total[i] + part
        lost[i] = (new - total[i]) - part
        total[i] = new


@inner
def add_sample(force, frozen, k, slope):
    """Let sample k pull with this slope more (less, if negative)."""
    factor = slope * frozen.c[k]
    if factor != 0.0:
        _add_row(force.D, force.lost, factor, frozen.X[k])
        _add_row(force.P, force.lost_P, factor, frozen.K[k])


@inner
def speeds(force, frozen, per, u, face, nf, slope, out):
    """Write ``per`` times <D, x_k> into out, D with the slopes of the samples of the face."""
    for k in range(out.size):
        out[k] = per * force.P[k]
    for f in range(nf):
        k = face[f]
        # a sample that left the face is in the force by now
        factor = per * (slope[k] - slope_of(u[k], frozen.leak)) * frozen.c[k]
        if factor != 0.0:
            row = frozen.K[k]
            for i in range(out.size):
                out[i] += factor * row[i]
