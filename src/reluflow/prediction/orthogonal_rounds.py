"""The loop of Algorithm 1 of [TLB26]_ on labels and masks alone."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from reluflow.arrays import Array, Indices, Mask


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
        return tied[part[part.sum(axis=1) > 1].any(axis=0)]

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
