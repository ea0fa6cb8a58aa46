"""[LLWA21]_ Lemmas B.9, F.3 and Appendix I.1: KKT directions, balanced, linear and bent."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.claims.claim import claim, experiment, predicate
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import margin_loss
from reluflow.claims.llwa21 import LATE, late_run
from reluflow.claims.verdict import Comparison, at_most, equals
from reluflow.network import Network
from reluflow.optimum.kkt import kkt
from reluflow.problem import datasets

Array = NDArray[np.float64]


@predicate("near a KKT direction (residual at most 0.01)")
def near_kkt(evidence: Evidence) -> tuple[bool, str]:
    """The direction satisfies the KKT conditions up to 1 %."""
    assert evidence.final is not None
    residual = kkt(evidence.problem, evidence.final).residual
    return residual <= 0.01, f"residual {residual:.2g}"


@claim(
    "LLWA21-LB.9", needs=("end",), example=late_run, quick=LATE, full={"q_min": 2000.0},
    given=[margin_loss, near_kkt],
)  # fmt: skip
def kkt_is_balanced(evidence: Evidence) -> Comparison:
    """KKT directions have |a_j| = |w_j|: |a_j^2 - |w_j|^2| against residual times |theta|^2."""
    p, net = evidence.problem, evidence.final
    assert net is not None
    unit = net.scaled(-float(np.max(np.maximum(net.log_norms, net.log_outer))))
    W, a = unit.weights()
    norm2 = float(np.sum(W**2) + np.sum(a**2))
    gap = float(np.abs(a**2 - np.sum(W**2, axis=1)).max()) / norm2
    return at_most(gap, 2 * kkt(p, net).residual + 1e-12, what="|a^2 - |w|^2| / |theta|^2")


def bent(leak: float) -> list[Comparison]:
    """The explicit nonlinear direction of Figure 1 left: KKT, but not the largest margin."""
    problem = datasets.figure1_left(leak=leak)
    known = problem.known
    found = kkt(problem, Network(known["kkt_W"], known["kkt_a"], leak=leak))
    q = problem.y * problem.outputs(Network(known["kkt_W"], known["kkt_a"]))
    name = f"leak {leak:g}"
    return [
        at_most(found.residual, 1e-10, what=f"KKT residual, {name}"),
        at_most(np.abs(q - 1).max() if leak == 0 else abs(q.min() - 1), 1e-12, what="q = 1"),
        equals(found.margin, known["kkt_margin"], tolerance=1e-9, what=f"margin, {name}"),
        at_most(found.margin, 0.999 * known["max_margin"], what=f"below the largest, {name}"),
    ]


@experiment("LLWA21-I1a")
def bent_without_leak(seed: int) -> list[Comparison]:
    """Leak 0: margin .207107 against .25."""
    return [*bent(0.0), equals(bent(0.0)[2].measured, 0.207107, tolerance=5e-7, what="margin")]


@experiment("LLWA21-I1b", quick={"leaks": (0.3, 0.5)}, full={"leaks": (0.1, 0.3, 0.5, 0.7, 0.9)})
def bent_with_leak(seed: int, leaks: Any) -> list[Comparison]:
    """Leak 1/2: margin .356107 against .375."""
    found = [c for leak in leaks for c in bent(float(leak))]
    return [*found, equals(bent(0.5)[2].measured, 0.356107, tolerance=5e-7, what="margin, leak .5")]


def pair(w: Array, kind: int) -> Network:
    """The three unit KKT directions of two neurons on symmetric data (Lemma F.3)."""
    if kind == 0:
        return Network(np.array([w, -w]) / 2, np.array([1.0, -1.0]) / 2)
    W, a = np.zeros((2, w.size)), np.zeros(2)
    s = 1.0 if kind == 1 else -1.0
    W[kind - 1], a[kind - 1] = s * w / np.sqrt(2), s / np.sqrt(2)
    return Network(W, a)


@experiment("LLWA21-LF.3", quick={"sets": 3}, full={"sets": 30})
def three_directions(seed: int, sets: int) -> list[Comparison]:
    """Residuals of the three directions vanish; margins (1+leak)/4, leak/2, leak/2 of gamma*."""
    worst, gap = 0.0, 0.0
    for i in range(sets):
        p = datasets.symmetric_separable(rng=seed + i)
        w, best = p.known["w_star"], p.known["gamma_star"]
        for kind, factor in ((0, (1 + p.leak) / 4), (1, p.leak / 2), (2, p.leak / 2)):
            found = kkt(p, pair(w, kind), tol=1e-6)
            worst = max(worst, found.residual)
            gap = max(gap, abs(found.margin / (factor * best) - 1))
    return [
        at_most(worst, 1e-7, what="largest KKT residual"),
        at_most(gap, 1e-9, what="margin against the formula, relative"),
    ]
