r"""The first jump, estimated in a millisecond: one group of neurons that grows where it has turned.

Neurons that early alignment takes to the same direction v, with output sign s, grow as one: with
:math:`h_k = s\,\phi(\langle v, x_k\rangle)` and :math:`b = \sum_j |a_j| |w_j|` the outputs are
:math:`f = b h` and, as long as v stays where it is,

.. math:: b' = 2 b\, g(b), \qquad g(b) = \sum_k c_k(b h)\, h_k, \qquad g(0) = G.

From :math:`b = B e^{2 G t}` at first, the loss has done half of its fall, at :math:`b_{1/2}`, at

.. math:: t = \frac{1}{2G} \log\frac{b_{1/2}}{B}
          + \frac12 \int_0^{b_{1/2}} \Big(\frac{1}{g(b)} - \frac1G\Big) \frac{db}{b}.

The limit process computes the same without holding v, which takes longer: this is for a drag.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from reluflow.arrays import Array
from reluflow.landscape.align import Alignment
from reluflow.problem import Problem

_SAME = 6  # digits to which directions of one group agree
_NODES = 65
_FARTHEST = 1e8  # of b: a loss without a minimum along v


class FirstJump(NamedTuple):
    """Time at which half of the first fall of the loss is done, and the loss after it."""

    time: float
    loss: float


def estimate_first_jump(problem: Problem, alignment: Alignment) -> FirstJump | None:
    """The earliest jump of a group, each on its own; None if no neuron grows."""
    grows = np.flatnonzero(alignment.growing & (alignment.growth > 0.0))
    if not grows.size:
        return None
    keys = np.column_stack([np.round(alignment.direction[grows], _SAME), alignment.sign[grows]])
    _, first, where = np.unique(keys + 0.0, axis=0, return_index=True, return_inverse=True)
    best: FirstJump | None = None
    for group, row in enumerate(first):
        members = grows[where.ravel() == group]
        log_b = float(np.logaddexp.reduce(2.0 * alignment.log_offset[members]))
        j = grows[row]
        product = problem.X @ alignment.direction[j]
        h = alignment.sign[j] * np.maximum(product, problem.leak * product)
        found = _time_of(problem, h, log_b)
        if found is not None and (best is None or found.time < best.time):
            best = found
    return best


def _time_of(problem: Problem, h: Array, log_b: float) -> FirstJump | None:
    """The jump of one group."""

    def rate(b: float) -> float:
        return float(problem.pull_at(b * h) @ h)

    G = rate(0.0)
    if not G > 0.0:
        return None
    top = 1.0 / max(float(h @ h), 1e-300)
    while rate(top) > 0.0 and top < _FARTHEST:
        top *= 2.0
    top = _bisect(lambda b: rate(b) > 0.0, top) if top < _FARTHEST else top
    first, last = problem.silent_loss, float(problem.value(top * h))
    half = _bisect(lambda b: float(problem.value(b * h)) > 0.5 * (first + last), top)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    b = 0.5 * half * (nodes + 1.0)
    bend = np.array([(1.0 / rate(each) - 1.0 / G) / each for each in b])
    rest = 0.25 * half * float(weights @ bend)
    return FirstJump(max(0.0, 0.5 * (np.log(half) - log_b) / G + rest), last)


def _bisect(holds: Callable[[float], bool], high: float) -> float:
    """The largest b up to ``high`` below which a condition holds."""
    low = 0.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return 0.5 * (low + high)
