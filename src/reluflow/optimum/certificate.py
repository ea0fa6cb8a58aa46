"""Certificates of a network: what can be shown about it, in a form that others can check.

So that a proof can succeed in spite of rounding, bounds are widened outward, points are polished
and put in a small box. What the checker proves is PROVED. Where no proof is found within the budget
the certificate says CHECKED and holds the numbers alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from reluflow.arrays import Array, decay_rate
from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.network import Network
from reluflow.optimum.certificate_file import (
    KINDS,
    Certificate,
    read_certificate,
    write_certificate,
)
from reluflow.optimum.max_margin import max_margin
from reluflow.optimum.min_norm import min_norm
from reluflow.optimum.penalised_stationarity import penalised_stationarity
from reluflow.optimum.proofs.attempt import above, below, prove, sides_of
from reluflow.optimum.proofs.ends import gradient_certificate, kkt_certificate, point_certificate
from reluflow.optimum.proofs.optima import (
    linear_certificate,
    margin_certificate,
    norm_certificate,
    optimum_certificate,
)
from reluflow.optimum.proofs.ridge import not_best_certificate, ridge_certificate
from reluflow.optimum.ridge import ridge
from reluflow.optimum.stationarity import Stationarity, stationarity
from reluflow.problem import Problem

__all__ = [
    "Certificate",
    "certificates",
    "kkt_certificate",
    "margin_certificate",
    "norm_certificate",
    "not_best_certificate",
    "optimum_certificate",
    "point_certificate",
    "read_certificate",
    "ridge_certificate",
    "write_certificate",
]

MOST, MOST_PLANE = 200, 600  # entries of X up to which optima are searched unasked; in the plane
DECAYED = ("ridge", "ridge-not-best")  # kinds about the penalised loss
TIME_WIDTH = 1e-13  # relative width of the bounds of times


@check_arguments
def certificates(
    problem: Problem,
    net: Network | None = None,
    kinds: Iterable[str] | None = None,
    weight_decay: float = 0.0,
) -> list[Certificate]:
    """Make the certificates that apply to a problem and a network.

    Parameters
    ----------
    problem : Problem
    net : Network, optional
        What is to be certified; without it only the optima of the problem are. For "algorithm1"
        the start.
    kinds : names, optional
        Which of the kinds of :class:`Certificate` to try. Default for labels under a margin loss:
        "kkt-margin", "max-margin-linear", "max-margin-network"; for square losses: "stationary",
        "spurious-minimum", "not-global", "global-minimum", and "min-norm" when the network
        interpolates (or there is none). The optima over all networks are searched only for small
        data (200 entries of X, 600 in the plane) unless named. With weight decay: "ridge",
        for small data, and "ridge-not-best" where there is a network.
    weight_decay : float
        lambda of the penalised loss L + (lambda/2) |theta|^2, which "ridge" and "ridge-not-best"
        are about. "ridge" is about ``net`` if there is one, else about the best network found.

    Returns
    -------
    list of Certificate
        Their ``grade`` says whether they are PROVED or CHECKED. Kinds that do not hold (a network
        that is not stationary, bounds that do not meet) are absent. The network of
        "max-margin-network" and "min-norm" is the best one known, which need not be ``net``;
        "margin-optimum" is about ``net`` itself, and only made when it is proved.
    """
    decay = decay_rate(weight_decay)
    if net is not None:
        net.check_fits(problem.d)
    if kinds is None:
        wanted = _usual(problem, net, decay)
    else:
        wanted = list(kinds)
        for kind in wanted:
            if kind not in KINDS:
                raise ReluflowError(f"unknown kind {kind!r}: expected one of {', '.join(KINDS)}")
    made: list[Certificate | None] = []
    point: Stationarity | None = None
    for kind in wanted:
        if kind == "max-margin-linear":
            made.append(linear_certificate(problem))
        elif kind == "max-margin-network":
            made.append(margin_certificate(problem, max_margin(problem)))
        elif kind == "min-norm":
            made.append(norm_certificate(problem, min_norm(problem)))
        elif kind in DECAYED and not decay:
            raise ReluflowError(
                f"a {kind} certificate is about weight decay: pass weight_decay > 0"
            )
        elif kind == "ridge":
            made.append(ridge_certificate(problem, ridge(problem, decay), net))
        elif net is None:
            raise ReluflowError(f"a {kind} certificate is about a network: pass net")
        elif kind == "ridge-not-best":
            better = penalised_stationarity(problem, net, decay)
            made.append(not_best_certificate(problem, net, better))
        elif kind == "kkt-margin":
            made.append(kkt_certificate(problem, net))
        elif kind == "gradient":
            made.append(gradient_certificate(problem, net))
        elif kind == "margin-optimum":
            made.append(optimum_certificate(problem, net))
        elif kind == "algorithm1":
            arrays, claim = jump_arrays(problem, net)
            made.append(prove(kind, problem, claim, arrays))
        else:
            point = stationarity(problem, net) if point is None else point
            made.append(point_certificate(problem, point, kind))
    return [certificate for certificate in made if certificate is not None]


def _usual(problem: Problem, net: Network | None, decay: float) -> list[str]:
    small = problem.X.size <= (MOST_PLANE if problem.d <= 2 else MOST)
    if decay:
        return (["ridge"] if small else []) + (["ridge-not-best"] if net is not None else [])
    if problem.loss.margin:
        optima = ["max-margin-linear"] + (["max-margin-network"] if small else [])
        return optima if net is None else ["kkt-margin", *optima]
    if net is None:
        return ["min-norm"] if small else []
    wanted = ["stationary", "spurious-minimum", "not-global", "global-minimum"]
    error = np.abs(problem.outputs(net) - problem.y).max()
    fits = bool(error <= 1e-6 * max(1.0, float(np.abs(problem.y).max())))
    return wanted + (["min-norm"] if fits and small else [])


def jump_arrays(problem: Problem, net: Network) -> tuple[dict[str, Array], dict[str, float]]:
    """Order, samples, times and plateaus of the jumps from a start, and the claims."""
    W, a = net.weights()
    on = sides_of(W, problem.X) > 0
    cones = on & (np.sign(a)[:, None] * np.sign(problem.y) > 0)
    kappa = problem.weight * problem.loss.curvature
    factor = Fraction(problem.loss.curvature)
    if problem.reduction == "mean":
        factor /= problem.n
    squares = [Fraction(v) ** 2 for v in problem.y.tolist()]
    left, beta, time, norm2 = problem.y != 0.0, np.full(len(a), -1.0), 0.0, 0.0
    order: list[int] = []
    fitted: list[Array] = []
    times: list[float] = []
    losses: list[Fraction] = []
    while True:
        losses.append(factor / 2 * sum((squares[k] for k in np.flatnonzero(left)), Fraction(0)))
        sizes = np.sqrt((cones & left) @ problem.y**2)
        if not sizes.any():
            break
        waits = np.full(len(a), math.inf)
        waits[sizes > 0.0] = -beta[sizes > 0.0] / (kappa * sizes[sizes > 0.0])
        j = int(waits.argmin())
        time, norm2 = time + float(waits[j]), norm2 + 2.0 * float(sizes[j])
        beta = beta + waits[j] * kappa * sizes
        order.append(j)
        times.append(time)
        fitted.append((cones[j] & left).astype(float))
        left = left & ~cones[j]
    arrays = {
        "W": W,
        "a": a,
        "order": np.array(order, dtype=float),
        "fitted": np.array(fitted).reshape(-1, problem.n),
        "time_lower": np.array(times) * (1.0 - TIME_WIDTH),
        "time_upper": np.array(times) * (1.0 + TIME_WIDTH),
        "loss_lower": np.array([below(loss) for loss in losses]),
        "loss_upper": np.array([above(loss) for loss in losses]),
    }
    return arrays, {
        "norm2_lower": norm2 * (1.0 - TIME_WIDTH),
        "norm2_upper": norm2 * (1.0 + TIME_WIDTH),
    }
