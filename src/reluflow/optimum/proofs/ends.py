"""Certificates of the end of training: exact points near it, its loss, what would lower it."""

from __future__ import annotations

from itertools import islice
from typing import Protocol

import numpy as np

from reluflow.arrays import Array
from reluflow.network import Network
from reluflow.optimum.certificate_file import Certificate, Report
from reluflow.optimum.kkt import kkt
from reluflow.optimum.proofs.attempt import (
    MOST_PRODUCTS,
    WIDENINGS,
    below,
    exact_margin,
    is_small,
    make_certificate,
    outputs_of,
    plain_weights,
    prove,
    sides_of,
    tidy,
)
from reluflow.optimum.proofs.margin import distance_of, kkt_arrays
from reluflow.optimum.proofs.stationary import stationary_proofs
from reluflow.optimum.stationarity import Stationarity
from reluflow.problem import Problem

LOOSE = 1e-2  # larger KKT residuals certify nothing


def kkt_certificate(problem: Problem, net: Network) -> Certificate | None:
    """Of the KKT conditions; None when residual or complementarity exceed 1e-2."""
    found = kkt(problem, net)
    if not (found.residual <= LOOSE and found.complementarity <= LOOSE):
        return None
    # the direction at q_min = 1, where the multipliers belong
    log_size = float(np.max(np.maximum(net.log_norms, net.log_outer)))
    unit = net.scaled(-log_size)
    W, a, kept = plain_weights(unit)
    size = np.sqrt((problem.y * outputs_of(problem, W, a)).min())
    W, a = tidy(W / size), tidy(a / size)
    margin = float(found.margin)
    if is_small(problem, a):
        margin = below(exact_margin(problem, W, a))
        arrays = kkt_arrays(problem, found, W, a, kept)
        if arrays is not None:
            distance = distance_of(arrays, problem, W, a)
            claim = {"margin": margin, "distance": distance * (1 + 1e-9) + _width(arrays)}
            made = make_certificate(
                "kkt-margin", problem, claim, {"W": W, "a": a, **arrays}, "PROVED"
            )
            if (report := made.check()).ok:
                return _tighten(problem, made, report)
    claim = {
        "margin": margin,
        "residual": found.residual,
        "complementarity": max(found.complementarity, 0.0),
    }
    return make_certificate(
        "kkt-margin", problem, claim, {"W": W, "a": a, "dual": found.multipliers}, "CHECKED"
    )


def _tighten(problem: Problem, made: Certificate, report: Report) -> Certificate:
    """The same with the distance that the checker measured, if it is proved too."""
    (square,) = [check.measured for check in report.checks if check.name == "distance"]
    claim = {**made.claim, "distance": float(np.sqrt(square)) * (1.0 + 1e-12)}
    arrays = {name: array for name, array in made.arrays.items() if name not in ("X", "y")}
    return prove(made.kind, problem, claim, arrays) or made


def _width(arrays: dict[str, Array]) -> float:
    """An allowance for the size of the box, generous next to it."""
    sizes = [float(np.abs(arrays[name]).sum()) for name in ("share", "center") if name in arrays]
    return 1e-15 + 10.0 * float(np.linalg.norm(arrays["radius"])) * (1.0 + sum(sizes))


def point_certificate(problem: Problem, found: Stationarity, kind: str) -> Certificate | None:
    """ "stationary", "spurious-minimum", "not-global" or "global-minimum"; None if it is not."""
    W, a, kept = plain_weights(found.network)
    if kind == "global-minimum":
        return _global(problem, found, W, a)
    if kind == "not-global":
        return _gain(problem, found, W, a)
    if found.kind == "not stationary":
        return None
    spurious = kind == "spurious-minimum"
    if spurious and not (found.local == "minimum" and found.gain > 0.0):
        return None
    loss = float(problem.value(outputs_of(problem, W, a)))
    if is_small(problem, a):
        tries = max(2, MOST_PRODUCTS // (problem.X.size * len(a)))
        for proof in islice(stationary_proofs(problem, found, W, a, kept), tries):
            made = _near(problem, found, W, a, proof, spurious)
            if made is not None:
                return made
    if spurious:
        return None
    return make_certificate(
        kind, problem, {"loss": loss, "residual": found.residual}, {"W": W, "a": a}, "CHECKED"
    )


def _near(
    problem: Problem,
    found: Stationarity,
    W: Array,
    a: Array,
    proof: dict[str, Array],
    spurious: bool,
) -> Certificate | None:
    """The certificate of the point that the arrays enclose, if the checker proves it."""
    place = proof["share"][:, None] * proof["place"][proof["leader"].astype(int)]
    near = outputs_of(problem, place, a)
    ends = [float(problem.value(f)) for f in (outputs_of(problem, W, a), near)]
    height = _height(problem, near)
    distance = float(np.linalg.norm(place - W)) * (1 + 1e-9) + _width(proof)
    for widening in WIDENINGS:
        claim = {
            "loss_lower": max(min(ends) * (1.0 - widening) - widening**2 * height, 0.0),
            "loss_upper": max(ends) * (1.0 + widening) + widening**2 * height,
            "distance": distance,
        }
        arrays = {"W": W, "a": a, **proof}
        if spurious:
            vector, more = more_neuron(problem, found, near, widening)
            claim, arrays = {**claim, **more}, {**arrays, "vector": vector}
        kind = "spurious-minimum" if spurious else "stationary"
        made = make_certificate(kind, problem, claim, arrays, "PROVED")
        report = made.check()
        if report.ok:
            return _tighten(problem, made, report)
        if not {*report.failed} & {"loss from below", "loss from above", "gain"}:
            return None  # more room for the loss would not help
    return None


def _height(problem: Problem, f: Array) -> float:
    """The square loss if outputs and labels of this size had opposite signs."""
    sizes = np.abs(f) + np.abs(problem.y)
    return float(0.5 * problem.weight * problem.loss.curvature * np.sum(sizes**2))


def gradient_certificate(problem: Problem, net: Network) -> Certificate | None:
    """Of loss and gradient at the weights; None on a kink, or where floats do not hold them."""
    W, a, _ = plain_weights(net)
    sides, f = sides_of(W, problem.X), outputs_of(problem, W, a)
    if (sides == 0).any():
        return None
    with np.errstate(over="ignore"):
        pull, loss = problem.pull_at(f), float(problem.value(f))
    if not (np.isfinite(pull).all() and np.isfinite(loss)):
        return None
    D = (np.where(sides > 0, 1.0, problem.leak) * pull) @ problem.X
    rates = np.sum(W * D, axis=1)
    norm = float(np.sqrt(np.sum(rates**2) + np.sum((a[:, None] * D) ** 2)))
    size = float(np.sqrt(np.sum(W**2) + np.sum(a**2)))
    force = float((np.abs(f) + np.abs(problem.y)) @ problem.norms)
    arrays = {"W": W, "a": a}
    for widening in WIDENINGS if is_small(problem, a) else ():
        claim = {
            "loss_lower": loss * (1.0 - widening),
            "loss_upper": loss * (1.0 + widening),
            "norm": norm + widening * problem.loss.factor * force * size,
        }
        made = make_certificate("gradient", problem, claim, arrays, "PROVED")
        if (report := made.check()).ok:
            least = float(np.sqrt(report.checks[-1].measured)) * (1.0 + 1e-12)
            return prove("gradient", problem, {**claim, "norm": least}, arrays) or made
    return make_certificate("gradient", problem, {"loss": loss, "norm": norm}, arrays, "CHECKED")


class Addition(Protocol):
    """A neuron worth adding."""

    @property
    def vector(self) -> Array: ...
    @property
    def sign(self) -> int: ...
    @property
    def size(self) -> float: ...


def more_neuron(
    problem: Problem, found: Addition, f: Array, widening: float, cost: float = 0.0
) -> tuple[Array, dict[str, float]]:
    """The neuron worth adding, and what it gains at outputs f, rounded down.

    ``cost`` is what a neuron of size 1 costs under weight decay.
    """
    vector = tidy(found.vector / np.linalg.norm(found.vector))
    p = problem.X @ vector
    extra = found.sign * found.size * np.maximum(p, problem.leak * p)
    gain = float(problem.value(f)) - float(problem.value(f + extra)) - cost * found.size
    claim = {"sign": float(found.sign), "size": found.size, "gain": gain * (1.0 - widening)}
    return vector, claim


def _gain(problem: Problem, found: Stationarity, W: Array, a: Array) -> Certificate | None:
    if not found.gain > 0.0:
        return None
    f = outputs_of(problem, W, a)
    loss = float(problem.value(f))
    for widening in WIDENINGS if is_small(problem, a) else ():
        vector, claim = more_neuron(problem, found, f, widening)
        bounds = {"loss_lower": loss * (1.0 - widening), "loss_upper": loss * (1.0 + widening)}
        arrays = {"W": W, "a": a, "vector": vector}
        made = prove("not-global", problem, {**bounds, **claim}, arrays)
        if made is not None:
            return made
    vector, claim = more_neuron(problem, found, f, 0.0)
    arrays, claim = {"W": W, "a": a, "vector": vector}, {"loss": loss, **claim}
    return (
        make_certificate("not-global", problem, claim, arrays, "CHECKED")
        if claim["gain"] > 0.0
        else None
    )


def _global(problem: Problem, found: Stationarity, W: Array, a: Array) -> Certificate | None:
    if found.kind != "global minimum" or found.excess is None:
        return None
    loss = float(problem.value(outputs_of(problem, W, a)))
    height = _height(problem, outputs_of(problem, W, a))
    for widening in WIDENINGS if is_small(problem, a) else ():
        lower = max((loss - found.excess) * (1.0 - widening) - widening**2 * height, 0.0)
        claim = {"loss": loss * (1.0 + widening) + widening**2 * height, "lower_bound": lower}
        made = prove("global-minimum", problem, claim, {"W": W, "a": a})
        if made is not None:
            return made
    claim = {"loss": loss, "excess": found.excess}
    return make_certificate("global-minimum", problem, claim, {"W": W, "a": a}, "CHECKED")
