"""`explain` with several outputs: predict, simulate, compare, each stage within its means."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from reluflow.claims.certify import certify
from reluflow.claims.compare import compare
from reluflow.explanation.multioutput.end import least_margin, train_on
from reluflow.explanation.multioutput.explanation import VectorExplanation
from reluflow.explanation.multioutput.quantities import confusion, errors, separations
from reluflow.explanation.settings import GUARD, STATE_BYTES, Settings, has_pull, too_large
from reluflow.explanation.simulate import finished_run
from reluflow.explanation.stages import NO_PULL, Stages
from reluflow.landscape.align_multioutput import VectorAlignment, align
from reluflow.landscape.estimate import ENTRIES
from reluflow.landscape.estimate_multioutput import estimated_directions
from reluflow.landscape.multioutput import VectorExtremals, extremal_vectors
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
PATHS = 2e9  # neurons times n^2 d that are followed to their direction
PREDICTED = 2e5  # n d up to which the limit process is computed
EVERYBODY = 2e6  # m n d up to which that is done for every neuron of the start
TOPS = 6  # directions of infinite width beyond it, the fastest ones found
PREDICTION = 0.25  # share of a stage's budget for the limit process
JUMPS, FEW_JUMPS = 3, 2  # of the limit process that are predicted; of infinite width
MARGINS, LABELS = 1e4, 1e3  # n d K up to which the largest margin, the least norm are searched
ROUNDS = 12  # of that search
UNFOLLOWED = "a fast phase would pass too many hyperplanes one by one; only its begin is predicted"
ASCENTS = 1e9  # starts times n d K of the search for directions
WORK, BATCH_WORK = 6e11, 3e12  # multiplications of the descent, on all samples and in batches
SHORT = 6e9  # multiplications with which a descent goes on beyond its horizon
BATCH = 4096  # samples in a step where a descent on all of them would be beyond `WORK`
RECORDS, LATER, FEW = 240, 60, 80  # within the horizon, beyond it, of a descent in batches
CONDITIONS = 2e5  # m n K up to which the conditions of the end are looked at


def explain_vectors(
    problem: Problem, settings: Settings, stages: Stages, place: Path | None = None
) -> VectorExplanation:
    """Predict, simulate and describe, each stage within its means.

    What a killed explanation left in ``place`` is used again.
    """
    net = initialize(problem, settings.m, settings.scale, rng=settings.seed)
    idle = "" if has_pull(problem) else NO_PULL
    landscape = stages.need("directions", lambda: find_directions(problem))
    alignment = stages.run(
        "alignment",
        lambda: follow(problem, net, landscape),
        "" if problem.n * problem.X.size <= PATHS else too_large(problem),
    )
    key = settings.key(problem)
    process = stages.run(
        "limit process",
        lambda: predict(problem, net, landscape, settings),
        idle or ("" if problem.X.size <= PREDICTED else UNFOLLOWED),
    )
    if process is not None and not process.n_jumps:
        stages.skipped["limit process"], process = process.status, None
    optimum = stages.run("optimum", lambda: best_network(problem), idle)
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
    if problem.loss.margin and not idle and least_margin(problem, run.final) > 0.0:
        late = stages.run("late phase", lambda: train_on(problem, run.final), much) or run.final
        conditions = stages.run("end", lambda: kkt(problem, late), much)
    elif not problem.loss.margin and not idle:
        point = stages.run("end", lambda: stationarity(problem, run.final), much)
    claims = stages.run("claims", lambda: certify(problem, run), why_no_claims(run))
    return VectorExplanation(
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


def find_directions(problem: Problem) -> VectorExtremals:
    """Directions to which small neurons turn: exact, found or, on large data, estimated."""
    if problem.X.size > ENTRIES and has_pull(problem):
        return estimated_directions(problem)
    starts = int(np.clip(ASCENTS / (40.0 * problem.X.size * problem.K), 16, 400))
    return extremal_vectors(problem, starts=starts)


def follow(problem: Problem, net: Network, landscape: VectorExtremals) -> VectorAlignment:
    """Early alignment of the neurons, on large data of the first ones of the start.

    A path meets up to about n hyperplanes, and each costs a pass over the data.
    """
    some = int(np.clip(PATHS / (problem.n * problem.X.size), 1, net.m))
    return align(problem, net.subset(np.arange(some)), extremal=landscape)


def predict(
    problem: Problem, net: Network, landscape: VectorExtremals, settings: Settings
) -> VectorProcess:
    """The first jumps of this start; on large data of infinite width, the directions found.

    Their budget is counted in work, so that a killed explanation comes to the same jumps again.
    Ctrl-C ends the explanation.
    """
    wide = float(net.m) * problem.X.size > EVERYBODY
    process = limit(
        problem,
        None if wide else net,
        max_jumps=FEW_JUMPS if wide else JUMPS,
        max_seconds=PREDICTION * settings.seconds,
        counted=True,
        extremal=landscape,
        most=TOPS,
    )
    if process.interrupted:
        raise KeyboardInterrupt
    return process


def why_no_claims(run: Trajectory) -> str:
    """Why no theorem is checked on a run; those that carry over are conservation laws."""
    if "rtol" not in run.settings:
        return "what is proved for several outputs is about gradient flow, and this is descent"
    return "" if run.networks else "the networks of the run are too large to be recorded"


def best_network(problem: Problem) -> NetworkMargin | MinNorm:
    """The largest margin, or the least norm of an interpolator: between bounds, or bounded only.

    The program that finds a network has n K conditions: on large data the bound stands alone.
    """
    most = MARGINS if problem.loss.margin else LABELS
    rounds = ROUNDS if problem.X.size * problem.K <= most else 0
    if problem.loss.margin:
        return max_margin(problem, rounds=rounds)
    return min_norm(problem, rounds=rounds)


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
    if process is not None and process.signs.size == net.m:  # else it is of another start
        jumps = process.jump_times(log_scale=float(net.log_norms.max()))
        horizon = max(horizon, 2.0 * float(jumps[-1]))
    if settings.lr is None and net.m * problem.n <= LOCATED:
        from reluflow.gradientflow.flow import flow
        from reluflow.gradientflow.stops import Worked

        return flow(
            problem,
            net,
            t_end=horizon,
            save=every(horizon / RECORDS),
            observe=observe,
            states=RECORDS * net.m * (problem.d + problem.K) * 8 <= STATE_BYTES,
            stop=Worked(settings.seconds),
            max_seconds=GUARD * settings.seconds,
            checkpoint=checkpoint,
        )
    from reluflow.descent.descend import descend

    lr = settings.lr if settings.lr is not None else usual_step(problem)
    needed, each = max(int(horizon / lr), 200), 6.0 * net.m * problem.X.size
    batch = BATCH if needed * each > WORK and problem.n > 2 * BATCH else None
    if batch is not None:
        each *= batch / problem.n
    most = int(np.clip((WORK if batch is None else BATCH_WORK) / each, 200, 20_000))
    steps = settings.steps or min(max(needed, int(SHORT / each)), most)
    return descend(
        problem,
        net,
        lr=lr,
        steps=steps,
        save=records(min(needed, steps), steps, batch is None),
        observe=observe,
        batch_size=batch,
        rng=settings.seed,
        dtype="float64" if batch is None else "float32",
        backend="auto" if batch is None else "dense",
        checkpoint=checkpoint,
    )


def records(needed: int, steps: int, all_samples: bool = True) -> list[int]:
    """Steps to record: densely while things are expected to happen, now and then afterwards.

    In batches a record costs more than many steps, and there are few.
    """
    within, beyond = (RECORDS, LATER) if all_samples else (FEW, FEW // 4)
    first = np.linspace(0, needed, within + 1)
    after = np.linspace(needed, steps, beyond + 1)
    return [int(step) for step in np.unique(np.concatenate([first, after]).astype(int))]


def usual_step(problem: Problem) -> float:
    """A step at which descent of a network of moderate size is stable and follows the flow."""
    top = float(np.linalg.norm(problem.X, 2)) ** 2 if problem.X.size < 1 << 22 else largest(problem)
    bend = problem.loss.curvature if np.isfinite(problem.loss.curvature) else 1.0
    return 0.3 / max(problem.weight * bend * top, 1e-300)


def largest(problem: Problem) -> float:
    """The largest eigenvalue of X^T X, from above, by the power method with its residual."""
    v = np.ones(problem.d)
    for _ in range(30):
        v /= np.linalg.norm(v)
        w = problem.X.T @ (problem.X @ v)
        value = float(v @ w)
        error = float(np.linalg.norm(w - value * v))
        if error <= 1e-2 * value or not value > 0.0:
            break
        v = w
    return value + error
