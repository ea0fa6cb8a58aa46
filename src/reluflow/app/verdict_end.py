"""What the verdict says of the end: loss or margin, and whether any network does better."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reluflow.app.explain_words import ZERO, count, loss_number, number
from reluflow.network import Network
from reluflow.optimum.max_margin import NetworkMargin
from reluflow.optimum.min_norm import MinNorm

if TYPE_CHECKING:
    from reluflow.app.explain import Explanation

BEST = 1e-3  # relative distance from the best margin or norm that counts as reaching it


def end(e: Explanation) -> str:
    """Loss and margin where the simulation ends."""
    if e.problem.loss.margin:
        text = f"Least margin y f(x) {number(float(e.margins.min()))}"
        log_loss = float(e.problem.log_value(e.outputs))
        loss = number(e.loss) if log_loss > -30.0 else f"exp({log_loss:.4g})"
        text += f", normalised margin {number(e.margin)}, loss {loss}."
        if e.kkt is not None and np.isfinite(e.kkt.residual):
            text += (
                " As the margins grow without bound only the direction of the weights counts; it "
                f"meets the KKT conditions of the largest margin up to {e.kkt.residual:.1e}."
            )
        return text + _unfinished(e)
    first, last = number(e.first_loss), loss_number(e.loss, e.first_loss)
    goes = f"goes from {first} to {last}" if first != last else f"stays at {first}"
    text = f"The loss {goes} (mean squared error {number(e.mse)}).{_unfinished(e)}"
    if not e.problem.y.any():
        text = "The loss is 0, up to what the start puts out, and stays so."
    elif e.first_loss > 0.0 and last == "0":
        text = f"The loss goes from {first} to 0."
    elif e.loss <= ZERO * e.first_loss:
        text = f"The loss goes from {first} to 0 ({e.loss:.0e} when the run stops)."
    if e.linear and e.loss > ZERO * e.first_loss:
        text += " On the samples f is the least-squares linear function of the features."
    return text


def _unfinished(e: Explanation) -> str:
    if e.run.status.code == "loss":
        share = 100 * e.loss / e.first_loss
        return f" The simulation was ended here, at {share:.2g} % of the first loss: {e.run.status}"
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
    if p is not None and p.kind != "global minimum" and e.loss <= ZERO * e.first_loss:
        rounding = loss_number(e.loss, e.first_loss) == "0"
        word = "up to rounding" if rounding else f"up to {e.loss:.0e}"
        lines.append(f"The end is global {word}, since no loss is below 0.")
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
    if e.loss <= ZERO * e.first_loss:
        mine = _norm2(e.run.final)
        far = mine / o.norm2 - 1.0
        same = "the end reaches it" if far <= BEST else f"the end has {number(mine)}"
        least += f"; {same}"
    return [*lines, least + "."]


def _norm2(net: Network) -> float:
    W, a = net.weights()
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
            + (": global." if share >= 1 - BEST else ".")
        )
    return " ".join(lines)
