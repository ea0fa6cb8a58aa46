r"""Leaps: all neurons moved in closed form while the pull may be taken as constant.

While c is constant every neuron moves by cosh and sinh, kinks included. Let B_u bound
:math:`\sum_{j \in u} |a_j||w_j|`, K the change of D per unit of B, :math:`\rho` the largest
|D_u| of a *dormant* cone (one too small to matter). Cones that matter are *held*: they must be
stationary. The error of D, integrated over the leap, stays below rtol/10 (relative to the growth
of log-norms when that exceeds 1) if

* dormant cones stay below :math:`B_{tol} = \tfrac1{10} rtol\, \rho / K`, and
* held ones have :math:`|D_u| \le \tfrac1{10} rtol\, \rho`.

On a held cone the Hessian is the Gauss-Newton one, so held cones only relax, and the limit of
their relaxation is known: c projected on the set where their forces vanish (:func:`relaxed_pull`).

With weight decay lambda log-norms grow by :math:`|D_u| - \lambda` at most, and a cone at rest has
:math:`M_u z = \lambda z` for what is large in it. So there the measure of a held cone is the speed
of its neurons relative to their sizes, the pull is that of now, and those of its neurons that do
move (small ones, which do not point along the force) move in closed form like any other.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from reluflow.arrays import Array, Mask, Sides
from reluflow.gradientflow.mover import Snapshot
from reluflow.gradientflow.present import Present
from reluflow.kernels.codes import SQUARE
from reluflow.kernels.flow_leap import OnTheWay, leap_all
from reluflow.kernels.flow_types import Members

DAMPED = 3.5  # step times relaxation rate
GRAM = 1000  # samples up to which their Gram matrix is held
KEPT = 2_000_000  # numbers of neurons that are kept on the way of a leap, at most
REST = 1e-13  # held cones whose force is this small against the largest met are at rest


NOWHERE = OnTheWay(np.empty(0), np.empty((0, 0, 0)), np.empty((0, 0)))


class Leap(NamedTuple):
    """How long a leap may be, which cones are held in it, and log B_tol of the others."""

    length: float
    held: Mask
    log_tol: float


class _Start(NamedTuple):
    """Neurons and their patterns H into a leap, those that move in it, and its pull."""

    H: float
    Z: Array
    ls: Array
    V: Sides
    moved: Mask
    c: Array


class Leaper:
    """Decides when a leap pays, takes it, and knows the neurons within it."""

    def __init__(self, now: Present) -> None:
        self.now = now
        self.still = 0.0  # what held cones allowed last
        X = now.state.data.X
        self.gram = X @ X.T if X.shape[0] <= GRAM else np.empty((0, 0))

    def longest(self, limit: float) -> Leap | None:
        """The longest leap, of at most ``limit``; None where steps are better.

        Held cones first relax by steps until they allow what dormant ones do, or no more.
        """
        now = self.now
        K, bend = now.stiffness()
        speeds = self._speeds() if now.decay else None
        leap, still = leap_length(now.log_sizes(), now.rates, K, now.rtol, now.decay, speeds)
        held = leap.held
        unrest = now.rates if speeds is None else speeds
        resting = now.state.data.kind == SQUARE or now.decay > 0.0
        if resting and float(unrest[held].max(initial=0)) < REST * now.top:
            still = math.inf
        dormant = min(leap.length, limit)
        relaxing = still < dormant and still > 1.1 * self.still
        self.still = still
        H = min(dormant, still)
        if relaxing or min(2.0 * now.h, limit) > H:
            if relaxing and float(unrest[held].max()) < 1e-3 * now.top:
                self._damp(held, bend)
            return None
        return leap._replace(length=H)

    def _speeds(self) -> Array:
        """Speed of each cone's neurons over their size, in the root mean square."""
        s = self.now.state
        _, ls, V = self.now.velocities()
        top = np.full(s.U.shape[0], -math.inf)
        np.maximum.at(top, s.gid, ls)
        weight = np.exp(2.0 * (ls - top[s.gid]))
        total = np.bincount(s.gid, weights=weight, minlength=top.size)
        squares = np.bincount(s.gid, weights=weight * np.sum(V * V, axis=1), minlength=top.size)
        return np.sqrt(squares / np.where(total > 0.0, total, 1.0))

    def _damp(self, held: Mask, bend: Array) -> None:
        """Keep steps short enough to damp the relaxation of held cones."""
        fast = self.relaxation(held, bend)
        if fast > 0:
            self.now.h = min(self.now.h, DAMPED / fast)

    def relaxation(self, cones: Mask, bend: Array) -> float:
        """Largest rate at which the outputs of the chosen cones relax."""
        s = self.now.state
        index = np.flatnonzero(cones)
        aa, ww = np.empty(index.size), np.empty((index.size, s.d, s.d))
        for i, g in enumerate(index):
            C = s.C[s.cones.offset[g] : s.cones.offset[g + 1]]
            Q = s.cones.Q[s.cones.q_offset[g] : s.cones.q_offset[g + 1]]
            QC = Q.reshape(C.shape[0], -1) @ C if s.cones.lumped[g] else Q[:, None] * C
            S = s.cones.size[g] * (C.T @ QC)
            aa[i], ww[i] = S[-1, -1], S[:-1, :-1]
        return stiffest(s.data.X, s.cones.S[index], aa, ww, bend)

    def _relaxed_pull(self, held: Mask) -> Array:
        """Pull once held cones have come to rest."""
        now, s = self.now, self.now.state
        if not held.any() or s.data.by_loss or now.decay:
            return now.c.copy()
        index = np.flatnonzero(held)
        N = [s.cones.N[s.cones.n_offset[g] : s.cones.n_offset[g + 1]] for g in index]
        return relaxed_pull(s.data.X, s.cones.S[index], N, now.stiffness()[1], now.c)

    def prepare(self, leap: Leap, end: float) -> float | None:
        """Find a leap after which dormant neurons are still small; the position it reaches.

        None where a neuron meets so many kinks at once that no leap gets past them.
        """
        now, s, H = self.now, self.now.state, leap.length
        Z, ls = s.neurons()
        moved = ~leap.held[s.gid]
        if now.decay:  # only what rests is held
            _, _, V = now.velocities()
            moved |= np.linalg.norm(V, axis=1) > 1e-9 * now.top
        bound = max(leap.log_tol, _log_half_sum(ls[moved]) + 0.7)
        patterns = s.U[s.gid]
        self.start = _Start(0.0, Z, ls, patterns, moved, self._relaxed_pull(leap.held))
        self.inside = self.start
        while True:
            self.Z, self.ls = Z.copy(), ls.copy()
            wanted = self._wanted(H)
            places = np.empty((wanted.size, *Z.shape)), np.empty((wanted.size, ls.size))
            self.kept = OnTheWay(wanted, *places)
            self.V, self.events, reached = self._carry(self.start, H, self.Z, self.ls, self.kept)
            small = _log_half_sum(self.ls[moved]) <= bound or not math.isfinite(leap.log_tol)
            if small and reached >= H:
                break
            H = 0.5 * min(H, reached)
            now.cost["rejected"] += 1
            if now.t + H == now.t:
                return None
        now.cost["leaps"] += 1
        now.cost["steps"] += 1
        self.length, self.reach = H, now.t + H
        if (end - now.t) - (self.reach - now.t) <= 1e-15 * self.reach:
            self.reach = end
        return self.reach

    def _wanted(self, H: float) -> Array:
        """Times within a leap of length H at which neurons will be recorded, the first ones."""
        now = self.now
        times: list[float] = []
        most = KEPT // max(now.state.Z.size, 1)
        position = now.t
        while len(times) < most and (position := now.next_record(position)) < now.t + H:
            times.append(position - now.t)
        return np.array(times)

    def finish(self) -> None:
        """Move to the end of the leap."""
        now, s = self.now, self.now.state
        s.Z[:], s.ls[:] = self.Z, self.ls
        changed = np.flatnonzero((s.U[s.gid] != self.V).any(axis=1))
        if changed.size:
            s.assign(changed, self.V[changed])
        now.note(self.events)
        now.log_time = self._log_time(self.length)
        now.t = self.reach
        now.renew()

    def _carry(
        self, start: _Start, H: float, Z: Array, ls: Array, kept: OnTheWay
    ) -> tuple[Sides, Array, float]:
        """Carry Z and ls in place from a point of the leap to H.

        Returns patterns reached, events, and how far into the leap all neurons came.
        """
        now, s = self.now, self.now.state
        V = np.empty_like(start.V)
        events = np.zeros((1 + 8 * V.shape[0] + 1000, 4))
        members = Members(np.arange(V.shape[0]), s.col, Z, ls)
        when, length = now.t + start.H, H - start.H
        reached = leap_all(
            s.data,
            self.gram,
            start.V,
            members,
            ~start.moved,
            start.c,
            length,
            when,
            now.policy,
            V,
            events,
            kept,
        )
        if now.decay:
            ls[start.moved] -= now.decay * min(length, reached)
            kept.ls[:, start.moved] -= now.decay * kept.times[:, None]
        return V, events, H if reached >= length else start.H + reached

    def _log_time(self, H: float) -> float:
        """log of the flow time H into the leap, during which L is constant."""
        now = self.now
        log_dt = math.log(max(H, 1e-320)) - (now.log_loss if now.state.data.by_loss else 0.0)
        return float(np.logaddexp(now.log_time, log_dt))

    def within(self, position: float) -> Snapshot:
        """Neurons at a position inside the leap."""
        H = position - (self.reach - self.length)
        at = int(np.searchsorted(self.kept.times, position - self.now.t))
        if at < self.kept.times.size and self.kept.times[at] == position - self.now.t:
            return Snapshot(position, self.kept.Z[at], self.kept.ls[at], self._log_time(H))
        before = self.inside if self.inside.H <= H else self.start
        Z, ls = before.Z.copy(), before.ls.copy()
        V, *_ = self._carry(before, H, Z, ls, NOWHERE)
        self.inside = before._replace(H=H, Z=Z.copy(), ls=ls.copy(), V=V)  # records come in order
        return Snapshot(position, Z, ls, self._log_time(H))


def _log_half_sum(ls: Array) -> float:
    """log of half the sum of exp(2 ls), -inf for none."""
    top = float(np.max(ls, initial=-math.inf))
    if not math.isfinite(top):
        return top
    return 2.0 * top + math.log(0.5 * float(np.sum(np.exp(2.0 * (ls - top)))))


def leap_length(
    log_B: Array,
    rates: Array,
    K: float,
    rtol: float,
    decay: float = 0.0,
    speeds: Array | None = None,
) -> tuple[Leap, float]:
    """The leap that dormant cones allow, and the length that held ones allow.

    Parameters
    ----------
    log_B : array, shape (G,)
        Logarithm of B_u of each cone.
    rates : array, shape (G,)
        |D_u|.
    K : float
        Change of D per unit of B.
    rtol : float
        Relative tolerance.
    decay : float
        Weight decay.
    speeds : array, shape (G,), optional
        With weight decay, how fast held cones move, relative to their sizes.
    """
    share = 0.1 * rtol
    dormant = np.ones(rates.size, dtype=bool)
    log_tol = -math.inf
    for _ in range(3):
        rho = float(rates[dormant].max(initial=0.0))
        felt = rho > 0 and K > 0
        log_tol = math.log(share) + math.log(rho) - math.log(K) if felt else -math.inf
        if K == 0.0:
            log_tol = math.inf
        smaller = dormant & (log_B <= log_tol)
        if (smaller == dormant).all():
            break
        dormant = smaller
    rho = float(rates[dormant].max(initial=0.0))
    held = ~dormant
    still, length = math.inf, math.inf
    if held.any():
        fast = float((rates if speeds is None else speeds)[held].max())
        if fast > (share * rho if speeds is None else 0.0):
            still = share / fast
    moving = dormant & (rates > decay) & np.isfinite(log_B)
    if moving.any() and math.isfinite(log_tol):
        growth = log_tol - math.log(2 * moving.sum()) - log_B[moving]
        length = max(0.0, float(np.min(growth / (2 * (rates[moving] - decay)))))
    return Leap(length, held, log_tol), still


def relaxed_pull(X: Array, S: Array, N: list[Array], bend: Array, c: Array) -> Array:
    """Pull after held cones have relaxed: D_u = 0 on each, nearest to c in the metric 1/bend.

    ``S`` (held, n) are slopes, ``N[g]`` orthonormal rows spanning the samples of a face.
    """
    root = np.sqrt(bend)
    blocks = []
    for slopes, face in zip(S, N, strict=True):
        J = slopes[:, None] * X
        blocks.append(root[:, None] * (J - (J @ face.T) @ face))
    u, s, _ = np.linalg.svd(np.hstack(blocks), full_matrices=False)
    u = u[:, s > 1e-10 * s[0]] if s[0] > 0 else u[:, :0]
    gamma = np.divide(c, root, out=np.zeros_like(c), where=root > 0)
    gamma -= u @ (u.T @ gamma)
    gamma -= u @ (u.T @ gamma)
    limit = np.where(root > 0, root * gamma, c)
    limit[np.abs(limit) < 1e-14 * np.max(np.abs(c), initial=0.0)] = 0.0
    return limit


def stiffest(X: Array, S: Array, aa: Array, ww: Array, bend: Array) -> float:
    """Largest rate at which outputs relax: top eigenvalue of bend^(1/2) Theta bend^(1/2).

    Theta is the tangent kernel of the cones with slopes ``S`` (G, n), sums of a^2 ``aa`` (G,) and
    of w w^T ``ww`` (G, d, d). A few power iterations, with a margin.
    """
    root = np.sqrt(bend)
    v = root * (1.0 + 1e-3 * np.arange(bend.size))
    S, own = S * root, aa[:, None]
    value = math.sqrt(float(v @ v))
    for _ in range(12):
        if value == 0.0:
            return 0.0
        p = (S * (v / value)) @ X
        q = own * p + np.einsum("gij,gj->gi", ww, p)
        v = np.einsum("gk,gk->k", S, q @ X.T)
        value = math.sqrt(float(v @ v))
    return 1.1 * value
