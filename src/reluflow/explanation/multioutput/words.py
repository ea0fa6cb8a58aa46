"""The verdict on several outputs in words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from reluflow.arrays import Array
from reluflow.explanation.multioutput.end import least_margin
from reluflow.explanation.multioutput.quantities import GAP, SEPARATE, confusion
from reluflow.explanation.verdict.course import reasons
from reluflow.optimum.max_margin import NetworkMargin
from reluflow.optimum.min_norm import MinNorm
from reluflow.problem.tables import unseen_scores
from reluflow.runtime.words import count, join, number, plural

if TYPE_CHECKING:
    from reluflow.explanation.multioutput.explanation import VectorExplanation

RESTS = 1e-6  # relative gradient beyond which a plateau is one nearly
VANISHED = 1e-9  # of the loss at first that is as good as 0
VANISHES = "the loss goes to 0 after it"


def sentences(e: VectorExplanation) -> list[tuple[str, str]]:
    """The verdict: (topic, sentences)."""
    found = [
        ("In short", _in_short(e)),
        ("Directions", directions_in_words(e)),
        ("Jumps", jumps_in_words(e)),
        ("Order", f"{_order(e)} {_confused(e)}".strip()),
        ("End", _end(e)),
        ("Simulation", f"{how_simulated(e)}. {e.run.status}"),
    ]
    return [(topic, text) for topic, text in found if text]


def how_simulated(e: VectorExplanation) -> str:
    """The method of the simulation, and to which time it went."""
    given = e.run.settings
    until = f"to time {float(e.run.flow_times[-1]):.4g}"
    if "rtol" in given:
        return f"Gradient flow {until}"
    batch = given.get("batch_size")
    some = (
        "" if batch is None else f" on random batches of {batch:,} of the {e.problem.n:,} samples"
    )
    return f"Gradient descent{some} {until}"


def spoken(names: Sequence[str], chosen: Sequence[int]) -> str:
    """Some classes or outputs as words: "fig and pear", "class 4", "classes 4 and 6"."""
    words = [names[c] for c in chosen]
    if all(word.replace(".", "").lstrip("-").isdigit() for word in words):
        return f"{plural(len(words), 'class', 'classes')} {join(words, 3)}"
    return join(words, 3)


def told_apart(names: Sequence[str], b: Array, several: bool = False, rest: bool = True) -> str:
    """Which classes an outer direction raises and lowers: "tells setosa from virginica".

    ``several`` is for what several neurons do; ``rest`` where outputs compete, as classes do, so
    that what is raised is told from the rest.
    """
    s = "" if several else "s"
    up = [int(c) for c in np.argsort(-b, kind="stable") if b[c] > 0.4 * np.abs(b).max()]
    down = [int(c) for c in np.argsort(b, kind="stable") if b[c] < -0.4 * np.abs(b).max()]
    if up and down:
        return f"tell{s} {spoken(names, up)} from {spoken(names, down)}"
    if rest:
        return f"tell{s} {spoken(names, up or down)} from the rest"
    return f"raise{s} {spoken(names, up)}" if up else f"lower{s} {spoken(names, down)}"


def told(e: VectorExplanation, b: Array, several: bool = False) -> str:
    """:func:`told_apart` with the names of an explanation."""
    return told_apart(e.names, b, several, e.problem.classes is not None)


def _in_short(e: VectorExplanation) -> str:
    head = f"The network of {count(e.net.m, 'neuron')}"
    loss = number(float(e.run.loss[-1]))
    if e.problem.classes is None:
        left = e.run["errors"][-1]
        best, worst = int(np.argmin(left)), int(np.argmax(left))
        return (
            f"{head} ends at loss {loss}: of the variation of {e.names[best]} "
            f"{100 * left[best]:.3g} % is left, of {e.names[worst]} {100 * left[worst]:.3g} %."
        )
    apart = [row for row in e.separated if np.isfinite(row[0])]
    right = f"{100 * e.accuracy:.4g} % of the samples are in their class, loss {loss}"
    if not apart:
        return f"{head} has told no two classes apart when the simulation ends: {right}."
    _, c, d = apart[0]
    said = f"{head} first tells {spoken(e.names, [c])} from {spoken(e.names, [d])}"
    if len(apart) > 1:
        _, c, d = apart[-1]
        said += f", last {spoken(e.names, [c])} from {spoken(e.names, [d])}"
    return f"{said}; at the end {right}."


def directions_in_words(e: VectorExplanation) -> str:
    """Where small neurons turn, and which classes that tells apart."""
    tops = e.landscape.of_kind("max")
    if not tops.size:
        return "No direction in which small neurons grow was found."
    which = "" if e.landscape.exact else " (found)"
    if "estimated" in e.landscape.method:
        which = " (estimated)"
    said = f"Small neurons turn to {count(len(tops), 'direction')}{which}. "
    parts: list[str] = []
    for i in tops:
        what, rate = told(e, e.landscape.outer[i]), e.landscape.values[i]
        part = f"{what} (rate {rate:.3g}{_features(e, i)})"
        if part not in parts and len(parts) < 3:
            parts.append(part)
    said += (
        f"The strongest {parts[0]}"
        if len(parts) == 1
        else f"The strongest {parts[0]}; next: {'; '.join(parts[1:])}"
    )
    if e.alignment is not None:
        grow = int(e.alignment.growing.sum())
        followed = len(e.alignment.growth)
        some = "" if followed == e.net.m else " that were followed"
        all_grow = "all" if grow == followed > 1 else f"{grow:,}"
        said += f". Of {count(followed, 'neuron')}{some} {all_grow} {plural(grow, 'grows', 'grow')}"
        dead = int(e.alignment.dead.sum())
        said += f", {dead:,} {plural(dead, 'is', 'are')} silent for ever" if dead else ""
    return f"{said}."


def _features(e: VectorExplanation, i: int) -> str:
    """The two features a direction looks at most, where features have names."""
    names = e.problem.known.get("features")
    if names is None or e.settings.image_shape is not None:
        return ""
    v = e.landscape.vectors[i][: len(names)]
    top = np.argsort(-np.abs(v))[:2]
    return ", " + join([f"{'more' if v[k] > 0 else 'less'} {names[k]}" for k in top])


def jumps_in_words(e: VectorExplanation) -> str:
    """The first jumps of the limit process, without training, and when the run shows them."""
    if e.process is None:
        return _first_jump(e)
    process, scale = e.process, float(e.net.log_norms.max())
    times = process.jump_times(log_scale=scale)
    wide = process.signs.size != e.net.m
    rows = e.comparison.rows if e.comparison is not None else (None,) * len(times)
    parts = []
    for i, (t, row) in enumerate(zip(times, rows, strict=True)):
        group = process.neurons[i]
        who = "a direction" if wide else count(len(group), "neuron")
        what = told(e, process.outer[i][int(group[0])], len(group) > 1 and not wide)
        seen = "" if row is None or row.simulated is None else f", seen at {row.simulated:.3g}"
        after = process.losses[i + 1]
        near = "about " if process.residuals[i + 1] > RESTS else ""
        level = f"loss {near}{after:.4g} after it"
        if after <= VANISHED * e.run.loss[0]:
            level = VANISHES
        if process.relaxation is not None and np.isnan(process.relaxation[i + 1]):
            level = f"followed to loss {after:.4g} within the time for it, not to its end"
        does = f"that {what}"
        if process.parting[i]:
            who = "the neurons of a direction" if wide else who
            does = "that jumped before part, as they may with several outputs,"
        parts.append(f"{who} {does} at time {t:.3g} ({level}{seen})")
    more = " More follow" if process.ending == "budget" else ""
    ends = f"{more}." if more else f" {process.status}"
    view = "Predicted without training, at infinite width" if wide else "Predicted without training"
    return f"{view}: {'; '.join(parts)}.{ends}{_other_times(e, wide)}"


def _other_times(e: VectorExplanation, wide: bool) -> str:
    """Why the run may show jumps at other times than predicted."""
    text = "" if e.comparison is None else reasons(e.comparison)
    if text and wide and e.process is not None:
        text += f" The prediction is of {e.process.view}."
        first = float(e.process.jump_times(log_scale=float(e.net.log_norms.max()))[0])
        if e.alignment is not None and e.alignment.growing.any():
            half = float(np.median(e.alignment.time[e.alignment.growing]))
            if half > first:
                text += f" Half of the neurons that were followed still turn at time {half:.3g}."
    return text


def _first_jump(e: VectorExplanation) -> str:
    """When the fastest direction reaches size 1, to leading order: log(1/scale) over its rate."""
    tops = e.landscape.of_kind("max")
    scale = float(e.net.log_norms.max())
    if not tops.size or scale >= 0.0:
        return ""
    what, rate = told(e, e.landscape.outer[tops[0]]), float(e.landscape.values[tops[0]])
    half = 0.5 * (e.run.loss[0] + e.run.loss[-1])
    seen = e.run.flow_times[int(np.argmax(e.run.loss <= half))]
    return (
        "Predicted without training, to leading order: the first jump, of a direction that "
        f"{what}, near time {-scale / rate:.3g}; half of the fall is seen at {seen:.3g}."
    )


def _order(e: VectorExplanation) -> str:
    """In which order pairs of classes are told apart."""
    if e.problem.classes is None:
        return ""
    apart = [row for row in e.separated if np.isfinite(row[0])]
    never = len(e.separated) - len(apart)

    if not apart:
        return ""
    said = (
        f"Two classes are told apart once {100 * SEPARATE:.0f} % of their samples prefer their own "
        f"of the two by {GAP:g}: "
    )
    if len(apart) <= 6:
        said += _pairs(e, apart)
    else:
        said += f"first {_pairs(e, apart[:4])}; last {_pairs(e, apart[-3:])}"
    if never:
        said += f". Of {len(e.separated)} pairs {never} {plural(never, 'is', 'are')} not told apart"
    return f"{said}."


def _pairs(e: VectorExplanation, rows: list[tuple[float, int, int]]) -> str:
    """Pairs of classes with the time of each, those of one time together."""
    parts = []
    for when, group in groupby(rows, key=lambda row: f"{row[0]:.3g}"):
        pairs = [f"{e.names[c]} and {e.names[d]}" for _, c, d in group]
        parts.append(f"{', '.join(pairs)} (time {when})")
    return "; ".join(parts) if any("," in part for part in parts) else join(parts, len(parts))


def _confused(e: VectorExplanation) -> str:
    """What is confused when half of the fall of the loss is done."""
    if e.problem.classes is None:
        return ""
    i = int(np.argmax(e.run.loss <= 0.5 * (e.run.loss[0] + e.run.loss[-1])))
    worst = _most_confused(e.names, np.asarray(e.run["confusion"][i]))
    if not worst or i + 1 >= len(e.run.loss):
        return ""
    return f"When the loss has fallen half way (time {e.run.flow_times[i]:.3g}), {worst}."


def _most_confused(names: tuple[str, ...], table: Array) -> str:
    """The largest entry off the diagonal: "40 of 50 versicolor are taken for virginica"."""
    wrong = table - np.diag(np.diag(table))
    if not wrong.any():
        return ""
    c, d = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    whom, what, of = spoken(names, [int(c)]), spoken(names, [int(d)]), int(table[c].sum())
    whose = f"samples of {whom}" if whom != names[c] else whom
    return f"{int(wrong[c, d])} of {of} {whose} are taken for {what}"


def _end(e: VectorExplanation) -> str:
    """Accuracy, what is confused, the directions left, conditions, unseen rows."""
    parts = []
    if e.problem.classes is not None:
        worst = _most_confused(e.names, confusion(e.problem, e.outputs))
        parts.append(f"Most often confused: {worst}." if worst else "Every sample is in its class.")
    if e.groups:
        g = e.groups[0]
        parts.append(
            f"{count(len(e.groups), 'direction').capitalize()} "
            f"{plural(len(e.groups), 'carries', 'carry')} the network; the largest, "
            f"{100 * g.share:.3g} % of it, {told(e, g.outer)}."
        )
    parts += [_conditions(e), _best(e)]
    scores = unseen_scores(e.problem, e.run.final)
    if scores is not None:
        parts.append(scores.sentence)
    return " ".join(part for part in parts if part)


def _conditions(e: VectorExplanation) -> str:
    """How near the end is to a stationary point, of the margin or of the loss."""
    if e.kkt is not None and np.isfinite(e.kkt.residual):
        q = float(np.exp(e.kkt.log_q_min))
        when = "" if e.late is e.run.final else "Trained on until the least margin is "
        when = f"{when}{q:.3g}: n" if when else f"At a least margin of {q:.3g} the n"
        return (
            f"{when}ormalised margin {e.kkt.margin:.4g}, distance to the KKT conditions "
            f"{e.kkt.residual:.2g} of the weights' norm."
        )
    if e.problem.loss.classes and e.point is None:
        return _margins(e)
    if e.point is None:
        return ""
    if e.point.kind == "not stationary":
        return f"The end still moves: its gradient is {e.point.relative:.1e} of the first pull."
    if e.point.gain > 0.0:
        return f"The end is {e.point.kind}: one more neuron would lower the loss by " + (
            f"{e.point.gain:.3g}."
        )
    return f"The end is a {e.point.kind}." if "global" in e.point.kind else "The end is stationary."


def _margins(e: VectorExplanation) -> str:
    """What can be said of margins where the conditions of the largest one were not looked at."""
    wrong = round((1.0 - e.accuracy) * e.problem.n)
    if wrong:
        these = f"{count(wrong, 'sample').capitalize()} {plural(wrong, 'is', 'are')}"
        return f"{these} not in {plural(wrong, 'its', 'their')} class, so that there is no margin."
    least = least_margin(e.problem, e.run.final)
    return f"The least margin is {least:.3g}, normalised {least / e.run.final.norm2:.4g}."


def _best(e: VectorExplanation) -> str:
    """The best network of any width, between its bounds."""
    o = e.optimum
    if isinstance(o, NetworkMargin) and o.network is not None:
        bound = "" if o.status == "optimal" else f" (found; at most {o.upper_bound:.4g})"
        said = f"The largest normalised margin of any network is {o.margin:.4g}{bound}"
        if e.kkt is not None and np.isfinite(e.kkt.residual):
            said += f"; the end has {100 * e.kkt.margin / o.upper_bound:.3g} % of the bound"
        return f"{said}."
    if isinstance(o, NetworkMargin):
        return f"No network has a normalised margin above {o.upper_bound:.4g}."
    if isinstance(o, MinNorm) and o.network is None:
        return f"A network that interpolates has a squared norm of at least {o.lower_bound:.4g}."
    if isinstance(o, MinNorm):
        bound = "" if o.status == "optimal" else f" found (at least {o.lower_bound:.4g})"
        return f"The least squared norm of an interpolating network{bound} is {o.norm2:.4g}."
    return ""
