"""Invariants: what gradient flow keeps, whatever the data. Checked on recorded networks."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, lru_cache
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.claims.claim import claim
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import (
    balanced_start,
    decaying_flow,
    gradient_flow,
    mean_logistic,
    no_leak,
)
from reluflow.claims.verdict import Comparison, at_most, equals
from reluflow.gradientflow.flow import flow
from reluflow.landscape import pattern
from reluflow.network import Network, initialize
from reluflow.problem import Problem, datasets
from reluflow.trajectory.observables import velocity

DRIFT = 10.0  # drift allowed, in units of the integrator's rtol
ROUNDING = 1e-14
EDGE = 1e-12  # cosine below which a neuron rests on the edge of the dead cone
QUICK: dict[str, Any] = {"m": 40, "records": 200}
FULL: dict[str, Any] = {"m": 2000, "records": 1000}
RUN: dict[str, Any] = {"quick": QUICK, "full": FULL}
FLOW: dict[str, Any] = {"needs": ("path",), "given": [gradient_flow], **RUN}
BALANCED: dict[str, Any] = {**FLOW, "given": [gradient_flow, balanced_start]}


def example(name: str, kind: str, loss: str, t_end: float, scale: float, zero: bool = False) -> Any:
    """A builder of flow runs on a built-in dataset, shared by claims within one process.

    With ``zero`` the last neuron starts at zero.
    """

    @cache
    def build(seed: int, m: int, records: int) -> Evidence:

        problem = datasets.load(name, loss=loss)
        net = initialize(problem, m, scale=scale, kind=kind, rng=seed)
        if zero:
            keep = np.arange(m) < m - 1
            net = replace(net, W=net.W * keep[:, None], a=net.a * keep)
        run = flow(problem, net, t_end=t_end, save=np.linspace(0.0, t_end, records))
        return Evidence.of(problem, run)

    return build


@cache
def decayed(seed: int, m: int, records: int) -> Evidence:
    """A flow with weight decay from an unbalanced start."""
    problem = datasets.load("three-points", loss="half_square")
    net = initialize(problem, m, scale=0.1, kind="gaussian", rng=seed)
    save = np.linspace(0.0, 20.0, records)
    return Evidence.of(problem, flow(problem, net, t_end=20.0, save=save, weight_decay=0.05))


unbalanced = example("three-points", "gaussian", "half_square", 40.0, 1e-3)
toy = example("toy6", "balanced", "exponential", 40.0, 1e-4)
unbalanced_toy = example("toy6", "gaussian", "exponential", 40.0, 1e-4)
toy_with_zero = example("toy6", "balanced", "exponential", 40.0, 1e-4, zero=True)
leaky = example("symmetric-separable", "balanced", "logistic", 80.0, 1e-3)
unbalanced_leaky = example("symmetric-separable", "gaussian", "logistic", 80.0, 1e-3)
with_zero = example("symmetric-separable", "balanced", "logistic", 80.0, 1e-3, zero=True)


def drift(evidence: Evidence, allowed: float = DRIFT) -> Comparison:
    """Largest change of a_j^2 - |w_j|^2, relative to the size of the neuron then."""
    return kept_by_flow(
        evidence, _largest_drift(evidence), "relative drift of a^2 - |w|^2", allowed
    )


def kept_by_flow(
    evidence: Evidence, measured: SupportsFloat, what: str, allowed: float = DRIFT
) -> Comparison:
    """A law of the exact flow, on a run whose steps have errors: ``measured`` would be at most 0.

    It holds up to ``allowed`` times rtol. Beyond that the errors of all steps together may be what
    is seen, so that the law fails only where they cannot be.
    """
    tolerance = allowed * evidence.rtol
    error = ROUNDING if float(measured) <= tolerance else ROUNDING + evidence.step_errors
    return at_most(measured, tolerance, error=error, what=what)


@lru_cache(maxsize=1)  # five claims ask for it, one run after the other
def _largest_drift(evidence: Evidence) -> float:
    first = evidence.path()[0]
    worst = 0.0
    for net in evidence.path()[1:]:
        size = np.maximum(log_size(first), log_size(net))
        with np.errstate(invalid="ignore"):
            gap = np.abs(_invariant(net, size) - _invariant(first, size))
        worst = max(worst, float(np.max(np.where(np.isfinite(size), gap, 0.0))))
    return worst


def log_size(net: Network) -> Array:
    """log of max(|w_j|, |a_j|)."""
    return np.maximum(net.log_norms, net.log_outer)


def _invariant(net: Network, unit: Array) -> Array:
    """(a_j^2 - |w_j|^2) e^{-2 unit_j}."""
    with np.errstate(invalid="ignore"):
        a2, w2 = np.exp(2 * (net.log_outer - unit)), np.exp(2 * (net.log_norms - unit))
    return np.where(np.isfinite(unit), a2 - w2, 0.0)


def sign_changes(evidence: Evidence) -> Comparison:
    """Neurons whose outer weight has another sign at some record than at the first."""
    signs = np.sign(evidence.path()[0].a)
    moved = np.zeros(signs.shape, dtype=bool)
    for net in evidence.path():
        moved |= np.sign(net.a) != signs
    return equals(moved.sum(), 0, tolerance=0, what="neurons whose outer sign changes")


@claim("LLWA21-LB.17", example=with_zero, **FLOW)
def zero_neurons_move(evidence: Evidence) -> Comparison:
    """Neurons at zero that are not at zero later."""
    moved, gone = 0, np.zeros(evidence.path()[0].m, dtype=bool)
    for net in evidence.path():
        empty = np.isneginf(log_size(net))
        moved = max(moved, int(np.count_nonzero(gone & ~empty)))
        gone |= empty
    return equals(moved, 0, tolerance=0, what="zero neurons that come back")


@claim(
    "LLWA21-LB.15",
    example=leaky,
    reason="between records; its parts look at the velocity itself, across kinks and along them",
    **{**FLOW, "needs": ("path", "time")},
)
def energy(evidence: Evidence) -> list[Comparison]:
    """Consequences of dL/dt = -|velocity|^2 that records can show.

    L never rises, and by Cauchy-Schwarz a stretch of the run that moves theta by d in time t
    lowers L by at least d^2/t. Where each end of it is known up to e, the fall is known up to
    2 e d/t, the speed times both errors, and d^2/t up to 2 (2 d e + 2 e^2)/t.
    """
    loss, times = evidence.trajectory().loss, evidence.times
    fallen, elapsed = -np.diff(loss), np.diff(times)
    pairs = zip(evidence.path(), evidence.path()[1:], strict=False)
    distance = np.array([distance_between(before, after) for before, after in pairs])
    later = elapsed > 0
    fallen, elapsed, distance, before = (v[later] for v in (fallen, elapsed, distance, loss[:-1]))
    end = DRIFT * evidence.rtol * np.sqrt([net.norm2 for net in evidence.path()[1:]])[later]
    unknown = (6.0 * distance * end + 4.0 * end**2) / elapsed
    return [
        kept_by_flow(evidence, np.max((-fallen - unknown) / before), "relative rise of L"),
        kept_by_flow(
            evidence,
            np.max((distance**2 / elapsed - fallen - unknown) / before),
            "(|change of theta|^2 / time - fall of L) / L, beyond the error of theta",
        ),
    ]


def distance_between(before: Network, after: Network) -> float:
    """Euclidean distance of two networks in true units."""
    (W, a), (V, b) = before.weights(), after.weights()
    return float(np.sqrt(np.sum((W - V) ** 2) + np.sum((a - b) ** 2)))


def dead(problem: Problem, net: Network) -> NDArray[np.bool_]:
    """Neurons without an active sample; those on the edge of that cone have rounding for a side."""
    return np.logical_not((pattern(problem, net.W, EDGE) > 0).any(axis=1))


@claim(
    "MMV24-L12",
    form="repaired",
    part="dead",
    example=toy,
    **{**FLOW, "given": [gradient_flow, no_leak]},
)
def dead_neurons_move(evidence: Evidence) -> Comparison:
    """Largest relative change of a neuron after it has lost its last active sample.

    [MMV24]_ Lemma 12: the dead cone traps the neurons of a regular solution.
    """
    first = evidence.path()[0]
    is_dead = np.zeros(first.m, dtype=bool)
    then = np.zeros((first.m, first.d + 2))
    worst = 0.0
    for net in evidence.path():
        over = np.minimum(net.log_outer - np.maximum(net.log_norms, -1e300), 700.0)
        outer = np.sign(net.a) * np.exp(over)
        now = np.column_stack([net.directions, np.maximum(net.log_norms, -1e300), outer])
        worst = max(worst, float(np.abs(now - then)[is_dead].max(initial=0.0)))
        new = dead(evidence.problem, net) & ~is_dead
        then[new] = now[new]
        is_dead |= new
    return kept_by_flow(evidence, worst, "relative change of a dead neuron")


@claim(
    "MMV24-B1",
    form="control",
    part="decay",
    example=decayed,
    **{**FLOW, "needs": ("path", "time"), "given": [decaying_flow]},
)
def decays(evidence: Evidence) -> Comparison:
    r"""With weight decay lambda a_j^2 - |w_j|^2 is not kept: it falls as exp(-2 lambda t).

    From :math:`z_j' = (M_u - \lambda I) z_j`, whose first part keeps it. Measured relative to the
    size that the neuron would have without the law's factor.
    """
    decay = float(evidence.trajectory().settings["weight_decay"])
    path, times = evidence.path(), evidence.times
    worst = 0.0
    for net, t in zip(path, times, strict=True):
        lost = decay * (t - times[0])
        unit = np.maximum(log_size(path[0]) - lost, log_size(net))
        with np.errstate(invalid="ignore"):
            gap = np.abs(_invariant(net, unit) - _invariant(path[0], unit + lost))
        worst = max(worst, float(np.max(np.where(np.isfinite(unit), gap, 0.0))))
    return kept_by_flow(
        evidence,
        worst,
        "relative distance of a^2 - |w|^2 from exp(-2 lambda t) times its start",
    )


@claim("BF24-L1", example=unbalanced, several=True, **FLOW)
@claim("MMV24-B1", example=unbalanced_toy, several=True, **FLOW)
@claim("LLWA21-LB.16", example=unbalanced_leaky, several=True, **FLOW)
def conserved(evidence: Evidence) -> Comparison:
    """a_j^2 - |w_j|^2 moves by at most the flow's rtol, 1e-8 unless asked otherwise.

    With several outputs a_j is a vector, and w' = M a, a' = M^T w keep |a|^2 - |w|^2 likewise.
    """
    return drift(evidence, 1.0)


@claim("TK24-INV", example=leaky, **BALANCED)
@claim("LLWA21-CB.18", example=leaky, **BALANCED)
def balance_and_signs(evidence: Evidence) -> list[Comparison]:
    """a_j^2 - |w_j|^2 and sign(a_j) are kept."""
    return [drift(evidence), sign_changes(evidence)]


@claim("MMV24-B2", example=toy_with_zero, **BALANCED)
def signs_and_zeros(evidence: Evidence) -> list[Comparison]:
    """[MMV24]_: outer signs of a balanced start never change; a zero neuron is frozen."""
    return [sign_changes(evidence), zero_neurons_move(evidence)]


@claim("LLWA21-LE.10", needs=("end",), given=[mean_logistic], example=leaky, **RUN)
def gradient_below_norm(evidence: Evidence) -> Comparison:
    """[LLWA21]_ Lemma E.10: |grad L| <= |theta| for inputs in the unit ball, else R |theta|."""
    worst, R = 0.0, max(1.0, float(evidence.problem.norms.max()))
    for net in evidence.states:
        dW, da = velocity(evidence.problem, net)
        factor = np.exp(net.log_factors - np.max(log_size(net)))
        speed = np.sqrt(np.sum((factor[:, None] * dW) ** 2) + np.sum((factor * da) ** 2))
        size = np.sqrt(np.sum((factor[:, None] * net.W) ** 2) + np.sum((factor * net.a) ** 2))
        worst = max(worst, float(speed / size) if size > 0 else 0.0)
    return at_most(worst / R, 1.0, error=ROUNDING, what="|grad L| / (R |theta|)")
