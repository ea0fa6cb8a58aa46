"""Is a network stationary, a local or a global minimum, and what would one more neuron gain."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.landscape.alignment import G
from reluflow.network import Network
from reluflow.optimum.escape import (
    best_neuron,
    largest_escape,
    reachable_part,
    reachable_share,
)
from reluflow.optimum.own_size import BLOCK, SAME, correction, heights, shares, sizes
from reluflow.optimum.second_order import (
    ALIVE,
    NO_INNER,
    NO_OUTER,
    ZERO,
    Descent,
    Kinks,
    Neighbourhood,
    local_kind,
)
from reluflow.problem import Problem

_PLACES = {
    "minimum": " (a local minimum)",
    "saddle": " (a saddle)",
    "undecided": " (local minimum or saddle undecided)",
}
LARGE = 20_000_000  # multiplications of one projection beyond which a bound decides if it can


@dataclass(frozen=True, eq=False)
class Stationarity:
    """How far a network is from critical, and what kind of point it is.

    Attributes
    ----------
    kind : str
        "global minimum" (of the loss over networks of every width), "stationary, not global"
        (some network, perhaps a wider one, has a smaller loss) or "not stationary".
    local : str
        For a stationary network "minimum", "saddle" or "undecided" (a bound was too loose), among
        networks of its own width; "none" otherwise.
    loss : float
        The loss; 0 where it underflows.
    residual : float
        Distance of 0 to the subdifferential of the loss in (W, a).
    relative : float
        The share of its own size by which some sample's pull would have to change for the neuron
        that is worst off to rest, neurons without effect left out. The size of a pull is that of
        |y_k| + |f_k| for square losses, of the pull for margin losses. "Stationary" means at most
        ``tol``; neither the other samples' sizes nor those of other neurons play a part.
    per_neuron : array, shape (m,)
        Each neuron's part; residual is their root of squares.
    escape, escape_bound : float
        max |G_c| on the sphere at the network's pull c, found and bounded from above: the rate at
        which a small new neuron would grow.
    vector, sign : array (d,), int
        Direction and output sign of a neuron worth adding: the direction that reaches `escape` or
        its opposite, whichever gains more.
    size, gain : float
        That neuron with |a||w| = size lowers the loss by gain: the exact minimum along this line
        for square losses, a decrease reached for margin losses. 0 at a global minimum.
    excess : float or None
        Square losses: the loss minus its minimum over networks of every width. None otherwise.
    descent : Descent or None
        For a saddle, a neuron and how it lowers the loss.
    states : array, shape (m,)
        What each neuron has: 0 both weights, 1 only w, 2 only a, 3 none (to the thresholds).
    clarke : bool
        Whether the subdifferential used is Clarke's; where dependent kinks of mixed sign meet it
        is the larger set of the chain rule, and `residual` a lower bound.
    network : Network
    """

    kind: str
    local: str
    loss: float
    residual: float
    relative: float
    per_neuron: Array = field(repr=False)
    escape: float
    escape_bound: float
    vector: Array = field(repr=False)
    sign: int
    size: float
    gain: float
    excess: float | None
    descent: Descent | None = field(repr=False)
    states: NDArray[np.intp] = field(repr=False)
    clarke: bool
    network: Network = field(repr=False)
    _slopes: Array = field(repr=False)  # of the distinct patterns
    _kinked: NDArray[np.bool_] = field(repr=False)
    _index: NDArray[np.intp] = field(repr=False)

    @property
    def slopes(self) -> Array:
        """Slope phi' of neuron j at sample k that gives the residual, shape (m, n)."""
        return self._slopes[self._index]

    @property
    def kinked(self) -> NDArray[np.bool_]:
        """Whether neuron j lies on the hyperplane of sample k, shape (m, n)."""
        return self._kinked[self._index]

    @property
    def decided(self) -> bool:
        """Whether both kind and local are known."""
        return self.local != "undecided"

    def widened(self) -> Network:
        """The network with the neuron that gives `gain` added."""
        root = np.sqrt(self.size)
        net = self.network
        scale = None if net.log_scale is None else np.append(net.log_scale, 0.0)
        return Network(
            np.vstack([net.W, root * self.vector]),
            np.append(net.a, self.sign * root),
            scale,
            net.leak,
            net.bias,
        )

    def __str__(self) -> str:
        place = _PLACES[self.local] if self.kind == "stationary, not global" else ""
        more = "" if self.gain <= 0.0 else f"; one more neuron lowers the loss by {self.gain:.6g}"
        return (
            f"{self.kind}{place}: loss {self.loss:.6g}, distance of 0 to the subdifferential "
            f"{self.residual:.3g}{more}"
        )


@check_arguments
def stationarity(
    problem: Problem,
    net: Network,
    *,
    tol: float = 1e-7,
    kink_tol: float = 1e-7,
    zero_tol: float | None = None,
    budget: int | None = None,
) -> Stationarity:
    r"""Distance of 0 to the subdifferential of the loss, and the kind of point.

    .. math:: \mathrm{residual}^2 = \sum_j \min_{s_j} a_j^2 |D_{s_j}|^2 + G_c(w_j)^2, \qquad
              D_s = \sum_k s_k c_k x_k

    with the slope s_jk free in [leak, 1] where the neuron lies on the hyperplane of sample k.
    Global: a convex loss is at its minimum over all widths exactly when G_c = 0 everywhere
    ([BF24]_ Sec. 4 has ends of training where it is not). Local: see
    :mod:`reluflow.optimum.second_order`. What counts as zero is judged for each neuron and each
    sample at its own size, see :mod:`reluflow.optimum.own_size`: rescaling a sample with its label,
    or adding neurons that are inactive on all samples, changes no verdict.

    Parameters
    ----------
    problem : Problem
    net : Network
        With ``log_scale`` of any size, as long as its outputs are finite.
    tol : float
        Share of its own size (see `Stationarity.relative`) by which each sample's pull may be off
        in a network that counts as stationary or as a global minimum; 10 tol in the local test.
    kink_tol : float
        A neuron lies on a hyperplane when |<w, x>| <= kink_tol |w| |x|. Training that slides along
        one keeps to it as well as its own tolerance or step size does: raise this for such ends.
    zero_tol : float, optional
        A neuron whose outputs are below this times |f(x_k)| + |y_k| (root mean square over the
        samples it is active on) has no effect; it counts as zero, or as without w (or a) alone when
        the other exceeds the square root of that, unless it rests where it is (inactive on all
        samples, say). Default tol squared.
    budget : int, optional
        Nodes of each search for the largest G; see :func:`reluflow.max_G`. Default 20,000; for
        more than 5,000 entries of X in three or more dimensions a plain ascent instead, with a
        bound that is valid but loose.

    Returns
    -------
    Stationarity

    Examples
    --------
    >>> from reluflow import Network, datasets
    >>> problem = datasets.three_points()
    >>> line = Network([problem.known["beta_star"]], [1.0])
    >>> found = stationarity(problem, line)
    >>> found.kind, found.local, round(found.gain, 4)
    ('stationary, not global', 'minimum', 0.0281)
    """
    problem.check_kinks("stationarity")
    net.check_fits(problem.d)
    for name, value in (("tol", tol), ("kink_tol", kink_tol)):
        if not 0.0 < value < 0.1:
            raise ReluflowError(f"{name} must be in (0, 0.1), got {value!r}: 1e-7 is usual")
    with np.errstate(over="ignore", invalid="ignore"):
        f = problem.outputs(net)
    if not np.isfinite(f).all():
        raise ReluflowError(
            "the outputs of the network overflow: expected finite outputs, "
            "scale the network down or use kkt, which looks at its direction alone"
        )
    c, unit = _pull(problem, f)
    h = heights(problem, net, f, c, unit, tol)
    kinks = Kinks.of(problem, c, SAME)
    W, a = net.weights()
    patterns, index = kinks.distinct_patterns(net.directions, kink_tol)
    steepest = [kinks.steepest(u) for u in patterns]
    D = np.array([pair[0] for pair in steepest])
    slopes = np.array([kinks.slopes(pair[1]) for pair in steepest])
    rates = _rates(problem, W, c)
    parts = np.hypot(np.abs(a) * np.linalg.norm(D, axis=1)[index], rates)

    changes = [_change(problem, s, v, c, h, tol) for s, v in zip(slopes, D, strict=True)]
    turning = np.array([np.abs(change).max() for change in changes])[index]
    states = _states(problem, net, f, tol**2 if zero_tol is None else zero_tol, kink_tol)
    states[(turning <= 10.0 * tol) & (net.log_norms > -np.inf) & (net.a != 0.0)] = ALIVE
    each = _relative(problem, net, c, h, turning, kink_tol)
    relative = float(each[states != ZERO].max(initial=0.0))

    reachable = reachable_part(problem, kinks, c)
    excess = None
    if not problem.loss.margin:
        curvature = problem.weight * problem.loss.curvature
        excess = float(0.5 * (unit * np.linalg.norm(reachable)) ** 2 / curvature)
    at_minimum = reachable_share(problem, kinks, c, h) <= tol
    escape = largest_escape(problem, c, reachable, budget, at_minimum)

    kind, local, descent = "not stationary", "none", None
    if at_minimum:
        kind, local = "global minimum", "minimum"
    elif relative <= tol:
        kind = "stationary, not global"
        outer = np.where(net.a < 0.0, -1, 1)
        place = Neighbourhood(problem, kinks, patterns, changes, c, h, 10.0 * tol)
        local, descent = local_kind(place, index, states, outer, escape, budget)
    vector, sign, size, gain = escape.vector, escape.sign, 0.0, 0.0
    if not at_minimum:
        vector, sign, size, gain = best_neuron(problem, f, c, np.stack([vector, -vector]))
    return Stationarity(
        kind=kind,
        local=local,
        loss=float(problem.value(f)),
        residual=unit * float(np.linalg.norm(parts)),
        relative=relative,
        per_neuron=unit * parts,
        escape=unit * escape.value,
        escape_bound=unit * escape.upper_bound,
        vector=vector,
        sign=sign,
        size=size,
        gain=gain,
        excess=excess,
        descent=None if descent is None else replace(descent, rate=unit * descent.rate),
        states=states,
        clarke=all(kinks.is_clarke(u) for u in patterns),
        network=net,
        _slopes=slopes,
        _kinked=np.array([kinks.on(u) for u in patterns]),
        _index=index,
    )


def _pull(problem: Problem, f: Array) -> tuple[Array, float]:
    """The pull over its largest entry, and that entry (0 where it underflows)."""
    if not problem.loss.margin:
        c = problem.pull_at(f)
        unit = float(np.abs(c).max())
        return (c / unit, unit) if unit > 0.0 else (c, 1.0)
    log_slope = problem.loss.log_slope(f, problem.y)
    top = float(log_slope.max())
    return problem.y * np.exp(log_slope - top), problem.weight * float(np.exp(top))


def _rates(problem: Problem, W: Array, c: Array) -> Array:
    """G_c(w_j), in blocks of bounded memory."""
    out = np.empty(len(W))
    block = max(1, BLOCK // problem.n)
    for start in range(0, len(W), block):
        out[start : start + block] = G(problem, W[start : start + block], c)
    return out


def _change(problem: Problem, slopes: Array, D: Array, c: Array, h: Array, tol: float) -> Array:
    """The least change of the pulls, in shares (n,), for which a neuron of these slopes rests.

    Where the work is large and |D| alone shows that more than tol is needed, the bound
    |D| / sum_k s_k h_k |x_k| on its largest entry instead.
    """
    A = slopes[:, None] * problem.X
    on = A.any(axis=1) & (h > 0.0)
    out = np.zeros(problem.n)
    if not on.any() or not D.any():
        return out
    least = float(np.linalg.norm(D)) / float(np.linalg.norm(A, axis=1) @ h)
    if least > tol and problem.n * problem.d * min(problem.n, problem.d) > LARGE:
        out[on] = -least
        return out
    out[on] = correction(A[on], c[on], h[on])
    return out


def _activities(problem: Problem, directions: Array, kink_tol: float) -> Array:
    """phi(<v_j, x_k>) of unit rows, 0 on the hyperplanes they lie on."""
    p = directions @ problem.X.T
    p[np.abs(p) <= kink_tol * problem.norms] = 0.0
    return np.asarray(np.maximum(p, problem.leak * p))


def _relative(
    problem: Problem, net: Network, c: Array, h: Array, turning: Array, kink_tol: float
) -> Array:
    """By which share of its size some pull is off for each neuron (m,) to rest.

    w_j asks for a_j D = 0, a_j for G_c(w_j) = 0; each counts by the part of the neuron it moves.
    """
    out = np.zeros(net.m)
    block = max(1, BLOCK // problem.n)
    for start in range(0, net.m, block):
        v = _activities(problem, net.directions[start : start + block], kink_tol) * h
        size = np.abs(v).max(axis=1)
        unit = np.divide(v, size[:, None], out=np.zeros_like(v), where=size[:, None] > 0.0)
        total = np.einsum("jk,jk->j", unit, unit)
        off = np.abs(unit @ shares(c, h))
        out[start : start + block] = np.divide(off, total, out=off, where=total > 0.0)
    with np.errstate(invalid="ignore"):
        both = 0.5 * np.logaddexp(2.0 * net.log_norms, 2.0 * net.log_outer)
        inner, outer = np.exp(net.log_norms - both), np.exp(net.log_outer - both)
    return np.nan_to_num(np.hypot(outer * turning, inner * out))  # zero neurons rest


def _states(
    problem: Problem, net: Network, f: Array, zero_tol: float, kink_tol: float
) -> NDArray[np.intp]:
    """Which of its weights each neuron has."""
    size = sizes(problem, f)
    lengths = problem.norms
    bound = np.divide(lengths, size, out=np.full(problem.n, np.inf), where=size > 0.0)
    bound[lengths == 0.0] = 0.0
    effect = np.zeros(net.m)  # of |a||w| = 1: root mean square of outputs over sizes, where active
    block = max(1, BLOCK // problem.n)
    for start in range(0, net.m, block):
        out = _activities(problem, net.directions[start : start + block], kink_tol)
        active = out != 0.0
        with np.errstate(invalid="ignore"):
            share = np.where(active, out / np.where(lengths > 0.0, lengths, 1.0) * bound, 0.0)
        count = np.maximum(active.sum(axis=1), 1)
        effect[start : start + block] = np.sqrt(np.sum(share**2, axis=1) / count)
    silent = effect == 0.0  # at w = 0, or inactive: what it could do instead
    effect[silent] = np.sqrt(np.mean(bound**2))
    with np.errstate(divide="ignore"):
        line = np.log(zero_tol) - np.log(effect)
    log_w, log_a = net.log_norms, net.log_outer
    states = np.full(net.m, ALIVE)
    idle = log_w + log_a <= line
    states[idle] = ZERO
    states[idle & (log_w > 0.5 * line)] = NO_OUTER
    states[idle & (log_a > 0.5 * line)] = NO_INNER
    return states
