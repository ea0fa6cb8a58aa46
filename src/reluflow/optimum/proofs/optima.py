"""Certificates of optima over all widths: the largest margin, the least norm."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from reluflow.arrays import Array
from reluflow.network import Network
from reluflow.optimum.certificate_file import Certificate
from reluflow.optimum.max_margin import NetworkMargin, max_margin
from reluflow.optimum.min_norm import MinNorm
from reluflow.optimum.proofs.attempt import (
    ROOM,
    exact_margin,
    exact_norm2,
    make_certificate,
    plain_weights,
    prove,
)
from reluflow.optimum.proofs.rounding import above, below, exact_outputs, tidy
from reluflow.optimum.proofs.trees import sign_tree
from reluflow.problem import Problem

GAP = 1e-6  # bounds further apart than this (relative) certify nothing


def _without_noise(problem: Problem, dual: Array) -> Array:
    """The multipliers, those that act by less than 1e-13 of the largest left out."""
    acts = np.abs(dual) * problem.norms
    return tidy(np.where(acts > 1e-13 * acts.max(initial=0.0), dual, 0.0))


def linear_certificate(problem: Problem) -> Certificate | None:
    found = max_margin(problem, "linear")
    if found.status != "optimal" or found.gap > GAP * found.margin:
        return None
    w = tidy(found.w / np.linalg.norm(found.w))
    margin = float((problem.y * (problem.X @ w)).min())
    arrays = {"w": w, "dual": tidy(found.dual)}
    for room in ROOM:
        upper = max(found.upper_bound, margin) * (1.0 + room)
        claim = {"margin": margin * (1.0 - room), "upper_bound": upper}
        made = prove("max-margin-linear", problem, claim, arrays)
        if made is not None:
            return made
    claim = {"margin": margin, "upper_bound": max(found.upper_bound, margin)}
    return make_certificate("max-margin-linear", problem, claim, arrays, "CHECKED")


def margin_certificate(problem: Problem, found: NetworkMargin) -> Certificate | None:
    """Of a margin over all networks; None unless network and bound meet."""
    if found.network is None or found.gap > GAP * found.margin:
        return None
    W, a, _ = plain_weights(found.network)
    dual = _without_noise(problem, found.dual)
    margin = below(exact_margin(problem, W, a))
    for room in ROOM if margin > 0.0 else ():
        upper = max(found.upper_bound, margin) * (1.0 + room)
        tree = sign_tree(problem, dual * problem.y, 2.0 * upper * float(dual.sum()))
        if tree is None:
            continue
        arrays = {"W": W, "a": a, "dual": dual, "tree": tree[0], "slopes": tree[1]}
        claim = {"margin": margin, "upper_bound": upper}
        made = prove("max-margin-network", problem, claim, arrays)
        if made is not None:
            return made
    claim = {"margin": margin, "upper_bound": max(found.upper_bound, margin)}
    arrays = {"W": W, "a": a, "dual": dual}
    return make_certificate("max-margin-network", problem, claim, arrays, "CHECKED")


def optimum_certificate(
    problem: Problem, net: Network, dual: Array | None = None
) -> Certificate | None:
    """That no network of any width has a larger margin than ``net``; None when that is not proved.

    dual : array (n,), optional
        Multipliers that show it; by default those of :func:`reluflow.max_margin`.
    """
    W, a, _ = plain_weights(net)
    margin = exact_margin(problem, W, a)
    if margin <= 0:
        return None
    claim = {"margin_lower": below(margin), "margin_upper": above(margin)}
    for weights in _duals(problem, W, a) if dual is None else [np.asarray(dual, dtype=float)]:
        # at the optimum the bound is met with equality: the tree may not be an allowance short
        bound = 2.0 * float(margin) * float(weights.sum()) * (1.0 + 1e-13)
        tree = sign_tree(problem, weights * problem.y, bound)
        if tree is not None:
            arrays = {"W": W, "a": a, "dual": weights, "tree": tree[0], "slopes": tree[1]}
            made = prove("margin-optimum", problem, claim, arrays)
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
    W, a, _ = plain_weights(found.network)
    dual = _without_noise(problem, found.dual)
    f = exact_outputs(problem.X, W, a, problem.leak)
    error = above(max(abs(v - Fraction(t)) for v, t in zip(f, problem.y.tolist(), strict=True)))
    norm2 = above(exact_norm2(W, a))
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
        made = prove("min-norm", problem, {**claim, "lower_bound": lower}, arrays)
        if made is not None:
            return made
    return make_certificate("min-norm", problem, claim, {"W": W, "a": a, "dual": dual}, "CHECKED")
