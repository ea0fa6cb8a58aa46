"""G, its gradient of minimal norm, activation patterns and regularity of directions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from reluflow.arrays import Array, Mask, Sides
from reluflow.errors import ReluflowError
from reluflow.landscape.canonical import PATTERN_TOL, as_pull, signs_of, unit_pull
from reluflow.problem import Problem


def _directions(problem: Problem, w: ArrayLike) -> Array:
    W = np.asarray(w, dtype=np.float64)
    if W.ndim == 0 or W.shape[-1] != problem.d:
        raise ReluflowError(
            f"w has shape {W.shape}, expected (..., {problem.d}): one entry for each feature "
            "(the bias feature included)"
        )
    return W


def G(problem: Problem, w: ArrayLike, pull: ArrayLike | None = None) -> Array:
    r"""Early-alignment function; small neurons turn towards its critical points.

    .. math:: G_c(w) = \sum_k c_k \phi(\langle w, x_k \rangle)

    Parameters
    ----------
    problem : Problem
        Samples, labels, loss and leak.
    w : array, shape (..., d)
        Directions, of unit norm when values are to be compared.
    pull : array, shape (n,), optional
        The c_k; default ``problem.pull``, the pull on a silent network.

    Returns
    -------
    array, shape (...)
        G_c(w): linear on each activation cone, homogeneous of degree 1.

    Notes
    -----
    [BF24]_ eq. (7) has <w, D(w, 0)> with D of minimal norm. The two agree: where <w, x_k> = 0 the
    choice of slope adds nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from reluflow import Problem
    >>> G(Problem(X=np.eye(2), y=np.array([1.0, -1.0])), np.eye(2))
    array([ 0.5, -0.5])
    """
    p = _directions(problem, w) @ problem.X.T
    return np.asarray(np.maximum(p, problem.leak * p) @ as_pull(problem, pull))


def pattern(problem: Problem, w: ArrayLike, tol: float = PATTERN_TOL) -> Sides:
    r"""Activation pattern A(w): the sign of <w, x_k>, 0 where |<w, x_k>| <= tol |w| |x_k|.

    Returns int8 of shape (..., n). A zero sample has 0 everywhere.
    """
    W = _directions(problem, w)
    p = W @ problem.X.T
    size = np.linalg.norm(W, axis=-1)[..., None] * problem.norms
    return signs_of(p, tol * size)


def D(
    problem: Problem,
    w: ArrayLike,
    pull: ArrayLike | None = None,
    tol: float = PATTERN_TOL,
) -> Array:
    r"""Gradient of G of minimal norm.

    .. math:: D(w) = \arg\min \Big\{ \|D\| : D = \sum_k s_k c_k x_k \Big\}

    with s_k = 1 where <w, x_k> > 0, s_k = leak where it is negative, and s_k free in [leak, 1]
    where it is 0 within ``tol`` (see `pattern`): [BF24]_ Sec. 3. Off the hyperplanes it is the
    gradient; on a face that attracts it is the velocity of sliding.

    Returns an array of the shape of w.
    """
    from reluflow.kernels.boxls import box_least_norm

    W = _directions(problem, w)
    c, unit = unit_pull(problem, pull)
    flat = W.reshape(-1, problem.d)
    u = pattern(problem, flat, tol)
    slopes = np.where(u > 0, 1.0, np.where(u < 0, problem.leak, 0.0))
    pulls = c[:, None] * problem.X
    out = slopes @ pulls
    moving = np.linalg.norm(pulls, axis=1) > 0.0
    for i in np.flatnonzero(((u == 0) & moving).any(axis=1)):
        Z = np.ascontiguousarray(pulls[(u[i] == 0) & moving])
        box_least_norm(out[i].copy(), Z, problem.leak, np.empty(len(Z)), out[i])
    return unit * out.reshape(W.shape)


def regular(
    problem: Problem,
    w: ArrayLike,
    pull: ArrayLike | None = None,
    tol: float = PATTERN_TOL,
) -> Mask:
    """Whether no sample with a pull lies on the hyperplane of w, so that G has a gradient there."""
    moving = (as_pull(problem, pull) != 0.0) & (problem.norms > 0.0)
    return np.asarray((pattern(problem, w, tol)[..., moving] != 0).all(axis=-1))
