"""The explanation of data that do not pull on a silent network: zero labels, or zero samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reluflow.claims.compare import compare
from reluflow.explanation.explanation import Explanation
from reluflow.explanation.files import RUN, WORK, prepare
from reluflow.explanation.settings import Settings
from reluflow.explanation.simulate import marked, real_times, simulate
from reluflow.network import initialize
from reluflow.problem import Problem

_WHY = "no sample pulls on a silent network, so that nothing is learnt"


def nothing_to_learn(
    problem: Problem, settings: Settings, folder: Path | None, progress: bool | str
) -> Explanation:
    """What is left to say where no sample pulls: the start rests, or shrinks, for ever."""
    from reluflow.gradientflow.flow import flow
    from reluflow.landscape.align import align
    from reluflow.landscape.extremal import extremal_vectors
    from reluflow.prediction.limit import limit

    net = initialize(problem, settings.m, settings.scale, rng=settings.seed)
    landscape = extremal_vectors(problem)
    process = limit(problem, net)
    run: Any
    if settings.lr is None:
        run = flow(problem, net, progress=progress)
    else:
        run = simulate(problem, net, settings, 1.0, None, progress)
    run = marked(run, settings.key(problem))
    if folder is not None:
        prepare(folder)
        run.save(folder / WORK / RUN)
    end = problem.loss_of(run.final)
    return Explanation(
        problem=problem,
        net=net,
        settings=settings,
        landscape=landscape,
        alignment=align(problem, net, paths=False, extremal=landscape),
        process=process,
        wide=None,
        run=run,
        groups=(),
        seen=None,
        point=None,
        kkt=None,
        optimum=None,
        small=None,
        large=None,
        comparison=compare(process, run, real_times(run), float(net.log_norms.max()), end),
        certificates=(),
        claims=(),
        skipped={stage: _WHY for stage in ("infinite width", "optimum", "larger scale", "claims")},
    )
