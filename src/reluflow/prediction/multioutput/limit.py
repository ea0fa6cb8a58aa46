"""`limit` with several outputs: from the start to the process and how it ends."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np

from reluflow.errors import ReluflowError
from reluflow.landscape.multioutput import VectorExtremals, extremal_vectors, largest_G
from reluflow.network import Network
from reluflow.prediction.multioutput.process import VectorProcess
from reluflow.prediction.multioutput.staircase import NO_RATE, Staircase, start_units
from reluflow.prediction.multioutput.transit import STOPPED
from reluflow.prediction.spending import clock_of
from reluflow.problem import Problem
from reluflow.runtime.progress import Interrupt

CROWD = 8  # neurons that stand for many of one direction: they can part twice


def limit(
    problem: Problem,
    net: Network | None = None,
    *,
    tie: float = 1e-9,
    max_jumps: int = 10_000,
    max_seconds: float | None = None,
    seconds: float | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    counted: bool = False,
    extremal: VectorExtremals | None = None,
    most: int | None = None,
) -> VectorProcess:
    """The process of small starts with several outputs: see :func:`reluflow.limit`.

    Neurons are taken to be balanced once they have grown. Without ``net`` a group of neurons, which
    may part after it jumped, stands at each maximum of G_C that is known (``extremal``, the first
    ``most`` of them).
    """
    view, wide = "this network", net is None
    if net is None:
        found = extremal_vectors(problem) if extremal is None else extremal
        net = crowd(problem, found, most)
        how = "each" if found.exact else "each one found"
        view = f"infinite width: a group at {how} of the {net.m // CROWD} maxima of G"
    net.check_fits_problem(problem)
    units, relaxation = start_units(problem, net)
    if wide:  # a group counts as one neuron, whatever its number
        for u in units:
            u.K = u.K - 0.5 * np.log(CROWD)
    stairs = Staircase(problem, units, net.m, relaxation)
    given = {"tie": tie, "max_jumps": max_jumps, "max_seconds": max_seconds, "seconds": seconds}
    first = {"W": net.W, "a": net.a, "ls": net.log_factors}
    clock = clock_of(problem, first, given, checkpoint, counted)
    budget = min(np.inf if each is None else each for each in (max_seconds, seconds))
    with Interrupt() as interrupt:

        def tick(work: float) -> bool:
            return interrupt.requested or clock.decide(lambda spent: spent > budget, work)

        stairs.run(max_jumps, tie, tick)
    process = _result(problem, stairs, view)
    clock.end(interrupt.requested)
    return replace(process, interrupted=interrupt.requested)


def crowd(problem: Problem, found: VectorExtremals, most: int | None = None) -> Network:
    """Infinite width: `CROWD` neurons at each maximum found, or at the first ``most``."""
    tops = np.repeat(found.of_kind("max")[:most], CROWD)
    if not tops.size:
        raise ReluflowError("no direction in which neurons grow was found: give net=")
    return Network(found.vectors[tops], found.outer[tops], leak=problem.leak, bias=problem.bias)


def _result(problem: Problem, stairs: Staircase, view: str) -> VectorProcess:
    rows, jumps = stairs.rows, stairs.jumps
    losses = np.array([problem.loss_of(row["net"]) for row in rows])
    code, status, gain, bound, found = _ending(problem, stairs, float(losses[-1]))
    return VectorProcess(
        problem=problem,
        signs=np.zeros(stairs.m, dtype=np.int8),
        times=np.array([jump["time"] for jump in jumps]),
        losses=losses,
        neurons=tuple(jump["members"] for jump in jumps),
        samples=tuple(jump["samples"] for jump in jumps),
        networks=[row["net"] for row in rows],
        directions=[row["directions"] for row in rows],
        rates=np.array([row["rates"] for row in rows]),
        exponents=np.array([row["exponents"] for row in rows]),
        active=np.array([row["active"] for row in rows]),
        gaps=np.array([jump["gap"] for jump in jumps]),
        status=status,
        ending=code,
        gain=gain,
        gain_bound=bound,
        view=view,
        found=found,
        offsets=np.array([jump["offset"] for jump in jumps]),
        constants=np.array([row["constants"] for row in rows]),
        relaxation=np.array([row["relaxation"] for row in rows]),
        residuals=np.array([row["residual"] for row in rows]),
        outer=tuple(row["outer"] for row in rows),
        strain=np.array([jump["strain"] for jump in jumps]),
        paces=np.array([jump["pace"] for jump in jumps]),
        parting=np.array([jump["parting"] for jump in jumps], dtype=bool),
        apart=np.array([jump["apart"] for jump in jumps]),
        undetermined=_left_open(jumps),
        courses=tuple(jump["course"] for jump in jumps),
    )


def _left_open(jumps: list[dict[str, Any]]) -> tuple[str, ...]:
    """What the process does not determine of neurons that part."""
    return tuple(
        f"which of {len(jump['members'])} neurons go to which piece as they part (jump {i + 1})"
        for i, jump in enumerate(jumps)
        if jump["parting"] and len(jump["members"]) > 2
    )


def _ending(
    problem: Problem, stairs: Staircase, loss: float
) -> tuple[str, str, float, float, tuple[str, ...]]:
    """Code, sentence, rate of the best further neuron, its bound, and what is unproved."""
    if stairs.trouble:
        code = "budget" if stairs.trouble == STOPPED else "unresolved"
        return code, f"Not followed to the end: {stairs.trouble}.", np.nan, np.nan, ()
    if not np.any(stairs.pull):
        if stairs.far:
            words = "Every sample is fitted with a margin that grows for ever."
            return "infinity", words, 0.0, 0.0, ("infinity",)
        return "interpolates", "The process ends at an interpolator: the loss is 0.", 0.0, 0.0, ()
    best, small = largest_G(problem, stairs.pull), 10 * NO_RATE * stairs.unit
    level = f"loss {loss:.6g}"
    if stairs.far:
        level += ", approached as weights grow for ever"
    if best.upper_bound <= small:
        words = f"Ends at a global minimum, {level}: no neuron would gain."
        return "global", words, 0.0, best.upper_bound, ()
    if best.value <= small:
        most = f"a further neuron gains at most {best.upper_bound:.3g}"
        words = f"Ends at {level}; {most}, none was found that does."
        return "stationary", words, best.value, best.upper_bound, ("gain",)
    words = (
        f"Ends at a spurious stationary point, {level}: none of the dormant neurons grows, but one "
        f"more neuron would, at rate {best.value:.6g}"
    )
    words += "." if best.exact else f", the largest found (at most {best.upper_bound:.3g})."
    return "spurious", words, best.value, best.upper_bound, () if best.exact else ("gain",)
