r"""Limits judged from finite runs: by the power law that several decades show.

A statement that some value tends to 0 says nothing of how far it must have come when a run ends. It
is compared with the rate that theory gives near the limit. A fall that is slower decides nothing:
UNDECIDED, with the rate seen. A value that stands, or rises, over the last decade speaks against
the limit, unless the linearisation at the limit says that so slow a fall is what to expect there.
"""

from __future__ import annotations

import math

import numpy as np

from reluflow.arrays import Array
from reluflow.claims.verdict import Comparison

DECADES = 3.0  # at the end of a run from which a power law is read
SLACK = math.log10(1.1)  # of a power over a decade: constants still settle by a tenth


def rate_seen(x: Array, values: Array, decades: float = DECADES) -> tuple[float, float]:
    """The power r of a fall as x^-r over the last decades of x, and how many decades it shows.

    Least squares in logarithms, with the records spread evenly over log x.
    """
    x, values = np.asarray(x, dtype=float), np.asarray(values, dtype=float)
    late = (x >= x[-1] / 10**decades) & (x > 0.0)
    logs, heights = np.log10(x[late]), np.log10(np.maximum(values[late], 1e-300))
    span = float(logs[-1] - logs[0]) if logs.size else 0.0
    if span <= 0.0:
        return math.nan, 0.0
    even = np.linspace(logs[0], logs[-1], max(round(10 * span), 2) + 1)
    return -float(np.polyfit(even, np.interp(even, logs, heights), 1)[0]), span


def tends_to_zero(
    x: Array,
    values: Array,
    rate: float,
    what: str,
    *,
    expected: float | None = None,
    floor: float = 0.0,
) -> Comparison:
    """``values`` fall at least as fast as x^-rate at the end of a run, x ascending.

    Parameters
    ----------
    x, values : arrays of records
        From where the limit begins to show.
    rate : float
        The power that theory gives for the modes that are always there.
    what : str
        What falls, and in powers of what.
    expected : float, optional
        The power of the slowest mode, from a linearisation at the limit. Where it is below
        ``rate``, a fall about as slow as that decides nothing.
    floor : float
        Numerical error of a value: one that has reached it has fallen.
    """
    if values[-1] <= floor:
        return Comparison(float(values[-1]), floor, "<=", 0.0, f"{what}, at its numerical error")
    whole, span = rate_seen(x, values)
    seen = min(whole, rate_seen(x, values, 1.0)[0])
    text = f"{what}: power of the fall over the last {span:.2g} decades, or the last one if less"
    error = 0.0
    bound = rate - SLACK
    if seen >= SLACK:
        error = max(bound - seen, 0.0)
    if expected is not None and expected < bound:
        text += f" (the slowest mode at the limit has {max(expected, 0.0):.2g}: it settles slowly)"
        if seen >= expected - SLACK:
            error = math.inf
    return Comparison(seen, bound, ">=", error, text)
