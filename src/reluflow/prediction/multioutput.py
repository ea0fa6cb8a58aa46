r"""The limit process of small starts with several outputs: settle, grow, jump, repeat.

As for one output (`reluflow.prediction.staircase`): on a plateau a dormant neuron has
:math:`\log|z_j|(t) = A_j L + K_j + g_j t`, L = log(1/scale), with g the singular value it has
settled on; the first class to reach exponent 0 jumps, at :math:`\tau = -A/g`, and the fast phase
that follows is taken in real time: a step freezes the pull at its midpoint, every neuron moves
exactly under it with its kinks (`reluflow.landscape.multioutput.ride`), and step doubling controls
the error. A phase ends at a critical point, found by Newton's method on the face the neurons are
on, or, for losses without a minimum, far out, where what still pulls no longer changes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.optimize import brentq
from scipy.special import logsumexp

from reluflow.arrays import Array, Indices, Sides
from reluflow.errors import ReluflowError
from reluflow.kernels.codes import PathEnd
from reluflow.landscape.multioutput import (
    SAME,
    Rides,
    cone_matrix,
    extremal_vectors,
    largest_G,
    ride,
    sides_of,
)
from reluflow.network import Network
from reluflow.prediction.process import JumpProcess, log_inverse
from reluflow.prediction.spending import clock_of
from reluflow.problem import Problem
from reluflow.problem.losses import output_bends
from reluflow.runtime.progress import Interrupt

NO_RATE = 1e-10  # rates below this times sum_k |c_k||x_k| are zero
LONG = 150  # steps of a phase after which it is asked whether it goes to infinity
FADED = 1e-4  # of the largest pull at first: less is taken to fade away there
SMALL = np.log(1e-6)  # log norm at which a jumping group begins to be followed
AT_REST = 1e-11  # gradient at a critical point, in units of sum_k |c_k||x_k|
STOPPED = "stopped before the next critical point"


@dataclass(frozen=True, eq=False, repr=False)
class VectorProcess(JumpProcess):
    """A :class:`JumpProcess` with several outputs; ``signs`` are 0.

    ``outer`` has for each plateau the unit directions (m, K) of the outer weights.
    """

    outer: tuple[Array, ...] = ()

    def at(self, t: float, scale: float | None = None, log_scale: float | None = None) -> Network:
        """The network at real time ``t`` from a start of this scale, as for one output."""
        L = log_inverse(scale, log_scale)
        jumps = self.jump_times(scale, log_scale)
        i = int(np.searchsorted(jumps, t, side="right"))
        start = self.times[i - 1] if i else 0.0
        stop = self.times[i] if i < self.n_jumps else np.inf
        beta = self.exponents[i] + (min(max(float(t) / L, start), stop) - start) * self.rates[i]
        saddle, on = self.networks[i], self.active[i]
        W = np.where(on[:, None], saddle.W, self.directions[i])
        a = np.where(on[:, None], saddle.a, self.outer[i])
        scales = np.where(on, saddle.log_factors, L * beta)
        return Network(W, a, scales, leak=self.problem.leak, bias=self.problem.bias)


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

    @property
    def constant(self) -> float:
        """K of the unit as a whole: squared norms add up."""
        return float(0.5 * logsumexp(2.0 * self.K))


class Phase(NamedTuple):
    """Neurons during a fast phase: w = e^log v, a = e^log b for balanced ones; active first."""

    problem: Problem
    V: Array
    B: Array
    U: Sides
    log: Array
    n_active: int

    def outputs(self) -> Array:
        """f (n, K), made by the active neurons."""
        k, leak = self.n_active, self.problem.leak
        S = self.problem.X @ self.V[:k].T
        with np.errstate(over="ignore", invalid="ignore"):
            size = np.exp(2.0 * self.log[:k])[:, None]
            return np.asarray(np.maximum(S, leak * S) @ (size * self.B[:k]))

    def pull(self) -> Array:
        """C (n, K) at these outputs."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.problem.pull_at(self.outputs())

    def move(self, C: Array, t: float) -> Phase:
        """Everybody after a time t under a constant pull."""
        found = ride(self.problem, self.V, self.B, self.U, np.ascontiguousarray(C), t)
        factor = np.sqrt(2.0)  # |v|^2 + |b|^2 = 2 for a balanced neuron of norm e^log
        log = self.log + found.log - np.log(factor)
        return self._replace(V=factor * found.W, B=factor * found.A, U=found.U, log=log)

    def part(self, index: Any, n_active: int) -> Phase:
        """Some of the neurons."""
        return Phase(
            self.problem, self.V[index], self.B[index], self.U[index], self.log[index], n_active
        )


def _doubled(phase: Phase, C: Array, h: float) -> tuple[Phase, float]:
    """A doubled midpoint step and its error in directions, growths and the pull."""

    def midpoint(phase: Phase, C: Array, h: float) -> Phase | None:
        middle = phase.move(C, 0.5 * h).pull()
        return phase.move(middle, h) if np.isfinite(middle).all() else None

    whole, half = midpoint(phase, C, h), midpoint(phase, C, 0.5 * h)
    two = None if half is None else midpoint(half, half.pull(), 0.5 * h)
    if whole is None or two is None or not np.isfinite(two.pull()).all():
        return phase, np.inf
    turn = max(np.abs(two.V - whole.V).max(), np.abs(two.B - whole.B).max())
    grow = np.abs(two.log - whole.log).max()
    first = np.abs(phase.problem.pull).max()
    error = max(turn, grow, float(np.abs(two.pull() - whole.pull()).max()) / first)
    if not np.isfinite(error) or (two.U != whole.U).any():
        return two, float(error) if np.isfinite(error) else np.inf
    V, B = two.V + (two.V - whole.V) / 3.0, two.B + (two.B - whole.B) / 3.0
    return two._replace(V=V, B=B, log=two.log + (two.log - whole.log) / 3.0), float(error)


# ---------------------------------------------------------------------- critical points
class Rest(NamedTuple):
    """A critical point of the active neurons."""

    phase: Phase
    residual: float
    relaxation: float


def critical_point(phase: Phase) -> Rest | None:
    """The minimum near the active neurons, on the faces they are on, None if there is none.

    Newton's method on the gradient in (w_j, a_j), w_j within the hyperplanes slid on; flat
    directions (w c, a / c of one neuron, exchanges between neurons of a cone) are left alone.
    """
    problem, k = phase.problem, phase.n_active
    unit = problem.total_pull
    bases = [_face_basis(problem, phase.U[j]) for j in range(k)]
    size = np.exp(phase.log[:k])[:, None]
    W, A = size * phase.V[:k], size * phase.B[:k]
    start = float(problem.value(phase.outputs()))
    for _ in range(40):
        g, H = _newton_terms(problem, W, A, phase.U[:k], bases)
        scale = unit * max(float(np.linalg.norm(np.hstack([W, A]))), 1e-300)
        if not np.isfinite(g).all():
            return None
        if np.linalg.norm(g) <= AT_REST * scale:
            break
        values, vectors = np.linalg.eigh(H)
        used = np.abs(values) > 1e-9 * np.abs(values).max()
        step = vectors[:, used] @ ((vectors[:, used].T @ g) / values[used])
        if np.linalg.norm(step) > 0.5 * np.linalg.norm(np.hstack([W, A])):
            return None
        W, A = _stepped(W, A, bases, step)
    else:
        return None
    spectrum = np.linalg.eigvalsh(H)
    if spectrum[0] < -1e-7 * np.abs(spectrum).max() or not _on_sides(problem, W, phase.U[:k]):
        return None
    if not _holds(
        problem, W, A, phase.U[:k], problem.pull_at(_outputs(problem, W, A, phase.U[:k]))
    ):
        return None
    norms = np.sqrt(np.linalg.norm(W, axis=1) * np.linalg.norm(A, axis=1))
    if not (norms > 1e-8).all():
        return None
    V = W / np.linalg.norm(W, axis=1, keepdims=True)
    B = A / np.linalg.norm(A, axis=1, keepdims=True)
    new = Phase(problem, V, B, phase.U[:k], np.log(norms), k)
    if float(problem.value(new.outputs())) > start * (1.0 + 1e-9) + 1e-300:
        return None
    positive = spectrum[spectrum > 1e-9 * spectrum.max(initial=1e-300)]
    slowest = 1.0 / positive.min() if positive.size else 0.0
    return Rest(new, float(np.linalg.norm(g)) / scale, slowest)


def runaway(phase: Phase, rate: float) -> tuple[Phase, Array] | None:
    """Where active neurons go if their loss has no minimum nearby: a state far out, and C there.

    Newton's method with the moduli of the eigenvalues, downhill on the faces they are on; each step
    adds about 1 to the margins that grow. None where sides do not last, or the loss has a minimum;
    a neuron that still grows at more than ``rate`` is waited for.
    """
    problem, k = phase.problem, phase.n_active
    loudest = np.abs(problem.pull).max()
    bases = [_face_basis(problem, phase.U[j]) for j in range(k)]
    size = np.exp(phase.log[:k])[:, None]
    W, A = size * phase.V[:k], size * phase.B[:k]
    loss = float(problem.value(phase.outputs()))
    for _ in range(100):
        g, H = _newton_terms(problem, W, A, phase.U[:k], bases)
        values, vectors = np.linalg.eigh(H)
        least = 1e-8 * np.abs(values).max()
        step = vectors @ ((vectors.T @ g) / np.maximum(np.abs(values), least))
        step *= min(1.0, 0.5 * np.linalg.norm(np.hstack([W, A])) / np.linalg.norm(step))
        fall, gain = float(g @ step), -np.inf
        while gain < 0.1 * fall and np.linalg.norm(step) > 1e-12:
            W1, A1 = _stepped(W, A, bases, step)
            after = float(problem.value(_outputs(problem, W1, A1, phase.U[:k])))
            gain, step, fall = loss - after, 0.5 * step, 0.5 * fall
        if gain <= 0.0:
            return None
        W, A, loss = W1, A1, after
        if not _on_sides(problem, W, phase.U[:k]):
            return None
        C = problem.pull_at(_outputs(problem, W, A, phase.U[:k]))
        small = np.abs(C) < FADED * loudest
        still = gain < 0.1 * FADED * loss or not (~small).any()
        still = still and values[0] > -rate
        if still and small.any() and _holds(problem, W, A, phase.U[:k], C):
            norms = np.sqrt(np.linalg.norm(W, axis=1) * np.linalg.norm(A, axis=1))
            V = W / np.linalg.norm(W, axis=1, keepdims=True)
            B = A / np.linalg.norm(A, axis=1, keepdims=True)
            return Phase(problem, V, B, phase.U[:k], np.log(norms), k), np.where(small, 0.0, C)
        if still:
            return None
    return None


def _stepped(W: Array, A: Array, bases: list[Array], step: Array) -> tuple[Array, Array]:
    """Weights after a step in the coordinates of the faces."""
    W, A, at = W.copy(), A.copy(), 0
    for j, N in enumerate(bases):
        W[j] += N @ step[at : at + N.shape[1]]
        at += N.shape[1]
        A[j] += step[at : at + A.shape[1]]
        at += A.shape[1]
    return W, A


def _outputs(problem: Problem, W: Array, A: Array, U: Sides) -> Array:
    """f (n, K) with the slopes of given sides."""
    slope = np.where(U > 0, 1.0, np.where(U < 0, problem.leak, 0.0)).T
    return np.asarray((slope * (problem.X @ W.T)) @ A)


def _holds(problem: Problem, W: Array, A: Array, U: Sides, C: Array) -> bool:
    """Whether slopes in [leak, 1] hold every neuron on the kinks it slides on, nearly."""
    for u, a in zip(U, A, strict=True):
        on = np.flatnonzero(u == 0)
        if not on.size:
            continue
        drive = C[on] @ a
        r = -np.linalg.lstsq(problem.X[on].T, cone_matrix(problem, C, u) @ a, rcond=None)[0]
        tol = 1e-6 * np.abs(C @ a).max(initial=1e-300)
        low, high = np.minimum(drive, problem.leak * drive), np.maximum(drive, problem.leak * drive)
        if not ((r >= low - tol) & (r <= high + tol)).all():
            return False
    return True


def _face_basis(problem: Problem, U: Sides) -> Array:
    """Orthonormal columns of the space in which a neuron on the face U moves."""
    on = U == 0
    if not on.any():
        return np.eye(problem.d)
    _, s, Vt = np.linalg.svd(problem.X[on])
    rank = int(np.sum(s > 1e-10 * s[0]))
    return np.asarray(Vt[rank:].T)


def _newton_terms(
    problem: Problem, W: Array, A: Array, U: Sides, bases: list[Array]
) -> tuple[Array, Array]:
    """Minus the gradient and the Hessian of L in the coordinates of the faces."""
    X, K = problem.X, problem.K
    slope = np.where(U > 0, 1.0, np.where(U < 0, problem.leak, 0.0)).T  # (n, k)
    phi = slope * (X @ W.T)
    f = phi @ A
    C = problem.pull_at(f)
    bends = problem.weight * output_bends(problem.loss, f, problem.y)
    blocks, g = [], []
    for j, N in enumerate(bases):
        Xj = slope[:, j, None] * (X @ N)
        inner = Xj[:, None, :] * A[j][None, :, None]  # df_k / dy_j, (n, K, dim)
        outer = phi[:, j, None, None] * np.eye(K)[None]
        blocks.append(np.concatenate([inner, outer], axis=2))
        g += [Xj.T @ (C @ A[j]), C.T @ phi[:, j]]
    J = np.concatenate(blocks, axis=2)
    H = np.einsum("kcp,kce,keq->pq", J, bends, J, optimize=True)
    at = 0
    for j, N in enumerate(bases):
        M = (slope[:, j, None] * (X @ N)).T @ C
        w, a = slice(at, at + N.shape[1]), slice(at + N.shape[1], at + N.shape[1] + K)
        H[w, a] -= M
        H[a, w] -= M.T
        at = a.stop
    return np.concatenate(g), 0.5 * (H + H.T)


def _on_sides(problem: Problem, W: Array, U: Sides) -> bool:
    """Whether neurons are on the sides they are said to be on."""
    S = W @ problem.X.T
    size = 1e-9 * np.linalg.norm(W, axis=1)[:, None] * problem.norms
    return bool(((-size < S * U) | (U == 0)).all())


# ---------------------------------------------------------------------- the fast phase
class Transit(NamedTuple):
    """What a fast phase did; times are on the clock of the jumping group."""

    phase: Phase  # active neurons at the end, then the riders
    end: float
    pull: Array
    residual: float
    relaxation: float
    half: float
    far: bool
    trouble: str


def transit(
    phase: Phase, start: float, rate: float, tick: Callable[[], bool], max_steps: int = 20_000
) -> Transit:
    """Follow neurons from the clock time ``start`` to the next critical point, or far out.

    ``rate`` is that at which the jumping group grows at first.
    """
    problem = phase.problem
    unit, tol = problem.total_pull, 1e-5
    t, h, C = start, 0.05 / unit, phase.pull()
    trail, tried = [(t, float(problem.value(phase.outputs())))], np.inf
    for step in range(1, max_steps + 1):
        if step % 100 == 0 and tick():
            return _stopped(phase, t, C, STOPPED)
        while True:
            new, error = _doubled(phase, C, h)
            if error <= tol or h < 1e-12 / unit:
                break
            h *= max(0.2, 0.9 * (tol / error) ** (1 / 3)) if np.isfinite(error) else 0.1
        k = phase.n_active
        moved = max(
            np.abs(new.V[:k] - phase.V[:k]).max(), np.abs(new.log[:k] - phase.log[:k]).max()
        )
        phase, t, C = new, t + h, new.pull()
        trail.append((t, float(problem.value(phase.outputs()))))
        speed = moved / h
        h *= min(3.0, max(0.3, 0.9 * (tol / max(error, 1e-300)) ** (1 / 3)))
        if (speed < 0.1 * unit and speed < 0.7 * tried) or step % 100 == 0:
            tried = speed
            rest = critical_point(phase.part(slice(k), k))
            if rest is not None:
                return _arrive(phase, t, rest, trail)
            if problem.loss.margin and step > LONG:
                away = runaway(phase.part(slice(k), k), 0.1 * rate)
                if away is not None:
                    return _leave(phase, t, *away, trail)
    return _stopped(phase, t, C, f"no critical point within {max_steps} steps")


def _arrive(phase: Phase, t: float, rest: Rest, trail: list[tuple[float, float]]) -> Transit:
    """Put the active neurons to the critical point; riders wait out the tail under its pull."""
    C = rest.phase.pull()
    unit = phase.problem.total_pull
    C[np.abs(C) < 1e-12 * np.abs(phase.problem.pull).max()] = 0.0
    after = float(phase.problem.value(rest.phase.outputs()))
    half, slow = _half_time(trail, after), max(rest.relaxation, 1.0 / unit)
    return Transit(_with_active(phase, rest.phase), t, C, rest.residual, slow, half, False, "")


def _leave(
    phase: Phase, t: float, away: Phase, C: Array, trail: list[tuple[float, float]]
) -> Transit:
    """Put the active neurons far out, where the pull that has faded is taken to vanish."""
    half = _half_time(trail, float(phase.problem.value(away.outputs())))
    return Transit(_with_active(phase, away), t, C, np.nan, np.inf, half, True, "")


def _with_active(phase: Phase, active: Phase) -> Phase:
    """The phase with its active neurons replaced."""
    k = phase.n_active
    return phase._replace(
        V=np.vstack([active.V, phase.V[k:]]),
        B=np.vstack([active.B, phase.B[k:]]),
        log=np.concatenate([active.log, phase.log[k:]]),
    )


def _stopped(phase: Phase, t: float, C: Array, why: str) -> Transit:
    return Transit(phase, t, C, np.nan, np.nan, np.nan, False, why)


def _half_time(trail: list[tuple[float, float]], after: float) -> float:
    """When the loss was half way from that of the first state to ``after``; nan if it never was."""
    t, loss = np.array(trail).T
    middle = 0.5 * (loss[0] + after)
    past = int(np.argmax(loss <= middle))
    if past == 0:
        return float("nan")
    near = slice(max(0, past - 3), past + 3)
    curve = PchipInterpolator(t[near] - t[past], loss[near] - middle)
    return float(t[past] + brentq(curve, t[past - 1] - t[past], 0.0))


# ---------------------------------------------------------------------- the process
class Staircase:
    """The process in the making."""

    def __init__(self, problem: Problem, units: list[Unit], m: int, relaxation: float) -> None:
        self.problem, self.m = problem, m
        self.dormant, self.active = units, list[Unit]()
        self.pull, self.unit = problem.pull, problem.total_pull
        self.tau, self.far, self.trouble = 0.0, False, ""
        self.rows: list[dict[str, Any]] = []  # one for each plateau
        self.jumps: list[dict[str, Any]] = []
        self._note(0.0, relaxation)

    def run(self, max_jumps: int, tie: float, tick: Callable[[], bool]) -> None:
        """Jump until nobody grows, the budget is spent or ``tick`` says stop."""
        while not self.trouble:
            growing = [u for u in self.dormant if u.g > NO_RATE * self.unit]
            if not growing:
                return
            if len(self.jumps) >= max_jumps or tick():
                self.trouble = STOPPED
                return
            when = np.array([max(-u.A / u.g, self.tau) for u in growing])
            first = float(when.min())
            together = when <= first * (1.0 + tie)
            later = when[~together]
            gap = float((later.min() - first) / first) if later.size else np.inf
            group = [u for u, now in zip(growing, together, strict=True) if now]
            self._jump(sorted(group, key=lambda u: -u.g), first, gap, tick)

    def _jump(self, group: list[Unit], tau: float, gap: float, tick: Callable[[], bool]) -> None:
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
        members = np.sort(np.concatenate([u.members for u in group]))
        reads = [(u.U > 0) & (self.problem.X @ u.v > 1e-9 * self.problem.norms) for u in group]
        samples = np.flatnonzero(np.any(reads, axis=0))
        self.jumps.append(
            {"time": tau, "offset": half, "gap": gap, "members": members, "samples": samples}
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
            log = float(phase.log[i] + ends.log[i])  # of |z| less rate t, if settled from found.end
            u.K = u.K + log - rate * found.end + (u.g - rate) * offset
            u.A, u.g, u.U = beta - rate * tau, rate, ends.U[i]
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


def merge(units: list[Unit]) -> list[Unit]:
    """Units joined where direction, outer direction and exponent agree."""
    out: list[Unit] = []
    for u in units:
        for o in out:
            near = max(np.abs(u.v - o.v).max(), np.abs(u.b - o.b).max()) <= SAME
            if near and abs(u.A - o.A) <= 1e-12 * max(abs(u.A), 1.0):
                o.members, o.K = np.concatenate([o.members, u.members]), np.concatenate([o.K, u.K])
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
        units.append(Unit(v, b, found.U[j], np.array([j]), np.array([K]), g=rate))
    return merge(units), slowest


def limit(
    problem: Problem,
    net: Network | None = None,
    *,
    tie: float = 1e-9,
    max_jumps: int = 10_000,
    max_seconds: float | None = None,
    seconds: float | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> VectorProcess:
    """The process of small starts with several outputs: see :func:`reluflow.limit`.

    Neurons are taken to be balanced once they have grown. Without ``net`` one neuron stands at each
    maximum of G_C that is known.
    """
    view = "this network"
    if net is None:
        found = extremal_vectors(problem)
        tops = found.of_kind("max")
        if not tops.size:
            raise ReluflowError("no direction in which neurons grow was found: give net=")
        net = Network(found.vectors[tops], found.outer[tops], leak=problem.leak, bias=problem.bias)
        how = "each" if found.exact else "each one found"
        view = f"infinite width: one neuron at {how} of the {len(tops)} maxima of G"
    net.check_fits_problem(problem)
    units, relaxation = start_units(problem, net)
    stairs = Staircase(problem, units, net.m, relaxation)
    given = {"tie": tie, "max_jumps": max_jumps, "max_seconds": max_seconds, "seconds": seconds}
    first = {"W": net.W, "a": net.a, "ls": net.log_factors}
    clock = clock_of(problem, first, given, checkpoint)
    budget = min(np.inf if each is None else each for each in (max_seconds, seconds))
    with Interrupt() as interrupt:

        def tick() -> bool:
            return interrupt.requested or clock.decide(lambda spent: spent > budget)

        stairs.run(max_jumps, tie, tick)
    process = _result(problem, stairs, view)
    clock.end(interrupt.requested)
    return replace(process, interrupted=interrupt.requested)


def _result(problem: Problem, stairs: Staircase, view: str) -> VectorProcess:
    rows, jumps = stairs.rows, stairs.jumps
    losses = np.array([problem.loss_of(row["net"]) for row in rows])
    code, status, gain, bound, found = _ending(problem, stairs, float(losses[-1]))
    return VectorProcess(
        problem=problem,
        signs=np.zeros(stairs.m, dtype=np.int8),
        times=np.array([jump["time"] for jump in jumps]),
        losses=losses,
        neurons=tuple(jump["members"] for jump in jumps),
        samples=tuple(jump["samples"] for jump in jumps),
        networks=[row["net"] for row in rows],
        directions=[row["directions"] for row in rows],
        rates=np.array([row["rates"] for row in rows]),
        exponents=np.array([row["exponents"] for row in rows]),
        active=np.array([row["active"] for row in rows]),
        gaps=np.array([jump["gap"] for jump in jumps]),
        status=status,
        ending=code,
        gain=gain,
        gain_bound=bound,
        view=view,
        found=found,
        offsets=np.array([jump["offset"] for jump in jumps]),
        constants=np.array([row["constants"] for row in rows]),
        relaxation=np.array([row["relaxation"] for row in rows]),
        residuals=np.array([row["residual"] for row in rows]),
        outer=tuple(row["outer"] for row in rows),
    )


def _ending(
    problem: Problem, stairs: Staircase, loss: float
) -> tuple[str, str, float, float, tuple[str, ...]]:
    """Code, sentence, rate of the best further neuron, its bound, and what is unproved."""
    if stairs.trouble:
        code = "budget" if stairs.trouble == STOPPED else "unresolved"
        return code, f"Not followed to the end: {stairs.trouble}.", np.nan, np.nan, ()
    if not np.any(stairs.pull):
        if stairs.far:
            words = "Every sample is fitted with a margin that grows for ever."
            return "infinity", words, 0.0, 0.0, ("infinity",)
        return "interpolates", "The process ends at an interpolator: the loss is 0.", 0.0, 0.0, ()
    best, level, small = (
        largest_G(problem, stairs.pull),
        f"loss {loss:.6g}",
        10 * NO_RATE * stairs.unit,
    )
    if best.upper_bound <= small:
        words = f"Ends at a global minimum, {level}: no neuron would gain."
        return "global", words, 0.0, best.upper_bound, ()
    if best.value <= small:
        most = f"a further neuron gains at most {best.upper_bound:.3g}"
        words = f"Ends at {level}; {most}, none was found that does."
        return "stationary", words, best.value, best.upper_bound, ("gain",)
    words = (
        f"Ends at a spurious stationary point, {level}: none of the dormant neurons grows, but one "
        f"more neuron would, at rate {best.value:.6g}"
    )
    words += "." if best.exact else f", the largest found (at most {best.upper_bound:.3g})."
    return "spurious", words, best.value, best.upper_bound, () if best.exact else ("gain",)
