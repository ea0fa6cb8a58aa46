"""Algorithm 1 of [TLB26]_: the jump process of orthonormal inputs, from signs and labels alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluflow.arrays import Indices, Mask
from reluflow.checks import check_arguments
from reluflow.network import Network
from reluflow.prediction.orthogonal.process import OrthogonalProcess, ProcessBuilder
from reluflow.prediction.orthogonal.rounds import Rounds
from reluflow.prediction.orthogonal.start import read_start
from reluflow.problem import Problem


@check_arguments
def algorithm1(
    problem: Problem | ArrayLike,
    net: Network | None = None,
    *,
    signs: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    tol: float = 1e-9,
    most_branches: int = 24,
) -> OrthogonalProcess:
    r"""Jumps of a network on orthonormal inputs as its start shrinks, without training.

    With :math:`M_{kj} = 1` if :math:`s_j y_k > 0` and :math:`\langle w_j(0), x_k\rangle > 0`, U
    the unfitted samples, c = 1 for the half-square loss and 2 for the square loss (mean; n times
    as much for the sum):

    .. math::
        S_j = \Big(\sum_{k \in U, M_{kj}} y_k^2\Big)^{1/2}, \qquad
        \beta_j' = c S_j / n, \quad \beta_j(0) = -1;

    the first neuron whose exponent reaches 0 fits all its unfitted samples at once, with
    :math:`|w_j|^2 = S_j`, and the loop repeats.

    Parameters
    ----------
    problem : Problem or array (n,)
        Orthonormal samples (any rotation), half-square or square loss, no leak. Labels alone
        stand for X = I and the mean half-square loss.
    net : Network, optional
        The start, with |a_j| >= |w_j| (balanced or dominated); its size does not matter.
    signs : +1, -1 or array (m,), optional
        Signs of the outer weights, with ``mask``.
    mask : array (n, m), optional
        Instead of a network: True where neuron j is active on sample k at the start.
    tol : float
        Groups tie when their next jumps differ by at most ``tol`` times the time reached.
    most_branches : int
        Continuations of ties that are followed, nested ones included.

    Returns
    -------
    OrthogonalProcess
        Ends "interpolates" if every sample is fitted, "spurious" if some have no neuron, or
        "tie": groups that reach size 1 together and share samples. Then the limit depends on more
        than signs and labels, and ``branches`` has the process with each group going first.
        Groups that tie on disjoint samples all jump. With a network, ``offsets`` has the
        constants C_i of the times :math:`L \tau_i + C_i` at which half of the fall of the loss
        is done; ``half_fit_times`` are those at which f = y/2.

    Notes
    -----
    Neurons with equal columns of M jump as one group. Their shares of its squared norm are those
    they have after early alignment, for labels of one sign :math:`(1 + q_j)^2`, q_j the cosine at
    the start with the direction they turn to; with a mask alone the shares are unknown and taken
    equal. Samples with label 0 count as fitted. A neuron whose column is empty never grows; its
    rate is given as 0, though one that is exactly anti-aligned shrinks.

    Examples
    --------
    >>> import numpy as np
    >>> process = algorithm1([4.0, 3.0], signs=1, mask=np.array([[1, 0], [1, 1]]))
    >>> process.times, process.norm2
    (array([0.4]), 10.0)
    """
    start = read_start(problem, net, signs, mask)
    labels, columns = _merge(start.mask)
    rate = start.problem.weight * -float(start.problem.loss.slope_at_zero(np.ones(1))[0])
    M = start.mask[:, columns]
    story = Rounds(start.problem.y, M, rate, tol, most_branches).run()
    return ProcessBuilder(start, labels, M, rate, tol).process(story, determined=True)


def _merge(mask: Mask) -> tuple[NDArray[np.int64], Indices]:
    """Group of each neuron (-1 for an empty column) and one column for each group."""
    labels = np.full(mask.shape[1], -1, dtype=np.int64)
    live = np.flatnonzero(mask.any(axis=0))
    if live.size == 0:
        return labels, live
    packed = np.ascontiguousarray(np.packbits(mask[:, live], axis=0).T)
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)  # groups in the order of their first neurons
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    labels[live] = place[inverse.ravel()]
    return labels, live[first[order]]
