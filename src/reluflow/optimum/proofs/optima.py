r"""Certificates of optima over all widths: the largest margin, the least norm.

Both rest on a list of signs that bounds G_c over the whole sphere. With h in [leak, 1] at the kinks
that are concave in :math:`\sigma G` and signs decided for some of the convex ones,

.. math:: \sigma G_c(w) \le \|w\| \Big( \Big\| \sum_k h_k \sigma c_k x_k \Big\| + \sum_{k\
          \text{undecided}} \tfrac{1 - \mathrm{leak}}2 |c_k| \|x_k\| \Big),

an undecided kink having the slope (1 + leak)/2. Signs are decided until the right side is at most
the bound; with all of them decided and the best h this is the maximum itself.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from reluflow.arrays import Array
from reluflow.network import Network
from reluflow.optimum.certificate_file import Certificate
from reluflow.optimum.max_margin import NetworkMargin, max_margin
from reluflow.optimum.min_norm import MinNorm
from reluflow.optimum.proofs.attempt import (
    WIDENINGS,
    above,
    below,
    exact_margin,
    exact_norm2,
    exact_outputs,
    make_certificate,
    plain_weights,
    prove,
    tidy,
)
from reluflow.problem import Problem

MOST_NODES = 20_000
ALLOWANCE = 1e-14  # relative, for the rounding of the norms computed here
GAP = 1e-6  # bounds further apart than this (relative) certify nothing


def sign_tree(problem: Problem, c: Array, bound: float) -> tuple[Array, Array] | None:
    """Tokens and slopes that show |G_c(w)| <= bound |w|; None when none are found.

    A token k >= 0 decides the sign of sample k, positive side first; -1 - i is a leaf whose concave
    kinks have the slopes of row i. In the plane the checker needs none.
    """
    if problem.d <= 2:
        return np.zeros(0), np.zeros((0, problem.n))
    builder = _Builder(problem, c, bound)
    for sign in (1.0, -1.0):
        if not builder.add(sign):
            return None
    rows = np.array(builder.rows).reshape(-1, problem.n)
    return np.array(builder.tokens, dtype=float), rows


class _Builder:
    """Tokens and rows of slopes found so far."""

    def __init__(self, problem: Problem, c: Array, bound: float) -> None:
        self.X, self.leak, self.c = problem.X, problem.leak, c
        self.bound = bound * (1.0 - ALLOWANCE)
        lengths = problem.norms
        self.reach = 0.5 * (1.0 - self.leak) * np.abs(c) * lengths * (1.0 + ALLOWANCE)
        self.tokens: list[int] = []
        self.rows: list[Array] = []

    def add(self, sign: float) -> bool:
        """The tree of sign * G, depth first."""
        from reluflow.kernels.boxls import box_least_norm

        X, leak, pull = self.X, self.leak, sign * self.c
        up, down = np.flatnonzero(pull > 0.0), np.flatnonzero(pull < 0.0)
        order = up[np.argsort(-self.reach[up], kind="stable")]
        rest = np.append(np.cumsum(self.reach[order][::-1])[::-1], 0.0)
        steps = 0.5 * (1.0 - leak) * pull[order, None] * X[order]
        Z = np.ascontiguousarray(pull[down, None] * X[down])
        known: list[tuple[int, Array]] = []  # rows of slopes and what they add
        stack = [(0.5 * (1.0 + leak) * pull[order] @ X[order], 0)]
        while stack:
            D, i = stack.pop()
            allowed = self.bound - rest[i]
            leaf = -1
            if allowed > 0.0:
                for row, extra in reversed(known[-8:]):
                    if np.linalg.norm(D + extra) <= allowed:
                        leaf = row
                        break
                else:
                    slopes, E = np.empty(len(down)), np.empty(len(D))
                    box_least_norm(D, Z, leak, slopes, E)
                    slopes = np.clip(slopes, leak, 1.0)
                    if np.linalg.norm(D + slopes @ Z) <= allowed:
                        leaf = len(self.rows)
                        full = np.ones(len(X))
                        full[down] = slopes
                        self.rows.append(full)
                        known.append((leaf, slopes @ Z))
            if leaf >= 0:
                self.tokens.append(-1 - leaf)
            elif i == len(order) or len(self.tokens) >= MOST_NODES:
                return False
            else:
                self.tokens.append(int(order[i]))
                stack += [(D - steps[i], i + 1), (D + steps[i], i + 1)]
        return True


def without_noise(problem: Problem, dual: Array) -> Array:
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
    for widening in WIDENINGS:
        upper = max(found.upper_bound, margin) * (1.0 + widening)
        claim = {"margin": margin * (1.0 - widening), "upper_bound": upper}
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
    dual = without_noise(problem, found.dual)
    margin = below(exact_margin(problem, W, a))
    for widening in WIDENINGS if margin > 0.0 else ():
        upper = max(found.upper_bound, margin) * (1.0 + widening)
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
    return [equal, without_noise(problem, max_margin(problem).dual)]


def norm_certificate(problem: Problem, found: MinNorm) -> Certificate | None:
    """Of a least norm over all networks that fit; None unless network and bound meet."""
    if found.network is None or found.gap > GAP * found.norm2 or not found.dual.any():
        return None
    W, a, _ = plain_weights(found.network)
    dual = without_noise(problem, found.dual)
    f = exact_outputs(problem.X, W, a, problem.leak)
    error = above(max(abs(v - Fraction(t)) for v, t in zip(f, problem.y.tolist(), strict=True)))
    norm2 = above(exact_norm2(W, a))
    claim = {"norm2": norm2, "lower_bound": min(found.lower_bound, norm2), "error": error}
    value = 2.0 * (float(dual @ problem.y) - error * float(np.abs(dual).sum()))
    for widening in WIDENINGS:
        lower = (1.0 - widening) * min(
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
