"""[LLWA21]_ Theorem G.9: one neuron alone tends to the best single neuron of its sign."""

from __future__ import annotations

from functools import cache

import numpy as np

from reluflow.claims.claim import claim, predicate
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import balanced_start, mean_logistic, separable, some_leak
from reluflow.claims.verdict import Comparison, at_least, at_most
from reluflow.network import Network
from reluflow.optimum.max_margin import max_margin
from reluflow.papers.llwa21.claims.assumptions import large_margins
from reluflow.papers.llwa21.claims.one_neuron import sample
from reluflow.papers.llwa21.runs import (
    decade,
    has_decade,
    least_margin,
    margin,
    squared_norm,
    until,
)


@predicate("one balanced neuron, a = |w|, on the side of w*")
def single(evidence: Evidence) -> tuple[bool, str]:
    """m = 1, a > 0, <w, w*> > 0."""
    net = evidence.start
    if net is None or net.m != 1:
        return False, "there is not one neuron"
    cosine = float(net.directions[0] @ max_margin(evidence.problem, "linear").w)
    return bool(net.a[0] > 0 and cosine > 0), f"sign {np.sign(net.a[0]):g}, cosine {cosine:.3g}"


@cache
def trained_alone(seed: int, q_min: float) -> Evidence:
    """One neuron of size 1 on the side of w*, on the data of Figure 1 middle."""
    from reluflow.trajectory.save import every

    problem = sample("middle")
    w = np.random.default_rng(seed).standard_normal(problem.d)
    w *= np.sign(w @ max_margin(problem, "linear").w) / np.linalg.norm(w)
    net = Network(w[None, :], np.ones(1), leak=problem.leak)
    return until(problem, net, q_min, save=every(0.25))


@claim(
    "LLWA21-TG.9",
    needs=("start", "path"),
    example=trained_alone,
    quick={"q_min": 100.0},
    full={"q_min": 500.0},
    given=[mean_logistic, some_leak, separable, balanced_start, single, large_margins, has_decade],
)
def one_neuron_alone(evidence: Evidence) -> list[Comparison]:
    """(w, a)/|theta| tends to (w+, 1)/sqrt 2: what is across w+ is kept while |theta| grows."""
    p = evidence.problem
    early, net = (evidence.path()[i] for i in decade(evidence))
    best = max_margin(p, "linear", 1)
    before, off = (float(np.linalg.norm(each.directions[0] - best.w)) for each in (early, net))
    grown = np.sqrt(squared_norm(net) / squared_norm(early))
    q = least_margin(p, net)
    ratio = margin(p, net) / (best.margin / 2)
    return [
        at_most(off / before * grown, 1.1, what="|w/|w| - w+| times |theta|, last decade of q"),
        at_most(off, 1 / np.sqrt(q), what="|w/|w| - w+|, against 1/sqrt(q_min)"),
        at_most(abs(float(net.log_norms[0] - net.log_outer[0])), 1e-6, what="|log |w|/a|"),
        at_least(ratio, 1 - 1 / q, error=1e-9, what="margin over gamma+/2"),
        at_most(ratio, 1.0, error=1e-9, what="and not above it"),
    ]
