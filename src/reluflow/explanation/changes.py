"""What the verdict says was ignored, and what more width or a larger scale would change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reluflow.explanation.end import fitted, leading_share
from reluflow.explanation.words import FAINT, feature_names, loss_number, samples, strengths
from reluflow.runtime.words import count, join, number

if TYPE_CHECKING:
    from reluflow.explanation.explanation import Explanation

_OFF = 0.05  # error over its own label from which a sample counts as not fitted


def ignored(e: Explanation) -> str:
    """Samples and features that the network at the end does not use."""
    problem, parts = e.problem, []
    if not e.groups or e.silent:
        return ""
    read = np.zeros(problem.n, dtype=bool)
    for g in e.groups:
        read[list(g.active)] = True
    unread = np.flatnonzero(~read & e.unlearnt & (problem.y != 0.0))
    if unread.size and problem.leak == 0.0:
        parts.append(f"no neuron reads {samples(unread.tolist(), problem.n)} (f stays 0 there)")
    if problem.loss.margin:
        wrong = np.flatnonzero((e.margins <= 0) & ~e.unlearnt)
        if wrong.size:
            parts.append(f"{samples(wrong.tolist(), problem.n)} not classified rightly")
    else:
        far = np.flatnonzero(~fitted(problem, e.outputs, _OFF))
        if far.size:
            off = np.abs(e.outputs - problem.y)
            worst = int(far[np.argmax(off[far])])
            verb = "stays" if far.size == 1 else "stay"
            parts.append(
                f"{samples(far.tolist(), problem.n)} {verb} unfitted, by more than "
                f"{100 * _OFF:g} % of {'its' if far.size == 1 else 'their'} label (largest error "
                f"{off[worst]:.3g}, at sample {worst})"
            )
    strong = np.max([strengths(problem, g.direction) for g in e.groups], axis=0)
    if (strong < FAINT).any():  # it may still make the outputs of small labels
        strong = np.maximum(strong, leading_share(problem, e.run.final))
    faint = [n for n, s in zip(feature_names(problem), strong, strict=True) if s < FAINT]
    if faint and problem.d <= 30:
        verb = "moves" if len(faint) == 1 else "move"
        noun = "feature " if len(faint) == 1 else "features "
        noun = "" if faint == ["the constant"] else noun
        parts.append(f"{noun}{join(faint)} hardly {verb} any neuron")
    elif faint:
        parts.append(f"{len(faint)} of {problem.d} features hardly move any neuron")
    if not parts:
        return "Nothing: every sample is fitted and every feature is read."
    text = "; ".join(parts)
    return text[0].upper() + text[1:] + "."


def width(e: Explanation) -> str:
    """What infinitely many neurons would change."""
    if e.wide is None or e.process is None:
        return ""
    wide, mine = e.wide, e.process
    if wide.ending in ("budget", "unresolved"):
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
    if L.margin is not None:
        where = f"normalised margin {number(L.margin)}"
    return (
        f"From weights of size 1 the same draw ends with {count(L.directions, 'direction')} "
        f"(here {here}), at {where} (estimated)."
    )
