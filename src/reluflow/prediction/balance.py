r"""Neurons that shrink below their start: what is said of them rests on exact balance.

A balanced neuron, |a| = |w|, that settles where :math:`s G_c(v) < 0` shrinks for ever.
:math:`a^2 - |w|^2` is conserved, so any imbalance of the start, rounding included, is felt as soon
as the exponent has fallen below that of the start: with |a| > |w| the neuron passes through w = 0,
with |a| < |w| its outer weight changes sign, and either way it may grow from there. A process in
which that can happen is right for exactly balanced starts alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reluflow.arrays import Array, Indices, Sides
from reluflow.landscape.alignment import G
from reluflow.prediction.crew import NO_RATE, Crew
from reluflow.problem import Problem

BELOW = 1e-9  # by how much an exponent must fall below -1 to count as below the start
_TILT = 1e-6  # relative imbalance with which the neuron is followed
_SHOWN = 4  # groups described in words


@dataclass(frozen=True, eq=False)
class Shrunk:
    """A group whose exponent falls below that of its start.

    Attributes
    ----------
    members : index array
    since : float
        Time, in units of log(1/scale), from which an imbalance of the start is felt.
    v, s, U
        Direction, sign and sides of the group on the plateau where that happens.
    """

    members: Indices
    since: float
    v: Array
    s: float
    U: Sides

    def unbalanced_jumps(
        self,
        problem: Problem,
        starts: Sequence[float],
        pulls: Sequence[Array],
        decay: float = 0.0,
    ) -> list[float]:
        """When the group would jump if |a| > |w|, and if |a| < |w|; inf if never.

        The group is settled on each plateau in turn (``starts`` and ``pulls``) from where an
        imbalance takes it on the first, and grows from exponent -1 at its rates there.
        """
        outer = self.s * np.array([1.0 + _TILT, 1.0 - _TILT])
        # weight decay has shrunk the imbalance, and the neuron with it, until then
        beta, when = np.full(2, -1.0 - decay * self.since), np.full(2, np.inf)
        V, U = np.array([self.v, self.v]), np.array([self.U, self.U])
        ends = [*starts[1:], np.inf]
        for start, end, pull in zip(starts, ends, pulls, strict=True):
            if end <= self.since:
                continue
            there = Crew.of(problem, V, outer, np.zeros(2), U, decay=decay).settle(pull)
            V, U = np.nan_to_num(there.V), there.U
            rates = np.where(there.lost, 0.0, np.nan_to_num(there.rates))
            rates[np.abs(rates) <= NO_RATE * problem.total_pull] = 0.0
            with np.errstate(divide="ignore", invalid="ignore"):
                reached = max(start, self.since) - beta / rates
            jumps = np.isinf(when) & (rates > 0.0) & (reached < end)
            when[jumps] = reached[jumps]
            if np.isfinite(end):
                beta += rates * (end - max(start, self.since))
            grows = rates > 0.0  # balanced from here on, of the sign that makes G(v) grow
            outer = np.where(grows, np.sign(G(problem, V, pull)), outer)
        return when.tolist()


def balance_words(
    problem: Problem,
    shrunk: Sequence[Shrunk],
    jumps: Sequence[Indices],
    starts: Sequence[float],
    pulls: Sequence[Array],
    decay: float = 0.0,
) -> str:
    """A sentence on the neurons whose imbalance would change the process, empty if there are none.

    ``jumps`` has the neurons of each jump, ``starts`` and ``pulls`` those of each plateau. One that
    shrinks below its start and jumps later does so by exact balance.
    """
    parts = []
    for group in shrunk:
        later = [i for i, who in enumerate(jumps, start=1) if np.isin(group.members, who).any()]
        when = group.unbalanced_jumps(problem, starts, pulls, decay)
        if not later and np.isinf(when).all():
            continue
        who = ", ".join(str(j) for j in group.members[:_SHOWN])
        more = ", ..." if len(group.members) > _SHOWN else ""
        text = f"{'neuron' if len(group.members) == 1 else 'neurons'} {who}{more}"
        if later:
            text += f" (jump {', '.join(map(str, later))} here)"
        signs = [
            f"near time {t:.4g} log(1/scale) with |a| {mark} |w|"
            for mark, t in zip("><", when, strict=True)
            if np.isfinite(t)
        ]
        text += f" would jump {' and '.join(signs)}" if signs else " would not jump"
        parts.append(text)
    if not parts:
        return ""
    rest = f"; and {len(parts) - _SHOWN} more groups" if len(parts) > _SHOWN else ""
    return (
        "This rests on exact balance, |a| = |w| beyond rounding, of neurons that shrink below "
        f"their start: {'; '.join(parts[:_SHOWN])}{rest}."
    )
