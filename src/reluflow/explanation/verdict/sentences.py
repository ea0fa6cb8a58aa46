"""The verdict of an explanation in plain words: what to read first, and the order of the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reluflow.explanation.settings import has_pull
from reluflow.explanation.verdict.course import CUT_SHORT, directions, jumps
from reluflow.explanation.verdict.outcome import best, end, what_is_ignored
from reluflow.explanation.verdict.reach import horizon, unseen
from reluflow.explanation.verdict.words import loss_number
from reluflow.explanation.weight_decay import decay_words
from reluflow.optimum.max_margin import NetworkMargin
from reluflow.runtime.words import count, number, share

if TYPE_CHECKING:
    from reluflow.explanation.explanation import Explanation
    from reluflow.optimum.certificate_file import Certificate

_PROVED = {
    "stationary": "an exact stationary point near the end",
    "spurious-minimum": "an exact local minimum near the end that is not global",
    "not-global": "one more neuron would lower the loss",
    "global-minimum": "no network of any width has a loss lower by more than the bound",
    "kkt-margin": "an exact KKT point of the margin near the end",
    "max-margin-linear": "the largest margin of a hyperplane",
    "max-margin-network": "the largest margin of any network",
    "min-norm": "the least norm of a network that fits",
    "ridge": "the least penalised loss of any network",
    "ridge-not-best": "one more neuron would lower the penalised loss",
}


_PENALISED = {
    "global minimum": "a global minimum of the penalised loss",
    "stationary, not global": "not a global minimum of the penalised loss",
    "not stationary": "still moving",
}


def sentences(e: Explanation) -> list[tuple[str, str]]:
    """(topic, what is found), in the order in which to read them."""
    made = {
        "In short": _short(e),
        "Directions": directions(e),
        "Jumps": jumps(e),
        "End": end(e),
        "Horizon": horizon(e),
        "Unseen rows": unseen(e),
        "Best possible": best(e),
        "Weight decay": decay_words(e),
        "Ignored": what_is_ignored(e),
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
        if not has_pull(e.problem):
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
    if e.penalised is not None:
        glob = _PENALISED.get(e.penalised.point.kind, "optimality not decided")
    return f"{what}{line}: mean squared error {number(e.mse)}, {glob}."


def _margin_word(e: Explanation) -> str:
    """How much of the largest margin of any network the run has reached."""
    if e.penalised is not None:
        return _PENALISED.get(e.penalised.point.kind, "optimality not decided")
    if not isinstance(e.optimum, NetworkMargin):
        return "whether that is the best was not decided at this size"
    best = e.optimum
    if best.exact:
        return (
            f"{share(e.margin, best.margin)} of the largest of any network, {number(best.margin)}"
        )
    top = best.upper_bound
    return f"{share(e.margin, top)} of {number(top)}, which no network exceeds"


def width(e: Explanation) -> str:
    """What infinitely many neurons would change."""
    if e.wide is None or e.process is None:
        return ""
    wide, mine = e.wide, e.process
    if wide.ending in CUT_SHORT:
        return f"The process of infinite width was not followed to its end: {wide.status}"
    drop = max(float(mine.losses[0] - mine.losses.min()), 1e-300)
    same = wide.n_jumps == mine.n_jumps and bool(
        np.allclose(wide.losses, mine.losses, rtol=0, atol=1e-4 * drop)
    )
    if same:
        return "More width changes nothing: infinitely many neurons go through the same plateaus."
    jumps = count(wide.n_jumps, "jump")
    ends = [loss_number(float(p.losses[-1]), float(p.losses[0])) for p in (wide, mine)]
    return (
        f"With infinitely many neurons there would be {jumps} (here "
        f"{count(mine.n_jumps, 'jump')}), ending at loss {ends[0]} (here {ends[1]})."
    )


def scale(e: Explanation) -> str:
    """What the same start does from large weights."""
    L = e.large
    if L is None:
        return ""
    if not L.finished:
        return (
            f"From weights of size 1 the same draw has {count(L.directions, 'direction')} and loss "
            f"{number(L.loss)} when its budget of steps ends (estimated)."
        )
    here = "none" if e.silent else count(len(e.groups), "direction").split()[0]
    where = "loss 0" if L.fits else f"loss {number(L.loss)}"
    if L.normalized_margin is not None:
        where = f"normalised margin {number(L.normalized_margin)}"
    return (
        f"From weights of size 1 the same draw ends with {count(L.directions, 'direction')} "
        f"(here {here}), at {where} (estimated)."
    )


def _statement(c: Certificate) -> str:
    """What is stated, with the distance, or what is left between two bounds, rounded up."""
    near = f" (within {1.05 * c.claim['distance']:.1e})" if "distance" in c.claim else ""
    if c.kind == "ridge" and "value" in c.claim:
        near = f" (to {1.05 * (c.claim['value'] - c.claim['lower_bound']):.1e})"
    return _PROVED.get(c.kind, c.kind) + near


def proofs(e: Explanation) -> str:
    """Which statements are proved, and which were checked by numbers alone."""
    parts = []
    for grade, how in (("PROVED", "in exact arithmetic"), ("CHECKED", "numerical only")):
        names = [_statement(c) for c in e.certificates if c.grade == grade]
        if names:
            parts.append(f"{grade} ({how}): {'; '.join(names)}.")
    return " ".join(parts)
