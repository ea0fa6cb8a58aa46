"""Small jobs that together use every kernel, each with the types of arrays that real ones have."""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from reluflow.errors import ReluflowError
from reluflow.network import Network, initialize
from reluflow.problem import Problem, datasets


def _table(n: int, d: int, loss: Any = "half_square", **options: Any) -> Problem:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, d)), rng.standard_normal(n)
    options["loss"] = loss
    return Problem(X, y if loss == "half_square" else np.sign(y), **options)


def _small(problem: Problem, m: int = 8, scale: float = 1e-3) -> Network:
    return initialize(problem, m, scale, rng=0)


def _directions() -> None:
    from reluflow.landscape.bound import max_G
    from reluflow.landscape.extremal import extremal_vectors

    extremal_vectors(datasets.three_points())
    for method in ("arrangement", "branch", "multistart"):
        extremal_vectors(_table(6, 3), method=method)
    for method in ("cells", "signs", "enumerate"):
        max_G(_table(8, 3), method=method)


def _alignment() -> None:
    from reluflow.landscape.align import align

    for problem in (datasets.three_points(), _table(6, 3, leak=0.1)):
        for paths in (True, False):
            align(problem, _small(problem), paths=paths)


def _limit() -> None:
    from reluflow.prediction.limit import limit

    for problem in (_table(6, 3), _table(6, 3, "logistic")):
        limit(problem, _small(problem), max_seconds=20.0)
    limit(_table(6, 3), max_seconds=20.0)


def _flow() -> None:
    from reluflow.gradientflow.flow import flow
    from reluflow.gradientflow.stops import loss_below
    from reluflow.gradientflow.warm import main

    main()
    for d in (2, 3):
        problem = _table(6, d)
        flow(problem, _small(problem), max_steps=2000, stop=loss_below(1e-3))
        flow(problem, _small(problem), kinks=False, max_steps=50)
    problem = _table(6, 3, "logistic", leak=0.1)
    flow(problem, _small(problem), clock="loss", max_steps=500)
    for problem in (datasets.three_points(), datasets.toy6()):  # many neurons meet kinks together
        for m in (10, 30, 200):
            flow(problem, _small(problem, m, 1e-6), max_steps=2000)
            flow(problem, _small(problem, m), t_end=5.0)


def _descent() -> None:
    from reluflow.descent.descend import descend

    for problem in (_table(6, 2), _table(6, 3), _table(6, 3, "logistic")):
        for backend in ("lumped", "dense"):
            for batch in (None, 3):
                descend(
                    problem, _small(problem), lr=0.01, steps=40, backend=backend, batch_size=batch
                )
    wide = _table(60, 40)
    descend(wide, _small(wide, 60), lr=0.01, steps=5, backend="dense")


def _optimum() -> None:
    from reluflow.optimum import max_margin, min_norm, stationarity
    from reluflow.optimum.kkt import kkt

    min_norm(datasets.golden())
    found = max_margin(datasets.figure1_middle())
    if found.network is not None:
        kkt(datasets.figure1_middle(), found.network)
    problem = _table(6, 3)
    stationarity(problem, _small(problem))


def _explanation() -> None:
    from reluflow.explanation.explain import explain

    for m in (20, 30, 200):
        explain(datasets.three_points(), m=m, progress=False)


#: What is compiled together, by name; the longest first, so that an early end wastes least.
JOBS: dict[str, Callable[[], None]] = {
    "gradient flow": _flow,
    "gradient descent": _descent,
    "directions": _directions,
    "alignment": _alignment,
    "limit process": _limit,
    "optimum": _optimum,
    "explanation": _explanation,
}


def kernels() -> Iterator[tuple[str, Any]]:
    """Name and function of every kernel that is kept on disk."""
    from reluflow import kernels as package

    for module in pkgutil.iter_modules(package.__path__):
        found = importlib.import_module(f"{package.__name__}.{module.name}")
        for name, value in vars(found).items():
            if hasattr(value, "signatures") and value.py_func.__module__ == found.__name__:
                yield f"{module.name}.{name}", value


def folder_of_kernels() -> str:
    """Where compiled kernels are kept; a sentence where that is nowhere."""
    from reluflow._compiled import kept_in

    folders = {folder for _, kernel in kernels() if (folder := kept_in(kernel)) is not None}
    if not folders:
        raise ReluflowError(
            "no folder for compiled kernels can be written: set NUMBA_CACHE_DIR to one that can"
        )
    return os.path.commonpath(folders)


def warm_up(report: Callable[[int, str], None] = lambda done, name: None) -> int:
    """Run every job; how many versions of kernels were compiled and kept by that."""
    folder = Path(folder_of_kernels())
    before = set(folder.rglob("*.nbc"))
    for done, (name, job) in enumerate(JOBS.items()):
        report(done, name)
        job()
    report(len(JOBS), "done")
    return len(set(folder.rglob("*.nbc")) - before)
