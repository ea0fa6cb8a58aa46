"""The exact state of a network at a time while its pull is frozen."""

from __future__ import annotations

from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluflow.arrays import Array
from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.landscape.canonical import as_pull
from reluflow.landscape.products import sample_products
from reluflow.network import Network
from reluflow.problem import Problem

_PLAIN = 230.0  # e^230 = 1e100: beyond it, weights are kept in log_scale


def frozen_pull(problem: Problem, net: Network, pull: ArrayLike | None) -> Array:
    """The pull c (n,) to freeze: given, or of the silent network; checks that ``net`` fits."""
    net.check_fits(problem.d)
    return np.array(as_pull(problem, pull), order="C")


def branch_rule(on_branch: str) -> bool:
    """Whether to stay where a solution may stay or leave."""
    if on_branch not in ("stay", "leave"):
        raise ReluflowError(f"on_branch must be 'stay' or 'leave', got {on_branch!r}")
    return on_branch == "stay"


def most_events(n: int) -> int:
    """How many events of one neuron are followed before its path is called unresolved."""
    return 1000 + 40 * n


@overload
def early(
    problem: Problem, net: Network, t: float, pull: ArrayLike | None = ..., on_branch: str = ...
) -> Network: ...


@overload
def early(
    problem: Problem,
    net: Network,
    t: list[float] | Array,
    pull: ArrayLike | None = ...,
    on_branch: str = ...,
) -> list[Network]: ...


@check_arguments
def early(
    problem: Problem,
    net: Network,
    t: ArrayLike,
    pull: ArrayLike | None = None,
    on_branch: str = "stay",
) -> Network | list[Network]:
    r"""The network at time t of gradient flow with the pull frozen, without an integrator.

    Each neuron obeys :math:`w' = a D_u`, :math:`a' = \langle w, D_u \rangle` with
    :math:`D_u = \sum_k \phi'_{u_k} c_k x_k` in its cone u. With :math:`e = D_u / |D_u|` and
    :math:`p = \langle w, e \rangle`,

    .. math::
        p(t) = p_0 \cosh |D_u| t + a_0 \sinh |D_u| t, \qquad
        a(t) = a_0 \cosh |D_u| t + p_0 \sinh |D_u| t,

    and the rest of w is constant; pieces are joined where the neuron meets a hyperplane
    (see :func:`reluflow.align` for the rules there). This is the flow of a small network up to
    the time its outputs are felt.

    Parameters
    ----------
    problem : Problem
        Samples, labels, loss and activation.
    net : Network
        Start; its size does not matter, the flow being linear in each neuron.
    t : float or array
        Time or times, not negative, in any order.
    pull : array (n,), optional
        The pull c; by default that of a silent network, ``problem.pull``.
    on_branch : {"stay", "leave"}
        What to do on a repelling hyperplane, where both are solutions.

    Returns
    -------
    Network, or a list of them for an array of times
        With a ``log_scale`` if ``net`` has one or if plain weights would leave [1e-100, 1e100].
        Neurons that never move are returned bit by bit.

    Notes
    -----
    A neuron with :math:`|\langle w, x_k \rangle| \le 1.4 \cdot 10^{-14} |w| |x_k|` at the start
    counts as lying on hyperplane k. Formulas: [BF24]_ section 3, [MMV24]_ eq. (3).

    Examples
    --------
    >>> import numpy as np
    >>> problem = Problem(X=np.array([[1.0]]), y=np.array([1.0]))
    >>> later = early(problem, Network(W=[[1e-9]], a=[1e-9]), t=2.0)
    >>> bool(np.isclose(later.a[0], 1e-9 * np.exp(2.0)))
    True
    """
    from reluflow.kernels.early import early_all

    c = frozen_pull(problem, net, pull)
    hold = branch_rule(on_branch)
    asked = np.array(t, dtype=float)
    if asked.ndim > 1 or not (np.isfinite(asked) & (asked >= 0)).all():
        raise ReluflowError(f"t must be one time or a list of times, finite and >= 0, got {t!r}")
    times = np.atleast_1d(asked)
    order = np.argsort(times, kind="stable")
    if times.size == 0:
        return []
    W, a, log, moves = early_all(
        net.W,
        net.a,
        problem.X,
        c,
        problem.leak,
        hold,
        times[order],
        most_events(problem.n),
        sample_products(problem),
    )
    lost = np.flatnonzero(np.isnan(log).any(axis=0))
    if lost.size:
        raise ReluflowError(
            f"neuron {lost[0]} met more hyperplanes than can be followed ({most_events(problem.n)} "
            "events) or a corner without a consistent side: expected a finite path, move it aside"
        )
    states: list[Network] = [net] * times.size
    for i, place in enumerate(order):
        if times[place] > 0:
            states[place] = _network(net, W[i], a[i], log[i], moves)
    return states[0] if asked.ndim == 0 else states


def _network(net: Network, W: Array, a: Array, log: Array, moves: NDArray[np.bool_]) -> Network:
    """A network like ``net`` with neurons exp(log) (W, a); those that do not move are copied."""
    if net.log_scale is None and not (np.abs(log[moves]) > _PLAIN).any():
        factor, scale = np.exp(np.where(moves, log, 0.0)), None
        W, a = factor[:, None] * W, factor * a
    else:
        scale = np.where(moves, log + net.log_factors, net.log_factors)
    return Network(
        np.where(moves[:, None], W, net.W),
        np.where(moves, a, net.a),
        log_scale=scale,
        leak=net.leak,
        bias=net.bias,
    )
