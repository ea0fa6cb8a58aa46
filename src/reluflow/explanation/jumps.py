"""What the verdict says of jumps: predicted without training, and as simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reluflow.claims.compare import CLOSE, Comparison, JumpRow
from reluflow.explanation.simulate import real_times
from reluflow.explanation.words import SHOWN, loss_number
from reluflow.runtime.words import count, join, percent

if TYPE_CHECKING:
    from reluflow.explanation.explanation import Explanation

POOR = 0.15  # relative difference of times from which a prediction is called poor


def jumps(e: Explanation) -> str:
    """When neurons become large, predicted and simulated, and whether the two agree."""
    if e.process is None or e.comparison is None:
        return _estimated(e)
    K = e.process.n_jumps
    if K == 0:
        return f"No neuron ever jumps. {e.process.status}"
    rows = e.comparison.rows
    more = f" and {K - SHOWN} more" if K > SHOWN else ""
    text = f"Predicted without training: {'; '.join(_told(e, row) for row in rows[:SHOWN])}{more}."
    leading = [str(row.jump) for row in rows if row.leading]
    if leading:
        which = "Jump" if len(leading) == 1 else "Jumps"
        verb = "is" if len(leading) == 1 else "are"
        text += (
            f" {which} {join(leading)} {verb} predicted at leading order only: the constant that "
            "belongs to the time at a finite scale is not known."
        )
    balance = f" {e.process.balance}" if e.process.balance else ""
    return text + balance + _agreement(e.comparison)


def _told(e: Explanation, row: JumpRow) -> str:
    sim = "not seen" if row.simulated is None else f"simulated {row.simulated:.4g}"
    if row.difference is not None:
        sim += f", {percent(row.difference)}"
    about = "about " if row.leading else ""
    who = count(row.neurons, "neuron")
    return (
        f"jump {row.jump} of {who} at time {about}{row.predicted:.4g} ({sim}) to loss "
        f"{loss_number(row.loss, e.first_loss)}"
    )


def _agreement(c: Comparison) -> str:
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
            "separate them."
        )
    other = " Other neurons jump than those predicted." if c.who is False else ""
    ends = "the losses agree" if c.ends_meet else "the losses differ too"
    return f"{poor or ' The simulation differs.'} At the end {ends}.{other}"


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
        parts.append(f"jump{'s' if len(unseen) > 1 else ''} {join(unseen)} cannot be seen")
    return f" The prediction is poor: {' and '.join(parts)}." if parts else ""


def _estimated(e: Explanation) -> str:
    """Where the limit was not computed."""
    text = "The limit of small scales was not computed at this size."
    top = float(e.landscape.rates.max(initial=0.0))
    if top > 0.0:
        first = -0.5 * float(np.logaddexp.reduce(2.0 * e.net.log_norms)) / top
        text += (
            f" The fastest direction known grows at rate {top:.3g}: if all neurons grow like that, "
            f"the first jump comes near time {first:.3g} (estimated)."
        )
    seen = [] if e.seen is None else _in_real_time(e)
    when = f", at time {join([f'{t:.3g}' for t in seen[:SHOWN]])}" if seen else ""
    return f"{text} The simulation shows {count(len(seen), 'jump')} of the loss{when}."


def _in_real_time(e: Explanation) -> list[float]:
    """Jumps of the run, whose clock may be that of the loss."""
    assert e.seen is not None
    return np.interp(e.seen.jumps, e.run.times, real_times(e.run)).tolist()
