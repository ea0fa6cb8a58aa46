"""The best penalised networks for every weight decay, from silence to the least norm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from reluflow.arrays import Array
from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.optimum.program import merge_neurons
from reluflow.optimum.ridge import Ridge, RidgeSearch
from reluflow.problem import Problem
from reluflow.runtime.words import count, join, plural

_JUST_BELOW = 1.0 - 1e-6  # the first weight decay, over the one above which silence is best

_TRACE = 1e-7  # of the squared norm: a neuron that makes less is not counted
_CLOSE = 1e-3  # directions and hyperplanes so close are taken for equal when neurons are counted

Pieces = frozenset[tuple[float, tuple[int, ...]]]
"""Sign and pattern (-1, 0 on a hyperplane, 1) of every neuron."""


class Kink(NamedTuple):
    """A weight decay at which the neurons in use change, between those on either side."""

    weight_decay: float
    words: str  # what happens as the weight decay falls


@dataclass(frozen=True, eq=False)
class RidgePath:
    """Optima along a falling weight decay; between two kinks they move smoothly.

    Attributes
    ----------
    largest : float
        Weight decay from which on the silent network is best, max |G_c| at its pull.
    results : tuple of Ridge
        One for each weight decay, falling; the first is silent.
    kinks : tuple of Kink
        Where neurons appear, vanish or reach or leave a hyperplane, falling, each found to
        ``tol``, relatively. Changes that are undone between two neighbouring decays looked at are
        not seen.
    """

    largest: float
    results: tuple[Ridge, ...] = field(repr=False)
    kinks: tuple[Kink, ...]

    @property
    def weight_decays(self) -> Array:
        """Those of the results."""
        return np.array([each.weight_decay for each in self.results])

    @property
    def values(self) -> Array:
        """Penalised losses."""
        return np.array([each.value for each in self.results])

    @property
    def losses(self) -> Array:
        """Losses, falling with the weight decay."""
        return np.array([each.loss for each in self.results])

    @property
    def norms2(self) -> Array:
        """Squared norms |W|^2 + |a|^2, growing as the weight decay falls."""
        return np.array([each.norm2 for each in self.results])

    @property
    def exact(self) -> bool:
        """Whether every network on the path meets its bound."""
        return all(each.exact for each in self.results)


@check_arguments
def ridge_path(
    problem: Problem,
    smallest: float = 1e-6,
    *,
    points: int = 25,
    tol: float = 1e-4,
    sign: int | None = None,
    budget: int | None = None,
    rng: np.random.Generator | int | None = 0,
) -> RidgePath:
    r"""Best penalised networks from silence down to ``smallest`` times the largest weight decay.

    Above :math:`\lambda_{\max} = \max |G_{c_0}|` the silent network is best, and at
    :math:`\lambda_{\max}` the directions that reach the maximum appear. As lambda tends to 0 the
    networks of square losses tend to the least norm that fits best (`min_norm` where all labels can
    be fitted), with :math:`\|\theta\|^2` growing towards it.

    Parameters
    ----------
    problem : Problem
    smallest : float
        Least weight decay over the largest.
    points : int
        Weight decays looked at, evenly in their logarithm.
    tol : float
        Relative accuracy of the kinks between them.
    sign, budget, rng
        As for `ridge`.

    Returns
    -------
    RidgePath
    """
    if not 0.0 < smallest < 1.0:
        raise ReluflowError(f"smallest must lie strictly between 0 and 1, got {smallest!r}")
    if not 1e-12 <= tol < 1.0:
        raise ReluflowError(f"tol must lie between 1e-12 and 1, got {tol!r}")
    if points < 2:
        raise ReluflowError(f"points must be at least 2, got {points!r}")
    search = RidgeSearch(problem, sign, budget=budget, rng=rng)
    top = search.silent_above
    first = search.at(max(top, np.finfo(float).tiny))
    if top <= 0.0:  # nothing pulls
        return RidgePath(0.0, (first,), ())
    decays = top * np.geomspace(_JUST_BELOW, smallest, points)
    results = [search.at(float(decay)) for decay in decays]
    kinks = [Kink(top, _change_words(frozenset(), pieces(problem, results[0])))]
    for high, low in pairwise(results):
        kinks += _kinks_between(problem, search.at, high, low, tol)
    return RidgePath(top, (first, *results), tuple(kinks))


def pieces(problem: Problem, result: Ridge) -> Pieces:
    """Sign and pattern of every neuron of a result.

    Where a neuron is about to vanish a solver knows little of it: traces are left out, and
    directions nearer than `_CLOSE` to each other or to a hyperplane count as equal or on it.
    """
    net = result.network
    v, s = merge_neurons(np.abs(net.a)[:, None] * net.W, np.sign(net.a), _TRACE, _CLOSE)
    if not len(v):
        return frozenset()
    along = v @ problem.X.T
    near = np.abs(along) <= _CLOSE * np.outer(np.linalg.norm(v, axis=1), problem.norms)
    sides = np.where(near, 0, np.sign(along)).astype(int)
    return frozenset((float(b), tuple(row.tolist())) for b, row in zip(s, sides, strict=True))


def _kinks_between(
    problem: Problem, at: Callable[[float], Ridge], high: Ridge, low: Ridge, tol: float
) -> list[Kink]:
    """Kinks between two results, by halving; one for each place where the neurons change."""
    above, below = pieces(problem, high), pieces(problem, low)
    if above == below:
        return []
    if high.weight_decay <= low.weight_decay * (1.0 + tol):
        middle = float(np.sqrt(high.weight_decay * low.weight_decay))
        return [Kink(middle, _change_words(above, below))]
    mid = at(float(np.sqrt(high.weight_decay * low.weight_decay)))
    return [
        *_kinks_between(problem, at, high, mid, tol),
        *_kinks_between(problem, at, mid, low, tol),
    ]


def _change_words(above: Pieces, below: Pieces) -> str:
    """What happens to the neurons as the weight decay falls past a kink."""
    gone, new = above - below, below - above
    moved = 0
    for sign, pattern in list(gone):
        close = [
            each
            for each in new
            if each[0] == sign
            and all(p == q or 0 in (p, q) for p, q in zip(pattern, each[1], strict=True))
        ]
        if close:
            moved += 1
            gone -= {(sign, pattern)}
            new -= {close[0]}
    done = (
        (len(new), "appears", "appear"),
        (len(gone), "vanishes", "vanish"),
        (moved, "reaches or leaves a hyperplane", "reach or leave hyperplanes"),
    )
    return join(
        [f"{count(k, 'neuron')} {plural(k, does, do)}" for k, does, do in done if k], most=3
    )
