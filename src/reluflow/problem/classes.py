r"""Several outputs: classes, their losses, and what changes when f(x) is a vector.

A network with K outputs is :math:`f(x) = \sum_j a_j \phi(\langle w_j, x\rangle)` with
:math:`a_j \in \mathbb R^K`. A problem has K outputs when its labels are a matrix Y of shape (n, K):
real numbers for the square losses, -1 and +1 for the margin losses (each output a question of its
own), or one-hot rows for
the losses of classes (softmax, multiclass_exponential), made from a list of classes by `one_hot`. A
matrix of one column, in labels or in outer weights, is one output and kept as a vector.

The theory of one output carries over. The pull is a matrix C (n, K) with rows
:math:`c_k = -\partial\ell/\partial f(x_k)` (times 1/n for the mean), and in the cone u

.. math:: w' = M_u a, \quad a' = M_u^\top w, \qquad
          M_u = \sum_k \phi'_{u_k} x_k c_k^\top \quad (d \times K),

so that all neurons (w, a) of a cone move by the one matrix [[0, M_u], [M_u^T, 0]], and
:math:`\|w\|^2 - \|a\|^2` is conserved. Small neurons turn to the critical points on the sphere of

.. math:: G_C(w) = \Big| \sum_k c_k \phi(\langle w, x_k\rangle) \Big| = |M_u^\top w|,

which are singular pairs (v, b) of M_u with v in the cone u (or of the part of M_u along a face),
and grow there at the singular value, with a along b. For K = 1 this is \|G\|.

What needs a vector output stands in a module or package ``multioutput`` beside the code for one
output, which stays the fast special case: `descend`, `flow`, `extremal_vectors`, `align`, `limit`,
`kkt`, `stationarity`, `max_margin`, `min_norm` and `explain` go there when ``problem.several``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reluflow.arrays import AnyArray, Array, frozen_array
from reluflow.errors import ReluflowError
from reluflow.problem.names import array_of

MOST_CLASSES = 1000


def one_hot(labels: Any, name: str = "y") -> tuple[Array, tuple[str, ...] | None]:
    """Labels of any kind as one-hot rows (n, K), with the names of the K classes, sorted.

    One-hot rows pass through, without names; their classes may be empty.
    """
    given = array_of(labels)
    if given.ndim == 2:
        Y = frozen_array(given, name, 2)
        if not (np.isin(Y, (0.0, 1.0)).all() and (Y.sum(axis=1) == 1.0).all()):
            raise ReluflowError(
                f"{name} has rows that are not one-hot: expected one 1 and zeros in each row, or a "
                "list of classes"
            )
        if Y.shape[1] < 2:
            raise ReluflowError(f"{name} has one class only: expected at least two columns")
        return Y, None
    if given.ndim != 1:
        raise ReluflowError(
            f"{name} has {given.ndim} dimension(s), expected a list of classes, one for each sample"
        )
    if given.dtype.kind == "f" and not np.isfinite(given).all():
        raise ReluflowError(f"{name} holds a class that is not a finite number: drop those rows")
    found, place = np.unique(
        given.astype(str) if given.dtype == object else given, return_inverse=True
    )
    if not 2 <= len(found) <= MOST_CLASSES:
        raise ReluflowError(
            f"{name} has {len(found)} classes: expected 2 to {MOST_CLASSES} different labels"
        )
    Y = np.zeros((len(given), len(found)))
    Y[np.arange(len(given)), place] = 1.0
    return frozen_array(Y, name, 2), class_names(found)


def class_names(classes: AnyArray) -> tuple[str, ...]:
    """Classes as text: 1 and 1.0 are "1"."""
    numbers = classes.dtype.kind in "iuf"
    return tuple(f"{value:.12g}" if numbers else str(value) for value in classes)
