"""The stages of an explanation, one after the other, each within its means."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from reluflow.app.explain import Explanation
from reluflow.app.explain_compare import compare
from reluflow.app.explain_end import from_large, groups_of, interpolator
from reluflow.app.explain_files import RUN, WORK, prepare
from reluflow.app.explain_kernels import NOTE, FlowKernels
from reluflow.app.explain_run import horizon_of, marked, real_times, simulate, stored
from reluflow.app.explain_search import ENTRIES, estimated_directions
from reluflow.app.explain_settings import (
    KKT_ENTRIES,
    LINEAR,
    SMALL_RUN,
    Settings,
    ascents,
    can_follow,
    can_optimise,
    search_method,
)
from reluflow.errors import ReluflowError
from reluflow.network import initialize
from reluflow.problem import Problem
from reluflow.runtime import Progress

T = TypeVar("T")
STAGES = (
    "directions", "alignment", "limit process", "infinite width", "simulation", "end", "optimum",
    "larger scale", "claims",
)  # fmt: skip
_LARGE = "the data are too large for it ({} samples, {} features)"


class Stages:
    """Runs stages, remembers why one is missing, and shows how far things are."""

    def __init__(self, bar: Progress, kernels: FlowKernels) -> None:
        self.bar, self.kernels = bar, kernels
        self.skipped: dict[str, str] = {}
        self._began = time.monotonic()
        self._done = 0

    def show(self, note: str) -> None:
        """What is being done now."""
        compiling = f", {NOTE}" if self.kernels.busy else ""
        self.bar.update(self._done, time.monotonic() - self._began, note + compiling)

    def run(self, name: str, work: Callable[[], T], why_not: str = "") -> T | None:
        """The result of a stage, None when it is left out or cannot be done."""
        self.show(name)
        self._done += 1
        if why_not:
            self.skipped[name] = why_not
            return None
        try:
            return work()
        except ReluflowError as error:
            self.skipped[name] = str(error)
            return None


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
    from reluflow.prediction.limit import limit

    net = initialize(problem, settings.m, settings.scale, rng=settings.seed)
    log_scale = float(net.log_norms.max())
    large = "" if can_follow(problem, net.m) else _LARGE.format(f"{problem.n:,}", problem.d)
    landscape = stages.run("directions", lambda: _landscape(problem))
    if landscape is None:
        raise ReluflowError(stages.skipped["directions"])
    alignment = stages.run(
        "alignment", lambda: align(problem, net, paths=False, extremal=landscape), large
    )
    process = stages.run(
        "limit process", lambda: limit(problem, net, max_seconds=settings.seconds), large
    )
    wide = stages.run(
        "infinite width",
        lambda: limit(problem, max_seconds=0.5 * settings.seconds),
        large or ("" if landscape.exact else "not all directions are known"),
    )
    last = None
    if process is not None and process.n_jumps:
        last = float(process.jump_times(log_scale=log_scale)[-1])
    horizon = horizon_of(problem, net, float(landscape.rates.max()), last)

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
    point, conditions = _conditions(stages, problem, run)
    optimum = stages.run("optimum", lambda: _optimum(problem), _not_optimum(problem))
    small, big = None, None
    light = net.m * problem.X.size <= SMALL_RUN
    fitted = loss <= 1e-8 * float(problem.value(np.zeros(problem.n)))
    if point is not None and point.gain > 0.0 and optimum is not None and not fitted:
        small = interpolator(problem, point) if light else None
    big = stages.run(
        "larger scale", lambda: from_large(problem, net), "" if light else _LARGE.format(
            f"{problem.n:,}", problem.d)
    )  # fmt: skip
    claims = stages.run(
        "claims", lambda: _claims(problem, run, net), large or ("" if process else "no prediction")
    )
    return Explanation(
        problem=problem, net=net, settings=settings, landscape=landscape, alignment=alignment,
        process=process, wide=wide, run=run, groups=groups, comparison=compared, seen=seen,
        point=point, kkt=conditions, optimum=optimum, small=small, large=big,
        certificates=tuple(_certificates(problem, run, point, optimum)),
        claims=tuple(claims or ()), skipped=stages.skipped,
    )  # fmt: skip


def _landscape(problem: Problem) -> Any:
    """Directions to which small neurons turn: exact, found or estimated."""
    if problem.X.size > ENTRIES:
        return estimated_directions(problem)
    from reluflow.landscape.extremal import extremal_vectors

    return extremal_vectors(problem, method=search_method(problem), starts=ascents(problem))


def _ready(folder: Path, key: str) -> Any:
    """The finished run of an explanation that was cut short, or made before."""
    return stored(folder / WORK / RUN, key) or stored(folder / RUN, key)


def _conditions(stages: Stages, problem: Problem, run: Any) -> tuple[Any, Any]:
    """(stationarity, None) for square losses, (None, KKT) for margin losses."""
    much = "" if run.final.m * problem.n <= KKT_ENTRIES else _LARGE.format(problem.n, problem.d)
    if problem.loss.margin:
        from reluflow.optimum.kkt import kkt

        return None, stages.run("end", lambda: kkt(problem, run.final), much)
    from reluflow.optimum.stationarity import stationarity

    return stages.run("end", lambda: stationarity(problem, run.final), much), None


def _not_optimum(problem: Problem) -> str:
    if can_optimise(problem):
        return ""
    return "the best network of any width is searched for small data only"


def _optimum(problem: Problem) -> Any:
    if problem.loss.margin:
        from reluflow.optimum.max_margin import max_margin

        return max_margin(problem)
    from reluflow.optimum.min_norm import min_norm

    return min_norm(problem)


def _certificates(problem: Problem, run: Any, point: Any, optimum: Any) -> list[Any]:
    from reluflow.optimum.certificate import (
        certificates,
        margin_certificate,
        norm_certificate,
        point_certificate,
    )

    found: list[Any] = []
    if problem.loss.margin:
        small = run.final.m * problem.n <= KKT_ENTRIES
        kinds = (["kkt-margin"] if small else []) + (
            ["max-margin-linear"] if problem.X.size <= LINEAR else []
        )
        for kind in kinds:
            try:
                found += certificates(problem, run.final, [kind])
            except ReluflowError:  # does not hold here
                continue
        if optimum is not None:
            found.append(margin_certificate(problem, optimum))
    else:
        if point is not None:
            names = ("stationary", "not-global", "global-minimum")
            found += [point_certificate(problem, point, kind) for kind in names]
        if optimum is not None:
            found.append(norm_certificate(problem, optimum))
    return [certificate for certificate in found if certificate is not None]


def _claims(problem: Problem, run: Any, net: Any) -> Any:
    from reluflow.claims.certify import certify
    from reluflow.claims.verdict import Status

    found = certify(problem, run, start=net)
    return [v for v in found if v.status is not Status.OUT_OF_SCOPE]
