"""The main job: what will a network learn from these data, starting small?"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from reluflow.arrays import whole_number
from reluflow.checks import check_arguments
from reluflow.claims.compare import compare
from reluflow.explanation.end import fitted_samples, groups_of, interpolator, train_from_large
from reluflow.explanation.explanation import Explanation
from reluflow.explanation.files import RUN, WORK, kept_in, working_in
from reluflow.explanation.settings import (
    CLASSES_WORK,
    SMALL_RUN,
    TABLE_WORK,
    Settings,
    has_pull,
)
from reluflow.explanation.simulate import (
    fastest_possible,
    finished_run,
    horizon_of,
    simulate,
    with_horizon,
)
from reluflow.explanation.stages import (
    DECAYS,
    NO_PULL,
    STAGES,
    Stages,
    check_claims,
    check_conditions,
    find_directions,
    find_optimum,
    follow_neurons,
    make_certificates,
    predict_process,
    why_no_claims,
    why_no_infinite_width,
    why_no_optimum,
    why_no_paths,
)
from reluflow.explanation.unseen import score_unseen
from reluflow.explanation.verdict.course import CUT_SHORT, first_turns, predicted_jumps
from reluflow.explanation.weight_decay import judge_end
from reluflow.gradientflow.warm import FlowKernels
from reluflow.landscape.extremal import ExtremalVectors
from reluflow.network import Network, initialize
from reluflow.prediction.process import JumpProcess
from reluflow.problem import Problem
from reluflow.problem.given import problem_of
from reluflow.runtime import Progress
from reluflow.runtime.threads import one_thread
from reluflow.trajectory import Trajectory
from reluflow.trajectory.phases import Phases


@check_arguments
def explain(
    problem: Any,
    y: Any = None,
    m: Any = 200,
    scale: float = 1e-6,
    seed: int = 0,
    *,
    lr: float | None = None,
    steps: int | None = None,
    out: str | os.PathLike[str] | None = None,
    image_shape: tuple[int, int] | None = None,
    weight_decay: float = 0.0,
    seconds: float = 120.0,
    progress: bool | str = "auto",
    on_sentence: Callable[[str, str], None] | None = None,
    **data_options: Any,
) -> Explanation:
    """Say what a network of small weights learns from data: predict, simulate, compare, certify.

    Parameters
    ----------
    problem : Problem, array (n, d), data frame or path
        Data, loss and activation; or the samples X, with ``y``; or a table, with the name of its
        label or without (the last column).
    y : array (n,), series or name, optional
        Labels: numbers, or two classes of any name. A whole number after a Problem is ``m``.
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
    weight_decay : float
        lambda of the penalty (lambda/2) (|W|^2 + |a|^2): prediction and simulation have it, and the
        end is judged, and proofs are made, of the penalised loss. Theorems, which are about
        training without it, are left out.
    seconds : float
        Budget of each long stage, counted in work (about the seconds of an ordinary core, within a
        factor of three or so): the same call ends at the same place on every machine, unless a
        simulation takes ten times as long by the clock, which ends it. A stage that needs more is
        cut short or left out, which the verdict says.
    progress : bool or "auto"
        Progress display; "auto" shows it on a terminal.
    on_sentence : callable(topic, text), optional
        Called with each part of the verdict as soon as it is known: where neurons turn at first
        and which jumps are predicted come before the simulation, the rest after it.
    **data_options
        Where no Problem is given: ``loss`` (by default logistic for two classes, half_square for
        numbers), ``leak``, ``bias``, ``standardize``, ``feature_names``, ... of
        :class:`reluflow.Problem` and :meth:`reluflow.Problem.from_table`.

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
    if isinstance(problem, Problem) and isinstance(y, int | np.integer):
        if isinstance(m, float):  # explain(problem, 200, 1e-6), and a seed after it
            seed = int(scale) if isinstance(scale, int | np.integer) else seed
            m, scale, y = int(y), m, None
        else:  # explain(problem, 200)
            m, y = int(y), None
    m = whole_number(m, "m", 0, 10**15)  # what is too many is said with the weights they would be
    problem = problem_of(problem, y, **data_options)
    settings = Settings(m, scale, seed, lr, steps, seconds, image_shape, weight_decay)
    settings.check(problem)
    folder = None if out is None else Path(out)
    place = None if folder is None else folder / WORK
    news = Announcer(on_sentence)
    kernels = FlowKernels(needed=lr is None and not problem.several and has_pull(problem))
    # a second thread of linear algebra would cost more than it brings
    light = m * problem.X.size <= (CLASSES_WORK if problem.several else TABLE_WORK)
    with (
        one_thread() if light else nullcontext(),
        nullcontext() if folder is None else working_in(folder),
    ):
        with kernels, Progress(len(STAGES), "explain", progress, overall=True, even=False) as bar:
            stages = Stages(bar, kernels)
            if problem.several:
                from reluflow.explanation.multioutput.stages import explain_vectors

                # not an Explanation, but it has the verdict, run and files that callers ask for
                several = explain_vectors(problem, settings, stages, place)
                found = cast(Explanation, several)
            else:
                found = _gather(problem, settings, place, stages, news)
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
    problem: Problem, settings: Settings, place: Path | None, stages: Stages, news: Announcer
) -> Explanation:
    """Predict, simulate, compare and prove, each stage within its means.

    What a killed explanation left in ``place`` is used again.

    Where no sample pulls the start rests, or shrinks, for ever: the prediction and the run say
    so, and there is no end to be judged.
    """
    idle = "" if has_pull(problem) else NO_PULL
    decay = settings.weight_decay
    plain = DECAYS if decay else ""
    net = initialize(problem, settings.m, settings.scale, rng=settings.seed)
    landscape = stages.need("directions", lambda: find_directions(problem, net))
    unfollowed = why_no_paths(problem)
    alignment = stages.run("alignment", lambda: follow_neurons(problem, net, landscape), unfollowed)
    news.announce("Directions", first_turns(landscape, alignment, net.m))
    followed = net.subset(np.arange(net.m if alignment is None else alignment.sign.size))
    process = stages.run(
        "limit process",
        lambda: predict_process(problem, followed, settings.seconds, decay, alignment=alignment),
        unfollowed,
    )
    scale = float(net.log_norms.max())
    if process is not None and (process.n_jumps or process.ending not in CUT_SHORT):
        news.announce("Jumps", predicted_jumps(process, scale, net.m))
    wide = stages.run(
        "infinite width",
        lambda: predict_process(problem, None, 0.5 * settings.seconds, decay),
        idle or why_no_infinite_width(problem, landscape),
    )
    optimum = stages.run("optimum", lambda: find_optimum(problem), plain or why_no_optimum(problem))
    horizon = _horizon(problem, net, landscape, process)
    first = _jump_time(net, process, 0)
    run = stages.need(
        "simulation", lambda: _train(problem, net, settings, horizon, first, place, stages)
    )
    if process is not None and process.ending in CUT_SHORT and not process.n_jumps:
        stages.skipped["limit process"], process = process.status, None
    compared = None
    if process is not None:
        loss = float(np.exp(problem.log_value(problem.outputs(run.final))))
        seen = run if process.signs.size == net.m else _without_sizes(run)
        compared = compare(process, seen, run.flow_times, scale, loss)
    point, multipliers, small, penalised = None, None, None, None
    light = net.m * problem.X.size <= SMALL_RUN
    if not idle:
        point, multipliers = check_conditions(stages, problem, run)
        improves = point is not None and point.gain > 0.0 and optimum is not None
        if point is not None and improves and light and not _fits(problem, run.final):
            small = interpolator(problem, point)
    if decay and not idle:
        penalised = stages.run("end", lambda: judge_end(problem, run.final, decay), unfollowed)
    bigger = stages.run("larger scale", lambda: train_from_large(problem, net), idle or plain)
    claims = stages.run(
        "claims",
        lambda: check_claims(problem, run, net),
        idle or plain or why_no_claims(problem) or ("" if process else "no prediction"),
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
        certificates=() if idle else make_certificates(problem, run, point, optimum, penalised),
        claims=claims or (),
        skipped=stages.skipped,
        penalised=penalised,
        unseen=score_unseen(problem, run, process),
    )


def _horizon(
    problem: Problem, net: Network, landscape: ExtremalVectors, process: JumpProcess | None
) -> float:
    """A time by which what matters has happened."""
    if not has_pull(problem):
        return 1.0
    last = _jump_time(net, process, -1)
    fastest = float(landscape.rates.max(initial=0.0)) or fastest_possible(problem)
    return horizon_of(net, fastest, last)


def _jump_time(net: Network, process: JumpProcess | None, i: int) -> float | None:
    """When jump ``i`` is predicted at the scale of the network, if there is one."""
    if process is None or not process.n_jumps:
        return None
    return float(process.jump_times(log_scale=float(net.log_norms.max()))[i])


def _train(
    problem: Problem,
    net: Network,
    settings: Settings,
    horizon: float,
    first_jump: float | None,
    place: Path | None,
    stages: Stages,
) -> Trajectory:
    """The simulation, or the finished one of an explanation that was cut short or made before."""
    if stages.kernels.busy:
        stages.show("simulation")
        stages.kernels.wait()
    key = settings.key(problem)
    run = finished_run(
        place, key, lambda kept: simulate(problem, net, settings, horizon, kept, first_jump)
    )
    coarser = kept_in(place, f"coarser-{key}")
    surer = with_horizon(run, net, settings, horizon, coarser, first_jump)
    if surer is not run and place is not None:
        surer.save(place / RUN)
    return surer


def _without_sizes(run: Trajectory) -> Trajectory:
    """The run without sizes of neurons, to be compared with a process of some of them."""
    kept = {name: values for name, values in run.observables.items() if name != "log_norms"}
    return replace(run, networks=None, observables=kept)


def _fits(problem: Problem, net: Network) -> bool:
    """Whether every label is fitted."""
    return bool(fitted_samples(problem, problem.outputs(net)).all())


def _phases(run: Trajectory) -> Phases | None:
    """Phases of a run, where there is no prediction to compare it with."""
    if len(run) < 3:
        return None
    from reluflow.trajectory.phases import phases

    return phases(run)
