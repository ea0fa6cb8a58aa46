"""What an explanation says where weights decay: the end of the penalised loss, and the best one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reluflow.explanation.settings import can_optimise
from reluflow.network import Network
from reluflow.optimum.penalised_stationarity import PenalisedStationarity, penalised_stationarity
from reluflow.optimum.ridge import Ridge, ridge
from reluflow.problem import Problem
from reluflow.runtime.words import count, number, plural

if TYPE_CHECKING:
    from reluflow.explanation.explanation import Explanation

REACHED = 1e-6  # relative excess over the bound up to which the end counts as the best
RESTS = 1e-4  # relative residual of an end that counts as at rest: runs stop at about 1e-9 of it


@dataclass(frozen=True, eq=False)
class PenalisedEnd:
    """The end of a run under weight decay, and the best network of any width (small data)."""

    point: PenalisedStationarity
    best: Ridge | None


def judge_end(problem: Problem, net: Network, weight_decay: float) -> PenalisedEnd:
    """Stationarity of the penalised loss at ``net``, and its least value where that is searched."""
    point = penalised_stationarity(problem, net, weight_decay, tol=RESTS)
    return PenalisedEnd(point, ridge(problem, weight_decay) if can_optimise(problem) else None)


def decay_words(e: Explanation) -> str:
    """The sentences on weight decay; empty without it."""
    if e.penalised is None:
        return ""
    point, best, decay = e.penalised.point, e.penalised.best, e.settings.weight_decay
    lines = [
        f"With weight decay {number(decay)} a neuron grows only where its pull beats the decay "
        f"({_growing(e)})."
    ]
    lines.append(
        f"The end has penalised loss {number(point.value)}: loss {number(point.loss)} and squared "
        f"norm {number(point.norm2)}."
    )
    if point.kind == "stationary, not global":
        lines.append(
            "It is not the best: one more neuron would lower the penalised loss by "
            f"{number(point.gain)}."
        )
    elif point.kind == "not stationary":
        lines.append(f"It is not at rest yet (relative residual {point.relative:.1e}).")
    elif point.kind == "global minimum":
        lines.append("No network of any width has a smaller one: max |G| is the decay itself.")
    if best is not None:
        excess = point.value / best.lower_bound - 1.0 if best.lower_bound > 0.0 else 0.0
        size = count(best.network.m, "neuron") if best.norm2 > 0.0 else "no neuron"
        bound = "" if best.exact else f" (found; at least {number(best.lower_bound)})"
        same = "which the end reaches" if excess <= REACHED else f"{100 * excess:.3g} % below it"
        lines.append(
            f"The least penalised loss of any network is {number(best.value)}{bound}, with {size}, "
            f"{same}."
        )
    return " ".join(lines)


def _growing(e: Explanation) -> str:
    """How many of the directions of a silent network beat the decay."""
    rates = abs(e.landscape.values[e.landscape.rates > 0.0])
    beats = int((rates > e.settings.weight_decay).sum())
    return f"at first {beats} of {len(rates)} {plural(len(rates), 'direction')}"
