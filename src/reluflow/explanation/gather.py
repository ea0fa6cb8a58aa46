"""The stages of an explanation, one after the other, each within its means."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from reluflow.claims.compare import compare
from reluflow.errors import ReluflowError
from reluflow.explanation.end import fitted, from_large, groups_of, interpolator
from reluflow.explanation.explanation import Explanation
from reluflow.explanation.files import RUN, WORK, prepare
from reluflow.explanation.proofs import (
    certificates_of,
    claims_of,
    conditions,
    optimum_of,
    why_no_optimum,
)
from reluflow.explanation.settings import (
    SMALL_RUN,
    Settings,
    ascents,
    can_follow,
    search_method,
    too_large,
)
from reluflow.explanation.simulate import (
    fastest_possible,
    horizon_of,
    marked,
    real_times,
    simulate,
    stored,
)
from reluflow.explanation.stages import STAGES, Stages
from reluflow.gradientflow.warm import FlowKernels
from reluflow.landscape.estimate import ENTRIES, estimated_directions
from reluflow.network import Network, initialize
from reluflow.problem import Problem
from reluflow.runtime import Progress


def gather(
    problem: Problem, settings: Settings, folder: Path | None, progress: bool | str
) -> Explanation:
    """Everything an explanation holds."""
    key = settings.key(problem)
    if folder is not None:
        prepare(folder)
    kernels = FlowKernels(needed=settings.lr is None)
    with kernels, Progress(len(STAGES), "explain", progress, overall=True) as bar:
        return _gather(problem, settings, folder, key, Stages(bar, kernels))


def _gather(
    problem: Problem, settings: Settings, folder: Path | None, key: str, stages: Stages
) -> Explanation:
    from reluflow.landscape.align import align

    net = initialize(problem, settings.m, settings.scale, rng=settings.seed)
    log_scale = float(net.log_norms.max())
    large = "" if can_follow(problem, net.m) else too_large(problem)
    landscape = stages.run("directions", lambda: _landscape(problem, net))
    if landscape is None:
        raise ReluflowError(stages.skipped["directions"])
    alignment = stages.run(
        "alignment", lambda: align(problem, net, paths=False, extremal=landscape), large
    )
    process = stages.run("limit process", lambda: _limit(problem, net, settings.seconds), large)
    wide = stages.run(
        "infinite width",
        lambda: _limit(problem, None, 0.5 * settings.seconds),
        large or ("" if landscape.exact else "not all directions are known"),
    )
    optimum = stages.run("optimum", lambda: optimum_of(problem), why_no_optimum(problem))
    last = None
    if process is not None and process.n_jumps:
        last = float(process.jump_times(log_scale=log_scale)[-1])
    fastest = float(landscape.rates.max(initial=0.0)) or fastest_possible(problem)
    horizon = horizon_of(net, fastest, last)

    def train() -> Any:
        if stages.kernels.busy:
            stages.show("simulation")
            stages.kernels.wait()
        ready = None if folder is None else _ready(folder, key)
        if ready is not None:
            return ready
        saved = None if folder is None else folder / WORK / f"{key[:16]}.npz"
        run = marked(simulate(problem, net, settings, horizon, saved, "auto"), key)
        if run.status.code == "interrupted":
            raise KeyboardInterrupt
        if folder is not None:
            run.save(folder / WORK / RUN)
        return run

    run = stages.run("simulation", train)
    if run is None:
        raise ReluflowError(stages.skipped["simulation"])
    f = problem.outputs(run.final)
    loss = float(np.exp(problem.log_value(f)))
    compared, seen = None, None
    if process is not None and process.ending not in ("budget", "unresolved"):
        compared = compare(process, run, real_times(run), log_scale, loss)
    elif process is not None:
        stages.skipped["limit process"], process = process.status, None
    if compared is None and len(run) >= 3:
        from reluflow.trajectory.phases import phases

        seen = phases(run)
    groups = groups_of(problem, run.final)
    point, multipliers = conditions(stages, problem, run)
    small, big = None, None
    light = net.m * problem.X.size <= SMALL_RUN
    done = bool(fitted(problem, f).all())
    if point is not None and point.gain > 0.0 and optimum is not None and not done:
        small = interpolator(problem, point) if light else None
    big = stages.run(
        "larger scale", lambda: from_large(problem, net), "" if light else too_large(problem)
    )
    claims = stages.run(
        "claims",
        lambda: claims_of(problem, run, net),
        large or ("" if process else "no prediction"),
    )
    return Explanation(
        problem=problem,
        net=net,
        settings=settings,
        landscape=landscape,
        alignment=alignment,
        process=process,
        wide=wide,
        run=run,
        groups=groups,
        comparison=compared,
        seen=seen,
        point=point,
        kkt=multipliers,
        optimum=optimum,
        small=small,
        large=big,
        certificates=tuple(certificates_of(problem, run, point, optimum)),
        claims=tuple(claims or ()),
        skipped=stages.skipped,
    )


def _limit(problem: Problem, net: Network | None, seconds: float) -> Any:
    """The limit process; Ctrl-C, which cuts it short like a budget, ends the explanation."""
    from reluflow.prediction.limit import limit

    began = time.monotonic()
    process = limit(problem, net, max_seconds=seconds)
    if process.ending == "budget" and time.monotonic() - began < seconds:
        raise KeyboardInterrupt
    return process


def _landscape(problem: Problem, net: Network) -> Any:
    """Directions to which small neurons turn: exact, found or estimated."""
    if problem.X.size > ENTRIES:
        return estimated_directions(problem, net)
    from reluflow.landscape.extremal import extremal_vectors

    return extremal_vectors(problem, method=search_method(problem), starts=ascents(problem))


def _ready(folder: Path, key: str) -> Any:
    """The finished run of an explanation that was cut short, or made before."""
    return stored(folder / WORK / RUN, key) or stored(folder / RUN, key)
