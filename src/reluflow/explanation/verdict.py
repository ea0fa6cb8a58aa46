"""The verdict of an explanation in plain words: what to read first, and the order of the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reluflow.explanation.changes import ignored, scale, width
from reluflow.explanation.directions import directions
from reluflow.explanation.end_words import best, end
from reluflow.explanation.jumps import jumps
from reluflow.explanation.proof_words import proofs
from reluflow.explanation.settings import pulls
from reluflow.optimum.max_margin import NetworkMargin
from reluflow.runtime.words import count, number, share

if TYPE_CHECKING:
    from reluflow.explanation.explanation import Explanation


def sentences(e: Explanation) -> list[tuple[str, str]]:
    """(topic, what is found), in the order in which to read them."""
    made = {
        "In short": _short(e),
        "Directions": directions(e),
        "Jumps": jumps(e),
        "End": end(e),
        "Best possible": best(e),
        "Ignored": ignored(e),
        "Width": width(e),
        "Scale": scale(e),
        "Proofs": proofs(e),
    }
    return [(topic, text) for topic, text in made.items() if text]


def _short(e: Explanation) -> str:
    if not e.groups or e.silent:
        what = f"The network of {e.net.m:,} neurons has learnt nothing"
        if not e.problem.y.any():
            return f"{what}: all labels are 0, which a silent network fits."
        if not pulls(e.problem):
            return f"{what}: every sample with a label is 0, where all networks are 0."
        if e.unmoved:
            return f"{what}: at a silent network the pulls of the samples cancel, no neuron grows."
        why = "" if e.run.status.ok else ", when the budget of the simulation ends"
        return f"{what}: it is still silent{why}."
    K = len(e.groups)
    cut = not e.run.status.ok
    what = (
        "So far (the simulation was cut short) the" if cut else "The"
    ) + f" network of {e.net.m:,} neurons behaves as {count(K, 'neuron')}"
    if e.problem.loss.margin:
        wrong, undecided = int(((e.margins <= 0) & ~e.unlearnt).sum()), int(e.unlearnt.sum())
        left = [(wrong, "on the wrong side"), (undecided, "undecided (f is 0 there)")]
        if wrong or undecided:
            where = " and ".join(
                f"{k:,} of {e.problem.n:,} samples ({100 * k / e.problem.n:.2g} %) {place}"
                for k, place in left
                if k
            )
            return f"{what} and leaves {where}."
        tail = f"and separates all samples, with normalised margin {number(e.margin)}"
        return f"{what} {tail}: {_margin_word(e)}."
    if e.fits:
        return f"{what} and fits every label."
    line = ""
    if e.linear:
        plane = e.problem.d == 2 and e.problem.bias is not None
        line = " and converges to the least-squares " + ("line" if plane else "linear fit")
    glob = {
        "global minimum": "a global minimum",
        "stationary, not global": "not a global minimum",
        "not stationary": "still moving",
    }.get(e.point.kind if e.point else "", "optimality not decided")
    return f"{what}{line}: mean squared error {number(e.mse)}, {glob}."


def _margin_word(e: Explanation) -> str:
    """How much of the largest margin of any network the run has reached."""
    if not isinstance(e.optimum, NetworkMargin):
        return "whether that is the best was not decided at this size"
    best = e.optimum
    if best.exact:
        return (
            f"{share(e.margin, best.margin)} of the largest of any network, {number(best.margin)}"
        )
    top = best.upper_bound
    return f"{share(e.margin, top)} of {number(top)}, which no network exceeds"
