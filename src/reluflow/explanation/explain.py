"""The main job: what will a network learn from these data, starting small?"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from reluflow.claims.compare import compare
from reluflow.explanation.end import fitted_samples, groups_of, interpolator, train_from_large
from reluflow.explanation.explanation import Explanation
from reluflow.explanation.files import RUN, WORK, prepare
from reluflow.explanation.settings import SMALL_RUN, Settings, can_follow, has_pull, too_large
from reluflow.explanation.simulate import (
    fastest_possible,
    horizon_of,
    load_finished,
    simulate,
    with_key,
)
from reluflow.explanation.stages import (
    NO_PULL,
    STAGES,
    Stages,
    check_claims,
    check_conditions,
    find_directions,
    find_optimum,
    make_certificates,
    predict_process,
    why_no_optimum,
)
from reluflow.explanation.verdict.course import first_turns, predicted_jumps
from reluflow.gradientflow.warm import FlowKernels
from reluflow.landscape.result import ExtremalVectors
from reluflow.network import Network, initialize
from reluflow.prediction.process import JumpProcess
from reluflow.problem import Problem
from reluflow.runtime import Progress
from reluflow.trajectory import Trajectory
from reluflow.trajectory.phases import Phases

_CUT_SHORT = ("budget", "unresolved")  # endings of a process that predicts nothing further


def explain(
    problem: Problem,
    m: int = 200,
    scale: float = 1e-6,
    seed: int = 0,
    *,
    lr: float | None = None,
    steps: int | None = None,
    out: str | os.PathLike[str] | None = None,
    image_shape: tuple[int, int] | None = None,
    seconds: float = 120.0,
    progress: bool | str = "auto",
    on_sentence: Callable[[str, str], None] | None = None,
) -> Explanation:
    """Say what a network of small weights learns from data: predict, simulate, compare, certify.

    Parameters
    ----------
    problem : Problem
        Data, loss and activation.
    m, scale, seed : int, float, int
        Width, size and seed of the start: balanced Gaussian weights of size scale / sqrt(m).
    lr, steps : float, int, optional
        Simulate gradient descent with this step size, for this many steps (by default three
        times as long as the prediction needs) instead of gradient flow.
    out : path, optional
        Folder for report.html, report.json, run.nc and certificates/. The same call after a kill
        goes on from what is there and gives the same results.
    image_shape : (rows, columns), optional
        Show directions as images.
    seconds : float
        Budget of each long stage; a stage that needs more is cut short or left out, which the
        verdict says.
    progress : bool or "auto"
        Progress display; "auto" shows it on a terminal.
    on_sentence : callable(topic, text), optional
        Called with each part of the verdict as soon as it is known: where neurons turn at first
        and which jumps are predicted come before the simulation, the rest after it.

    Returns
    -------
    Explanation
        ``print`` shows the verdict.

    Examples
    --------
    >>> from reluflow import datasets
    >>> found = explain(datasets.three_points())  # doctest: +SKIP
    >>> found.verdict[0]  # doctest: +SKIP
    ('In short', 'The network of 200 neurons behaves as one neuron and converges to ...')
    """
    settings = Settings(m, scale, seed, lr, steps, seconds, image_shape)
    settings.check(problem)
    folder = None if out is None else Path(out)
    if folder is not None:
        prepare(folder)
    kernels = FlowKernels(needed=lr is None and has_pull(problem))
    with kernels, Progress(len(STAGES), "explain", progress, overall=True) as bar:
        news = Announcer(on_sentence)
        found = _gather(problem, settings, folder, Stages(bar, kernels), news)
    news.announce_all(found.verdict)
    if folder is not None:
        found.write(folder)
    return found


class Announcer:
    """Hands sentences on as they become known, none of them twice."""

    def __init__(self, on_sentence: Callable[[str, str], None] | None) -> None:
        self._hand_on = on_sentence
        self._known: dict[str, str] = {}

    def announce(self, topic: str, text: str) -> None:
        """Hand on what is new: sentences about a topic may repeat, and go on from, earlier ones."""
        new = text.removeprefix(self._known.get(topic, "")).strip()
        self._known[topic] = text
        if new and self._hand_on is not None:
            self._hand_on(topic, new)

    def announce_all(self, verdict: Sequence[tuple[str, str]]) -> None:
        """The whole verdict, without what is known of it."""
        for topic, text in verdict:
            self.announce(topic, text)


def _gather(
    problem: Problem, settings: Settings, folder: Path | None, stages: Stages, news: Announcer
) -> Explanation:
    """Predict, simulate, compare and prove, each stage within its means.

    Where no sample pulls the start rests, or shrinks, for ever: the prediction and the run say
    so, and there is no end to be judged.
    """
    from reluflow.landscape.align import align

    idle = "" if has_pull(problem) else NO_PULL
    net = initialize(problem, settings.m, settings.scale, rng=settings.seed)
    large = "" if can_follow(problem, net.m) else too_large(problem)
    landscape = stages.need("directions", lambda: find_directions(problem, net))
    alignment = stages.run(
        "alignment", lambda: align(problem, net, paths=False, extremal=landscape), large
    )
    news.announce("Directions", first_turns(landscape, alignment))
    process = stages.run(
        "limit process", lambda: predict_process(problem, net, settings.seconds), large
    )
    scale = float(net.log_norms.max())
    if process is not None and process.ending not in _CUT_SHORT:
        news.announce("Jumps", predicted_jumps(process, scale))
    wide = stages.run(
        "infinite width",
        lambda: predict_process(problem, None, 0.5 * settings.seconds),
        idle or large or ("" if landscape.exact else "not all directions are known"),
    )
    optimum = stages.run("optimum", lambda: find_optimum(problem), why_no_optimum(problem))
    horizon = _horizon(problem, net, landscape, process)
    run = stages.need("simulation", lambda: _train(problem, net, settings, horizon, folder, stages))
    if process is not None and process.ending in _CUT_SHORT:
        stages.skipped["limit process"], process = process.status, None
    compared = None
    if process is not None:
        loss = float(np.exp(problem.log_value(problem.outputs(run.final))))
        compared = compare(process, run, run.flow_times, scale, loss)
    point, multipliers, small = None, None, None
    light = net.m * problem.X.size <= SMALL_RUN
    if not idle:
        point, multipliers = check_conditions(stages, problem, run)
        improves = point is not None and point.gain > 0.0 and optimum is not None
        if point is not None and improves and light and not _fits(problem, run.final):
            small = interpolator(problem, point)
    bigger = stages.run(
        "larger scale",
        lambda: train_from_large(problem, net),
        idle or ("" if light else too_large(problem)),
    )
    claims = stages.run(
        "claims",
        lambda: check_claims(problem, run, net),
        idle or large or ("" if process else "no prediction"),
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
        groups=() if idle else groups_of(problem, run.final),
        comparison=compared,
        seen=_phases(run) if compared is None else None,
        point=point,
        kkt=multipliers,
        optimum=optimum,
        small=small,
        large=bigger,
        certificates=() if idle else make_certificates(problem, run, point, optimum),
        claims=claims or (),
        skipped=stages.skipped,
    )


def _horizon(
    problem: Problem, net: Network, landscape: ExtremalVectors, process: JumpProcess | None
) -> float:
    """A time by which what matters has happened."""
    if not has_pull(problem):
        return 1.0
    last = None
    if process is not None and process.n_jumps:
        last = float(process.jump_times(log_scale=float(net.log_norms.max()))[-1])
    fastest = float(landscape.rates.max(initial=0.0)) or fastest_possible(problem)
    return horizon_of(net, fastest, last)


def _train(
    problem: Problem,
    net: Network,
    settings: Settings,
    horizon: float,
    folder: Path | None,
    stages: Stages,
) -> Trajectory:
    """The simulation, or the finished one of an explanation that was cut short or made before."""
    if stages.kernels.busy:
        stages.show("simulation")
        stages.kernels.wait()
    key, checkpoint = settings.key(problem), None
    if folder is not None:
        ready = load_finished(folder / WORK / RUN, key) or load_finished(folder / RUN, key)
        if ready is not None:
            return ready
        checkpoint = folder / WORK / f"{key[:16]}.npz"
    run = with_key(simulate(problem, net, settings, horizon, checkpoint), key)
    if run.status.code == "interrupted":
        raise KeyboardInterrupt
    if folder is not None:
        run.save(folder / WORK / RUN)
    return run


def _fits(problem: Problem, net: Network) -> bool:
    """Whether every label is fitted."""
    return bool(fitted_samples(problem, problem.outputs(net)).all())


def _phases(run: Trajectory) -> Phases | None:
    """Phases of a run, where there is no prediction to compare it with."""
    if len(run) < 3:
        return None
    from reluflow.trajectory.phases import phases

    return phases(run)
