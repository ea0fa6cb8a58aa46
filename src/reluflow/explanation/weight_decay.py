"""What an explanation says and proves where weights decay: of the penalised loss and its least."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reluflow.explanation.settings import can_optimise
from reluflow.network import Network
from reluflow.optimum.certificate_file import Certificate
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

    @property
    def excess(self) -> float:
        """How far the end is above the bound on every network, relatively; 0 without a bound."""
        if self.best is None or not self.best.lower_bound > 0.0:
            return 0.0
        return self.point.value / self.best.lower_bound - 1.0


def judge_end(problem: Problem, net: Network, weight_decay: float) -> PenalisedEnd:
    """Stationarity of the penalised loss at ``net``, and its least value where that is searched."""
    point = penalised_stationarity(problem, net, weight_decay, tol=RESTS)
    return PenalisedEnd(point, ridge(problem, weight_decay) if can_optimise(problem) else None)


def decay_certificates(
    problem: Problem, net: Network, end: PenalisedEnd
) -> tuple[Certificate, ...]:
    """Proofs of the least penalised loss (at the end, if it reaches it), and of a better neuron."""
    from reluflow.optimum.certificate import not_best_certificate, ridge_certificate

    made = [not_best_certificate(problem, net, end.point)]
    if end.best is not None:
        reached = net if end.excess <= REACHED else None
        made.append(ridge_certificate(problem, end.best, reached))
    return tuple(certificate for certificate in made if certificate is not None)


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
        lines.append("It is not at rest yet.")
    elif point.kind == "global minimum":
        lines.append("No network of any width has a smaller one.")
    lines.append(
        "Its relative distance to the KKT conditions of the penalised loss is "
        f"{point.relative:.1e}, its max |G| is {number(point.escape / decay)} times the decay "
        "(1 at the best)."
    )
    if best is not None:
        below = 100.0 * (1.0 - best.value / point.value) if point.value > 0.0 else 0.0
        size = count(best.network.m, "neuron") if best.norm2 > 0.0 else "no neuron"
        bound = "" if best.exact else f" (found; at least {number(best.lower_bound)})"
        reached = e.penalised.excess <= REACHED
        same = "which the end reaches" if reached else f"{below:.3g} % below that of the end"
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
