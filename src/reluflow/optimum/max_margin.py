"""The largest normalised margin: of networks of any width, of linear separators, of one neuron."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from reluflow._views import Shown
from reluflow.arrays import Array
from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.network import Network
from reluflow.optimum.columns import check_search, generate, proves_nothing_fits, ratio_bound
from reluflow.optimum.linear import LinearMargin, check_labels, linear_margin
from reluflow.optimum.pool import MET
from reluflow.problem import Problem


@dataclass(frozen=True, eq=False)
class NetworkMargin(Shown):
    """The largest normalised margin of a network of any width, from below and from above.

    Attributes
    ----------
    margin : float
        min_k y_k f(x_k) / (|W|^2 + |a|^2) of `network`; 0 when none is positive.
    upper_bound : float
        max |G_(l y)| / 2 for the multipliers l of `dual`: no network exceeds it.
    network : Network or None
        Scaled so that min_k y_k f(x_k) is 1; None when no network has a positive margin.
    dual : array, shape (n,)
        Multipliers l >= 0 with sum 1.
    rounds, cones : int
        Programs solved, and cones in the last one.
    status : str
        "optimal" (the gap is below 1e-8 of the bound), "gap left" or "infeasible".
    """

    margin: float
    upper_bound: float
    network: Network | None = field(repr=False)
    dual: Array = field(repr=False)
    rounds: int
    cones: int
    status: str

    @property
    def gap(self) -> float:
        """upper_bound - margin."""
        return self.upper_bound - self.margin

    @property
    def exact(self) -> bool:
        """Whether network and bound meet (or it is known that no network separates)."""
        return self.status != "gap left"


def margin_bound(
    problem: Problem, multipliers: ArrayLike, sign: int | None = None, budget: int | None = None
) -> float:
    r"""Upper bound on the normalised margin of every network, from any multipliers l >= 0.

    .. math:: \frac{\min_k y_k f(x_k)}{\|W\|^2 + \|a\|^2} \le
              \frac{\max_{\|w\| = 1} |G_{l y}(w)|}{2 \sum_k l_k}

    ([LLWA21]_ Lemma G.10 in its one-sided form). Multipliers of the optimum give its margin;
    those of `kkt` tell how far a KKT point may be from global.

    Parameters
    ----------
    problem : Problem
        Samples, labels -1, +1 and leak.
    multipliers : array, shape (n,)
        Nonnegative, not all zero.
    sign : {1, -1}, optional
        Bound only networks whose outer weights all have this sign.
    budget : int, optional
        Nodes of the search for the maximum, as for `max_G`.

    Returns
    -------
    float
        At least 0.
    """
    check_labels(problem)
    weights = np.asarray(multipliers, dtype=float)
    if weights.shape != (problem.n,) or not (weights >= 0.0).all() or not weights.any():
        raise ReluflowError(
            f"multipliers must be {problem.n} nonnegative numbers, not all zero: one for each "
            "sample"
        )
    return 0.5 * ratio_bound(problem, weights / weights.sum() * problem.y, sign, budget)


@overload
def max_margin(
    problem: Problem,
    model: Literal["network"] = ...,
    sign: int | None = ...,
    *,
    rounds: int = ...,
    budget: int | None = ...,
    rng: np.random.Generator | int | None = ...,
    seconds: float | None = ...,
) -> NetworkMargin: ...


@overload
def max_margin(
    problem: Problem, model: Literal["linear"], sign: int | None = ...
) -> LinearMargin: ...


@check_arguments
def max_margin(
    problem: Problem,
    model: str = "network",
    sign: int | None = None,
    *,
    rounds: int = 100,
    budget: int | None = None,
    rng: np.random.Generator | int | None = 0,
    seconds: float | None = None,
) -> NetworkMargin | LinearMargin:
    r"""Largest margin of any network, or of a linear separator, with a bound that meets it.

    .. math:: \max_\theta \frac{\min_k y_k f(x_k)}{\|W\|^2 + \|a\|^2}
              = \min_{l \in \Delta} \frac12 \max_{\|w\| = 1} |G_{l y}(w)|, \qquad
              \gamma^* = \max_{\|w\| = 1} \min_k y_k \langle w, x_k \rangle

    The left side becomes convex with one vector for each activation cone (see
    `reluflow.optimum.program`); cones are added while the landscape of the multipliers shows a
    better one (see `reluflow.optimum.columns`), and Newton's method sharpens the end.

    Parameters
    ----------
    problem : Problem
        Samples, labels -1, +1 and leak; the loss plays no part.
    model : {"network", "linear"}
        Networks of any width, or hyperplanes through the origin.
    sign : {1, -1}, optional
        "network": only networks with all outer weights >= 0 (1) or <= 0 (-1), as in [LLWA21]_
        Assumptions A.5 and A.9. "linear": separate the inputs x+ (1) or x- (-1) of [LLWA21]_, in
        which the class that a neuron of this sign works against is multiplied by the leak; a
        single neuron then has normalised margin gamma/2.
    rounds : int
        Most programs to solve ("network").
    budget : int, optional
        Nodes of each search of the landscape, as for `max_G` ("network"). When they run out the
        bound is weaker, still valid, and the gap says by how much.
    rng : int, Generator or None
        Starts of the ascents that look for cones ("network").
    seconds : float, optional
        No program is begun after so long (the first always is): network and bound are those found
        by then, and the gap says what is left open.

    Returns
    -------
    NetworkMargin or LinearMargin
        With `margin`, `upper_bound`, `gap`, the multipliers `dual`, and `network` or `w`.

    Notes
    -----
    The bound allows for rounding (about 1e-12 of the largest sample). Where no positive margin
    exists the status is "infeasible", the margin 0 and the bound, from `dual`, 0 up to rounding.

    Examples
    --------
    >>> from reluflow import datasets
    >>> problem = datasets.figure1_left(leak=0.5)
    >>> best = max_margin(problem)
    >>> round(best.margin, 9), best.exact  # (1 + leak)/4 times the linear margin, 1
    (0.375, True)
    """
    if model not in ("network", "linear"):
        raise ReluflowError(f"model must be 'network' or 'linear', got {model!r}")
    check_search(sign, rounds)
    check_labels(problem)
    if model == "linear":
        return linear_margin(problem, sign)
    found = generate(problem, True, sign, rounds, budget, rng, seconds)
    upper, margin = 0.5 * found.bound, 0.5 * found.value
    dual = np.abs(found.dual) / np.abs(found.dual).sum()
    rest = (found.rounds, found.cones)
    if not found.fits or proves_nothing_fits(problem, found):
        return NetworkMargin(0.0, upper, None, dual, *rest, "infeasible")
    if not margin > 0.0:
        return NetworkMargin(0.0, upper, None, dual, *rest, "gap left")
    status = "optimal" if upper - margin <= MET * upper else "gap left"
    network = found.network(problem, 1.0 / found.value)
    return NetworkMargin(margin, upper, network, dual, *rest, status)
