"""The verdict of an explanation in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reluflow.app.explain_compare import CLOSE
from reluflow.app.explain_words import (
    FAINT,
    count,
    feature_names,
    listed,
    number,
    percent,
    reads,
    samples,
    strengths,
)
from reluflow.optimum.max_margin import NetworkMargin
from reluflow.optimum.min_norm import MinNorm

if TYPE_CHECKING:
    from reluflow.app.explain import Explanation

_SHOWN = 4  # directions described, jumps listed
_ZERO = 1e-8  # loss over the first loss that counts as 0
_OFF = 0.05  # residual over the largest label from which a sample counts as not fitted
_BEST = 1e-3  # relative distance from the best margin or norm that counts as reaching it


def sentences(e: Explanation) -> list[tuple[str, str]]:
    """(topic, what is found), in the order in which to read them."""
    made = {
        "In short": _short(e),
        "Directions": " ".join([*_early(e), *_groups(e)]),
        "Jumps": _jumps(e),
        "End": _end(e),
        "Best possible": _best(e),
        "Ignored": _ignored(e),
        "Width": _width(e),
        "Scale": _scale(e),
    }
    return [(topic, text) for topic, text in made.items() if text]


def _short(e: Explanation) -> str:
    if not e.groups or e.silent:
        return f"The network of {e.net.m:,} neurons has learnt nothing: it is still silent."
    K = len(e.groups)
    cut = not e.run.status.ok
    what = (
        "So far (the simulation was cut short) the" if cut else "The"
    ) + f" network of {e.net.m:,} neurons behaves as {count(K, 'neuron')}"
    if e.problem.loss.margin:
        wrong = int((e.margins <= 0).sum())
        if wrong:
            return f"{what} and leaves {count(wrong, 'sample')} on the wrong side."
        tail = f"and separates all samples, with normalised margin {number(e.margin)}"
        return f"{what} {tail}; {_margin_word(e)}."
    if e.loss <= _ZERO * e.first_loss:
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
    if not isinstance(e.optimum, NetworkMargin):
        return "whether that is the best was not decided at this size"
    best = e.optimum.upper_bound
    if e.margin >= (1 - _BEST) * best:
        return "no network of any width has more"
    if e.optimum.margin > e.margin:
        return f"the best is {number(e.optimum.margin)}, so the end is not global"
    return f"at most {number(best)} is possible"


def _early(e: Explanation) -> list[str]:
    a = e.alignment
    found = e.landscape
    strict = found.of_kind("max", "min")
    word = "exactly" if found.exact else "at least"
    if a is None:
        rows = f"{word} {count(len(strict), 'direction')}".replace("exactly ", "")
        return [f"Small neurons turn to {rows} ({'all' if found.exact else 'found'})."]
    m, grow, dead = a.sign.size, int(a.growing.sum()), int(a.dead.sum())
    rest = m - grow - dead
    places = len(_distinct(a.direction[a.growing], a.sign[a.growing]))
    parts = [f"{grow:,} of {m:,} neurons turn to {count(places, 'direction')} and grow"]
    if dead:
        parts.append(f"{dead:,} die (no sample activates them)")
    if rest:
        parts.append(f"{rest:,} shrink or rest")
    time = float(a.time[a.growing].max(initial=0.0))
    when = f" Alignment (cosine {a.cosine:g}) takes until time {time:.3g}." if grow else ""
    return ["At first " + ", ".join(parts) + "." + when]


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
    for i, g in enumerate(e.groups[:_SHOWN]):
        name = "The one direction at the end" if K == 1 else f"Direction {i + 1} at the end"
        effect = "raises" if g.sign > 0 else "lowers"
        n = e.problem.n
        edge = f" and lies on the edge of {samples(g.edge, n)}" if g.edge else ""
        lines.append(
            f"{name} ({count(g.neurons, 'neuron')}, {100 * g.share:.3g} % of the output) "
            f"{effect} f on {samples(g.active, n)}{edge} and reads "
            f"{reads(e.problem, g.direction)}."
        )
    if K > _SHOWN:
        lines.append(f"{K - _SHOWN} weaker directions are in the report.")
    return lines


def _jumps(e: Explanation) -> str:
    if e.process is None:
        seen = [] if e.seen is None else e.seen.jumps.tolist()
        when = f", at time {listed([f'{t:.4g}' for t in seen[:_SHOWN]])}" if seen else ""
        return (
            "The limit of small scales was not computed at this size. The simulation shows "
            f"{count(len(seen), 'jump')} of the loss{when}."
        )
    K = e.process.n_jumps
    if K == 0:
        return f"No neuron ever jumps. {e.process.status}"
    c = e.comparison
    assert c is not None
    parts = []
    for row in c.rows[:_SHOWN]:
        sim = "not seen" if row.simulated is None else f"simulated {row.simulated:.4g}"
        if row.difference is not None:
            sim += f", {percent(row.difference)}"
        parts.append(
            f"jump {row.jump} at time {row.predicted:.4g} ({sim}) to loss {number(row.loss)}"
        )
    more = f" and {K - _SHOWN} more" if K > _SHOWN else ""
    text = f"Predicted without training: {'; '.join(parts)}{more}."
    if c.agrees:
        text += f" The simulation agrees within {100 * CLOSE:g} % in times and losses."
        if not c.fragile:
            return text
    if c.fragile:
        return text + (
            " At this scale other neurons come at almost the same time, or before the plateau is "
            "reached: the order of the limit need not show; a smaller scale would separate them."
        )
    ends = "The ends agree" if c.ends_meet else "The ends differ too"
    return text + f" The simulation differs; {ends[0].lower() + ends[1:]}."


def _end(e: Explanation) -> str:
    if e.problem.loss.margin:
        text = f"Least margin y f(x) {number(float(e.margins.min()))}"
        text += f", normalised margin {number(e.margin)}, loss {number(e.loss)}."
        if e.kkt is not None and np.isfinite(e.kkt.residual):
            text += (
                " As the margins grow without bound only the direction of the weights counts; it "
                f"meets the KKT conditions of the largest margin up to {e.kkt.residual:.1e}."
            )
        return text + _unfinished(e)
    text = f"The loss goes from {number(e.first_loss)} to {number(e.loss)}"
    text += f" (mean squared error {number(e.mse)}).{_unfinished(e)}"
    if e.loss <= _ZERO * e.first_loss:
        text = f"The loss goes from {number(e.first_loss)} to 0 ({e.loss:.0e} when the run stops)."
    if e.linear and e.loss > _ZERO * e.first_loss:
        text += " On the samples f is the least-squares linear function of the features."
    return text


def _unfinished(e: Explanation) -> str:
    if e.run.status.ok and e.run.status.code != "finished":
        return ""
    if e.run.settings.get("method") == "descend":
        return f" Training took {int(e.run.steps[-1]):,} steps of {e.settings.lr:g}."
    return f" The simulation did not reach its end: {e.run.status}"


def _best(e: Explanation) -> str:
    if e.problem.loss.margin:
        return _best_margin(e)
    lines = []
    p = e.point
    if p is not None and p.kind != "global minimum" and e.loss <= _ZERO * e.first_loss:
        lines.append(f"The end is global up to {e.loss:.0e}, since no loss is below 0.")
    elif p is not None and p.kind == "global minimum":
        lines.append("The end is a global minimum: no network of any width has a smaller loss.")
    elif p is not None and p.kind == "stationary, not global":
        local = {"minimum": " but a local minimum", "saddle": " but a saddle"}.get(p.local, "")
        lines.append(
            f"The end is not global{local}: one more neuron would lower the loss by "
            f"{number(p.gain)}."
        )
    elif p is not None:
        lines.append(
            f"The end is not stationary (relative residual {p.relative:.1e}): training goes on."
        )
    lines += _interpolators(e)
    return " ".join(lines)


def _interpolators(e: Explanation) -> list[str]:
    o = e.optimum
    if not isinstance(o, MinNorm):
        return []
    if o.status == "infeasible":
        return ["No network fits every label."]
    lines = []
    if e.small is not None:
        norm2 = _norm2(e.small)
        lines.append(
            f"{count(e.small.m, 'neuron').capitalize()} would interpolate (found, squared norm "
            f"{number(norm2)})."
        )
    if o.network is None:
        return lines
    word = "" if o.exact else f" found (at least {number(o.lower_bound)})"
    least = (
        f"The interpolator of least norm{word} has {count(o.network.m, 'neuron')}, squared norm "
        f"{number(o.norm2)}"
    )
    if e.loss <= _ZERO * e.first_loss:
        mine = _norm2(e.run.final)
        far = mine / o.norm2 - 1.0
        same = "the end reaches it" if far <= _BEST else f"the end has {number(mine)}"
        least += f"; {same}"
    return [*lines, least + "."]


def _norm2(net: object) -> float:
    W, a = net.weights()  # type: ignore[attr-defined]
    return float(np.sum(W**2) + np.sum(a**2))


def _best_margin(e: Explanation) -> str:
    lines = []
    o = e.optimum
    if isinstance(o, NetworkMargin):
        if o.status == "infeasible":
            return "No network separates these samples."
        size = count(o.network.m, "neuron") if o.network is not None else "no network found"
        bound = "" if o.exact else f" (found; at most {number(o.upper_bound)})"
        share = e.margin / o.upper_bound if o.upper_bound > 0 else 0.0
        lines.append(
            f"The largest normalised margin of any network is {number(o.margin)}{bound}, with "
            f"{size}; the run has {100 * max(share, 0.0):.4g} % of it"
            + (": global." if share >= 1 - _BEST else ".")
        )
    return " ".join(lines)


def _ignored(e: Explanation) -> str:
    problem, parts = e.problem, []
    if not e.groups or e.silent:
        return ""
    read = np.zeros(problem.n, dtype=bool)
    for g in e.groups:
        read[list(g.active)] = True
    unread = np.flatnonzero(~read & (problem.y != 0.0)) if problem.leak == 0.0 else np.empty(0, int)
    if unread.size:
        parts.append(f"no neuron reads {samples(unread.tolist(), problem.n)} (f stays 0 there)")
    if problem.loss.margin:
        wrong = np.flatnonzero(e.margins <= 0)
        if wrong.size:
            parts.append(f"{samples(wrong.tolist(), problem.n)} not classified rightly")
    else:
        off = np.abs(e.outputs - problem.y)
        far = np.flatnonzero(off > _OFF * np.abs(problem.y).max())
        if far.size:
            worst = int(np.argmax(off))
            verb = "stays" if far.size == 1 else "stay"
            parts.append(
                f"{samples(far.tolist(), problem.n)} {verb} unfitted (largest error "
                f"{off[worst]:.3g}, at sample {worst})"
            )
    strong = np.max([strengths(problem, g.direction) for g in e.groups], axis=0)
    faint = [n for n, s in zip(feature_names(problem), strong, strict=True) if s < FAINT]
    if faint and problem.d <= 30:
        verb = "moves" if len(faint) == 1 else "move"
        noun = "feature" if len(faint) == 1 else "features"
        parts.append(f"{noun} {listed(faint)} hardly {verb} any neuron")
    elif faint:
        parts.append(f"{len(faint)} of {problem.d} features hardly move any neuron")
    if not parts:
        return "Nothing: every sample is fitted and every feature is read."
    text = "; ".join(parts)
    return text[0].upper() + text[1:] + "."


def _width(e: Explanation) -> str:
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
    return (
        f"With infinitely many neurons there would be {jumps} (here "
        f"{count(mine.n_jumps, 'jump')}), ending at loss {number(float(wide.losses[-1]))} (here "
        f"{number(float(mine.losses[-1]))})."
    )


def _scale(e: Explanation) -> str:
    L = e.large
    if L is None:
        return ""
    if not L.finished:
        return (
            f"From weights of size 1 the same draw has {count(L.directions, 'direction')} and loss "
            f"{number(L.loss)} when its budget of steps ends (estimated)."
        )
    where = f"loss {number(L.loss)}" if L.loss > _ZERO * e.first_loss else "loss 0"
    if L.margin is not None:
        where = f"normalised margin {number(L.margin)}"
    return (
        f"From weights of size 1 the same draw ends with {count(L.directions, 'direction')} "
        f"(here {count(len(e.groups), 'direction').split()[0]}), at {where} (estimated)."
    )
