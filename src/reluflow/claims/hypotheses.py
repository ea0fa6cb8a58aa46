"""Hypotheses that can be computed, by name; used by the claims of all papers."""

from __future__ import annotations

import numpy as np

from reluflow.arrays import Array
from reluflow.claims.claim import Predicate, predicate
from reluflow.claims.evidence import Evidence
from reluflow.problem import Problem

BALANCE_TOL = 1e-9  # relative, for |a_j| = |w_j|
EXACT_TOL = 1e-9  # relative, for symmetries and orthogonality of data
MOST_PAIRED = 2_000  # samples that are matched with their mirror images
MOST_ENTRIES = 200_000  # entries of X in a linear program
BLOCK = 1_000  # rows of a Gram matrix held at once


@predicate("gradient flow")
def gradient_flow(evidence: Evidence) -> tuple[bool | None, str]:
    """The run is a flow; gradient descent keeps invariants only up to its step size.

    One of the loss alone: with weight decay other laws hold. Where kinks were not located steps
    have errors that no theorem speaks of, and what is missed there refutes nothing.
    """
    kind = "none" if evidence.run is None else evidence.run.settings.get("kind", "descent")
    if evidence.run is not None and evidence.run.settings.get("weight_decay"):
        return False, "the run has weight decay"
    if kind == "flow" and (error := evidence.coarse_rtol):
        return None, f"a flow with errors up to {error:g} in a step, kinks not located"
    return kind == "flow", f"the run is a {kind}" if kind != "none" else "there is no run"


@predicate("flow with weight decay")
def decaying_flow(evidence: Evidence) -> tuple[bool, str]:
    """The run is a flow with weight decay."""
    settings = {} if evidence.run is None else evidence.run.settings
    decay = float(settings.get("weight_decay") or 0.0)
    return settings.get("kind") == "flow" and decay > 0.0, f"weight decay {decay:g}"


@predicate("balanced start")
def balanced_start(evidence: Evidence) -> tuple[bool, str]:
    """|a_j| = |w_j| for every neuron of the start."""
    if evidence.start is None:
        return False, "the start is not known"
    gap = np.abs(balance(evidence.start.W, evidence.start.a)).max()
    return gap <= BALANCE_TOL, f"largest relative imbalance {gap:.1e}"


@predicate("dominated start")
def dominated_start(evidence: Evidence) -> tuple[bool, str]:
    """|a_j| >= |w_j| for every neuron of the start ([BF24]_ Eq. 4)."""
    if evidence.start is None:
        return False, "the start is not known"
    gap = balance(evidence.start.W, evidence.start.a).min()
    return gap >= -BALANCE_TOL, f"least (a^2 - |w|^2)/(a^2 + |w|^2) is {gap:.1e}"


@predicate("leak 0")
def no_leak(evidence: Evidence) -> tuple[bool, str]:
    """The activation is the plain ReLU."""
    return evidence.problem.leak == 0.0, f"leak {evidence.problem.leak:g}"


@predicate("leak > 0")
def some_leak(evidence: Evidence) -> tuple[bool, str]:
    """The activation leaks."""
    return evidence.problem.leak > 0.0, f"leak {evidence.problem.leak:g}"


@predicate("margin loss")
def margin_loss(evidence: Evidence) -> tuple[bool, str]:
    """Logistic or exponential loss, labels -1 and +1."""
    return evidence.problem.loss.margin, f"{evidence.problem.loss.name} loss"


def mean_loss(name: str, loss: str) -> Predicate:
    """The loss of this name, averaged over the samples, without a factor."""

    @predicate(name)
    def test(evidence: Evidence) -> tuple[bool, str]:
        p = evidence.problem
        fine = p.loss.name == loss and p.reduction == "mean" and p.loss.factor == 1.0
        return fine, f"{p.loss.name} loss, {p.reduction}, factor {p.loss.factor:g}"

    return test


mean_logistic = mean_loss("logistic loss, mean, factor 1", "logistic")  # [LLWA21]_ and [TK24]_
half_square = mean_loss("half-square loss, mean", "half_square")  # [BF24]_ Section 4


@predicate("square loss")
def square_loss(evidence: Evidence) -> tuple[bool, str]:
    """Square loss with any constant."""
    name = evidence.problem.loss.name
    return name in ("half_square", "square"), f"{name} loss"


@predicate("orthonormal inputs")
def orthonormal_inputs(evidence: Evidence) -> tuple[bool, str]:
    """X X^T = I ([TLB26]_ A1)."""
    X = evidence.problem.X
    if X.shape[0] > X.shape[1]:
        return False, f"{X.shape[0]} samples in {X.shape[1]} features"
    gap = np.abs(X @ X.T - np.eye(len(X))).max()
    return gap <= EXACT_TOL, f"largest entry of X X^T - I is {gap:.1e}"


@predicate("separable through the origin")
def separable(evidence: Evidence) -> tuple[bool | None, str]:
    """Some w has y_i <w, x_i> > 0 for all i ([LLWA21]_ 3.2), by a linear program."""
    if evidence.problem.X.size > MOST_ENTRIES:
        return None, f"{evidence.problem.X.size} entries are too many for the linear program"
    margin = linear_margin(evidence.problem)
    return margin > 0, f"largest min y <w, x> over |w|_inf <= 1 is {margin:.3g}"


@predicate("symmetric data")
def symmetric_data(evidence: Evidence) -> tuple[bool | None, str]:
    """Rows pair as (x, +1), (-x, -1) ([LLWA21]_ 4.1)."""
    p = evidence.problem
    if p.y.sum() != 0 or np.abs(p.X.sum(axis=0)).max() > EXACT_TOL * np.abs(p.X).sum(axis=0).max():
        return False, "the samples or labels do not add up to zero"
    if p.n > MOST_PAIRED:
        return None, f"{p.n} samples are too many to pair"
    rows = np.hstack([p.X, p.y[:, None]])
    gap = multiset_distance(rows, -rows)
    return gap <= EXACT_TOL, f"largest distance to the mirrored set {gap:.1e}"


@predicate("signed data all correlated (mu > 0)")
def positively_correlated(evidence: Evidence) -> tuple[bool, str]:
    """mu = min y_i y_j cos(x_i, x_j) > 0 ([MMV24]_ Assumption 1)."""
    mu = least_cosine(evidence.problem)
    return mu > 0, f"mu = {mu:.4g}"


@predicate("orthogonally separable")
def orthogonally_separable(evidence: Evidence) -> tuple[bool, str]:
    """x_i.x_j > 0 for equal labels, <= 0 otherwise ([LLWA21]_ H.1)."""
    p = evidence.problem
    same, other = np.inf, -np.inf
    for first in range(0, p.n, BLOCK):
        K = p.X[first : first + BLOCK] @ p.X.T
        equal = np.outer(p.y[first : first + BLOCK], p.y) > 0
        same = min(same, float(K[equal].min(initial=np.inf)))
        other = max(other, float(K[~equal].max(initial=-np.inf)))
    return same > 0 >= other, f"least product within a class {same:.3g}, largest across {other:.3g}"


@predicate("inputs in the unit ball")
def unit_ball(evidence: Evidence) -> tuple[bool, str]:
    """max |x_i| <= 1."""
    size = evidence.problem.norms.max()
    return size <= 1 + EXACT_TOL, f"max |x| = {size:.4g}"


def balance(W: Array, a: Array) -> Array:
    """(a_j^2 - |w_j|^2) / (a_j^2 + |w_j|^2), 0 for a zero neuron."""
    top = np.maximum(np.abs(W).max(axis=-1), np.abs(a))
    safe = np.where(top > 0, top, 1.0)
    a2, w2 = np.square(a / safe), np.sum(np.square(W / safe[..., None]), axis=-1)
    total = a2 + w2
    return np.asarray(np.divide(a2 - w2, total, out=np.zeros_like(total), where=total > 0))


def least_cosine(problem: Problem) -> float:
    """mu of [MMV24]_."""
    Z = problem.y[:, None] * problem.X
    norms = np.linalg.norm(Z, axis=1)
    if not (norms > 0).all():
        return 0.0
    Z = Z / norms[:, None]
    return min(float((Z[i : i + BLOCK] @ Z.T).min()) for i in range(0, len(Z), BLOCK))


def linear_margin(problem: Problem) -> float:
    """max over |w|_inf <= 1 of min_i y_i <w, x_i>: positive iff the data are separable."""
    from scipy.optimize import linprog

    n, d = problem.X.shape
    Z = problem.y[:, None] * problem.X
    found = linprog(
        np.append(np.zeros(d), -1.0),
        A_ub=np.hstack([-Z, np.ones((n, 1))]),
        b_ub=np.zeros(n),
        bounds=[(-1.0, 1.0)] * d + [(None, None)],
    )
    margin = -float(found.fun)
    return margin if margin > 1e-10 * np.abs(Z).max() else 0.0


def multiset_distance(rows: Array, others: Array) -> float:
    """Largest distance in the best pairing of two sets of rows of equal size."""
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    cost = cdist(rows, others)
    i, j = linear_sum_assignment(cost)
    return float(cost[i, j].max())
