"""Is a network stationary, a local or a global minimum, and what would one more neuron gain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from reluflow.errors import ReluflowError
from reluflow.landscape.alignment import G
from reluflow.network import Network
from reluflow.optimum.second_order import ALIVE, NO_INNER, NO_OUTER, ZERO, local_kind
from reluflow.optimum.stationarity_global import best_neuron, largest_escape, reachable_part
from reluflow.optimum.stationarity_result import Stationarity
from reluflow.optimum.stationarity_sets import BLOCK, Kinks
from reluflow.problem import Problem

Array = NDArray[np.float64]


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
    :mod:`reluflow.optimum.second_order`.

    Parameters
    ----------
    problem : Problem
    net : Network
        With ``log_scale`` of any size, as long as its outputs are finite.
    tol : float
        Relative residual (see `Stationarity.relative`) up to which a network counts as stationary;
        rates up to 10 tol count as zero in the local test, residuals inside the reachable outputs
        up to tol as zero in the global one.
    kink_tol : float
        A neuron lies on a hyperplane when |<w, x>| <= kink_tol |w| |x|. Training that slides along
        one keeps to it as well as its own tolerance or step size does: raise this for such ends.
    zero_tol : float, optional
        A neuron with |a||w| max|x| below this times the largest output or label has no effect; it
        counts as zero, or as without w (or a) alone when the other exceeds the square root of that,
        unless it rests where it is (inactive on all samples, say). Default tol squared.
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
    kinks = Kinks.of(problem, c)
    lengths = np.linalg.norm(problem.X, axis=1)
    if problem.loss.margin:
        force = float(np.abs(c) @ lengths)
    else:
        heights = np.abs(problem.y) + np.abs(f)
        force = problem.weight * problem.loss.curvature * float(heights @ lengths) / unit

    W, a = net.weights()
    patterns, index = kinks.distinct_patterns(net.directions, kink_tol)
    steepest = [kinks.steepest(u) for u in patterns]
    D = np.array([pair[0] for pair in steepest])
    rates = _rates(problem, W, c)
    parts = np.hypot(np.abs(a) * np.linalg.norm(D, axis=1)[index], rates)
    residual = float(np.linalg.norm(parts))
    whole = float(np.hypot(np.linalg.norm(W), np.linalg.norm(a)))
    relative = residual / (force * whole) if force * whole > 0.0 else 0.0

    reachable = reachable_part(problem, kinks, c)
    excess = None
    if problem.loss.margin:
        at_minimum = bool(np.linalg.norm(reachable) <= tol * np.linalg.norm(c))
    else:
        curvature = problem.weight * problem.loss.curvature
        excess = float(0.5 * (unit * np.linalg.norm(reachable)) ** 2 / curvature)
        at_minimum = bool(
            unit * np.linalg.norm(reachable) <= tol * curvature * np.linalg.norm(heights)
        )
    escape = largest_escape(problem, c, reachable, budget, at_minimum)

    states = _states(problem, net, f, tol**2 if zero_tol is None else zero_tol)
    resting = np.linalg.norm(D, axis=1)[index] <= 10.0 * tol * force
    states[resting & (net.log_norms > -np.inf) & (net.a != 0.0)] = ALIVE
    kind, local, descent = "not stationary", "none", None
    if at_minimum:
        kind, local = "global minimum", "minimum"
    elif relative <= tol:
        kind = "stationary, not global"
        outer = np.where(net.a < 0.0, -1, 1)
        local, descent = local_kind(
            kinks, patterns, index, states, outer, escape, 10.0 * tol * force, budget
        )
    vector, sign, size, gain = escape.vector, escape.sign, 0.0, 0.0
    if not at_minimum:
        vector, sign, size, gain = best_neuron(problem, f, c, np.stack([vector, -vector]))
    return Stationarity(
        kind=kind,
        local=local,
        loss=float(problem.value(f)),
        residual=unit * residual,
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
        _slopes=np.array([kinks.slopes(pair[1]) for pair in steepest]),
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


def _states(problem: Problem, net: Network, f: Array, zero_tol: float) -> NDArray[np.intp]:
    """Which of its weights each neuron has."""
    height = max(float(np.abs(f).max()), float(np.abs(problem.y).max()))
    radius = float(np.linalg.norm(problem.X, axis=1).max())
    log_w, log_a = net.log_norms, net.log_outer
    states = np.full(net.m, ALIVE)
    if height == 0.0 or radius == 0.0:
        line = -np.inf
    else:
        line = float(np.log(zero_tol * height / radius))
    idle = log_w + log_a <= line
    states[idle] = ZERO
    states[idle & (log_w > 0.5 * line)] = NO_OUTER
    states[idle & (log_a > 0.5 * line)] = NO_INNER
    return states
