r"""The loop of Algorithm 1 of [TLB26]_ on labels and masks, and the constants of its jump times.

At a finite scale :math:`t_i = L \tau_i + C_i` up to a power of the scale. The C_i come from two
facts: what a neuron gains or loses while it aligns at the start, and while it realigns when another
one fits part of its samples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.special import gammaln

from reluflow.arrays import Array, Indices, Mask

_BLOCK = 1 << 18  # products <w_j, x_k> treated at once


@dataclass
class Story:
    """Jumps so far, and what the groups were on each plateau (one row more than jumps)."""

    times: list[float] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    sets: list[Indices] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    sizes: list[Array] = field(default_factory=list)  # S_j, 0 for groups that jumped
    exponents: list[Array] = field(default_factory=list)
    tie: Indices | None = None  # groups that meet at norm 1 and share samples
    branches: list[Story] = field(default_factory=list)
    cut: bool = False  # branches were left out

    def copy(self) -> Story:
        """The same history, to be continued differently."""
        return Story(
            list(self.times),
            list(self.groups),
            list(self.sets),
            list(self.gaps),
            list(self.sizes),
            list(self.exponents),
        )


@dataclass
class _State:
    """Unfitted samples U and, per group, S_j^2 over them, exponent and whether it is dormant."""

    unfitted: Mask
    squares: Array
    beta: Array
    dormant: Mask
    tau: float = 0.0

    def copy(self) -> _State:
        return _State(
            self.unfitted.copy(),
            self.squares.copy(),
            self.beta.copy(),
            self.dormant.copy(),
            self.tau,
        )


class Rounds:
    r"""Algorithm 1 on merged columns.

    .. math::
        S_j^2 = \sum_{k \in U, M_{kj}} y_k^2, \quad \delta_j = -\beta_j / (\kappa S_j), \quad
        \tau \mathrel{+}= \min_j \delta_j

    Parameters
    ----------
    y : array (n,)
    M : mask (n, groups)
        Distinct, non-empty columns.
    rate : float
        kappa = c/n.
    tol : float
        Two groups tie if their delta differ by at most tol * tau.
    most : int
        Continuations of ties to follow in all.
    """

    def __init__(self, y: Array, M: Mask, rate: float, tol: float, most: int) -> None:
        self.squares, self.M, self.rate, self.tol, self.left = y * y, M, rate, tol, most

    def run(self) -> Story:
        """The whole process, with its branches."""
        n, count = self.M.shape
        state = _State(
            np.ones(n, dtype=bool), np.zeros(count), np.full(count, -1.0), np.ones(count, bool)
        )
        self._recount(state, np.arange(count))
        return self._continue(state, Story())

    def _recount(self, state: _State, columns: Indices) -> None:
        """S_j^2 from the sets: subtracting squares would leave residues that look like jumps."""
        rows = np.flatnonzero(state.unfitted)
        part = self.M[rows] if columns.size == self.M.shape[1] else self.M[np.ix_(rows, columns)]
        state.squares[columns] = self.squares[rows] @ part

    def _continue(self, state: _State, story: Story) -> Story:
        while True:
            can = np.flatnonzero(state.dormant & (state.squares > 0.0))
            story.sizes.append(np.sqrt(np.where(state.dormant, state.squares, 0.0)))
            story.exponents.append(state.beta.copy())
            if can.size == 0:
                return story
            delta = -state.beta[can] / (self.rate * np.sqrt(state.squares[can]))
            tied = can[delta <= delta.min() + self.tol * (state.tau + delta.min())]
            clash = self._clash(state, tied)
            alone = np.setdiff1d(tied, clash)
            if alone.size == 0:
                return self._branch(state, story, clash, delta, can)
            self._jump(state, story, int(alone[0]), tied, delta, can)

    def _clash(self, state: _State, tied: Indices) -> Indices:
        """Those of the tied groups that share an unfitted sample with another."""
        if tied.size < 2:
            return tied[:0]
        part = self.M[np.ix_(np.flatnonzero(state.unfitted), tied)]
        return np.asarray(tied[part[part.sum(axis=1) > 1].any(axis=0)])

    def _branch(
        self, state: _State, story: Story, clash: Indices, delta: Array, can: Indices
    ) -> Story:
        story.tie = clash
        for group in clash:
            if self.left <= 0:
                story.cut = True
                break
            self.left -= 1
            state_, story_ = state.copy(), story.copy()
            self._jump(state_, story_, int(group), clash, delta, can)
            story.branches.append(self._continue(state_, story_))
        return story

    def _jump(
        self, state: _State, story: Story, group: int, tied: Indices, delta: Array, can: Indices
    ) -> None:
        step = float(delta[can == group][0])
        others = delta[can != group]
        state.tau += step
        sizes = np.sqrt(state.squares[can])
        state.beta[can] = np.minimum(state.beta[can] + step * self.rate * sizes, 0.0)
        state.beta[tied] = 0.0
        state.dormant[group] = False
        fitted = np.flatnonzero(state.unfitted & self.M[:, group])
        state.unfitted[fitted] = False
        self._recount(state, np.flatnonzero(self.M[fitted].any(axis=0)))
        story.times.append(state.tau)
        story.groups.append(group)
        story.sets.append(fitted)
        gap = (float(others.min()) - step) / state.tau if others.size else np.inf
        story.gaps.append(max(gap, 0.0))


def aligned_offsets(P: Array, pulls: Array) -> Array:
    r"""lim log|w(t)| - |D| t of neurons with a(0) = 1 on a silent network.

    With :math:`A = \int a\,dt` the components are :math:`p_k + b_k A`, those with b_k < 0 until
    they reach 0 and freeze, and :math:`a^2 - |w|^2` is conserved. So a^2 is a quadratic
    :math:`\alpha A^2 + 2 \beta A + \gamma` between the freezing points -p_k/b_k and
    :math:`t = \int dA / a` is a logarithm on each piece.

    Parameters
    ----------
    P : array (r, n)
        <w, x_k> over a, with |w| <= a; only positive entries take part.
    pulls : array (n,)
        b_k = s c_k, the pull of each sample along the sign of the neurons; in every row at least
        one sample with p_k > 0 must have b_k > 0.

    Notes
    -----
    One-sign labels: log((1 + q)/2) for a balanced neuron, q the cosine with its limit direction
    ([TLB26]_ Lemma 3).
    """
    rows = max(1, _BLOCK // pulls.size)
    parts = [_aligned_block(P[i : i + rows], pulls) for i in range(0, len(P), rows)]
    return np.concatenate(parts) if parts else np.empty(0)


def _aligned_block(P: Array, pulls: Array) -> Array:
    kept, lost = (P > 0) & (pulls > 0), (P > 0) & (pulls < 0)
    free = np.where(lost, np.abs(pulls), 1.0)
    A = np.where(lost, P / free, np.inf)  # where each component freezes
    order = np.argsort(A, axis=1, kind="stable")

    def ordered(x: Array) -> Array:
        return np.take_along_axis(np.where(lost, x, 0.0), order, axis=1)

    def remaining(x: Array) -> Array:
        return np.pad(np.cumsum(x[:, ::-1], axis=1)[:, ::-1], ((0, 0), (0, 1)))

    A, b, q = np.take_along_axis(A, order, axis=1), ordered(np.abs(pulls)), ordered(P)
    last = np.max(A, axis=1, where=np.isfinite(A), initial=0.0, keepdims=True)
    # piece i is [A_i, A_{i+1}], of no length for samples that do not freeze; the last has no end
    A = np.pad(np.where(np.isfinite(A), A, last), ((0, 0), (1, 0)))
    alpha = np.sum(np.where(kept, pulls, 0.0) ** 2, axis=1, keepdims=True) + remaining(b * b)
    beta = np.sum(np.where(kept, P * pulls, 0.0), axis=1, keepdims=True) - remaining(b * q)
    gamma = np.maximum(1.0 - np.pad(np.cumsum(q * q, axis=1), ((0, 0), (1, 0))), 0.0)
    D = np.sqrt(alpha)
    g = alpha * A + beta  # <w, D> at the start of each piece
    a = np.sqrt(np.maximum((alpha * A + 2.0 * beta) * A + gamma, 0.0))
    start, g_end = D[:, :-1], alpha[:, :-1] * A[:, 1:] + beta[:, :-1]
    rising = g[:, :-1] + g_end >= 0.0  # (D a + g)(D a - g) is constant: take the larger factor
    ratio = np.where(
        rising,
        (start * a[:, 1:] + g_end) / np.where(rising, start * a[:, :-1] + g[:, :-1], 1.0),
        (start * a[:, :-1] - g[:, :-1]) / np.where(rising, 1.0, start * a[:, 1:] - g_end),
    )
    t = np.sum(np.log(ratio) / start, axis=1)
    end = D[:, -1]
    return np.asarray(np.log((end * a[:, -1] + g[:, -1]) / (2.0 * end)) - end * t)


def realigned_offset(fitted: Array, rest: Array, v: float) -> Array:
    r"""Change of log|w| of a dormant neuron while another one fits part of its samples.

    The fit of a group is logistic in time: residuals fall as :math:`\rho(s) = 1/(1 + e^{2s})`
    with :math:`s = \kappa v (t - t_i)`. A dormant neuron with label norms F on the fitted and U
    on its other samples (in units of v) obeys a 2 x 2 linear equation

    .. math:: \psi_1' = (U \psi_1 + F \rho \psi_2)/2, \quad \psi_2' = (F \rho \psi_1 - U \psi_2)/2

    with :math:`a = |\psi|^2`, hypergeometric in :math:`-e^{2s}`. Its connection formula gives,
    against growth at the rates :math:`S = \sqrt{F^2 + U^2}` before and U after :math:`t_i`,

    .. math::
        \lambda = \log\frac{1 + U/S}{2} + 2 \log \frac{\Gamma(1 + S/2)\,\Gamma(1 + U/2)}
            {\Gamma(1 + (S+F+U)/4)\,\Gamma(1 + (S-F+U)/4)}.

    Parameters
    ----------
    fitted, rest : arrays
        Norms of the labels, not divided by v; ``rest`` positive.
    v : float
        Norm of the labels that the jumping group fits.
    """
    F, U = np.asarray(fitted) / v, np.asarray(rest) / v
    S = np.hypot(F, U)
    ratio = gammaln(1 + S / 2) + gammaln(1 + U / 2)
    ratio = ratio - gammaln(1 + (S + F + U) / 4) - gammaln(1 + (S - F + U) / 4)
    return np.asarray(np.log1p(U / S) - math.log(2.0) + 2.0 * ratio)


def half_fall(growth: Array) -> Array:
    r"""How long before the half fit f = y/2 of a jump its loss has fallen half of the way.

    With :math:`g = \kappa v` the rate at which the group grew, all residuals of its samples are
    :math:`y_k \rho(s)`, :math:`\rho = 1/(1 + e^{2s})`, :math:`s = g (t - t_i)`. The loss is half
    way where :math:`\rho^2 = 1/2`, that is :math:`s = \tfrac12 \log(\sqrt2 - 1)`.
    """
    return -0.5 * math.log(math.sqrt(2.0) - 1.0) / growth


def jump_offsets(starts: Array, story: Story, y: Array, M: Mask, rate: float, tol: float) -> Array:
    r"""C_i of every jump: when half of the fall of the loss across jump i is done.

    The log-norm of a group is -L + ``starts`` + rate S t on the first plateau and is changed by
    `realigned_offset` at each jump that takes samples from it; f is y/2 on the samples of jump i
    when it reaches (1/2) log v_i, and the loss is half way `half_fall` before that. nan after two
    jumps at the same time take samples from one group.

    Parameters
    ----------
    starts : array (K,)
        log of the norm that each jumping group has after alignment, less growth.
    story : Story
        Jump times, who jumps, on which samples, and S_j on each plateau.
    y, M, rate, tol
        Labels, mask of the groups, c/n, and when times count as equal.
    """
    times, sets, sizes = story.times, story.sets, story.sizes
    K, who = len(times), np.asarray(story.groups, dtype=int)
    C, log, last = np.empty(K), np.array(starts, dtype=float), np.full(K, -np.inf)
    before = 0.0
    for i in range(K):
        v = float(sizes[i][who[i]])
        C[i] = before + (0.5 * math.log(v) - log[i]) / (rate * v)
        later = np.arange(i + 1, K)
        log[later] += rate * sizes[i][who[later]] * (C[i] - before)
        fitted = np.sqrt(np.square(y[sets[i]]) @ M[np.ix_(sets[i], who[later])])
        touched = later[fitted > 0.0]
        log[touched] += realigned_offset(
            fitted[fitted > 0.0], np.asarray(sizes[i + 1])[who[touched]], v
        )
        log[touched[times[i] - last[touched] <= tol * times[i]]] = np.nan
        last[touched] = times[i]
        before = C[i]
    growth = np.array([rate * float(sizes[i][who[i]]) for i in range(K)])
    return np.asarray(C - half_fall(growth))
