"""What the verdict says of the course of training: directions that neurons turn to, and jumps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from reluflow.claims.compare import CLOSE, Comparison, JumpRow
from reluflow.explanation.end import carriers
from reluflow.explanation.verdict.words import NAMED, SHOWN, features_read, loss_number, samples
from reluflow.runtime.words import count, join, percent

if TYPE_CHECKING:
    from reluflow.explanation.explanation import Explanation
    from reluflow.landscape.align import Alignment
    from reluflow.landscape.extremal import ExtremalVectors
    from reluflow.prediction.process import JumpProcess

_PREDICTED = "Predicted without training"
CUT_SHORT = ("budget", "unresolved")  # endings of a process that predicts nothing further
POOR = 0.15  # relative difference of times from which a prediction is called poor


def directions(e: Explanation) -> str:
    """Where neurons turn first, and the directions that carry the network at the end."""
    return " ".join([first_turns(e.landscape, e.alignment, e.net.m), *_groups(e), *_others(e)])


def first_turns(landscape: ExtremalVectors, alignment: Alignment | None, m: int) -> str:
    """Where the m neurons of the start turn at first: known before training."""
    return _found_directions(landscape) if alignment is None else _early(alignment, m)


def _found_directions(found: ExtremalVectors) -> str:
    """Where paths of neurons were not followed."""
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


def _early(a: Alignment, start: int) -> str:
    """What the closed-form paths of neurons show: of all, or of as many as were followed."""
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
    few = f" Of {start:,} neurons {m:,} were followed." if m < start else ""
    return "At first " + ", ".join(parts) + "." + when + few


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
        edge = f", lies on the edge of {samples(g.edge, n)}" if g.edge else ""
        lines.append(
            f"{name} ({count(g.neurons, 'neuron')}, {100 * g.share:.3g} % of the output) "
            f"{effect} f on {samples(g.active, n)}{_classes(e, g.active)}{edge} and reads "
            f"{features_read(e.problem, g.direction)}."
        )
    if K > SHOWN:
        more = f"{count(K - SHOWN, 'weaker direction')} {'is' if K == SHOWN + 1 else 'are'}"
        lines.append(f"{more[0].upper()}{more[1:]} in the report.")
    return lines


def _others(e: Explanation) -> list[str]:
    """Where neurons went that grow at first and are in none of the directions at the end."""
    if e.alignment is None or not e.groups or e.silent or e.alignment.sign.size < e.net.m:
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


def jumps(e: Explanation) -> str:
    """When neurons become large, as predicted and in the simulation, and whether the two agree."""
    if e.process is None or e.comparison is None:
        return _without_prediction(e)
    text = predicted_jumps(e.process, float(e.net.log_norms.max()), e.net.m)
    if e.process.n_jumps == 0:
        return text
    agreement = _agreement(e.comparison, whole=e.process.ending not in CUT_SHORT)
    return f"{text}{_seen_in_run(e.comparison.rows)}{agreement}"


def in_flow_time(text: str, log_scale: float) -> str:
    """A sentence about the limit, its times over log(1/scale) as gradient-flow times."""
    return re.sub(
        r"time ([\d.e+-]+) log\(1/scale\)",
        lambda found: f"time {-log_scale * float(found[1]):.4g}",
        text,
    )


def predicted_jumps(process: JumpProcess, log_scale: float, m: int) -> str:
    """The jumps as they are known before training, of all m neurons or of those followed."""
    K = process.n_jumps
    if K == 0:
        return f"No neuron ever jumps. {process.status}"
    unknown = np.ones(K, dtype=bool) if process.offsets is None else np.isnan(process.offsets)
    times = process.jump_times(log_scale=log_scale)
    first = process.problem.silent_loss
    shown = [
        f"jump {i + 1} of {count(len(process.neurons[i]), 'neuron')} at time "
        f"{'about ' if unknown[i] else ''}{times[i]:.4g} to loss "
        f"{loss_number(float(process.losses[i + 1]), first)}"
        for i in range(min(K, SHOWN))
    ]
    more = f" and {K - SHOWN} more" if K > SHOWN else ""
    text = f"{_PREDICTED}: {'; '.join(shown)}{more}."
    if unknown.any():
        leading = [str(i + 1) for i in np.flatnonzero(unknown)]
        which, verb = ("Jump", "is") if len(leading) == 1 else ("Jumps", "are")
        text += (
            f" {which} {join(leading)} {verb} predicted at leading order only: the constant that "
            "belongs to the time at a finite scale is not known."
        )
    if process.signs.size < m:
        text += f" These are the jumps of the {process.signs.size:,} neurons that were followed."
    if process.ending in CUT_SHORT:
        text += (
            f" Found so far, later jumps are not known: {in_flow_time(process.status, log_scale)}"
        )
    if process.balance:
        text += " " + in_flow_time(process.balance, log_scale)
    return text


def _seen_in_run(rows: tuple[JumpRow, ...]) -> str:
    """Times of the predicted jumps in the simulation."""
    seen = []
    for row in rows[:SHOWN]:
        if row.as_one is not None and row.jump > row.as_one[0]:
            continue  # said with the first of them
        who, comes, unseen = f"jump {row.jump}", "comes", "is not seen"
        if row.as_one is not None:
            apart = rows[row.as_one[1] - 1].predicted - row.predicted
            who = _jumps([str(i) for i in range(row.as_one[0], row.as_one[1] + 1)])
            who = f"{who}, {apart:.2g} apart as predicted,"
            comes, unseen = "come as one", "are not seen"
        seen.append(
            f"{who} "
            + (unseen if row.simulated is None else f"{comes} at {row.simulated:.4g}")
            + ("" if row.difference is None else f" ({percent(row.difference)})")
        )
    return f" In the simulation {join(seen)}."


def _agreement(c: Comparison, whole: bool = True) -> str:
    """Whether times, losses and neurons agree; of a process cut short, the times alone."""
    if not whole:
        close = all(r.close for r in c.rows)
        if close:
            return f" So far the times agree within {100 * CLOSE:g} %."
        return _poor(c) + reasons(c)
    if c.agrees:
        text = f" The simulation agrees within {100 * CLOSE:g} % in times and losses"
        if c.who:
            least = min(row.held for row in c.rows if row.held is not None)
            text += (
                ", and the neurons that jump are those predicted: after each jump they hold "
                f"{100 * min(least, 0.9999):.4g} % of the network or more"
            )
        return text + "."
    poor = _poor(c)
    if c.fragile:
        return (
            f"{poor} At this scale other neurons come at almost the same time, or before the "
            "plateau is reached: the order of the limit need not show; a smaller scale would "
            f"separate them.{reasons(c)}"
        )
    other = " Other neurons jump than those predicted." if c.who is False else ""
    ends = "the losses agree" if c.ends_meet else "the losses differ too"
    return f"{poor or ' The simulation differs.'} At the end {ends}.{other}{reasons(c)}"


def reasons(c: Comparison) -> str:
    """Why jumps come at other times than predicted, as far as the limit process itself says it."""
    of_doubt: dict[str, list[str]] = {}
    for row in [row for row in c.rows if not row.close][:SHOWN]:
        of_doubt.setdefault(row.doubt, []).append(str(row.jump))
    silent = of_doubt.pop("", [])
    named = [f"{_jumps(which)} ({doubt})" for doubt, which in of_doubt.items()]
    text = f" Why times may differ from this scale: {join(named)}." if named else ""
    if silent:
        text += f" The limit gives no reason why {_jumps(silent)} should come at another time."
    return text


def _jumps(numbers: list[str]) -> str:
    return f"jump{'s' if len(numbers) > 1 else ''} {join(numbers)}"


def _poor(c: Comparison) -> str:
    """By how much the prediction is off, where that is much."""
    off = [(row.jump, row.difference) for row in c.rows if row.difference is not None]
    unseen = [str(row.jump) for row in c.rows if row.simulated is None]
    worst = max(off, key=lambda each: abs(each[1]), default=None)
    parts = []
    if worst is not None and abs(worst[1]) > POOR:
        when = "later" if worst[1] > 0 else "earlier"
        parts.append(f"jump {worst[0]} comes {100 * abs(worst[1]):.3g} % {when} than predicted")
    if unseen:
        parts.append(f"{_jumps(unseen)} cannot be seen")
    return f" The prediction is poor: {' and '.join(parts)}." if parts else ""


def _without_prediction(e: Explanation) -> str:
    """Where the limit was not computed."""
    text = "The limit of small scales was not computed at this size."
    top = float(e.landscape.rates.max(initial=0.0))
    if top > 0.0:
        first = -0.5 * float(np.logaddexp.reduce(2.0 * e.net.log_norms)) / top
        text += (
            f" The fastest direction known grows at rate {top:.3g}: if all neurons grow like that, "
            f"the first jump comes near time {first:.3g} (estimated)."
        )
    seen = _in_real_time(e)
    when = f", at time {join([f'{t:.3g}' for t in seen[:SHOWN]])}" if seen else ""
    return f"{text} The simulation shows {count(len(seen), 'jump')} of the loss{when}."


def _in_real_time(e: Explanation) -> list[float]:
    """Jumps of the run, whose clock may be that of the loss."""
    if e.seen is None:
        return []
    return [float(t) for t in np.interp(e.seen.jumps, e.run.times, e.run.flow_times)]
