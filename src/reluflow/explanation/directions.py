"""What the verdict says of directions: where small neurons turn, and what is left at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reluflow.explanation.end import carriers
from reluflow.explanation.words import NAMED, SHOWN, reads, samples
from reluflow.runtime.words import count, join

if TYPE_CHECKING:
    from reluflow.explanation.explanation import Explanation
    from reluflow.landscape.align import Alignment


def directions(e: Explanation) -> str:
    """Where neurons turn first, and the directions that carry the network at the end."""
    first = _estimated(e) if e.alignment is None else _early(e, e.alignment)
    return " ".join([first, *_groups(e), *_others(e)])


def _estimated(e: Explanation) -> str:
    """Where paths of neurons were not followed."""
    found = e.landscape
    rows = found.of_kind("max", "min")
    text = f"Small neurons turn to {count(len(rows), 'direction')}"
    text += " (all that there are)." if found.exact else " (found; there may be more)."
    share = found.basin_fractions
    if found.exact or share is None or not len(rows):
        return text
    for column, sign in enumerate(("positive", "negative")):
        parts = [
            f"{100 * share[i, column]:.3g} % to one of growth rate {found.rates[i]:.3g}"
            for i in rows
            if share[i, column] > 0.0
        ]
        dead = 1.0 - float(share[:, column].sum())
        parts += [f"{100 * dead:.3g} % to none"] if parts and dead > 1e-9 else []
        if parts:
            text += f" Of neurons with {sign} output weight {join(parts)} (estimated)."
    return text


def _early(e: Explanation, a: Alignment) -> str:
    """What the closed-form paths of all neurons show."""
    m, grow, dead = a.sign.size, int(a.growing.sum()), int(a.dead.sum())
    rest = m - grow - dead
    places = len(_distinct(a.direction[a.growing], a.sign[a.growing]))
    parts = [f"{grow:,} of {m:,} neurons turn to {count(places, 'direction')} and grow"]
    if not grow:
        parts = [f"none of {m:,} neurons grows"]
    if dead:
        parts.append(f"{dead:,} die (no sample activates them)")
    if rest:
        parts.append(f"{rest:,} shrink or rest")
    time = float(a.time[a.growing].max(initial=0.0))
    when = f" Alignment (cosine {a.cosine:g}) takes until time {time:.3g}." if grow else ""
    return "At first " + ", ".join(parts) + "." + when


def _distinct(V: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """Directions, one row for those equal to 1e-6, by sign."""
    if not len(V):
        return V
    return np.unique(np.column_stack([np.round(V, 6) + 0.0, signs]), axis=0)


def _groups(e: Explanation) -> list[str]:
    K = len(e.groups)
    if not K or e.silent:
        return []
    lines = []
    for i, g in enumerate(e.groups[:SHOWN]):
        name = "The one direction at the end" if K == 1 else f"Direction {i + 1} at the end"
        effect = "raises" if g.sign > 0 else "lowers"
        n = e.problem.n
        edge = f" and lies on the edge of {samples(g.edge, n)}" if g.edge else ""
        lines.append(
            f"{name} ({count(g.neurons, 'neuron')}, {100 * g.share:.3g} % of the output) "
            f"{effect} f on {samples(g.active, n)}{_classes(e, g.active)}{edge} and reads "
            f"{reads(e.problem, g.direction)}."
        )
    if K > SHOWN:
        lines.append(f"{K - SHOWN} weaker directions are in the report.")
    return lines


def _others(e: Explanation) -> list[str]:
    """Where neurons went that grow at first and are in none of the directions at the end."""
    if e.alignment is None or not e.groups or e.silent:
        return []
    left = e.alignment.growing & (carriers(e.problem, e.run.final) < 0)
    k = int(left.sum())
    if not k:
        return []
    size = e.run.final.log_norms + e.run.final.log_outer
    part = float(np.exp(np.logaddexp.reduce(size[left]) - np.logaddexp.reduce(size)))
    grow = "grows" if k == 1 else "grow"
    if part < 1e-9:
        stay = "stays as small as at the start" if k == 1 else "stay as small as at the start"
        return [f"{count(k, 'neuron').capitalize()} more that {grow} at first {stay}."]
    verb = "is" if k == 1 else "are"
    return [
        f"{count(k, 'neuron').capitalize()} more that {grow} {verb} too small to count: "
        f"{100 * part:.2g} % of the output{' together' if k > 1 else ''}."
    ]


def _classes(e: Explanation, active: tuple[int, ...]) -> str:
    """How many of each class, when samples are too many to be named."""
    if not e.problem.loss.margin or len(active) <= NAMED or len(active) == e.problem.n:
        return ""
    up = int((e.problem.y[list(active)] > 0).sum())
    return f" ({up:,} of class +1, {len(active) - up:,} of class -1)"
