"""The runs a sweep can repeat: problem and start from settings, the call, numbers out of it."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from reluflow.errors import ReluflowError
from reluflow.network import Network, initialize
from reluflow.problem import Problem, datasets

if TYPE_CHECKING:
    from reluflow.landscape.align import Alignment
    from reluflow.sweeps.grid import Grid
    from reluflow.trajectory import Trajectory

RUNS = ("descend", "flow", "limit", "align", "max_margin", "min_norm")
_WITHOUT_START = ("max_margin", "min_norm")
_MANAGED = {
    "problem",
    "net",
    "save",
    "observe",
    "states",
    "progress",
    "checkpoint",
    "checkpoint_seconds",
    "stop",
    "rng",
    "paths",
    "extremal",
    "pull",
    "directions",
    "signs",
}
_STOPS = ("loss_below", "stationary", "settled")
_JUDGED = ("kind", "residual", "gain", "excess")  # of reluflow.stationarity at the end


@dataclass(frozen=True)
class Outcome:
    """What a point gives: numbers and words for its row, a sentence, perhaps the run itself."""

    values: Mapping[str, Any]
    message: str = ""
    run: Trajectory | None = field(default=None, repr=False)


def call_options(task: str) -> list[str]:
    """Names of the section ``clock``: options of the function, and its conditions to stop."""
    import reluflow

    found = [n for n in inspect.signature(getattr(reluflow, task)).parameters if n not in _MANAGED]
    return found + (list(_STOPS) if task == "flow" else [])


def measures_of(task: str) -> tuple[str, ...]:
    """What ``observe`` may name: numbers read off the network at the end."""
    from reluflow.trajectory.observables import OBSERVABLES

    if task == "align":
        return ("captured",)
    return () if task in _WITHOUT_START else (*OBSERVABLES, *_JUDGED)


def check_run(task: str, grid: Grid, observe: Sequence[str]) -> None:
    """Refuse what no point could run, before any point does."""
    known: dict[str, list[str]] = {"problem": _data_options(grid), "clock": call_options(task)}
    if task not in _WITHOUT_START:
        start = inspect.signature(initialize).parameters
        known["init"] = [name for name in start if name not in ("problem", "rng")]
    for name in grid.fields:
        section, _, option = name.partition(".")
        if section not in known or not option:
            raise ReluflowError(
                f"unknown field {name!r}: task {task!r} has fields of {', '.join(known)}"
            )
        if option not in known[section]:
            raise ReluflowError(
                f"unknown field {name!r}: {section} has {', '.join(known[section])}"
            )
    if "init" in known and not grid.values("init.m"):
        raise ReluflowError("the field init.m is missing: the number of neurons")
    if task == "descend":
        for needed in ("lr", "steps"):
            if not grid.values(f"clock.{needed}"):
                raise ReluflowError(f"the field clock.{needed} is missing: descend needs it")
    for name in observe:
        if name not in measures_of(task):
            allowed = ", ".join(measures_of(task)) or "nothing"
            raise ReluflowError(f"cannot observe {name!r}: task {task!r} knows {allowed}")


def _data_options(grid: Grid) -> list[str]:
    """Options that all datasets of a sweep have."""
    if not grid.values("problem.name"):
        raise ReluflowError("the field problem.name is missing: a built-in dataset or a file")
    common: list[str] | None = None
    for dataset in map(str, grid.values("problem.name")):
        if dataset in datasets.REGISTRY:
            options = datasets.REGISTRY[dataset].options
        else:
            options = datasets.FILE_OPTIONS
            given = {o: grid.values(f"problem.{o}") for o in options}
            first = {o: values[0] for o, values in given.items() if len(values)}
            datasets.load(dataset, **first)  # says what is wrong with the name or the file
        common = [o for o in (options if common is None else common) if o in options]
    return ["name", *(common or [])]


def section(settings: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Fields of one section, without its name."""
    cut = len(name) + 1
    return {k[cut:]: v for k, v in settings.items() if k.startswith(f"{name}.")}


def run_task(
    task: str, settings: Mapping[str, Any], seeds: np.random.SeedSequence, observe: Sequence[str]
) -> Outcome:
    """One run: data, start and the run itself draw from three children of ``seeds``."""
    for_data, for_start, for_run = seeds.spawn(3)
    problem = make_problem(section(settings, "problem"), for_data)
    options = section(settings, "clock")
    if task in _WITHOUT_START:
        return _optimum(task, problem, options, for_run)
    net = initialize(problem, rng=for_start, **section(settings, "init"))
    if task == "align":
        return _align(problem, net, options, observe)
    if task == "limit":
        return _limit(problem, net, options, observe)
    return _run_training(task, problem, net, options, for_run, observe)


def make_problem(options: dict[str, Any], seeds: np.random.SeedSequence) -> Problem:
    """The data; datasets that draw theirs draw them anew for each point unless ``rng`` is given."""
    name = options["name"]
    random = name in datasets.REGISTRY and "rng" in datasets.REGISTRY[name].options
    if random and "rng" not in options:
        rest = {key: value for key, value in options.items() if key != "name"}
        return datasets.load(name, rng=seeds, **rest)
    return _same_problem(json.dumps(options))


@lru_cache(maxsize=8)
def _same_problem(options: str) -> Problem:
    given = json.loads(options)
    return datasets.load(given.pop("name"), **given)


def _run_training(
    task: str,
    problem: Problem,
    net: Network,
    options: dict[str, Any],
    seeds: np.random.SeedSequence,
    observe: Sequence[str],
) -> Outcome:
    run: Trajectory
    if task == "descend":
        from reluflow.descent.descend import descend

        run = descend(problem, net, rng=np.random.default_rng(seeds), progress=False, **options)
    else:
        from reluflow.gradientflow import flow, stops

        wanted = [getattr(stops, name)(options.pop(name)) for name in _STOPS if name in options]
        run = flow(problem, net, stop=wanted or None, progress=False, **options)
    loss = problem.loss_of(run.final)
    values = {
        "ending": run.status.code,
        "loss": loss,
        "log_loss": float(problem.log_value(problem.outputs(run.final))),
        **_measure(problem, run.final, observe),
        **{
            f"cost.{k}": v
            for k, v in run.cost.items()
            if isinstance(v, int | float | np.number) and k != "seconds"
        },
    }
    return Outcome(values, str(run.status), run)


def _limit(
    problem: Problem, net: Network, options: dict[str, Any], observe: Sequence[str]
) -> Outcome:
    from reluflow.prediction.limit import limit

    process = limit(problem, net, **options)
    jumps = process.times
    values = {
        "ending": process.ending,
        "loss": float(process.losses[-1]),
        "jumps": len(jumps),
        "first_jump": float(jumps[0]) if len(jumps) else np.nan,
        "last_jump": float(jumps[-1]) if len(jumps) else np.nan,
        "least_gap": float(np.min(process.gaps, initial=np.inf)),
        "gain": process.gain,
        **_measure(problem, process.final, [o for o in observe if o != "gain"]),
    }
    return Outcome(values, process.status)


def _align(
    problem: Problem, net: Network, options: dict[str, Any], observe: Sequence[str]
) -> Outcome:
    from reluflow.landscape.align import align

    extremal = _landscape(problem) if "captured" in observe else None
    found = align(problem, net, paths=False, extremal=extremal, **options)
    names = ("growing", "dead", "anti_aligned", "resting", "unresolved", "branched")
    values: dict[str, Any] = {name: int(getattr(found, name).sum()) for name in names}
    growing = found.growing
    values |= {
        "fastest": float(np.max(found.growth[growing], initial=-np.inf)),
        "latest": float(np.max(found.time[growing], initial=0.0)),
    }
    if "captured" in observe:
        values |= count_captured(found)
    return Outcome(values, repr(found))


def count_captured(found: Alignment) -> dict[str, Any]:
    """How many of the global extrema of |G| some growing neuron turns to, and how many there are.

    The neurons that get there grow at the top rate ([TK24]_ calls them prominent).
    """
    landscape = found.extremal
    top = np.flatnonzero(landscape.rates >= landscape.rates.max() * (1 - 1e-9))
    caught = int(np.isin(top, found.destination[found.growing]).sum())
    return {
        "captured": caught,
        "extrema": len(top),
        "all_captured": caught == len(top),
        "exact": bool(landscape.exact),
    }


@lru_cache(maxsize=8)
def _landscape(problem: Problem) -> Any:
    from reluflow.landscape.extremal import extremal_vectors

    return extremal_vectors(problem)


def _optimum(
    task: str, problem: Problem, options: dict[str, Any], seeds: np.random.SeedSequence
) -> Outcome:
    from reluflow import optimum

    options.setdefault("model", "network") if task == "max_margin" else None
    if options.get("model") != "linear":
        options["rng"] = np.random.default_rng(seeds)
    found = getattr(optimum, task)(problem, **options)
    names = (
        "margin",
        "upper_bound",
        "norm2",
        "lower_bound",
        "gap",
        "error",
        "exact",
        "rounds",
        "cones",
    )
    values = {name: getattr(found, name) for name in names if hasattr(found, name)}
    return Outcome(values, str(getattr(found, "status", "")))


def _measure(problem: Problem, net: Network, observe: Sequence[str]) -> dict[str, Any]:
    """Observables of a network; of one value per neuron or sample, least, mean and largest."""
    from reluflow.trajectory.observables import OBSERVABLES

    values: dict[str, Any] = {}
    judged = [name for name in observe if name in _JUDGED]
    if judged:
        from reluflow.optimum import stationarity

        end = stationarity(problem, net)
        values |= {name: getattr(end, name) for name in judged}
    for name in observe:
        if name not in OBSERVABLES:
            continue
        value = np.asarray(OBSERVABLES[name](problem, net))
        if value.ndim == 0:
            values[name] = float(value)
        else:
            for word, reduce in (("min", np.min), ("mean", np.mean), ("max", np.max)):
                values[f"{name}.{word}"] = float(reduce(value)) if value.size else np.nan
    return values
