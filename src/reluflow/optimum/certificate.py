"""Certificates of a network: what can be shown about it, in a form that others can check."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.errors import ReluflowError
from reluflow.network import Network
from reluflow.optimum.certificate_file import (
    KINDS,
    Certificate,
    read_certificate,
    write_certificate,
)
from reluflow.optimum.kkt import kkt
from reluflow.optimum.max_margin import NetworkMargin, max_margin
from reluflow.optimum.min_norm import MinNorm, min_norm
from reluflow.optimum.stationarity import stationarity
from reluflow.optimum.stationarity_result import Stationarity
from reluflow.problem import Problem

__all__ = ["Certificate", "certificates", "read_certificate", "write_certificate"]

Array = NDArray[np.float64]

GAP = 1e-6  # bounds further apart than this (relative) certify nothing
MOST, MOST_PLANE = 200, 600  # entries of X up to which optima are searched unasked; in the plane


def certificates(
    problem: Problem, net: Network | None = None, kinds: Iterable[str] | None = None
) -> list[Certificate]:
    """Make the certificates that apply to a problem and a network.

    Parameters
    ----------
    problem : Problem
    net : Network, optional
        What is to be certified; without it only the optima of the problem are.
    kinds : names, optional
        Which of the kinds of :class:`Certificate` to try. Default for labels under a margin loss:
        "kkt-margin", "max-margin-linear", "max-margin-network"; for square losses: "stationary",
        "not-global", "global-minimum", and "min-norm" when the network interpolates (or there is
        none). The optima over all networks are searched only for small data (200 entries of X, 600
        in the plane) unless named.

    Returns
    -------
    list of Certificate
        Kinds that do not hold (a network that is not stationary, bounds that do not meet) are
        absent. The network of "max-margin-network" and "min-norm" is the best one known, which
        need not be ``net``; compare their claims.
    """
    if kinds is None:
        wanted = _usual(problem, net)
    else:
        wanted = list(kinds)
        for kind in wanted:
            if kind not in KINDS:
                raise ReluflowError(f"unknown kind {kind!r}: expected one of {', '.join(KINDS)}")
    made: list[Certificate | None] = []
    point: Stationarity | None = None
    for kind in wanted:
        if kind == "max-margin-linear":
            made.append(_linear(problem))
        elif kind == "max-margin-network":
            made.append(margin_certificate(problem, max_margin(problem)))
        elif kind == "min-norm":
            made.append(norm_certificate(problem, min_norm(problem)))
        elif net is None:
            raise ReluflowError(f"a {kind} certificate is about a network: pass net")
        elif kind == "kkt-margin":
            made.append(kkt_certificate(problem, net))
        else:
            point = stationarity(problem, net) if point is None else point
            made.append(point_certificate(problem, point, kind))
    return [certificate for certificate in made if certificate is not None]


def _usual(problem: Problem, net: Network | None) -> list[str]:
    small = problem.X.size <= (MOST_PLANE if problem.d <= 2 else MOST)
    if problem.loss.margin:
        optima = ["max-margin-linear"] + (["max-margin-network"] if small else [])
        return optima if net is None else ["kkt-margin", *optima]
    if net is None:
        return ["min-norm"] if small else []
    wanted = ["stationary", "not-global", "global-minimum"]
    error = np.abs(problem.outputs(net) - problem.y).max()
    fits = bool(error <= 1e-6 * max(1.0, float(np.abs(problem.y).max())))
    return wanted + (["min-norm"] if fits and small else [])


def _certificate(kind: str, problem: Problem, claim: dict[str, Any], **proof: Any) -> Certificate:
    about = {
        "name": problem.name,
        "loss": problem.loss.name,
        "factor": float(problem.loss.factor),
        "leak": problem.leak,
        "reduction": problem.reduction,
    }
    arrays = {"X": problem.X, "y": problem.y, **proof}
    return Certificate(kind, about, {k: float(v) for k, v in claim.items()}, arrays)


def _plain(net: Network) -> tuple[Array, Array, NDArray[np.intp]]:
    """Weights as plain floats without the neurons that are zero, and the places of the rest."""
    W, a = net.weights()
    kept = np.flatnonzero((W != 0.0).any(axis=1) | (a != 0.0))
    kept = kept if len(kept) else np.arange(1)
    return W[kept], a[kept], kept


def _outputs(problem: Problem, W: Array, a: Array) -> Array:
    return problem.outputs(Network(W, a))


def _linear(problem: Problem) -> Certificate | None:
    found = max_margin(problem, "linear")
    if found.status != "optimal" or found.gap > GAP * found.margin:
        return None
    w = found.w / np.linalg.norm(found.w)
    margin = (problem.y * (problem.X @ w)).min()
    claim = {"margin": margin, "upper_bound": max(found.upper_bound, margin)}
    return _certificate("max-margin-linear", problem, claim, w=w, dual=found.dual)


def margin_certificate(problem: Problem, found: NetworkMargin) -> Certificate | None:
    """Of a margin over all networks; None unless network and bound meet."""
    if found.network is None or found.gap > GAP * found.margin:
        return None
    W, a, _ = _plain(found.network)
    margin = (problem.y * _outputs(problem, W, a)).min() / (np.sum(W**2) + np.sum(a**2))
    claim = {"margin": margin, "upper_bound": max(found.upper_bound, float(margin))}
    return _certificate("max-margin-network", problem, claim, W=W, a=a, dual=found.dual)


def norm_certificate(problem: Problem, found: MinNorm) -> Certificate | None:
    """Of a least norm over all networks that fit; None unless network and bound meet."""
    if found.network is None or found.gap > GAP * found.norm2 or not found.dual.any():
        return None
    W, a, _ = _plain(found.network)
    error = np.abs(_outputs(problem, W, a) - problem.y).max()
    norm2 = float(np.sum(W**2) + np.sum(a**2))
    claim = {"norm2": norm2, "lower_bound": min(found.lower_bound, norm2), "error": error}
    return _certificate("min-norm", problem, claim, W=W, a=a, dual=found.dual)


def kkt_certificate(problem: Problem, net: Network) -> Certificate | None:
    """Of the KKT conditions; None when residual or complementarity exceed 1e-2."""
    found = kkt(problem, net)
    if not (found.residual <= 1e-2 and found.complementarity <= 1e-2):
        return None
    # the direction at q_min = 1, where the multipliers belong
    log_size = float(np.max(np.maximum(net.log_norms, net.log_outer)))
    unit = net.scaled(-log_size)
    W, a, kept = _plain(unit)
    size = np.sqrt((problem.y * _outputs(problem, W, a)).min())
    W, a = W / size, a / size
    place = np.full(net.m, -1)
    place[kept] = np.arange(len(kept))
    used = (place[found.kinks[:, 0]] >= 0) & np.isfinite(found.slopes)
    q = problem.y * _outputs(problem, W, a)
    claim = {
        "margin": q.min() / (np.sum(W**2) + np.sum(a**2)),
        "residual": found.residual,
        "complementarity": max(found.complementarity, 0.0),
    }
    return _certificate(
        "kkt-margin",
        problem,
        claim,
        W=W,
        a=a,
        dual=found.multipliers,
        kink_neuron=place[found.kinks[used, 0]],
        kink_sample=found.kinks[used, 1],
        kink_slope=np.clip(found.slopes[used], problem.leak, 1.0),
    )


def point_certificate(problem: Problem, found: Stationarity, kind: str) -> Certificate | None:
    """ "stationary", "not-global" or "global-minimum" from a stationarity; None if it is not."""
    W, a, kept = _plain(found.network)
    f = _outputs(problem, W, a)
    loss = float(problem.value(f))
    if kind == "not-global":
        if not found.gain > 0.0:
            return None
        vector = found.vector / np.linalg.norm(found.vector)
        p = problem.X @ vector
        extra = found.sign * found.size * np.maximum(p, problem.leak * p)
        gain = loss - float(problem.value(f + extra))
        claim = {"loss": loss, "sign": found.sign, "size": found.size, "gain": gain}
        return _certificate(kind, problem, claim, W=W, a=a, vector=vector) if gain > 0.0 else None
    if kind == "global-minimum":
        if found.kind != "global minimum" or found.excess is None:
            return None
        claim = {"loss": loss, "excess": found.excess}
        return _certificate(kind, problem, claim, W=W, a=a)
    if found.kind == "not stationary":
        return None
    slopes, on = found.slopes[kept], found.kinked[kept]
    neuron, sample = np.nonzero(on & (a != 0.0)[:, None])
    return _certificate(
        kind,
        problem,
        {"loss": loss, "residual": found.residual},
        W=W,
        a=a,
        kink_neuron=neuron,
        kink_sample=sample,
        kink_slope=slopes[neuron, sample],
    )
