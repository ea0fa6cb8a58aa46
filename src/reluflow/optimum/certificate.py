"""Certificates of a network: what can be shown about it, in a form that others can check.

Each is made to leave the proof a little room: bounds are widened outward, points are polished and
put in a small box. The checker has the last word: what it proves is PROVED. Where no proof is found
within the budget the certificate says CHECKED and holds the numbers alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.errors import ReluflowError
from reluflow.network import Network
from reluflow.optimum.certificate_file import (
    KINDS,
    Certificate,
    Report,
    read_certificate,
    write_certificate,
)
from reluflow.optimum.kkt import kkt
from reluflow.optimum.max_margin import NetworkMargin, max_margin
from reluflow.optimum.min_norm import MinNorm, min_norm
from reluflow.optimum.proofs.jumps import jump_arrays
from reluflow.optimum.proofs.margin import distance_of, kkt_arrays
from reluflow.optimum.proofs.rounding import above, below, exact_outputs, sides_of, tidy
from reluflow.optimum.proofs.stationary import stationary_proofs
from reluflow.optimum.proofs.trees import sign_tree
from reluflow.optimum.stationarity import stationarity
from reluflow.optimum.stationarity_result import Stationarity
from reluflow.problem import Problem

__all__ = ["Certificate", "certificates", "read_certificate", "write_certificate"]

Array = NDArray[np.float64]

GAP = 1e-6  # bounds further apart than this (relative) certify nothing
LOOSE = 1e-2  # larger KKT residuals certify nothing
ROOM = (1e-13, 1e-11, 1e-9, 1e-7)  # by how much bounds are widened, tried in turn
MOST, MOST_PLANE = 200, 600  # entries of X up to which optima are searched unasked; in the plane
MOST_PRODUCTS = 300_000  # products of weights and samples done exactly; beyond them CHECKED


def certificates(
    problem: Problem, net: Network | None = None, kinds: Iterable[str] | None = None
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
        data (200 entries of X, 600 in the plane) unless named.

    Returns
    -------
    list of Certificate
        Their ``grade`` says whether they are PROVED or CHECKED. Kinds that do not hold (a network
        that is not stationary, bounds that do not meet) are absent. The network of
        "max-margin-network" and "min-norm" is the best one known, which need not be ``net``;
        "margin-optimum" is about ``net`` itself, and only made when it is proved.
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
        elif kind == "gradient":
            made.append(gradient_certificate(problem, net))
        elif kind == "margin-optimum":
            made.append(optimum_certificate(problem, net))
        elif kind == "algorithm1":
            arrays, claim = jump_arrays(problem, net)
            made.append(_prove(kind, problem, claim, arrays))
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
    wanted = ["stationary", "spurious-minimum", "not-global", "global-minimum"]
    error = np.abs(problem.outputs(net) - problem.y).max()
    fits = bool(error <= 1e-6 * max(1.0, float(np.abs(problem.y).max())))
    return wanted + (["min-norm"] if fits and small else [])


def _make(
    kind: str, problem: Problem, claim: dict[str, Any], arrays: dict[str, Array], grade: str
) -> Certificate:
    about = {
        "name": problem.name,
        "loss": problem.loss.name,
        "factor": float(problem.loss.factor),
        "leak": problem.leak,
        "reduction": problem.reduction,
    }
    claims = {name: float(value) for name, value in claim.items()}
    return Certificate(kind, about, claims, {"X": problem.X, "y": problem.y, **arrays}, grade)


def _prove(
    kind: str, problem: Problem, claim: dict[str, Any], arrays: dict[str, Array]
) -> Certificate | None:
    """The certificate if the checker proves it."""
    made = _make(kind, problem, claim, arrays, "PROVED")
    return made if made.check().ok else None


def _small(problem: Problem, a: Array) -> bool:
    """Whether the outputs of a network are computed exactly."""
    return problem.X.size * len(a) <= MOST_PRODUCTS


def _plain(net: Network) -> tuple[Array, Array, NDArray[np.intp]]:
    """Weights as plain floats without the neurons that are zero, and the places of the rest."""
    W, a = (tidy(each) for each in net.weights())
    kept = np.flatnonzero((W != 0.0).any(axis=1) | (a != 0.0))
    kept = kept if len(kept) else np.arange(1)
    return W[kept], a[kept], kept


def _outputs(problem: Problem, W: Array, a: Array) -> Array:
    return problem.outputs(Network(W, a))


def _height(problem: Problem, f: Array) -> float:
    """The square loss if outputs and labels of this size had opposite signs."""
    sizes = np.abs(f) + np.abs(problem.y)
    return float(0.5 * problem.weight * problem.loss.curvature * np.sum(sizes**2))


def _exact_norm2(W: Array, a: Array) -> Fraction:
    return sum((Fraction(v) ** 2 for v in [*W.ravel().tolist(), *a.tolist()]), Fraction(0))


def _exact_margin(problem: Problem, W: Array, a: Array) -> Fraction:
    """min_k y_k f(x_k) / |theta|^2, as a rational number."""
    f = exact_outputs(problem.X, W, a, problem.leak)
    q = min(Fraction(t) * v for t, v in zip(problem.y.tolist(), f, strict=True))
    return q / _exact_norm2(W, a)


def _without_noise(problem: Problem, dual: Array) -> Array:
    """The multipliers, those that act by less than 1e-13 of the largest left out."""
    acts = np.abs(dual) * np.linalg.norm(problem.X, axis=1)
    return tidy(np.where(acts > 1e-13 * acts.max(initial=0.0), dual, 0.0))


def _linear(problem: Problem) -> Certificate | None:
    found = max_margin(problem, "linear")
    if found.status != "optimal" or found.gap > GAP * found.margin:
        return None
    w = tidy(found.w / np.linalg.norm(found.w))
    margin = float((problem.y * (problem.X @ w)).min())
    arrays = {"w": w, "dual": tidy(found.dual)}
    for room in ROOM:
        upper = max(found.upper_bound, margin) * (1.0 + room)
        claim = {"margin": margin * (1.0 - room), "upper_bound": upper}
        made = _prove("max-margin-linear", problem, claim, arrays)
        if made is not None:
            return made
    claim = {"margin": margin, "upper_bound": max(found.upper_bound, margin)}
    return _make("max-margin-linear", problem, claim, arrays, "CHECKED")


def margin_certificate(problem: Problem, found: NetworkMargin) -> Certificate | None:
    """Of a margin over all networks; None unless network and bound meet."""
    if found.network is None or found.gap > GAP * found.margin:
        return None
    W, a, _ = _plain(found.network)
    dual = _without_noise(problem, found.dual)
    margin = below(_exact_margin(problem, W, a))
    for room in ROOM if margin > 0.0 else ():
        upper = max(found.upper_bound, margin) * (1.0 + room)
        tree = sign_tree(problem, dual * problem.y, 2.0 * upper * float(dual.sum()))
        if tree is None:
            continue
        arrays = {"W": W, "a": a, "dual": dual, "tree": tree[0], "slopes": tree[1]}
        claim = {"margin": margin, "upper_bound": upper}
        made = _prove("max-margin-network", problem, claim, arrays)
        if made is not None:
            return made
    claim = {"margin": margin, "upper_bound": max(found.upper_bound, margin)}
    arrays = {"W": W, "a": a, "dual": dual}
    return _make("max-margin-network", problem, claim, arrays, "CHECKED")


def optimum_certificate(
    problem: Problem, net: Network, dual: Array | None = None
) -> Certificate | None:
    """That no network of any width has a larger margin than ``net``; None when that is not proved.

    dual : array (n,), optional
        Multipliers that show it; by default those of :func:`reluflow.max_margin`.
    """
    W, a, _ = _plain(net)
    margin = _exact_margin(problem, W, a)
    if margin <= 0:
        return None
    claim = {"margin_lower": below(margin), "margin_upper": above(margin)}
    for weights in _duals(problem, W, a) if dual is None else [np.asarray(dual, dtype=float)]:
        # at the optimum the bound is met with equality: the tree may not be an allowance short
        bound = 2.0 * float(margin) * float(weights.sum()) * (1.0 + 1e-13)
        tree = sign_tree(problem, weights * problem.y, bound)
        if tree is not None:
            arrays = {"W": W, "a": a, "dual": weights, "tree": tree[0], "slopes": tree[1]}
            made = _prove("margin-optimum", problem, claim, arrays)
            if made is not None:
                return made
    return None


def _duals(problem: Problem, W: Array, a: Array) -> list[Array]:
    """Multipliers to try: equal ones on the samples of least margin, and those of the solver."""
    f = exact_outputs(problem.X, W, a, problem.leak)
    q = [Fraction(t) * v for t, v in zip(problem.y.tolist(), f, strict=True)]
    equal = np.array([1.0 if v == min(q) else 0.0 for v in q])
    return [equal, _without_noise(problem, max_margin(problem).dual)]


def norm_certificate(problem: Problem, found: MinNorm) -> Certificate | None:
    """Of a least norm over all networks that fit; None unless network and bound meet."""
    if found.network is None or found.gap > GAP * found.norm2 or not found.dual.any():
        return None
    W, a, _ = _plain(found.network)
    dual = _without_noise(problem, found.dual)
    f = exact_outputs(problem.X, W, a, problem.leak)
    error = above(max(abs(v - Fraction(t)) for v, t in zip(f, problem.y.tolist(), strict=True)))
    norm2 = above(_exact_norm2(W, a))
    claim = {"norm2": norm2, "lower_bound": min(found.lower_bound, norm2), "error": error}
    value = 2.0 * (float(dual @ problem.y) - error * float(np.abs(dual).sum()))
    for room in ROOM:
        lower = (1.0 - room) * min(
            value / (2.0 * float(dual @ problem.y)) * found.lower_bound, norm2
        )
        if not lower > 0.0:
            break
        tree = sign_tree(problem, dual, value / lower)
        if tree is None:
            continue
        arrays = {"W": W, "a": a, "dual": dual, "tree": tree[0], "slopes": tree[1]}
        made = _prove("min-norm", problem, {**claim, "lower_bound": lower}, arrays)
        if made is not None:
            return made
    return _make("min-norm", problem, claim, {"W": W, "a": a, "dual": dual}, "CHECKED")


def kkt_certificate(problem: Problem, net: Network) -> Certificate | None:
    """Of the KKT conditions; None when residual or complementarity exceed 1e-2."""
    found = kkt(problem, net)
    if not (found.residual <= LOOSE and found.complementarity <= LOOSE):
        return None
    # the direction at q_min = 1, where the multipliers belong
    log_size = float(np.max(np.maximum(net.log_norms, net.log_outer)))
    unit = net.scaled(-log_size)
    W, a, kept = _plain(unit)
    size = np.sqrt((problem.y * _outputs(problem, W, a)).min())
    W, a = tidy(W / size), tidy(a / size)
    margin = float(found.margin)
    if _small(problem, a):
        margin = below(_exact_margin(problem, W, a))
        arrays = kkt_arrays(problem, found, W, a, kept)
        if arrays is not None:
            distance = distance_of(arrays, problem, W, a)
            claim = {"margin": margin, "distance": distance * (1 + 1e-9) + _width(arrays)}
            made = _make("kkt-margin", problem, claim, {"W": W, "a": a, **arrays}, "PROVED")
            if (report := made.check()).ok:
                return _tighten(problem, made, report)
    claim = {
        "margin": margin,
        "residual": found.residual,
        "complementarity": max(found.complementarity, 0.0),
    }
    return _make(
        "kkt-margin", problem, claim, {"W": W, "a": a, "dual": found.multipliers}, "CHECKED"
    )


def _tighten(problem: Problem, made: Certificate, report: Report) -> Certificate:
    """The same with the distance that the checker measured, if it is proved too."""
    (square,) = [check.measured for check in report.checks if check.name == "distance"]
    claim = {**made.claim, "distance": float(np.sqrt(square)) * (1.0 + 1e-12)}
    arrays = {name: array for name, array in made.arrays.items() if name not in ("X", "y")}
    return _prove(made.kind, problem, claim, arrays) or made


def _width(arrays: dict[str, Array]) -> float:
    """An allowance for the size of the box, generous next to it."""
    sizes = [float(np.abs(arrays[name]).sum()) for name in ("share", "center") if name in arrays]
    return 1e-15 + 10.0 * float(np.linalg.norm(arrays["radius"])) * (1.0 + sum(sizes))


def point_certificate(problem: Problem, found: Stationarity, kind: str) -> Certificate | None:
    """ "stationary", "spurious-minimum", "not-global" or "global-minimum"; None if it is not."""
    W, a, kept = _plain(found.network)
    if kind == "global-minimum":
        return _global(problem, found, W, a)
    if kind == "not-global":
        return _gain(problem, found, W, a)
    if found.kind == "not stationary":
        return None
    spurious = kind == "spurious-minimum"
    if spurious and not (found.local == "minimum" and found.gain > 0.0):
        return None
    loss = float(problem.value(_outputs(problem, W, a)))
    if _small(problem, a):
        tries = max(2, MOST_PRODUCTS // (problem.X.size * len(a)))
        for proof in islice(stationary_proofs(problem, found, W, a, kept), tries):
            made = _near(problem, found, W, a, proof, spurious)
            if made is not None:
                return made
    if spurious:
        return None
    return _make(
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
    near = _outputs(problem, place, a)
    ends = [float(problem.value(f)) for f in (_outputs(problem, W, a), near)]
    height = _height(problem, near)
    distance = float(np.linalg.norm(place - W)) * (1 + 1e-9) + _width(proof)
    for room in ROOM:
        claim = {
            "loss_lower": max(min(ends) * (1.0 - room) - room**2 * height, 0.0),
            "loss_upper": max(ends) * (1.0 + room) + room**2 * height,
            "distance": distance,
        }
        arrays = {"W": W, "a": a, **proof}
        if spurious:
            vector, more = _neuron(problem, found, near, room)
            claim, arrays = {**claim, **more}, {**arrays, "vector": vector}
        kind = "spurious-minimum" if spurious else "stationary"
        made = _make(kind, problem, claim, arrays, "PROVED")
        report = made.check()
        if report.ok:
            return _tighten(problem, made, report)
        if not {*report.failed} & {"loss from below", "loss from above", "gain"}:
            return None  # more room for the loss would not help
    return None


def gradient_certificate(problem: Problem, net: Network) -> Certificate | None:
    """Of loss and gradient at the weights themselves; None where a neuron lies on a kink."""
    W, a, _ = _plain(net)
    sides, f = sides_of(W, problem.X), _outputs(problem, W, a)
    if (sides == 0).any():
        return None
    D = (np.where(sides > 0, 1.0, problem.leak) * problem.pull_at(f)) @ problem.X
    rates = np.sum(W * D, axis=1)
    norm = float(np.sqrt(np.sum(rates**2) + np.sum((a[:, None] * D) ** 2)))
    size = float(np.sqrt(np.sum(W**2) + np.sum(a**2)))
    force = float((np.abs(f) + np.abs(problem.y)) @ np.linalg.norm(problem.X, axis=1))
    loss, arrays = float(problem.value(f)), {"W": W, "a": a}
    for room in ROOM if _small(problem, a) else ():
        claim = {
            "loss_lower": loss * (1.0 - room),
            "loss_upper": loss * (1.0 + room),
            "norm": norm + room * problem.loss.factor * force * size,
        }
        made = _make("gradient", problem, claim, arrays, "PROVED")
        if (report := made.check()).ok:
            least = float(np.sqrt(report.checks[-1].measured)) * (1.0 + 1e-12)
            return _prove("gradient", problem, {**claim, "norm": least}, arrays) or made
    return _make("gradient", problem, {"loss": loss, "norm": norm}, arrays, "CHECKED")


def _neuron(
    problem: Problem, found: Stationarity, f: Array, room: float
) -> tuple[Array, dict[str, float]]:
    """The neuron worth adding, and what it gains at outputs f, rounded down."""
    vector = tidy(found.vector / np.linalg.norm(found.vector))
    p = problem.X @ vector
    extra = found.sign * found.size * np.maximum(p, problem.leak * p)
    gain = float(problem.value(f)) - float(problem.value(f + extra))
    claim = {"sign": float(found.sign), "size": found.size, "gain": gain * (1.0 - room)}
    return vector, claim


def _gain(problem: Problem, found: Stationarity, W: Array, a: Array) -> Certificate | None:
    if not found.gain > 0.0:
        return None
    f = _outputs(problem, W, a)
    loss = float(problem.value(f))
    for room in ROOM if _small(problem, a) else ():
        vector, claim = _neuron(problem, found, f, room)
        bounds = {"loss_lower": loss * (1.0 - room), "loss_upper": loss * (1.0 + room)}
        arrays = {"W": W, "a": a, "vector": vector}
        made = _prove("not-global", problem, {**bounds, **claim}, arrays)
        if made is not None:
            return made
    vector, claim = _neuron(problem, found, f, 0.0)
    arrays, claim = {"W": W, "a": a, "vector": vector}, {"loss": loss, **claim}
    return _make("not-global", problem, claim, arrays, "CHECKED") if claim["gain"] > 0.0 else None


def _global(problem: Problem, found: Stationarity, W: Array, a: Array) -> Certificate | None:
    if found.kind != "global minimum" or found.excess is None:
        return None
    loss = float(problem.value(_outputs(problem, W, a)))
    height = _height(problem, _outputs(problem, W, a))
    for room in ROOM if _small(problem, a) else ():
        lower = max((loss - found.excess) * (1.0 - room) - room**2 * height, 0.0)
        claim = {"loss": loss * (1.0 + room) + room**2 * height, "lower_bound": lower}
        made = _prove("global-minimum", problem, claim, {"W": W, "a": a})
        if made is not None:
            return made
    claim = {"loss": loss, "excess": found.excess}
    return _make("global-minimum", problem, claim, {"W": W, "a": a}, "CHECKED")
