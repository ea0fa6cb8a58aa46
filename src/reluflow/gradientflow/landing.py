"""Kinks met within a step: which must end it, where exactly, and what the others do to f."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from reluflow.arrays import Array, Indices, Mask
from reluflow.gradientflow.trial import Trial

TOGETHER = 0.03  # of rtol: error of a bundle that meets a kink as one
PASSING = 0.02  # error of the quadrature of what a neuron does when it meets a kink in passing
CONTRACTS = 0.1  # most K h B of neurons that meet kinks in passing
WORTH = 2  # kinks that a shorter step must pass to be taken instead of landing on the first


class Effects(NamedTuple):
    r"""What neurons that meet kinks within a step do to the growth of all, as the step gets longer.

    A neuron that crosses the kink of sample k at tau_j changes f_k by at most
    :math:`B_j |x_k| |D| (h - \tau_j)` until the end of the step, and by its new velocity f
    elsewhere by :math:`B_j |c_k| |x_k| (h - \tau_j)` (per unit of |x|). With
    :math:`b_k = |dc_k / df_k|` and K the change of D per unit of B, growth over the step changes
    by :math:`E_j = h B_j \min(K, (b_k |x_k|^2 |D| + K |c_k| |x_k|) (h - \tau_j))`.
    """

    which: Indices
    tau: Array  # moments of the kinks, from the start of the step
    bundle: Indices  # equal for neurons of one cone that meet the same kink
    B: Array
    speed: Array
    K: float
    rtol: float

    @classmethod
    def of(cls, trial: Trial, which: Indices) -> Effects:
        """Of the listed neurons in the step on trial."""
        now, s = trial.now, trial.now.state
        K, bend = now.stiffness()
        k = trial.kink[which]
        norms = s.data.norms[k]
        speed = bend[k] * norms**2 * now.rates[s.gid[which]] + K * np.abs(now.c[k]) * norms
        speed[k < 0] = math.inf  # the outer weight passes through 0
        tau = trial.theta[which] * trial.frame.h
        _, bundle = np.unique(np.column_stack([s.gid[which], k]), axis=0, return_inverse=True)
        return cls(which, tau, bundle.ravel(), trial.contributions(which), speed, K, now.rtol)

    def contributions(self, neurons: Indices) -> Array:
        """B of some of the neurons."""
        return self.B[np.searchsorted(self.which, neurons)]

    def until(self, h: float) -> Array:
        """E_j for a step of length h, 0 for kinks after it."""
        left = np.maximum(h - self.tau, 0.0)
        with np.errstate(invalid="ignore"):
            change = np.where(left > 0.0, np.minimum(self.K, self.speed * left), 0.0)
        return np.asarray(h * self.B * change)

    def too_much(self, E: Array, h: float, met: Mask) -> bool:
        """Whether a step with these effects must not pass its kinks.

        They enter by quadrature (:func:`correct`), whose error is a part of each; it adds up at
        random between bundles, but not within one, whose neurons meet their kink together. They
        are corrected once, so that together they must be small as well; and the correction must
        contract, which it does by K h B of the neurons that were ``met``.
        """
        if h * self.K * float(self.B[met].sum()) > CONTRACTS:
            return True
        each = np.bincount(self.bundle, weights=E)
        spread, total = math.sqrt(float(each @ each)), float(E.sum())
        return PASSING * spread > 0.1 * self.rtol or total > math.sqrt(0.1 * self.rtol)

    def must_stop(self, h: float) -> int:
        """The neuron whose kink must end a step of length h, or -1 when all may be passed."""
        E, met = self.until(h), np.ones(self.tau.size, dtype=bool)
        if not self.too_much(E, h, met):
            return -1
        so_far, met = np.zeros_like(E), ~met
        for i in np.argsort(self.tau, kind="stable"):
            so_far[i], met[i] = E[i], True
            if self.too_much(so_far, h, met):
                break
        return int(self.which[i])

    def passable(self, h: float) -> float:
        """Length, at most h, of the longest step all of whose kinks may be met in passing."""
        low, high = 0.0, h
        for _ in range(24):
            mid = 0.5 * (low + high)
            over = self.too_much(self.until(mid), mid, self.tau < mid)
            low, high = (low, mid) if over else (mid, high)
        return low


def must_stop(trial: Trial, which: Indices) -> int:
    """The neuron whose kink must end the step on trial, or -1 when all may be met in passing."""
    return Effects.of(trial, which).must_stop(trial.frame.h) if which.size else -1


def land(trial: Trial, j: int, k: int, h: float) -> float:
    """Redo the step so that it ends where neuron j meets its kink; returns its length.

    By Newton's method from the moment that dense output gives. That moment is kept where the
    neuron is on its way back at the end, a crossing within the error of the step, or where
    Newton's method would leave the step that was accepted.
    """
    s = trial.now.state
    g, longest = s.gid[j], trial.frame.h
    start = s.vectors(g, j, s.C)
    side = start[-1] if k < 0 else float(start[:-1] @ s.data.X[k])
    trial.now.cost["landings"] += 1
    for last in (False,) * 5 + (True,):
        trial.attempt(h)
        if k >= 0 and s.U[g, k] == 0:
            break  # leaving a face: the velocity is continuous there
        end, D = s.vectors(g, j, trial.new), trial.field_at_end()[1][g]
        if k < 0:
            value, slope, size = end[-1], float(end[:-1] @ D), 1.0
        else:
            value = float(end[:-1] @ s.data.X[k])
            slope = float(end[-1] * (D @ s.data.X[k]))
            size = float(np.linalg.norm(end[:-1]) * s.data.norms[k])
        if abs(value) <= 2e-15 * size or slope * side >= 0.0:
            break
        change = value / slope
        if last or abs(change) > 0.5 * h or h - change > longest:
            break
        h -= change
    trial.dense()
    return h


def company(trial: Trial, j: int, k: int, C: Array) -> Indices:
    """Neuron j and those that meet the same kink at the same moment, columns at ``C``."""
    s = trial.now.state
    g = s.gid[j]
    same = np.flatnonzero(s.gid == g)
    if same.size == 1 or (k >= 0 and s.U[g, k] == 0):
        return same
    Z = s.vectors(g, same, C)
    value = Z[:, -1] if k < 0 else Z[:, :-1] @ s.data.X[k]
    size = np.linalg.norm(Z, axis=1) * (1.0 if k < 0 else s.data.norms[k])
    close = np.abs(value) <= 1e-13 * size
    close[same == j] = True
    return np.asarray(same[close])


def bundle(trial: Trial, met: Effects, first: int) -> Indices:
    r"""Neurons that may meet the kink of neuron ``first`` as one, sorted by their moments.

    They are neurons of its cone that meet the same kink soon after it. Met at the mean moment
    instead of their own, each by tau_j off, they change c_k for that long by what
    :math:`B_j |D| \tau_j` does to it: the growth of all is off by
    :math:`b_k |x_k|^2 |D| \sum_j B_j \tau_j^2`, b_k = |dc_k / df_k|. The list is the longest
    for which that is below a small part of rtol and every neuron is near enough for its own sake
    (:func:`farthest`).
    """
    s, now, which = trial.now.state, trial.now, met.which
    g, k = int(s.gid[first]), int(trial.kink[first])
    if k < 0 or s.U[g, k] == 0:
        return np.array([first])
    same = which[(s.gid[which] == g) & (trial.kink[which] == k)]
    same = same[np.argsort(trial.theta[same], kind="stable")]
    same = same[np.flatnonzero(same == first)[0] :]
    t, B = trial.theta[same] * trial.frame.h, met.contributions(same)
    sums, first_moments = np.cumsum(B), np.cumsum(B * (t - t[0]))
    second = np.cumsum(B * (t - t[0]) ** 2)
    spread = second - np.divide(first_moments**2, sums, out=np.zeros_like(sums), where=sums > 0)
    K = now.stiffness()[1][k] * s.data.norms[k] ** 2 * now.rates[g]
    fits = (K * spread <= TOGETHER * now.rtol) & (t - t[0] <= farthest(trial, g, k))
    return np.asarray(same[: 1 + int(np.flatnonzero(fits)[-1])])


def farthest(trial: Trial, g: int, k: int) -> float:
    r"""How far from its own moment a neuron of cone g may be put across the kink of sample k.

    For the time tau between the two it has the velocity of the other side, which differs by
    :math:`|c_k| |x_k|`: at most sqrt(rtol) of it, a tenth of that. Afterwards it is off by what
    the pull changes in tau, :math:`|c_k| |x_k| \tau^2 (|c_k'| / |c_k| + |D'| / |D|)`: rtol of it.
    """
    now, s = trial.now, trial.now.state
    jump = abs(float(now.c[k])) * float(s.data.norms[k])
    c, D = trial.field_at_end()
    turn = float(np.linalg.norm(D[g] - now.D[g])) * float(s.data.norms[k])
    change = (abs(float(c[k] - now.c[k])) * s.data.norms[k] + turn) / trial.frame.h
    near = 0.1 * math.sqrt(now.rtol) / jump if jump > 0.0 else math.inf
    return min(near, math.sqrt(now.rtol / change) if change > 0.0 else math.inf)


def middle(trial: Trial, group: Indices, B: Array) -> int:
    """The neuron of a bundle whose moment is nearest to the mean, weighted by contributions B."""
    t = trial.theta[group]
    total = float(B.sum())
    mean = float(B @ t) / total if total > 0.0 else float(t[0])
    return int(group[np.argmin(np.abs(t - mean))])


def correct(trial: Trial, which: Indices, h: float) -> bool:
    """Redo the step with what the listed neurons add to f by leaving their cones, if it matters."""
    now = trial.now
    K = now.stiffness()[0] * trial.frame.h
    if float(np.sum(trial.contributions(which))) * K < 1e-3 * now.rtol:
        return False
    trial.sample()
    trial.extra[:] = 0.0
    trial.trace(which, 1.0, record=True)
    trial.attempt(h)
    trial.dense()
    return True
