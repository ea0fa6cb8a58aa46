r"""Plateaus and jumps: who is dormant, who grows at which rate, who jumps next, who parts.

Neurons of one direction are one neuron as long as their offsets are small. With one output they
stay so. With several, an active neuron (v, b) rests where P M b = 0 and its offsets grow at the
other singular values of P M: inside one cone this is how further modes of a linear network appear.
While such neurons are dormant with values :math:`s_1 > s_2` of P M their offsets fall as
:math:`e^{-(s_1 - s_2) t}`; they are :math:`scale^q` with
:math:`q = \int (s_1 - s_2)\, d\tau` when the group jumps, and are felt when
:math:`\int s_1\, d\tau` since then is q. The process is followed until then.
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
SMALL = np.log(1e-6)  # log norm at which a jumping group begins to be followed


@dataclass
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
    q: float = 0.0  # members are scale^q apart
    closing: float = 0.0  # rate at which q rises while dormant, falls once active
    strain: float = 0.0  # integral of that rate since the unit jumped

    @property
    def constant(self) -> float:
        """K of the unit as a whole: squared norms add up."""
        return float(0.5 * logsumexp(2.0 * self.K))


class Staircase:
    """The process in the making."""

    def __init__(self, problem: Problem, units: list[Unit], m: int, relaxation: float) -> None:
        self.problem, self.m = problem, m
        self.dormant, self.active = units, list[Unit]()
        self.pull, self.unit = problem.pull, problem.total_pull
        self.tau, self.far, self.trouble, self.parts_at = 0.0, False, "", np.inf
        self.rows: list[dict[str, Any]] = []  # one for each plateau
        self.jumps: list[dict[str, Any]] = []
        self._note(0.0, relaxation)

    def run(self, max_jumps: int, tie: float, tick: Tick) -> None:
        """Jump until nobody grows, the budget is spent or ``tick`` says stop."""
        while not self.trouble:
            growing = [u for u in self.dormant if u.g > NO_RATE * self.unit]
            next_one = min((max(-u.A / u.g, self.tau) for u in growing), default=np.inf)
            if self._part_before(next_one) or not growing:
                return
            work = JUMP * step_work(self.problem, len(self.active) + len(self.dormant))
            if len(self.jumps) >= max_jumps or tick(work):
                self.trouble = STOPPED
                return
            when = np.array([max(-u.A / u.g, self.tau) for u in growing])
            first = float(when.min())
            together = when <= first * (1.0 + tie)
            later = when[~together]
            gap = float((later.min() - first) / first) if later.size else np.inf
            group = [u for u, now in zip(growing, together, strict=True) if now]
            self._jump(sorted(group, key=lambda u: -u.g), first, gap, tick)

    def _part_before(self, tau: float) -> bool:
        """Whether neurons that jumped together part before ``tau``: the process ends there."""
        groups = [u for u in self.active if len(u.members) > 1 and u.closing > PARTS * self.unit]
        if not groups:
            return False
        first = min(groups, key=lambda u: u.q / u.closing)
        when = self.tau + first.q / first.closing
        if not when < tau:
            return False
        self.parts_at = when
        self.trouble = (
            f"{len(first.members)} neurons that jumped together part at {when:.4g} log(1/scale), "
            "as neurons of one direction may with several outputs"
        )
        return True

    def _jump(self, group: list[Unit], tau: float, gap: float, tick: Tick) -> None:
        for u in self.dormant:
            u.q += u.closing * (tau - self.tau)
        for u in self.active:
            u.q -= u.closing * (tau - self.tau)
            u.strain += u.closing * (tau - self.tau)
        strain = max((u.strain for u in self.active if len(u.members) > 1), default=0.0)
        lead = group[0]
        offset = -lead.constant / lead.g  # of the real time L tau + offset
        start = SMALL / lead.g
        riders = [u for u in self.dormant if not any(u is g for g in group)]
        everyone = [*self.active, *group, *riders]
        logs = [u.log for u in self.active]
        logs += [u.constant + u.g * (offset + start) for u in group]
        logs += [u.g * start for u in riders]
        phase = Phase(
            self.problem,
            np.array([u.v for u in everyone]),
            np.array([u.b for u in everyone]),
            np.array([u.U for u in everyone]),
            np.array(logs),
            len(self.active) + len(group),
        )
        found = transit(phase, start, lead.g, tick)
        for u in group:
            u.share = np.exp(2.0 * (u.K - u.constant))
        self.active += group
        end = found.phase
        for i, u in enumerate(self.active):
            size = np.linalg.norm(end.V[i])
            u.v, u.b = end.V[i] / size, end.B[i] / np.linalg.norm(end.B[i])
            u.U, u.log = end.U[i], float(end.log[i])
        half = np.nan if self.far else offset + found.half
        self.far, self.trouble, self.tau, self.pull = (
            self.far or found.far,
            found.trouble,
            tau,
            found.pull,
        )
        for u in self.active:
            u.closing = float(face_values(self.problem, self.pull, u.U)[0])
        members = np.sort(np.concatenate([u.members for u in group]))
        reads = [(u.U > 0) & (self.problem.X @ u.v > 1e-9 * self.problem.norms) for u in group]
        samples = np.flatnonzero(np.any(reads, axis=0))
        self.jumps.append(
            {
                "time": tau,
                "offset": half,
                "gap": gap,
                "members": members,
                "samples": samples,
                "strain": strain,
                "course": found.course - np.array([found.half, 0.0]),
            }
        )
        settled = self._settle(
            riders, end.part(slice(len(self.active), None), 0), found, tau, offset
        )
        self._note(found.residual, max(found.relaxation, settled))

    def _settle(
        self, riders: list[Unit], phase: Phase, found: Transit, tau: float, offset: float
    ) -> float:
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
            beta = u.A + u.g * tau
            rate = float(ends.rate[i]) if abs(ends.rate[i]) > NO_RATE * self.unit else 0.0
            w, a = ends.W[i], ends.A[i]
            if ends.ends[i] == PathEnd.STILL or not w.any():
                continue
            # of |w| less rate t, if settled from found.end: |z| = sqrt(2) |w| once balanced
            log = float(phase.log[i] + ends.log[i] - 0.5 * np.log(2.0))
            u.K = u.K + log - rate * found.end + (u.g - rate) * offset
            u.A, u.g, u.U = beta - rate * tau, rate, ends.U[i]
            u.closing = closing_rate(self.problem, found.pull, u.U, rate)
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
            constants[u.members] = np.nan if self.far else u.K
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


def face_values(problem: Problem, C: Array, U: Sides) -> Array:
    """Singular values of P M on the face of sides U."""
    M, on = cone_matrix(problem, C, U), U == 0
    if on.any():
        M = M - problem.X[on].T @ np.linalg.lstsq(problem.X[on].T, M, rcond=None)[0]
    return np.asarray(np.linalg.svd(M, compute_uv=False))


def closing_rate(problem: Problem, C: Array, U: Sides, rate: float) -> float:
    """Rate at which neurons that grow at ``rate`` on a face close up: s_1 - s_2, s_2 >= 0."""
    if not rate > 0.0:
        return 0.0
    s = face_values(problem, C, U)
    return max(rate - (float(s[1]) if s.size > 1 else 0.0), 0.0)


def merge(units: list[Unit]) -> list[Unit]:
    """Units joined where direction, outer direction and exponent agree."""
    out: list[Unit] = []
    for u in units:
        for o in out:
            near = max(np.abs(u.v - o.v).max(), np.abs(u.b - o.b).max()) <= SAME
            if near and abs(u.A - o.A) <= 1e-12 * max(abs(u.A), 1.0):
                o.members, o.K = np.concatenate([o.members, u.members]), np.concatenate([o.K, u.K])
                o.q = 0.0  # they come together on this plateau
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
        close = closing_rate(problem, problem.pull, found.U[j], rate)
        units.append(Unit(v, b, found.U[j], np.array([j]), np.array([K]), g=rate, closing=close))
    return merge(units), slowest
