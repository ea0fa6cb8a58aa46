r"""The loop of the limit process: settle, grow, jump, repeat.

On a plateau a dormant neuron has :math:`\log|w_j|(t) = A_j L + K_j + g_j t` with
:math:`L = \log(1/scale)`, in real time t and up to terms that vanish with the scale: A and g make
the exponents :math:`\beta_j(\tau) = A_j + g_j \tau`, K holds the constant factors. The first class
of neurons to reach :math:`\beta = 0`, at :math:`\tau = -A/g`, jumps; in real time at
:math:`T = L \tau + C`, :math:`C = -K/g`. The fast phase changes rates to g' and adds
:math:`\Gamma` to log|w|, so :math:`A' = A + (g - g') \tau`,
:math:`K' = K + \Gamma + (g - g') C`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from reluflow.arrays import Array, Indices, Mask, Sides
from reluflow.prediction.arrival import ON
from reluflow.prediction.balance import BELOW, Shrunk
from reluflow.prediction.crew import NO_RATE, Crew, Settled
from reluflow.prediction.spending import JUMP, Tick, step_work
from reluflow.prediction.transit import STOPPED, Transit, transit
from reluflow.problem import Problem

SPENT = "the budget of jumps is spent and neurons still grow"
BUDGET = (STOPPED, SPENT)
_SAME = 1e-7  # directions closer than this are one
_SMALL = np.log(1e-6)  # log norm at which a jumping group begins to be followed


@dataclass
class Unit:
    """Neurons that share direction, sign and exponent, so that they move as one.

    ``K`` are the constants of the members while dormant; ``share`` their part of the squared norm
    once active, when ``log`` is the logarithm of the unit's norm.
    """

    v: Array
    s: float
    members: Indices
    K: Array
    U: Sides
    A: float = -1.0
    g: float = 0.0
    log: float = -np.inf
    share: Array = field(default_factory=lambda: np.empty(0))

    @property
    def constant(self) -> float:
        """K of the unit as a whole: its squared norm is the sum of its members'."""
        return float(0.5 * logsumexp(2.0 * self.K))

    def wake(self) -> None:
        """Become active."""
        self.share = np.exp(2.0 * (self.K - self.constant))


class ActiveUnit(NamedTuple):
    """Neurons that act as one at a saddle: unit direction, sign, log norm, and their shares."""

    v: Array
    s: float
    log: float
    members: Indices
    share: Array  # of the squared norm


class DormantUnit(NamedTuple):
    """Neurons that grow as one on a plateau: rate, exponent at its start, and constants K."""

    v: Array
    rate: float
    exponent: float
    members: Indices
    K: Array


@dataclass(frozen=True)
class Plateau:
    """What holds between two jumps, unit by unit; ``start`` is in units of L."""

    start: float
    pull: Array
    residual: float
    relaxation: float
    diverging: bool
    active: tuple[ActiveUnit, ...]
    dormant: tuple[DormantUnit, ...]


@dataclass(frozen=True)
class Jump:
    """Who jumped, when, and how clear that was."""

    time: float
    offset: float
    gap: float
    members: Indices
    samples: Indices
    tied: bool


class Staircase:
    """The process in the making; `run` goes on to the end or to the budget."""

    def __init__(
        self,
        problem: Problem,
        units: list[Unit],
        dead: dict[int, float],
        relaxation: float,
        decay: float = 0.0,
    ) -> None:
        self.problem, self.decay = problem, decay
        self.dormant, self.active = units, list[Unit]()
        self.gone = list[Unit]()  # active units at infinity, which nothing moves any more
        self.far = np.zeros(problem.n, dtype=bool)  # the samples that they fit
        self.rest = problem  # the problem of the other samples
        self.dead = dead  # neuron -> exponent at its death
        self.pull = problem.pull
        self.unit = problem.total_pull
        self.tau = 0.0
        self.diverging = False
        self.assumed = False  # whether margins were taken to grow for ever
        self.plateaus: list[Plateau] = []
        self.jumps: list[Jump] = []
        self.trouble = ""
        self.shrunk: list[Shrunk] = []
        self._note_plateau(0.0, relaxation)

    def run(self, max_jumps: int, tie: float, tick: Tick, quick: bool = False) -> None:
        """Jump until nobody grows, ``max_jumps`` is reached or ``tick`` says stop.

        ``quick`` lets phases end early on the way to infinity, see `transit`.
        """
        while not self.trouble and len(self.jumps) < max_jumps:
            group, gap = self._next(tie)
            if not group:
                self._note_shrunk(np.inf)
                return
            if tick(JUMP * step_work(self.rest, len(self.active) + len(self.dormant))):
                self.trouble = STOPPED
                return
            self._jump(group, gap, tick, quick)
        if not self.trouble and self._next(tie)[0]:
            self.trouble = SPENT

    def _next(self, tie: float) -> tuple[list[Unit], float]:
        """Units that jump next, and the gap to the following one."""
        growing = [u for u in self.dormant if u.g > NO_RATE * self.unit]
        if not growing:
            return [], np.inf
        when = np.array([max(-u.A / u.g, self.tau) for u in growing])
        first = when.min()
        together = when <= first * (1.0 + tie)
        later = when[~together]
        gap = float((later.min() - first) / first) if later.size else np.inf
        group = [u for u, jumps in zip(growing, together, strict=True) if jumps]
        group.sort(key=lambda u: -u.g)
        return group, gap

    def _jump(self, group: list[Unit], gap: float, tick: Tick, quick: bool) -> None:
        lead = group[0]
        tau, C = max(-lead.A / lead.g, self.tau), -lead.constant / lead.g
        self._note_shrunk(tau)
        start = _SMALL / lead.g
        riders = [u for u in self.dormant if not any(u is g for g in group)]
        crew = Crew.of(
            self.rest,
            np.array([u.v for u in (*self.active, *group, *riders)]),
            np.array([u.s for u in (*self.active, *group, *riders)]),
            np.array(
                [u.log for u in self.active]
                + [u.constant + u.g * (C + start) for u in group]
                + [u.g * start for u in riders]
            ),
            np.array([u.U for u in (*self.active, *group, *riders)])[:, ~self.far],
            len(self.active) + len(group),
            self.decay,
        )
        found = transit(crew, start, tick=tick, quick=quick)
        self.tau = tau
        half = np.nan if self.diverging else C + found.half  # a divergence has no last constant
        self.diverging = self.diverging or found.diverging
        self.assumed = self.assumed or found.assumed
        members = np.sort(np.concatenate([u.members for u in group]))
        for u in group:
            u.wake()
        self.active += group
        for i, u in enumerate(self.active):
            u.log, u.v = found.crew.log[i], found.crew.V[i]
            u.U = self._all_sides(u.v, found.crew.U[i])
        samples = np.flatnonzero(np.any([self._reads(u) for u in group], axis=0))
        self.jumps.append(Jump(tau, half, gap, members, samples, len(group) > 1))
        self.trouble = found.trouble
        self.pull = np.zeros(self.problem.n)
        self.pull[~self.far] = found.pull
        self._settle(riders, found, tau, C)
        if quick and found.diverging:
            self._send_away(found.far)
        self._note_plateau(found.residual, found.relaxation)

    def _note_shrunk(self, until: float) -> None:
        """Note dormant units that fall below the imbalance of their start on this plateau."""
        known = {j for group in self.shrunk for j in group.members.tolist()}
        for u in self.dormant:
            rate = u.g + self.decay  # weight decay shrinks an imbalance as well: what is left
            if rate >= 0.0 or u.A + rate * until >= -1.0 - BELOW:
                continue
            if known >= set(u.members.tolist()):
                continue
            since = max(self.tau, (-1.0 - u.A) / rate)
            self.shrunk.append(Shrunk(np.sort(u.members), since, u.v, u.s, u.U))

    def _reads(self, u: Unit) -> Mask:
        """Samples on which a unit is active."""
        X = self.problem.X
        return (u.U > 0) & (X @ u.v > ON * self.problem.norms)

    def _all_sides(self, v: Array, sides: Sides) -> Sides:
        """Sides of all hyperplanes from those of the samples that still pull."""
        if not self.far.any():
            return sides
        out = np.where(self.problem.X @ v > 0.0, 1, -1).astype(np.int8)
        out[~self.far] = sides
        return out

    def _send_away(self, far: Mask) -> None:
        """Leave out samples fitted at infinity, and active units that read no others.

        In the limit their margins are infinite before anybody else jumps: they neither pull nor
        are pulled on.
        """
        self.far[np.flatnonzero(~self.far)[far]] = True
        here = [bool((self._slopes(u) & ~self.far).any()) for u in self.active]
        self.gone += [u for u, stays in zip(self.active, here, strict=True) if not stays]
        self.active = [u for u, stays in zip(self.active, here, strict=True) if stays]
        whole, left = self.problem, ~self.far
        if left.any():
            loss = replace(whole.loss, factor=whole.loss.factor * whole.weight)
            self.rest = Problem(
                whole.X[left], whole.y[left], loss, leak=whole.leak, reduction="sum"
            )

    def _slopes(self, u: Unit) -> Mask:
        """Samples on which a unit has a slope."""
        return (u.U > 0) | ((u.U < 0) & (self.problem.leak > 0.0))

    def _settle(self, riders: list[Unit], found: Transit, tau: float, C: float) -> None:
        """Give every dormant unit its new direction, rate and constants."""
        ends = found.settled
        self.dormant = []
        for i, u in enumerate(riders):
            beta = u.A + u.g * tau
            if ends.dead[i] or ends.lost[i]:
                self.dead.update(dict.fromkeys(u.members.tolist(), beta))
                if ends.lost[i]:
                    self.trouble = "the path of a dormant neuron could not be followed"
                continue
            rate = rounded_rate(ends.rates[i], self.unit)
            u.K = u.K + found.gains[i] + (u.g - rate) * C
            u.A, u.g, u.v = u.A + (u.g - rate) * tau, rate, ends.V[i]
            u.U = self._all_sides(u.v, ends.U[i])
            self.dormant.append(u)
        if found.leaving.any():
            self._retire(found, tau, C)
        self.dormant = merge_units(self.dormant)

    def _retire(self, found: Transit, tau: float, C: float) -> None:
        """Active units that shrink to zero become dormant again, from exponent 0 downwards."""
        gone = np.flatnonzero(found.leaving)
        ends: Settled = found.crew.rows(gone, 0).settle(found.pull)
        for i, j in enumerate(gone):
            u = self.active[j]
            rate = float(ends.rates[i])
            u.K = 0.5 * np.log(u.share) + ends.offsets[i] - rate * (found.end + C)
            u.A, u.g, u.v = -rate * tau, rate, ends.V[i]
            u.U = self._all_sides(u.v, ends.U[i])
            self.dormant.append(u)
        self.active = [u for j, u in enumerate(self.active) if j not in gone]

    def _note_plateau(self, residual: float, relaxation: float) -> None:
        self.plateaus.append(
            Plateau(
                start=self.tau,
                pull=self.pull,
                residual=residual,
                relaxation=relaxation,
                diverging=self.diverging,
                active=tuple(
                    ActiveUnit(u.v, u.s, u.log, u.members, u.share)
                    for u in (*self.gone, *self.active)
                ),
                dormant=tuple(
                    DormantUnit(u.v, u.g, u.A + u.g * self.tau, u.members, u.K)
                    for u in self.dormant
                ),
            )
        )


def rounded_rate(rate: float, unit: float) -> float:
    """A rate, 0 if it is rounding."""
    return float(rate) if abs(rate) > NO_RATE * unit else 0.0


def merge_units(units: list[Unit]) -> list[Unit]:
    """Units joined where direction, sign and exponent agree."""
    out: list[Unit] = []
    for u in units:
        for other in out:
            if (
                u.s == other.s
                and np.abs(u.v - other.v).max() <= _SAME
                and abs(u.A - other.A) <= 1e-12 * max(abs(u.A), 1.0)
            ):
                other.members = np.concatenate([other.members, u.members])
                other.K = np.concatenate([other.K, u.K])
                break
        else:
            out.append(u)
    return out
