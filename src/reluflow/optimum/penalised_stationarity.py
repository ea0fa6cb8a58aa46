"""Is a network stationary under weight decay, is it the best of any width, what would one gain."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize_scalar

from reluflow.arrays import Array, decay_rate
from reluflow.errors import ReluflowError
from reluflow.landscape.alignment import D
from reluflow.landscape.bound import max_G
from reluflow.network import Network
from reluflow.optimum.penalised import check_loss, dual_value
from reluflow.problem import Problem

LANDSCAPE_TOL = 1e-13


@dataclass(frozen=True, eq=False)
class PenalisedStationarity:
    """How far a network is from critical for loss + (weight_decay/2) |theta|^2.

    Attributes
    ----------
    kind : str
        "global minimum" (of the penalised loss over networks of every width), "stationary, not
        global" (one more neuron lowers it), "stationary, undecided" (none was found that does, and
        the bound does not exclude one) or "not stationary".
    weight_decay, value, loss, norm2 : float
        value = loss + (weight_decay/2) norm2.
    residual : float
        Distance of 0 to the subdifferential of the penalised loss in (W, a).
    relative : float
        The same over weight_decay |theta|.
    per_neuron : array (m,)
        Each neuron's part; residual is their root of squares.
    multipliers : array (n,)
        c / weight_decay: where the decay is small and the network fits, the multipliers of the
        least norm ([LLWA21]_, KKT conditions), which satisfy |G| <= 1.
    escape, escape_bound : float
        max |G_c| on the sphere at the network's pull, found and bounded from above: a small new
        neuron grows at escape - weight_decay.
    vector, sign : array (d,), int
        Direction and output sign of that neuron.
    size, gain : float
        With |a||w| = size it lowers the penalised loss by gain; exact along this line.
    lower_bound : float
        Bound on the penalised loss of every network, from this network's pull.
    """

    kind: str
    weight_decay: float
    value: float
    loss: float
    norm2: float
    residual: float
    relative: float
    per_neuron: Array = field(repr=False)
    multipliers: Array = field(repr=False)
    escape: float
    escape_bound: float
    vector: Array = field(repr=False)
    sign: int
    size: float
    gain: float
    lower_bound: float

    def __str__(self) -> str:
        more = ""
        if self.gain > 0.0:
            more = f"; one more neuron would lower the penalised loss by {self.gain:.6g}"
        return (
            f"{self.kind}: penalised loss {self.value:.6g} (loss {self.loss:.6g}, squared norm "
            f"{self.norm2:.6g}), distance of 0 to the subdifferential {self.residual:.3g}{more}"
        )


def penalised_stationarity(
    problem: Problem,
    net: Network,
    weight_decay: float,
    *,
    tol: float = 1e-6,
    kink_tol: float = 1e-7,
    budget: int | None = None,
) -> PenalisedStationarity:
    r"""Conditions of first order, and of global optimality, under weight decay.

    With c the pull at the network, a neuron rests when :math:`a_j D_j = \lambda w_j` and
    :math:`\langle w_j, D_j \rangle = \lambda a_j`, that is, balanced and with
    :math:`s_j G_c = \lambda` in its direction. The penalised problem is convex over measures, so a
    stationary network is best among all widths if and only if :math:`\max |G_c| \le \lambda`.

    Parameters
    ----------
    problem, net
        What is fitted, and by what.
    weight_decay : float
        lambda > 0.
    tol : float
        Relative residual up to which a network counts as stationary, and relative excess of
        max |G_c| over lambda up to which as global.
    kink_tol : float
        Cosine below which a neuron lies on a hyperplane, where its slope is free.
    budget : int, optional
        Nodes of the search for max |G_c|, as for `max_G`.
    """
    decay = decay_rate(weight_decay)
    if decay == 0.0:
        raise ReluflowError("penalised_stationarity needs weight_decay > 0: use stationarity")
    problem.check_kinks("penalised_stationarity")
    check_loss(problem)
    net.check_fits(problem.d)
    W, a = net.weights()
    f = problem.outputs(net)
    c = problem.pull_at(f)
    force = np.zeros_like(W)
    sizes = np.linalg.norm(W, axis=1)
    on = sizes > 0.0
    if on.any():
        force[on] = D(problem, W[on] / sizes[on, None], c, tol=kink_tol)
    left = np.column_stack([a[:, None] * force - decay * W, np.sum(W * force, axis=1) - decay * a])
    per_neuron = np.linalg.norm(left, axis=1)
    residual = float(np.linalg.norm(per_neuron))
    norm2 = float(np.sum(W**2) + np.sum(a**2))
    relative = residual / (decay * np.sqrt(norm2)) if norm2 > 0.0 else 0.0
    best = max_G(problem, c, budget=budget, gap=LANDSCAPE_TOL)
    size, gain = _line_search(problem, f, best.vector, best.sign, decay)
    kind = _kind(relative, tol, best.value / decay - 1.0, best.upper_bound / decay - 1.0)
    loss = float(problem.value(f))
    value = loss + 0.5 * decay * norm2
    dual = c * min(1.0, decay / best.upper_bound) if best.upper_bound > 0.0 else c
    decided = kind in ("stationary, not global", "not stationary")
    return PenalisedStationarity(
        kind=kind,
        weight_decay=decay,
        value=value,
        loss=loss,
        norm2=norm2,
        residual=residual,
        relative=float(relative),
        per_neuron=per_neuron,
        multipliers=c / decay,
        escape=best.value,
        escape_bound=best.upper_bound,
        vector=best.vector,
        sign=best.sign,
        size=size if decided else 0.0,
        gain=gain if decided else 0.0,
        lower_bound=min(dual_value(problem, dual), value),
    )


def _kind(relative: float, tol: float, excess: float, excess_bound: float) -> str:
    """The name of a point with this relative residual and excess of max |G_c| over the decay."""
    if relative > tol:
        return "not stationary"
    if excess_bound <= tol:
        return "global minimum"
    return "stationary, not global" if excess > tol else "stationary, undecided"


def _line_search(
    problem: Problem, f: Array, v: Array, sign: int, decay: float
) -> tuple[float, float]:
    """Size rho of a further neuron along v and the decrease of L(f + rho g) + decay rho."""
    q = problem.X @ v
    g = sign * np.maximum(q, problem.leak * q)
    slope = float(problem.pull_at(f) @ g) - decay
    if slope <= 0.0:
        return 0.0, 0.0
    loss = problem.loss
    if not loss.margin:
        curvature = problem.weight * loss.curvature * float(g @ g)
        return slope / curvature, 0.5 * slope * slope / curvature
    top = 1.0
    while float(problem.pull_at(f + top * g) @ g) > decay:  # the pull falls to 0 along a descent
        top *= 2.0
    start = float(problem.value(f))

    def change(rho: float) -> float:
        return float(problem.value(f + rho * g)) - start + decay * rho

    found = minimize_scalar(change, bounds=(0.0, top), method="bounded", options={"xatol": 1e-10})
    return float(found.x), -float(found.fun)
