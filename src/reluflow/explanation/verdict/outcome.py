"""What the verdict says of the end: loss or margin, the best network, what is ignored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reluflow.explanation.end import fitted_samples, leading_share
from reluflow.explanation.verdict.words import (
    FAINT,
    feature_names,
    loss_number,
    samples,
    strengths,
)
from reluflow.optimum.max_margin import NetworkMargin
from reluflow.optimum.min_norm import MinNorm
from reluflow.runtime.words import count, join, number, share

if TYPE_CHECKING:
    from reluflow.explanation.explanation import Explanation

BEST = 1e-3  # relative distance from the best margin or norm that counts as reaching it
SLOW = 0.5  # power of |theta| below which a direction settles slowly
SETTLED = 1e-6  # KKT residual of a direction that has settled
_OFF = 0.05  # error over its own label from which a sample counts as not fitted


def end(e: Explanation) -> str:
    """Loss and margin where the simulation ends."""
    if e.problem.loss.margin:
        text = f"Least margin y f(x) {_least(e)}"
        log_loss = float(e.problem.log_value(e.outputs))
        loss = number(e.loss) if log_loss > -30.0 else f"exp({log_loss:.4g})"
        silent = e.unlearnt[int(np.argmin(e.margins))]
        text += f", normalised margin {number(0.0 if silent else e.margin)}, loss {loss}."
        if e.kkt is not None and np.isfinite(e.kkt.residual):
            text += (
                " As the margins grow without bound only the direction of the weights counts; it "
                f"meets the KKT conditions of the largest margin up to {e.kkt.residual:.1e}."
            )
            text += _settling(e)
        return text + _why_unfinished(e)
    first, last = number(e.first_loss), loss_number(e.loss, e.first_loss)
    goes = f"goes from {first} to {last}" if first != last else f"stays at {first}"
    text = f"The loss {goes} (mean squared error {number(e.mse)}).{_why_unfinished(e)}"
    if not e.problem.y.any():
        text = "The loss is 0, up to what the start puts out, and stays so."
    elif e.first_loss > 0.0 and last == "0":
        text = f"The loss goes from {first} to 0."
    elif e.fits:
        text = f"The loss goes from {first} to 0 ({e.loss:.0e} when the run stops)."
    if e.linear and not e.fits:
        text += " On the samples f is the least-squares linear function of the features."
    return text


def _least(e: Explanation) -> str:
    """The least margin; 0 where the network has no output to speak of."""
    least = float(e.margins.min())
    if e.unlearnt[int(np.argmin(e.margins))]:
        return f"0 (no output on {samples(np.flatnonzero(e.unlearnt).tolist(), e.problem.n)})"
    return number(least)


def _settling(e: Explanation) -> str:
    """That the direction settles slowly, or departs, where its linearisation says so."""
    rate = e.settling
    if e.run.status.code == "settling":
        return f" {e.run.status}"
    if rate is None or not rate < SLOW or e.kkt is None or e.kkt.residual <= SETTLED:
        return ""
    if rate <= 0.0:
        return (
            " The direction does not settle there: around it the margin can still be raised to "
            "second order, and training departs from it."
        )
    return (
        f" This direction settles slowly: its slowest mode falls as |theta|^-{rate:.2g}, so that a "
        f"margin ten times as large leaves {100 * 10 ** (-rate / 2):.3g} % of what is missing; "
        "most directions leave a third."
    )


def _why_unfinished(e: Explanation) -> str:
    if e.run.status.code == "loss":
        share = 100 * e.loss / e.first_loss
        return f" The simulation was ended here, at {share:.2g} % of the first loss: {e.run.status}"
    if e.run.status.code in ("resting", "far"):
        return f" The simulation was ended here: {e.run.status}"
    if e.run.status.ok and e.run.status.code != "finished":
        return ""
    if e.run.settings.get("method") == "descend":
        return f" Training took {int(e.run.steps[-1]):,} steps of {e.settings.lr:g}."
    return f" The simulation did not reach its end: {e.run.status}"


def best(e: Explanation) -> str:
    """Whether the end is global, and what the best network is."""
    if e.problem.loss.margin:
        return _best_margin(e)
    lines = []
    p = e.point
    if p is not None and p.kind != "global minimum" and e.fits:
        rounding = loss_number(e.loss, e.first_loss) == "0"
        near = "up to rounding" if rounding else f"up to {e.loss:.0e}"
        lines.append(f"The end is global {near}, since no loss is below 0.")
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
        norm2 = e.small.norm2
        lines.append(
            f"{count(e.small.m, 'neuron').capitalize()} would interpolate (found, squared norm "
            f"{number(norm2)})."
        )
    if o.network is None:
        return lines
    bound = "" if o.exact else f" found (at least {number(o.lower_bound)})"
    least = (
        f"The interpolator of least norm{bound} has {count(o.network.m, 'neuron')}, squared norm "
        f"{number(o.norm2)}"
    )
    if e.fits:
        mine = e.run.final.norm2
        far = mine / o.norm2 - 1.0
        same = "the end reaches it" if far <= BEST else f"the end has {number(mine)}"
        least += f"; {same}"
    return [*lines, least + "."]


def _best_margin(e: Explanation) -> str:
    lines = []
    o = e.optimum
    if isinstance(o, NetworkMargin):
        if o.status == "infeasible":
            return "No network separates these samples."
        size = count(o.network.m, "neuron") if o.network is not None else "no network found"
        bound = "" if o.exact else f" (found; at most {number(o.upper_bound)})"
        lines.append(
            f"The largest normalised margin of any network is {number(o.margin)}{bound}, with "
            f"{size}; the run has reached {share(max(e.margin, 0.0), o.upper_bound)} of it"
            + _global(e, o)
        )
        lines += _linear_margin(e)
    return " ".join(lines)


def _global(e: Explanation, o: NetworkMargin) -> str:
    """What the share says of the limit; the margin of a run rises to its limit for ever."""
    if e.margin >= (1 - BEST) * o.upper_bound:
        return ", as one whose limit is global."
    settled = e.run.status.ok and e.run.status.code != "settling"
    if settled and o.exact and not (e.settling is not None and e.settling < SLOW):
        return ": its limit is not global."
    return "."


def _linear_margin(e: Explanation) -> list[str]:
    """The best linear model on the scale of networks, where its certificate is among the files."""
    found = [c.claim.get("margin") for c in e.certificates if c.kind == "max-margin-linear"]
    if not found or found[0] is None:
        return []
    gamma = float(found[0])
    part = (1.0 + e.problem.leak) / 4.0
    return [
        f"The best linear model has margin {number(gamma)} per unit of |w|; as a network of two "
        f"neurons it has normalised margin {number(part * gamma)}, which is the number to compare: "
        "networks are measured by |W|^2 + |a|^2."
    ]


def what_is_ignored(e: Explanation) -> str:
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
        far = np.flatnonzero(~fitted_samples(problem, e.outputs, _OFF))
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
