"""What is predicted of a view's problem, as plain values: landscape first, then the jumps."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from reluflow.arrays import Array
from reluflow.explanation.settings import can_follow, has_pull, search_method
from reluflow.explanation.stages import NO_PULL
from reluflow.explanation.verdict.course import first_turns, predicted_jumps
from reluflow.explanation.verdict.words import samples
from reluflow.landscape.align import Alignment, align
from reluflow.landscape.alignment import G
from reluflow.landscape.extremal import ExtremalVectors, extremal_vectors
from reluflow.network import Network
from reluflow.playback.fields import field_of
from reluflow.prediction.limit import limit
from reluflow.prediction.process import JumpProcess
from reluflow.problem import Problem
from reluflow.runtime.words import count
from reluflow.studio.first_jump import estimate_first_jump

_ANGLES = 361
_ROWS = 60  # extremal vectors handed on
_BASINS = 64  # the page shows where the neurons of the start go, not shares of the sphere
_PLATEAUS = 12  # plateaus whose f is drawn
_SMALL = -2.0  # log of the largest |w_j| above which weights are not small


def find_landscape(problem: Problem, net: Network) -> tuple[ExtremalVectors, Alignment | None]:
    """Extremal vectors, and where each neuron turns if that can be followed."""
    found = extremal_vectors(problem, method=search_method(problem), basin_points=_BASINS)
    if not can_follow(problem, net.m):
        return found, None
    return found, align(problem, net, paths=False, extremal=found)


def landscape_values(
    problem: Problem, found: ExtremalVectors, alignment: Alignment | None
) -> dict[str, Any]:
    """Plain values of a landscape; G on the circle where there are two features."""
    document = found.to_dict()
    for name in ("vectors", "values", "kinds", "faces", "basin_fractions"):
        document[name] = None if document[name] is None else document[name][:_ROWS]
    document["total"] = len(found)
    followed = 0 if alignment is None else alignment.sign.size
    document["words"] = first_turns(found, alignment, followed)
    document["mark"] = "exact" if found.exact else "found"
    if problem.d == 2:
        angle = np.linspace(-np.pi, np.pi, _ANGLES)
        circle = np.column_stack([np.cos(angle), np.sin(angle)])
        document["circle"] = G(problem, circle)
    if alignment is not None:
        where, number = np.unique(alignment.destination, return_counts=True)
        document["fates"] = dict(zip(where.tolist(), number.tolist(), strict=True))
        document["growing"] = int(alignment.growing.sum())
        document["dead"] = int(alignment.dead.sum())
        document["neurons"] = int(alignment.sign.size)
        first = estimate_first_jump(problem, alignment)
        document["first_jump"] = None if first is None else first._asdict()
        document["aligned_at"] = float(alignment.time[alignment.growing].max(initial=0.0))
    return document


def why_no_process(problem: Problem, net: Network) -> str:
    """Why there is no prediction of jumps; empty where there is one."""
    if not has_pull(problem):
        return NO_PULL
    if float(net.log_norms.max()) >= 0.0:
        return "the prediction is for small weights, and the largest |w_j| here is 1 or more"
    if not can_follow(problem, net.m):
        return "the data are too large for the limit process"
    return ""


def find_process(
    problem: Problem, net: Network, seconds: float, jumps: int | None = None
) -> JumpProcess:
    """The limit process of a start, or its first jumps; KeyboardInterrupt if it was cancelled."""
    began = time.monotonic()
    process = limit(problem, net, max_seconds=seconds, max_jumps=jumps or 10_000)
    cut = process.ending == "budget" and (jumps is None or process.n_jumps < jumps)
    if cut and time.monotonic() - began < seconds:
        raise KeyboardInterrupt
    return process


def process_values(problem: Problem, net: Network, process: JumpProcess) -> dict[str, Any]:
    """Plain values of the jumps at the scale of the start, with f on the plateaus."""
    log_scale = float(net.log_norms.max())
    times = process.jump_times(log_scale=log_scale)
    leading = np.ones(process.n_jumps, bool)
    if process.offsets is not None:
        leading = np.isnan(process.offsets)
    rows = [
        {
            "jump": i + 1,
            "time": float(times[i]),
            "tau": float(process.times[i]),
            "neurons": len(process.neurons[i]),
            "samples": process.samples[i].tolist()[:50],
            "loss": float(process.losses[i + 1]),
            "leading": bool(leading[i]),
            "words": _jump_words(problem, process, i),
        }
        for i in range(process.n_jumps)
    ]
    return {
        "jumps": rows,
        "times": times,
        "losses": process.losses,
        "log_scale": log_scale,
        "ending": process.ending,
        "status": process.status,
        "undetermined": list(process.undetermined),
        "words": predicted_jumps(process, log_scale, process.signs.size),
        "small": log_scale <= _SMALL,
        "partial": process.ending == "budget",
        "mark": "estimated" if leading.any() or log_scale > _SMALL else "computed",
        "plateaus": _plateau_fields(problem, process),
    }


def _jump_words(problem: Problem, process: JumpProcess, i: int) -> str:
    """What a jump learns: who jumps, and on which samples they are active afterwards."""
    group = process.neurons[i]
    signs = set(process.signs[group].tolist())
    effect = {(1,): "raise f", (-1,): "lower f"}.get(tuple(signs), "raise or lower f")
    who = count(len(group), "neuron")
    verb = effect.replace(" f", "s f") if len(group) == 1 else effect
    on = samples(process.samples[i].tolist(), problem.n)
    return f"{who} {verb} on {on}" if len(process.samples[i]) else f"{who} {verb}"


def _plateau_fields(problem: Problem, process: JumpProcess) -> list[Array] | None:
    """f of the saddles at the places where f is drawn on a line."""
    field = field_of(problem)
    if field.kind != "line":
        return None
    return [field.values(net) for net in process.networks[: _PLATEAUS + 1]]


def fastest_rate(problem: Problem, found: ExtremalVectors) -> float:
    """Largest growth rate of a small neuron."""
    return float(found.rates.max(initial=0.0)) or problem.total_pull
