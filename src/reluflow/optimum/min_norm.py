"""The smallest network, of any width, that fits every label."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from reluflow._views import Shown
from reluflow.arrays import Array
from reluflow.checks import check_arguments
from reluflow.landscape.canonical import as_pull
from reluflow.network import Network
from reluflow.optimum.columns import check_search, generate, proves_nothing_fits, ratio_bound
from reluflow.optimum.pool import MET
from reluflow.problem import Problem

FIT, LOOSE_FIT = 1e-9, 1e-6
"""Errors, each over its own label, up to which a network counts as an interpolator, and is shown
with its error."""


@dataclass(frozen=True, eq=False)
class MinNorm(Shown):
    """The least squared norm of a network that fits every label, from above and from below.

    Attributes
    ----------
    norm2 : float
        |W|^2 + |a|^2 of `network`.
    lower_bound : float
        No network that fits has less.
    network : Network or None
        The one found; None when there is none.
    dual : array, shape (n,)
        A pull c with max |G_c| <= 1 whose 2 <c, y> is `lower_bound`.
    error : float
        Largest |f(x_k) - y_k| of `network`.
    rounds, cones : int
        Programs solved, and cones in the last one.
    status : str
        "optimal" (the gap is below 1e-8 of norm2), "gap left" or "infeasible".
    """

    norm2: float
    lower_bound: float
    network: Network | None = field(repr=False)
    dual: Array = field(repr=False)
    error: float
    rounds: int
    cones: int
    status: str

    @property
    def gap(self) -> float:
        """norm2 - lower_bound, 0 when no network fits."""
        return 0.0 if self.network is None else self.norm2 - self.lower_bound

    @property
    def exact(self) -> bool:
        """Whether network and bound meet (or it is known that no network fits)."""
        return self.status != "gap left"


def norm_bound(
    problem: Problem, c: ArrayLike, sign: int | None = None, budget: int | None = None
) -> float:
    r"""Lower bound on :math:`\|W\|^2 + \|a\|^2` of every network that fits the labels.

    .. math:: \|\theta\|^2 \ge \frac{2 \langle c, y \rangle}{\max_{\|w\| = 1} |G_c(w)|}

    since :math:`\langle c, y \rangle = \sum_j a_j G_c(w_j) \le \max |G_c| \sum_j |a_j| \|w_j\|`.

    Parameters
    ----------
    problem : Problem
        Samples, labels and leak.
    c : array, shape (n,)
        Any multipliers; those of the optimum give its norm.
    sign : {1, -1}, optional
        Bound only networks whose outer weights all have this sign.
    budget : int, optional
        Nodes of the search for the maximum, as for `max_G`.

    Returns
    -------
    float
        0 when c proves nothing, inf when it proves that no network fits.
    """
    ratio = ratio_bound(problem, as_pull(problem, c), sign, budget)
    return float(np.inf) if ratio == 0.0 else 2.0 / ratio


@check_arguments
def min_norm(
    problem: Problem,
    sign: int | None = None,
    *,
    rounds: int = 100,
    budget: int | None = None,
    rng: np.random.Generator | int | None = 0,
    seconds: float | None = None,
) -> MinNorm:
    r"""Least norm of a network of any width that interpolates, with a bound that meets it.

    .. math:: \min \|W\|^2 + \|a\|^2 \;\text{ s.t. } f(x_k) = y_k
              \;=\; \max_c \frac{2\langle c, y\rangle}{\max_{\|w\| = 1} |G_c(w)|}

    The left side becomes convex with one vector for each activation cone (see
    `reluflow.optimum.program`); cones are added while the landscape of the multipliers shows a
    better one (see `reluflow.optimum.columns`), and Newton's method sharpens the end.

    Parameters
    ----------
    problem : Problem
        Samples, labels (any real numbers, zeros included) and leak.
    sign : {1, -1}, optional
        Only networks with all outer weights >= 0 (1) or <= 0 (-1).
    rounds : int
        Most programs to solve.
    budget : int, optional
        Nodes of each search of the landscape, as for `max_G`. When they run out the bound is
        weaker, still valid, and the gap says by how much.
    rng : int, Generator or None
        Starts of the ascents that look for cones.
    seconds : float, optional
        No program is begun after so long (the first always is): network and bound are those found
        by then, and the gap says what is left open.

    Returns
    -------
    MinNorm
        With `norm2`, `lower_bound`, `network`, `gap` and the multipliers `dual`.

    Notes
    -----
    The bound allows for rounding (about 1e-12 of sum |c_k| |x_k|). The network fits the labels up
    to `error`, which is at rounding level after a Newton step that converged.

    Examples
    --------
    >>> import numpy as np
    >>> from reluflow import Problem
    >>> found = min_norm(Problem(np.eye(3), np.array([3.0, -1.0, 4.0])))
    >>> round(found.norm2, 9), found.exact  # 2 (|y+| + |y-|), on orthonormal samples
    (12.0, True)
    """
    check_search(sign, rounds)
    if not problem.y.any():
        still = Network(np.zeros((1, problem.d)), np.zeros(1), leak=problem.leak, bias=problem.bias)
        return MinNorm(0.0, 0.0, still, np.zeros(problem.n), 0.0, 0, 0, "optimal")
    found = generate(problem, False, sign, rounds, budget, rng, seconds)
    if not found.fits or proves_nothing_fits(problem, found):
        bound = 2.0 / found.bound if found.bound > 0.0 else np.inf
        return MinNorm(
            np.inf, bound, None, found.dual, np.inf, found.rounds, found.cones, "infeasible"
        )
    lower = 2.0 / found.bound
    dual = found.dual / found.bound
    if not (found.value > 0.0 and found.own_error <= LOOSE_FIT):
        return MinNorm(np.inf, lower, None, dual, np.inf, found.rounds, found.cones, "gap left")
    norm2 = 2.0 / found.value
    met = found.own_error <= FIT and norm2 <= lower * (1.0 + MET)
    status = "optimal" if met else "gap left"
    network = found.network(problem, 1.0 / found.value)
    return MinNorm(norm2, lower, network, dual, found.error, found.rounds, found.cones, status)
