"""`explain` with several outputs: predict, simulate, compare, each stage within its means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from reluflow.claims.certify import certify
from reluflow.claims.compare import compare
from reluflow.explanation.files import kept_in
from reluflow.explanation.multioutput.end import train_on
from reluflow.explanation.multioutput.explanation import VectorExplanation
from reluflow.explanation.multioutput.quantities import confusion, errors, separations
from reluflow.explanation.settings import Settings, has_pull, too_large
from reluflow.explanation.simulate import finished_run
from reluflow.explanation.stages import NO_PULL, Stages
from reluflow.landscape.multioutput import (
    VectorAlignment,
    VectorExtremals,
    align,
    extremal_vectors,
)
from reluflow.network import Network, initialize
from reluflow.optimum.max_margin import NetworkMargin
from reluflow.optimum.min_norm import MinNorm
from reluflow.optimum.multioutput import kkt, max_margin, min_norm, stationarity
from reluflow.prediction.multioutput.limit import limit
from reluflow.prediction.multioutput.process import VectorProcess
from reluflow.problem import Problem
from reluflow.runtime.checkpoint import KeptFile
from reluflow.trajectory import Observable, Trajectory, every

LOCATED = 20_000  # neurons times samples up to which the simulation is gradient flow
PATHS = 5e8  # neurons times n^2 d that are followed to their direction
PREDICTED = 2e4  # n d up to which the limit process is computed
EVERYBODY = 2e6  # m n d up to which that is done for every neuron of the start
TOPS = 3  # directions of infinite width beyond it, the fastest ones found
JUMPS = 3  # of the limit process that are predicted
MARGINS, LABELS = 1e4, 1e3  # n d K up to which the largest margin, the least norm are searched
ROUNDS = 12  # of that search
UNFOLLOWED = "a fast phase would pass too many hyperplanes one by one; only its begin is predicted"
ASCENTS = 1e9  # starts times n d K of the search for directions
WORK = 6e11  # multiplications of the descent
CONDITIONS = 2e5  # m n K up to which the conditions of the end are looked at


def explain_vectors(
    problem: Problem,
    settings: Settings,
    stages: Stages,
    announce: Callable[[str, str], None],
    place: Path | None = None,
) -> VectorExplanation:
    """Predict, simulate and describe, each stage within its means.

    What a killed explanation left in ``place`` is used again.
    """
    net = initialize(problem, settings.m, settings.scale, rng=settings.seed)
    idle = "" if has_pull(problem) else NO_PULL
    starts = int(np.clip(ASCENTS / (40.0 * problem.X.size * problem.K), 16, 400))
    landscape = stages.need("directions", lambda: extremal_vectors(problem, starts=starts))
    alignment = stages.run(
        "alignment",
        lambda: follow(problem, net, landscape),
        "" if problem.n * problem.X.size <= PATHS else too_large(problem),
    )
    key = settings.key(problem)
    process = stages.run(
        "limit process",
        lambda: predict(problem, net, landscape, settings, kept_in(place, f"limit-{key}")),
        idle or ("" if problem.X.size <= PREDICTED else UNFOLLOWED),
    )
    if process is not None and not process.n_jumps:
        stages.skipped["limit process"], process = process.status, None
    optimum = stages.run("optimum", lambda: best_network(problem), idle or why_no_optimum(problem))
    run = stages.need(
        "simulation",
        lambda: finished_run(
            place, key, lambda kept: simulate(problem, net, settings, landscape, process, kept)
        ),
    )
    compared = None
    if process is not None:
        scale, end = float(net.log_norms.max()), float(run.loss[-1])
        seen = run if process.signs.size == net.m else replace(run, networks=None)
        compared = compare(process, seen, run.flow_times, scale, end)
    conditions, point, late = None, None, run.final
    much = "" if net.m * problem.n * problem.K <= CONDITIONS else too_large(problem)
    if problem.loss.margin and not idle:
        late = stages.run("late phase", lambda: train_on(problem, run.final), much) or run.final
        conditions = stages.run("end", lambda: kkt(problem, late), much)
    elif not idle:
        point = stages.run("end", lambda: stationarity(problem, run.final), much)
    claims = stages.run(
        "claims", lambda: certify(problem, run), "" if run.networks else "no networks were recorded"
    )
    found = VectorExplanation(
        problem=problem,
        net=net,
        settings=settings,
        landscape=landscape,
        alignment=alignment,
        process=process,
        run=run,
        kkt=conditions,
        comparison=compared,
        point=point,
        optimum=optimum,
        late=late,
        skipped=stages.skipped,
        claims=tuple(claims or ()),
    )
    for topic, text in found.verdict:
        announce(topic, text)
    return found


def follow(problem: Problem, net: Network, landscape: VectorExtremals) -> VectorAlignment:
    """Early alignment of the neurons, on large data of the first ones of the start.

    A path meets up to about n hyperplanes, and each costs a pass over the data.
    """
    some = int(np.clip(PATHS / (problem.n * problem.X.size), 1, net.m))
    return align(problem, net.subset(np.arange(some)), extremal=landscape)


def predict(
    problem: Problem,
    net: Network,
    landscape: VectorExtremals,
    settings: Settings,
    checkpoint: KeptFile | None = None,
) -> VectorProcess:
    """The first jumps of this start; on large data of infinite width, the directions found.

    Ctrl-C ends the explanation.
    """
    start, jumps, share = net, JUMPS, 0.2
    if float(net.m) * problem.X.size > EVERYBODY:
        tops = landscape.of_kind("max")[:TOPS]
        V, A = landscape.vectors[tops], landscape.outer[tops]
        start, jumps, share = Network(V, A, leak=problem.leak, bias=problem.bias), 1, 0.5
    budget = share * settings.seconds
    process = limit(problem, start, max_jumps=jumps, max_seconds=budget, checkpoint=checkpoint)
    if process.interrupted:
        raise KeyboardInterrupt
    return process


def why_no_optimum(problem: Problem) -> str:
    """Why the best network of any width is not searched; empty where it is."""
    most = MARGINS if problem.loss.margin else LABELS
    if problem.X.size * problem.K <= most:
        return ""
    return "the best network of any width is searched for small data only"


def best_network(problem: Problem) -> NetworkMargin | MinNorm:
    """The largest margin, or the least norm of an interpolator, between bounds."""
    if problem.loss.margin:
        return max_margin(problem, rounds=ROUNDS)
    return min_norm(problem, rounds=ROUNDS)


def simulate(
    problem: Problem,
    net: Network,
    settings: Settings,
    landscape: VectorExtremals,
    process: VectorProcess | None,
    checkpoint: KeptFile | None = None,
) -> Trajectory:
    """Gradient flow for small data, gradient descent with a small step otherwise."""
    classes = problem.classes is not None
    observe = [
        Observable("separations", separations, ("class", "other_class"), of_outputs=True),
        Observable("confusion", confusion, ("class", "predicted_class"), of_outputs=True),
        "accuracy",
    ]
    if not classes:
        observe = [Observable("errors", errors, ("output",), of_outputs=True)]
    rate = float(landscape.values.max(initial=0.0)) or problem.total_pull or 1.0
    horizon = 4.0 * max(-float(net.log_norms.max()), 1.0) / rate
    if process is not None:
        jumps = process.jump_times(log_scale=float(net.log_norms.max()))
        horizon = max(horizon, 2.0 * float(jumps[-1]))
    if settings.lr is None and net.m * problem.n <= LOCATED:
        from reluflow.gradientflow.flow import flow

        return flow(
            problem,
            net,
            t_end=horizon,
            save=every(horizon / 240),
            observe=observe,
            max_seconds=settings.seconds,
            checkpoint=checkpoint,
        )
    from reluflow.descent.descend import descend

    lr = settings.lr if settings.lr is not None else usual_step(problem)
    most = int(np.clip(WORK / (6.0 * net.m * problem.X.size), 200, 20_000))
    steps = settings.steps or int(np.clip(horizon / lr, 200, most))
    recorded: dict[str, Any] = {"save": every(max(1, steps // 300)), "observe": observe}
    return descend(problem, net, lr=lr, steps=steps, checkpoint=checkpoint, **recorded)


def usual_step(problem: Problem) -> float:
    """A step at which descent of a network of moderate size is stable and follows the flow."""
    top = (
        float(np.linalg.norm(problem.X, 2)) ** 2
        if problem.X.size < 1 << 22
        else float(np.sum(problem.norms**2))
    )
    bend = problem.loss.curvature if np.isfinite(problem.loss.curvature) else 1.0
    return 0.3 / max(problem.weight * bend * top, 1e-300)
