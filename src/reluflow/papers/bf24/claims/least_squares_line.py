"""[BF24]_: assumptions of Section 4, and what its runs must show."""

from __future__ import annotations

from typing import Any

import numpy as np

from reluflow.claims.claim import Found, assumption, claim, experiment, predicate
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import (
    dominated_start,
    gradient_flow,
    half_square,
    no_leak,
    square_loss,
)
from reluflow.claims.invariants import dead
from reluflow.claims.verdict import Comparison, Status, at_least, at_most, equals
from reluflow.landscape import constants
from reluflow.network import initialize
from reluflow.papers.bf24.claims import alignment, assumptions, early, ends, growth, late
from reluflow.papers.bf24.claims.cones import fading
from reluflow.papers.bf24.claims.data import (
    MOST_CONES,
    at_rest,
    cones,
    dominant_extremes,
    in_boxes,
    least_squares,
    no_saddle,
    positive_data,
    smooth_loss,
    stays_on_faces,
)
from reluflow.papers.bf24.claims.faces import generic_data
from reluflow.papers.bf24.runs import aligning, converged, log_total, phased
from reluflow.problem import datasets

SMALL_SCALE = "the start is below a threshold that the theorem leaves inexplicit"


def a3c_points(seed: int) -> Evidence:
    """Data inside Assumption 3."""
    return Evidence.of(datasets.a3c())


assumption("BF24-A3", in_boxes, example=a3c_points)
assumption("BF24-A5", dominant_extremes, example=a3c_points)
assumption("BF24-A6", fading, example=a3c_points)


@claim("BF24-A4", given=[positive_data, no_leak], example=a3c_points)
def one_extremal_vector(evidence: Evidence) -> Found:
    """Under Assumption 4 D* is the only extremal vector, and D_max = |D*|."""
    p, found = evidence.problem, evidence.landscape
    D = p.pull @ p.X
    moving = np.abs(found.values) > 0
    size = float(np.linalg.norm(D))
    gaps = np.linalg.norm(found.values[moving, None] * found.vectors[moving] - D, axis=1)
    checks = [
        equals(moving.sum(), 1, tolerance=0, what="extremal vectors"),
        at_most(gaps.min(initial=np.inf) / size, 1e-12, what="distance to D* over |D*|"),
    ]
    if cones(p) > MOST_CONES:
        return Found(checks, note="There are too many activation cones to compute D_max.")
    top = constants(p).D_max
    return Found([*checks, equals(top, size, tolerance=1e-12 * size, what="D_max, |D*|")])


experiment("BF24-A1")(assumptions.half_square_and_logistic)
experiment(
    "BF24-A1",
    form="slip",
    printed="Section 2, before Assumption 1: the square loss l(f, y) = (f - y)^2 is covered",
    meant="(f - y)^2 / 2, as in Eq. 10: the derivative is then 1-Lipschitz; the factor only "
    "rescales time",
)(assumptions.factor_of_the_square)
experiment("BF24-A4", part="random", quick={"sets": 5}, full={"sets": 50})(
    assumptions.one_extremal_vector_of_many
)
experiment("BF24-A5", part="one-neuron", quick={"sets": 3}, full={"sets": 20})(
    assumptions.one_neuron_stays_active
)
experiment(
    "BF24-A5",
    form="control",
    quick={"sets": 3},
    full={"sets": 20},
    reason="Assumption 5 is broken on purpose: an extreme sample is lost on the way",
)(assumptions.one_neuron_leaves)


def learns_the_line(evidence: Evidence) -> list[Comparison]:
    """[BF24]_ Theorem 2: f = <beta*, x> on the cone of the data, and the loss stays positive."""
    p, net = evidence.problem, evidence.end()
    beta = least_squares(p)
    inside = np.random.default_rng(0).dirichlet(np.ones(p.n), 200) @ p.X
    X = np.vstack([p.X, inside])
    gap = np.abs(net.evaluate(X, p.leak) - X @ beta).max()
    error, line = (float(np.mean((f - p.y) ** 2)) for f in (p.outputs(net), p.X @ beta))
    return [
        at_most(gap, 1e-6, what="|f - <beta*, x>| on the cone of the data"),
        equals(error, line, tolerance=1e-7, what="mean squared error, that of the line"),
        at_least(line, 1e-3, what="which is positive"),
    ]


@predicate("some neuron with a > 0 is active on a sample at the start")
def some_positive_neuron(evidence: Evidence) -> tuple[bool, str]:
    """Without one the network stays at f = 0, or below."""
    if evidence.start is None:
        return False, "the start is not known"
    count = int(np.count_nonzero((evidence.start.a > 0) & ~dead(evidence.problem, evidence.start)))
    return count > 0, f"{count} neurons"


for _part, _kind in (("", "balanced"), ("dominated", "dominated")):
    claim(
        "BF24-T2",
        form="repaired",
        part=_part,
        needs=("end",),
        example=converged,
        quick={"m": 200, "kind": _kind},
        full={"m": 5000},
        given=[in_boxes, no_leak, square_loss, dominated_start, some_positive_neuron, at_rest],
        unchecked=[SMALL_SCALE],
    )(learns_the_line)


@claim(
    "BF24-T2",
    form="printed",
    needs=("end", "start"),
    example=converged,
    quick={"m": 200, "kind": "dominated"},
    full={"m": 5000},
    given=[
        gradient_flow,
        in_boxes,
        no_leak,
        half_square,
        dominated_start,
        some_positive_neuron,
        at_rest,
    ],
)
def learns_the_line_everywhere(evidence: Evidence) -> Found:
    """ "For any x" alone: at the mirrored samples the end is not <beta*, x>.

    The theorem leaves its threshold of lambda open: flows from the same start, made smaller and
    smaller, end alike.
    """
    from reluflow.gradientflow.flow import flow

    p, start = evidence.problem, evidence.first()
    line, gaps = p.X @ least_squares(p), {}
    log_lambda = log_total(start)
    for less in (0.0, -30.0, -400.0):
        t_end = 1000.0 - 3 * (log_lambda + less)
        net = flow(p, start.scaled(less), t_end=t_end).final if less else evidence.end()
        gaps[log_lambda + less] = float(np.abs(net.evaluate(-p.X, p.leak) + line).max())
    return Found(
        [at_most(min(gaps.values()), 1e-6, what="|f(-x_k) - <beta*, -x_k>|, least of all runs")],
        [ends.settled_scales(gaps)],
    )


@claim(
    "BF24-L7",
    needs=("end",),
    example=converged,
    quick={"m": 200},
    full={"m": 5000},
    given=[
        positive_data,
        dominant_extremes,
        fading,
        no_leak,
        square_loss,
        dominated_start,
        at_rest,
    ],
    unchecked=[SMALL_SCALE],
)
def one_bundle(evidence: Evidence) -> list[Comparison]:
    """[BF24]_ Lemma 7: no neuron is active on some samples only; the active ones sum to beta*."""
    from reluflow.landscape import pattern

    p, net = evidence.problem, evidence.end()
    side = pattern(p, net.W)
    on, off = (side > 0).any(axis=1), (side < 0).any(axis=1)
    W, a = net.weights()
    beta = least_squares(p)
    gap = np.linalg.norm((a * (on & ~off)) @ W - beta) / np.linalg.norm(beta)
    mixed = np.count_nonzero(on & off & np.isfinite(net.log_norms))
    return [
        equals(mixed, 0, tolerance=0, what="neurons active on some samples only"),
        at_most(gap, 1e-8, what="|sum of a w - beta*| / |beta*|"),
    ]


@experiment("BF24-D2", quick={"m": 300, "t_end": 3000.0}, full={"m": 1000, "t_end": 3000.0})
def unbalanced_interpolates(seed: int, m: int, t_end: float) -> Comparison:
    """An unbalanced start on Assumption-3 data reaches a global minimum."""
    from reluflow.gradientflow.flow import flow
    from reluflow.gradientflow.stops import loss_below

    problem = datasets.a3c()
    net = initialize(problem, m, scale=1e-3, kind="gaussian", rng=seed)
    run = flow(problem, net, t_end=t_end, stop=loss_below(1e-9))
    return at_most(run.loss[-1], 1e-8, what="loss at the end")


# Early alignment: Theorems 1 and 3, Lemma 13
EARLY: dict[str, Any] = {"needs": ("path", "start", "time"), "quick": {"m": 200}}
ALIGN = [gradient_flow, smooth_loss, dominated_start, generic_data]
TINY = {"m": 200, "log_scale": -320.0, "t_end": 120.0}
READINGS = (
    "one clause, and a matter of how lambda* is read: with lambda* of Eq. 22, or any number of "
    "the data and alpha_0 alone, some neurons are still on their way at tau; read as small enough "
    "for the given eps too (t_2 <= tau, so lambda* <= exp(-t_2 D_max/eps)), it holds, and so do "
    "(i) and the bound of (ii) as they are"
)
PRACTICAL = "at practical scales the bound, with the constant of Eq. {}, says nothing"
for _form, _part, _check, _quick, _status, _reason in (
    ("repaired", "i", alignment.outer_weights_stay, {"m": 200}, None, ""),
    ("repaired", "ii", alignment.neurons_align, TINY, None, ""),
    (
        "repaired",
        "ii-practical",
        alignment.neurons_align,
        {"m": 200},
        Status.OUT_OF_SCOPE,
        PRACTICAL.format(37),
    ),
    ("printed", "ii", alignment.threshold_alone, {"m": 200}, None, READINGS),
    ("printed", "ii-eps", alignment.threshold_of_data_alone, TINY, None, READINGS),
):
    claim(
        "BF24-T1",
        form=_form,
        part=_part,
        example=aligning,
        needs=EARLY["needs"],
        given=[*ALIGN, no_saddle, *([stays_on_faces] if _part != "i" else [])],
        quick=_quick,
        full={"m": 5000},
        expected=_status,
        reason=_reason,
    )(_check)
experiment(
    "BF24-T1",
    form="repaired",
    part="ii-rate",
    full={"m": 5000},
    quick={"m": 200, "logs": (-6.0, -10.0, -14.0, -20.0)},
)(alignment.defect_slope)
experiment("BF24-T1", form="repaired", part="constants", quick={"sets": 20}, full={"sets": 200})(
    early.constants_by_definition
)
experiment(
    "BF24-T1",
    form="repaired",
    part="ends",
    quick={"sets": 4, "m": 200},
    full={"sets": 20, "m": 1000},
)(early.ends_of_neurons)
experiment(
    "BF24-T1", form="repaired", part="course", quick={"sets": 3, "m": 40}, full={"sets": 20}
)(early.course_of_neurons)
for _part, _quick, _status, _reason in (
    ("ii", {"m": 100}, Status.HOLDS, "at a scale of about e^-90000 the bound says something"),
    ("ii-practical", {"m": 100, "log_scale": -20.0}, None, PRACTICAL.format(40)),
):
    claim(
        "BF24-T3",
        part=_part,
        example=alignment.among_saddles,
        needs=EARLY["needs"],
        given=[*ALIGN, stays_on_faces],
        quick=_quick,
        full={"m": 1000},
        expected=_status,
        reason=_reason,
    )(alignment.neurons_align_among_saddles)
claim("BF24-L13", example=aligning, given=[*ALIGN, no_saddle], **EARLY, full={"m": 5000})(
    alignment.patterns_freeze
)
experiment("BF24-Cond1", quick={"m": 100}, full={"m": 1000})(alignment.starts_well)
experiment("BF24-Cond2", quick={"m": 100}, full={"m": 1000})(alignment.stays_where_it_can)

# Phases 1 to 3: Lemmas 4 to 6, 15 to 24, Corollary 1
claim(
    "BF24-L4",
    needs=EARLY["needs"],
    example=converged,
    quick={"m": 200},
    full={"m": 5000},
    given=[gradient_flow, positive_data, half_square, no_leak, dominated_start],
    unchecked=[SMALL_SCALE],
)(growth.first_phase)
GROWTH = [gradient_flow, positive_data, dominant_extremes, half_square, no_leak, dominated_start]
for _id, _check in (
    ("BF24-L5", growth.bundle_forms),
    ("BF24-L6", growth.line_is_near),
    ("BF24-L16", growth.bundle_is_bounded),
    ("BF24-L17", growth.bundle_stays_inside),
    ("BF24-L18", growth.bundle_keeps_its_size),
):
    claim(
        _id,
        example=phased,
        given=GROWTH,
        needs=EARLY["needs"],
        unchecked=[SMALL_SCALE],
        quick={"m": 200},
        full={"m": 2000},
    )(_check)
for _id, _check in (
    ("BF24-L19", late.outputs_near_line),
    ("BF24-L20", late.mixed_neurons_fade),
    ("BF24-L21", late.gradient_dominates),
    ("BF24-L22", late.excess_decays),
    ("BF24-L23", late.push_is_integrable),
    ("BF24-L24", late.neurons_stay),
    ("BF24-C1", late.neighbourhood_is_kept),
):
    claim(
        _id,
        example=phased,
        given=[*GROWTH, fading],
        needs=EARLY["needs"],
        unchecked=[SMALL_SCALE],
        quick={"m": 200},
        full={"m": 2000},
    )(_check)
RERUN = "scales were chosen after first results; seeds 0 to 4 agree"
EPS3S: dict[str, Any] = {"m": 100, "eps3": (1e-4, 1e-5)}
RATE: dict[str, Any] = {"part": "rate", "full": {"m": 1000}, "reason": RERUN}
experiment("BF24-L5", quick={"m": 100, "logs": (-14.0, -18.0, -22.0)}, **RATE)(
    growth.bundle_tightens
)
experiment("BF24-L23", quick=EPS3S, **RATE)(late.push_is_of_order_eps3)
experiment("BF24-L24", quick=EPS3S, **RATE)(late.moves_are_of_order_eps3)
TINIER: dict[str, Any] = {"m": 100, "logs": (-40.0, -60.0, -80.0, -120.0)}
experiment("BF24-L4", quick=TINIER, **RATE)(growth.bundle_aligns)
experiment("BF24-L15", quick=TINIER, full={"m": 1000}, reason=RERUN)(growth.aligned_by_tau)

# Ends: Theorem 4, Assumption 6 in three dimensions, remarks
QUICK_SETS: dict[str, Any] = {"sets": 3, "m": 60, "d": 2}
FULL_SETS: dict[str, Any] = {"sets": 20, "m": 500}
experiment("BF24-T4", form="repaired", quick=QUICK_SETS, full=FULL_SETS)(ends.line_in_the_cone)
experiment(
    "BF24-T4",
    form="repaired",
    part="d3",
    quick={**QUICK_SETS, "d": 3},
    full=FULL_SETS,
    expected=Status.OUT_OF_SCOPE,
    reason="Assumption 6 (1) contradicts Assumption 4 for d >= 3: no data satisfy both",
)(ends.line_in_the_cone)
experiment(
    "BF24-T4",
    form="control",
    part="d3-end",
    quick={**QUICK_SETS, "d": 3},
    full=FULL_SETS,
    reason="without Assumption 6, which no such data satisfy: the end is the line all the same",
)(ends.line_without_fading)
experiment("BF24-T4", form="printed", quick=QUICK_SETS, full=FULL_SETS)(ends.line_everywhere)
experiment("BF24-A6", part="d3", quick={"sets": 10}, full={"sets": 100})(
    ends.three_dimensions_never_fade
)
experiment(
    "BF24-D1",
    quick={"m": 50},
    full={"m": 1000},
    reason="each neuron is moved by half its own distance to a hyperplane; a first try moved all "
    "by that of the nearest, which changed the loss by less than rounding",
)(ends.kind_of_end)
experiment(
    "BF24-D3",
    quick={"widths": (10, 100, 1000, 10_000), "starts": 1},
    full={"widths": (10, 100, 1000, 10_000, 100_000, 1_000_000), "starts": 3},
)(ends.width_does_not_matter)
experiment(
    "BF24-D3",
    part="threshold",
    quick={"widths": (60, 120, 240), "steps": 6},
    full={"widths": (20, 60, 200, 600, 2000)},
)(ends.width_leaves_the_threshold)
experiment("BF24-D4", quick={"sets": 3, "m": 60}, full=FULL_SETS)(ends.best_with_its_neurons)
