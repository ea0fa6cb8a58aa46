r"""Plateaus and jumps: who is dormant, who grows at which rate, who jumps next, who parts.

Neurons of one direction are one neuron as long as their offsets are small. With one output they
stay so. With several, an active neuron (v, b) rests where P M b = 0 and its offsets grow at the
singular values :math:`t_1 \ge t_2 \ge \dots` of P M: inside one cone this is how further modes of
a linear network appear. While neurons are dormant with values :math:`s_1 > s_2 > \dots` of P M
their offsets fall in mode k as :math:`e^{-(s_1 - s_{k+1}) t}`; they are :math:`scale^{q_k}` with
:math:`q_k = \int (s_1 - s_{k+1})\, d\tau` when the group jumps. In general position exponents keep
their order, so that mode k is felt when :math:`\int t_k\, d\tau` since then is :math:`q_k`.

Then the group parts. In one cone the outputs depend on the second moments of its members alone:
members :math:`z + \kappa_j \eta`, with :math:`\kappa_j` of mean 0 and :math:`\eta` the first mode,
act as two neurons :math:`z \pm \kappa \eta`, whatever the :math:`\kappa_j`, and the further modes
wait. Across kinks the :math:`\kappa_j` matter: they differ by as much as neurons of different
directions do, and all modes are felt at once. So a group goes on as `PIECES` of evenly spaced
:math:`\kappa`, exact in one cone and sampled otherwise; who is in which piece is left open.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import logsumexp

from reluflow.arrays import Array, Indices, Sides
from reluflow.errors import ReluflowError
from reluflow.kernels.codes import PathEnd
from reluflow.landscape.multioutput import SAME, Rides, cone_matrix, ride, sides_of
from reluflow.network import Network
from reluflow.prediction.multioutput.phase import Phase
from reluflow.prediction.multioutput.transit import STOPPED, Transit, transit
from reluflow.prediction.spending import JUMP, Tick, step_work
from reluflow.problem import Problem

NO_RATE = 1e-10  # rates below this times sum_k |c_k||x_k| are zero
PARTS = 1e-7  # and those at which neurons of a group part
PIECES = 4  # into which a group parts
SMALL = np.log(1e-6)  # log norm at which a jumping group begins to be followed


@dataclass(eq=False)
class Unit:
    """Neurons that share direction, outer direction and exponent: unit vectors v, b, sides U."""

    v: Array
    b: Array
    U: Sides
    members: Indices
    K: Array  # constants of the members
    A: float = -1.0
    g: float = 0.0
    log: float = -np.inf  # of the norm of w, once active
    share: Array = field(default_factory=lambda: np.empty(0))
    q: Array = field(default_factory=lambda: np.zeros(1))  # members are scale^q_k apart in mode k
    closing: Array = field(default_factory=lambda: np.zeros(1))  # of q: up if dormant, else down
    strain: float = 0.0  # integral of its first entry since the unit jumped

    @property
    def constant(self) -> float:
        """K of the unit as a whole: squared norms add up."""
        return float(0.5 * logsumexp(2.0 * self.K))

    @property
    def apart(self) -> float:
        """Least exponent of the offsets of members, infinite for one neuron."""
        return float(self.q[0]) if len(self.members) > 1 else np.inf


class Staircase:
    """The process in the making."""

    def __init__(self, problem: Problem, units: list[Unit], m: int, relaxation: float) -> None:
        self.problem, self.m = problem, m
        self.dormant, self.active = units, list[Unit]()
        self.pull, self.unit = problem.pull, problem.total_pull
        self.tau, self.trouble = 0.0, ""
        self.far = False  # some active neurons are far out
        self.leading = False  # times from here on are of leading order, their constants unknown
        self.rows: list[dict[str, Any]] = []  # one for each plateau
        self.jumps: list[dict[str, Any]] = []
        self._note(0.0, relaxation)

    def run(self, max_jumps: int, tie: float, tick: Tick) -> None:
        """Jump until nobody grows, the budget is spent or ``tick`` says stop."""
        while not self.trouble:
            growing = [u for u in self.dormant if u.g > NO_RATE * self.unit]
            groups = [u for u in self.active if len(u.members) > 1]
            parting = [u for u in groups if u.closing[0] > PARTS * self.unit and u.q[0] < np.inf]
            if not growing and not parting:
                return
            work = JUMP * step_work(self.problem, len(self.active) + len(self.dormant))
            if len(self.jumps) >= max_jumps or tick(work):
                self.trouble = STOPPED
                return
            jumps = [max(-u.A / u.g, self.tau) for u in growing]
            parts = [self.tau + max(float(u.q[0] / u.closing[0]), 0.0) for u in parting]
            when = np.array(jumps + parts)
            first = float(when.min())
            together = when <= first * (1.0 + tie)
            gap = float((when[~together].min(initial=np.inf) - first) / first)
            self._advance(first)
            chosen = [u for u, now in zip(growing + parting, together, strict=True) if now]
            jumping = [u for u in chosen if u in growing]
            if jumping:
                self._jump(sorted(jumping, key=lambda u: -u.g), gap, tick)
            else:
                self._part(chosen, gap, tick)

    def _advance(self, tau: float) -> None:
        """Offsets within groups at the time ``tau`` of the next event."""
        for u in self.dormant:
            u.q = u.q + u.closing * (tau - self.tau)
        for u in self.active:
            u.q = u.q - u.closing * (tau - self.tau)
            u.strain += float(u.closing[0]) * (tau - self.tau)
        self.tau = tau

    def _jump(self, group: list[Unit], gap: float, tick: Tick) -> None:
        """Dormant units become active."""
        lead = group[0]
        offset = -lead.constant / lead.g  # of the real time L tau + offset
        for u in group:
            u.log = u.constant + u.g * (offset + SMALL / lead.g)
            u.share = np.exp(2.0 * (u.K - u.constant))
        self.dormant = [u for u in self.dormant if u not in group]
        self._follow(group, lead.g, offset, gap, False, tick)

    def _part(self, group: list[Unit], gap: float, tick: Tick) -> None:
        """Active units become several each."""
        parts = [piece for u in group for piece in pieces(self.problem, self.pull, u)]
        self.active = [u for u in self.active if u not in group]
        self.leading = True
        self._follow(parts, float(group[0].closing[0]), 0.0, gap, True, tick)

    def _follow(
        self,
        group: list[Unit],
        rate: float,
        offset: float,
        gap: float,
        parting: bool,
        tick: Tick,
    ) -> None:
        """The fast phase of units that come to be felt, at ``rate``, and the plateau after it."""
        start = SMALL / rate
        before = [*self.active, *group]
        strain = max((u.strain for u in before if len(u.members) > 1), default=0.0)
        self.active, riders = before, self.dormant
        everyone = [*self.active, *riders]
        logs = [u.log for u in self.active] + [u.g * start for u in riders]
        phase = Phase(
            self.problem,
            np.array([u.v for u in everyone]),
            np.array([u.b for u in everyone]),
            np.array([u.U for u in everyone]),
            np.array(logs),
            len(self.active),
        )
        sides = np.array([u.U for u in group])
        found = transit(phase, start, rate, tick)
        end = found.phase
        if parting and (end.U[len(self.active) - len(group) : len(self.active)] != sides).any():
            for u in group:  # they have met kinks apart: no further modes of one group wait
                u.q = np.full(len(u.q), np.inf)
        for i, u in enumerate(self.active):
            size = np.linalg.norm(end.V[i])
            u.v, u.b = end.V[i] / size, end.B[i] / np.linalg.norm(end.B[i])
            u.U, u.log = end.U[i], float(end.log[i])
        half = np.nan if self.far or self.leading else offset + found.half
        self.far, self.trouble, self.pull = self.far or found.far, found.trouble, found.pull
        for u in self.active:
            u.closing = face_modes(self.problem, self.pull, u.U)[1]
        reads = [(u.U > 0) & (self.problem.X @ u.v > 1e-9 * self.problem.norms) for u in group]
        self.jumps.append(
            {
                "time": self.tau,
                "offset": half,
                "gap": gap,
                "members": np.sort(np.concatenate([u.members for u in group])),
                "samples": np.flatnonzero(np.any(reads, axis=0)),
                "strain": strain,
                "course": found.course - np.array([found.half, 0.0]),
                "pace": rate,
                "parting": parting,
                "apart": min(u.apart for u in group),
            }
        )
        settled = self._settle(riders, end.part(slice(len(self.active), None), 0), found, offset)
        self._note(found.residual, max(found.relaxation, settled))

    def _settle(self, riders: list[Unit], phase: Phase, found: Transit, offset: float) -> float:
        """Give every dormant unit its new direction, rate and constants; how long that takes."""
        self.dormant = []
        if not riders:
            return 0.0
        ends = ride(self.problem, phase.V, phase.B, phase.U, found.pull, np.inf)
        slowest = 0.0
        for i, u in enumerate(riders):
            if ends.ends[i] == PathEnd.UNRESOLVED:
                self.trouble = "the path of a dormant neuron could not be followed"
                continue
            beta = u.A + u.g * self.tau
            rate = float(ends.rate[i]) if abs(ends.rate[i]) > NO_RATE * self.unit else 0.0
            w, a = ends.W[i], ends.A[i]
            if ends.ends[i] == PathEnd.STILL or not w.any():
                continue
            # of |w| less rate t, if settled from found.end: |z| = sqrt(2) |w| once balanced
            log = float(phase.log[i] + ends.log[i] - 0.5 * np.log(2.0))
            u.K = u.K + log - rate * found.end + (u.g - rate) * offset
            u.A, u.g, u.U = beta - rate * self.tau, rate, ends.U[i]
            u.closing = closing_rates(self.problem, found.pull, u.U, rate)
            u.v = w / np.linalg.norm(w)
            u.b = a / max(float(np.linalg.norm(a)), 1e-300)
            slowest = max(slowest, float(ends.last[i]) + (1.0 / rate if rate > 0.0 else 0.0))
            self.dormant.append(u)
        self.dormant = merge(self.dormant)
        return slowest

    def _note(self, residual: float, relaxation: float) -> None:
        """Remember the plateau that begins."""
        problem, m = self.problem, self.m
        V, B = np.zeros((m, problem.d)), np.zeros((m, problem.K))
        W, A = np.zeros((m, problem.d)), np.zeros((m, problem.K))
        rates, exponents, constants = np.zeros(m), np.full(m, np.nan), np.full(m, np.nan)
        active = np.zeros(m, dtype=bool)
        for u in self.dormant:
            V[u.members], B[u.members], rates[u.members] = u.v, u.b, u.g
            exponents[u.members] = u.A + u.g * self.tau
            constants[u.members] = np.nan if self.far or self.leading else u.K
        for u in self.active:
            size = np.exp(u.log) * np.sqrt(u.share)[:, None]
            V[u.members], B[u.members], active[u.members] = u.v, u.b, True
            W[u.members], A[u.members], exponents[u.members] = size * u.v, size * u.b, 0.0
        if self.rows:  # the dead keep the exponent they died with
            exponents = np.where(np.isnan(exponents), self.rows[-1]["exponents"], exponents)
        self.rows.append(
            {
                "directions": V,
                "outer": B,
                "net": Network(W, A, leak=problem.leak, bias=problem.bias),
                "rates": rates,
                "exponents": np.where(np.isnan(exponents), -1.0, exponents),
                "constants": constants,
                "active": active,
                "residual": residual,
                "relaxation": relaxation,
            }
        )


def face_modes(problem: Problem, C: Array, U: Sides) -> tuple[Array, Array, Array]:
    """Singular vectors and values of P M on the face of sides U: (d, r), (r,), (K, r)."""
    M, on = cone_matrix(problem, C, U), U == 0
    if on.any():
        M = M - problem.X[on].T @ np.linalg.lstsq(problem.X[on].T, M, rcond=None)[0]
    left, s, right = np.linalg.svd(M, full_matrices=False)
    return left, s, right.T


def closing_rates(problem: Problem, C: Array, U: Sides, rate: float) -> Array:
    """Rates at which neurons that grow at ``rate`` on a face close up: s_1 - s_2, ..., s_1."""
    s = face_modes(problem, C, U)[1]
    if not rate > 0.0:
        return np.zeros(s.size)
    return np.maximum(rate - np.append(s[1:], 0.0), 0.0)


def pieces(problem: Problem, C: Array, u: Unit) -> list[Unit]:
    """A group as it begins to part along its first mode, about its mean; further modes wait."""
    left, _, right = face_modes(problem, C, u.U)
    order = np.argsort(-u.share, kind="stable")
    mine = [order[i::PIECES] for i in range(min(PIECES, len(order)))]
    sizes = np.array([u.share[part].sum() for part in mine])
    kappa = np.linspace(-1.0, 1.0, len(mine))
    kappa -= sizes @ kappa
    kappa *= np.exp(SMALL) / np.abs(kappa).max()
    return [
        Unit(
            u.v + k * left[:, 0],
            u.b + k * right[:, 0],
            u.U,
            u.members[part],
            u.K[part],
            log=u.log + 0.5 * float(np.log(size)),
            share=u.share[part] / size,
            q=np.append(u.q[1:], np.inf),
            strain=u.strain,
        )
        for part, size, k in zip(mine, sizes, kappa, strict=True)
    ]


def merge(units: list[Unit]) -> list[Unit]:
    """Units joined where direction, outer direction and exponent agree."""
    out: list[Unit] = []
    for u in units:
        for o in out:
            near = max(np.abs(u.v - o.v).max(), np.abs(u.b - o.b).max()) <= SAME
            if near and abs(u.A - o.A) <= 1e-12 * max(abs(u.A), 1.0):
                o.members, o.K = np.concatenate([o.members, u.members]), np.concatenate([o.K, u.K])
                o.q = np.zeros(len(o.q))  # they come together on this plateau
                break
        else:
            out.append(u)
    return out


def start_units(problem: Problem, net: Network) -> tuple[list[Unit], float]:
    """Dormant units of a start, and how long their early alignment takes."""
    found: Rides = ride(problem, net.W, net.a, sides_of(problem, net.W), problem.pull, np.inf)
    largest = float(net.log_norms.max())
    units, slowest = [], 0.0
    for j in range(net.m):
        if found.ends[j] == PathEnd.UNRESOLVED:
            raise ReluflowError(
                f"the path of neuron {j} could not be followed to its direction: move it aside"
            )
        if found.ends[j] == PathEnd.STILL or not found.W[j].any() or not found.A[j].any():
            continue
        w, a, rate = found.W[j], found.A[j], float(found.rate[j])
        K = found.log[j] + np.log(np.linalg.norm(w)) + net.log_factors[j] - largest
        slowest = max(slowest, float(found.last[j]) + (1.0 / rate if rate > 0.0 else 0.0))
        v, b = w / np.linalg.norm(w), a / np.linalg.norm(a)
        close = closing_rates(problem, problem.pull, found.U[j], rate)
        unit = Unit(v, b, found.U[j], np.array([j]), np.array([K]), g=rate, closing=close)
        unit.q = np.zeros(close.size)
        units.append(unit)
    return merge(units), slowest
