"""What Algorithm 1 returns: a jump process with the norms known on orthonormal inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from reluflow.arrays import Array, Indices, Mask
from reluflow.errors import ReluflowError
from reluflow.network import Network
from reluflow.prediction.orthogonal.rounds import Story, aligned_offsets, half_fall, jump_offsets
from reluflow.prediction.orthogonal.start import Start
from reluflow.prediction.process import JumpProcess, Lazy


def signed_parts(y: Array) -> list[tuple[float, Mask, float]]:
    """(sign, samples of that sign, norm of their labels) for the signs that occur."""
    parts = [(s, s * y > 0, float(np.linalg.norm(y[s * y > 0]))) for s in (1.0, -1.0)]
    return [part for part in parts if part[2] > 0.0]


@dataclass(frozen=True, eq=False, repr=False)
class OrthogonalProcess(JumpProcess):
    r"""The jump process of orthonormal inputs ([TLB26]_ Theorem 2).

    Attributes
    ----------
    mask : array (n, m), bool
        M: sample k has the label sign of neuron j, which was active on it at the start.
    groups : array (m,)
        Neurons with equal columns of ``mask`` have equal numbers and jump as one; -1 for an
        empty column, whose neuron never grows.
    uncovered : index array
        Samples with a label that no neuron can fit.
    sizes : array (K,)
        v_i, norm of the labels fitted at jump i; the group ends with sum of |w|^2 equal to v_i.
    margin : float
        mu: the squared norm at the end is off by about scale^mu (empirical). The least of
        -beta_j at jump i over groups that jump later and share a sample of jump i, and of
        2 (-beta_j) at the end over groups that never jump.
    """

    mask: Mask = field(default_factory=lambda: np.zeros((0, 0), dtype=bool))
    groups: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    uncovered: Indices = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    sizes: Array = field(default_factory=lambda: np.empty(0))
    margin: float = math.nan

    @property
    def sets(self) -> tuple[Indices, ...]:
        """Samples fitted at each jump, the same as ``samples``."""
        return self.samples

    @property
    def norm2(self) -> float:
        """Squared norm of all weights at the end, 2 sum_i v_i."""
        return 2.0 * float(np.sum(self.sizes))

    @property
    def min_norm2(self) -> float:
        """Squared norm of the smallest interpolating network, 2(|y+| + |y-|)."""
        return 2.0 * sum(size for _, _, size in signed_parts(self.problem.y))

    @property
    def ratio(self) -> float:
        """``norm2 / min_norm2``; at least 1 if every sample is covered."""
        return self.norm2 / self.min_norm2 if self.min_norm2 > 0.0 else math.nan

    @cached_property
    def minimal(self) -> Network:
        """The interpolating network of smallest norm: one neuron for each sign of the labels."""
        X, y = self.problem.X, self.problem.y
        parts = signed_parts(y)
        if not parts:
            return Network(np.zeros((1, X.shape[1])), np.zeros(1), bias=self.problem.bias)
        W = [s * y[on] @ X[on] / math.sqrt(size) for s, on, size in parts]
        a = [s * math.sqrt(size) for s, _, size in parts]
        return Network(np.array(W), np.array(a), bias=self.problem.bias)

    def half_fit_times(self, scale: float | None = None, log_scale: float | None = None) -> Array:
        """Real times at which f = y/2 on the samples of each jump, from a start of this scale.

        [TLB26]_ reads jumps so; ``jump_times`` are the earlier times at which the loss is half way.
        """
        if self.offsets is None or not self.n_jumps:
            raise ReluflowError(
                "the times of fits need a jump and the initial weights: "
                "call algorithm1(problem, net) with a network"
            )
        growth = np.array([self.rates[i, who[0]] for i, who in enumerate(self.neurons)])
        return self.jump_times(scale, log_scale) + half_fall(growth)

    def first_half_fit_time(
        self, log_scale: float | None = None, scale: float | None = None
    ) -> float:
        """Real time at which the first fitted samples reach f = y/2, from a start of this scale."""
        return float(self.half_fit_times(scale, log_scale)[0])


class ProcessBuilder:
    """Turns the story of groups into the process of neurons."""

    def __init__(
        self, start: Start, labels: NDArray[np.int64], M: Mask, rate: float, tol: float
    ) -> None:
        self.start, self.labels, self.M, self.rate, self.tol = start, labels, M, rate, tol
        self.y = start.problem.y
        by_group = np.argsort(labels, kind="stable")
        edges = np.searchsorted(labels[by_group], np.arange(M.shape[1] + 1))
        self.members = [by_group[edges[g] : edges[g + 1]] for g in range(M.shape[1])]
        self.columns = np.array([who[0] for who in self.members], dtype=np.int64)
        self.logs: dict[int, Array] = {}  # group -> log-norms of its members after alignment

    def member_logs(self, group: int) -> Array | None:
        """log|w_j| - rate S t after alignment, the largest initial |w| being 1."""
        net, products = self.start.net, self.start.products
        if net is None or products is None:
            return None
        if group not in self.logs:
            reference = float(net.log_norms.max())
            who = self.members[group]
            pulls = self.rate * self.start.signs[who[0]] * self.y
            P = (products[:, who] / np.abs(net.a[who])).T
            self.logs[group] = aligned_offsets(P, pulls) + net.log_outer[who] - reference
        return self.logs[group]

    def shares(self, group: int) -> Array:
        """Shares of the members in the squared norm of their group."""
        logs = self.member_logs(group)
        who = self.members[group]
        if logs is None:
            return np.full(who.size, 1.0 / who.size)
        return np.asarray(np.exp(2.0 * logs - logsumexp(2.0 * logs)))

    def spread(self, rows: Sequence[Array], empty: float) -> Array:
        """Numbers of groups as numbers of neurons."""
        table = np.column_stack([np.array(rows), np.full(len(rows), empty)])
        return np.ascontiguousarray(table[:, self.labels])

    def process(self, story: Story, determined: bool) -> OrthogonalProcess:
        """The process of a story; ``determined`` is False below a tie."""
        start, K = self.start, len(story.times)
        problem, y = start.problem, self.y
        when = np.full(y.size, K + 1)  # jump that fits each sample; 0 for label 0
        when[y == 0.0] = 0
        for i, fitted in enumerate(story.sets):
            when[fitted] = i + 1
        sizes = np.array([story.sizes[i][g] for i, g in enumerate(story.groups)])
        active = np.zeros((K + 1, len(self.members)), dtype=bool)
        for i, g in enumerate(story.groups):
            active[i + 1 :, g] = True
        rates = [
            np.where(on, 0.0, self.rate * S) for on, S in zip(active, story.sizes, strict=True)
        ]
        left = [np.square(y[when > i]).sum() for i in range(K + 1)]
        return OrthogonalProcess(
            problem=problem,
            signs=start.signs,
            times=np.array(story.times),
            losses=0.5 * self.rate * np.array(left),
            neurons=tuple(self.members[g] for g in story.groups),
            samples=tuple(story.sets),
            networks=Lazy(K + 1, lambda i: self.network(story, sizes, i)),
            directions=Lazy(K + 1, lambda i: self.directions(when, i)),
            rates=self.spread(rates, 0.0),
            exponents=self.spread(story.exponents, -1.0),
            active=self.spread(list(active), 0.0).astype(bool),
            gaps=np.array(story.gaps),
            offsets=self.offsets(story) if determined else None,
            residuals=self.residuals(story, sizes),
            branches=tuple(self.process(branch, False) for branch in story.branches),
            mask=start.mask,
            groups=self.labels,
            uncovered=np.flatnonzero((y != 0.0) & ~start.mask.any(axis=1)),
            sizes=sizes,
            margin=self.margin(story),
            **self.ending(story, when > K),
            **self.caveats(story),
        )

    def network(self, story: Story, sizes: Array, i: int) -> Network:
        """Saddle i: each group that has jumped carries its samples, the rest is zero."""
        problem = self.start.problem
        W, a = np.zeros((self.labels.size, problem.d)), np.zeros(self.labels.size)
        for g, fitted, v in zip(story.groups[:i], story.sets[:i], sizes[:i], strict=True):
            who, root = self.members[g], np.sqrt(self.shares(g))
            size = np.abs(self.y[fitted]) / math.sqrt(v)
            if self.start.axes:
                W[np.ix_(who, fitted)] = np.outer(root, size)
            else:
                W[who] = np.outer(root, size @ problem.X[fitted])
            a[who] = self.start.signs[who] * root * math.sqrt(v)
        return Network(W, a, bias=problem.bias)

    def directions(self, when: NDArray[np.int64], i: int) -> Array:
        """Limit directions on plateau i: the labels of a neuron's unfitted samples, normalised.

        A neuron whose last samples are fitted keeps the direction it had until then.
        """
        problem = self.start.problem
        until = np.where(self.M, when[:, None], 0).max(axis=0, initial=0) - 1
        on = self.M & (when[:, None] > np.minimum(until, i))
        rows = np.where(on, np.abs(self.y)[:, None], 0.0).T
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        if not self.start.axes:
            rows = rows @ problem.X
        out = np.zeros((self.labels.size, problem.d))
        live = self.labels >= 0
        out[live, : rows.shape[1]] = rows[self.labels[live]]
        return out

    def offsets(self, story: Story) -> Array | None:
        """C_i where the start is a network."""
        logs = [self.member_logs(g) for g in story.groups]
        starts = [0.5 * float(logsumexp(2.0 * log)) for log in logs if log is not None]
        if self.start.net is None:
            return None
        return jump_offsets(np.array(starts), story, self.y, self.M, self.rate, self.tol)

    def residuals(self, story: Story, sizes: Array) -> Array:
        """Size of the gradient at each saddle, which rounding alone keeps from zero."""
        total = [0.0]
        for fitted, v in zip(story.sets, sizes, strict=True):
            y, root = np.abs(self.y[fitted]), math.sqrt(v)
            pull = self.rate * np.linalg.norm(y - root * (y / root))
            total.append(math.hypot(total[-1], math.sqrt(2.0 * v) * float(pull)))
        return np.array(total)

    def margin(self, story: Story) -> float:
        """mu of :class:`OrthogonalProcess`; inf if nothing can disturb the norm."""
        margin = math.inf
        jumped = np.array(story.groups, dtype=int)
        for i, fitted in enumerate(story.sets):
            later = jumped[i + 1 :]
            share = later[self.M[np.ix_(fitted, later)].any(axis=0)]
            margin = min(margin, float(np.min(-story.exponents[i + 1][share], initial=math.inf)))
        rest = np.delete(story.exponents[-1], jumped)
        margin = min(margin, float(np.min(-2.0 * rest, initial=math.inf)))
        return min(margin, 2.0) if (self.labels < 0).any() else margin

    def ending(self, story: Story, unfitted: Mask) -> dict[str, Any]:
        """Status sentence, its code, and the rate of one more neuron."""
        parts = signed_parts(np.where(unfitted, self.y, 0.0))
        gain = self.rate * max((size for _, _, size in parts), default=0.0)
        K, n = len(story.times), int(unfitted.size)
        if story.tie is not None:
            first = ", ".join(str(self.columns[g]) for g in story.tie[:6])
            more = f" and {story.tie.size - 6} more" if story.tie.size > 6 else ""
            ending, status = (
                "tie",
                (
                    f"After {K} jumps the groups of neurons {first}{more} reach size 1 together "
                    "and share samples: signs and labels do not determine who fits them."
                ),
            )
            if story.cut:
                status += " Not all continuations were followed: raise most_branches."
        elif unfitted.any():
            ending, status = (
                "spurious",
                (
                    f"No neuron of the right sign is active on {int(unfitted.sum())} of the {n} "
                    f"samples, which stay unfitted; one more neuron could grow at rate {gain:.6g}."
                ),
            )
        else:
            ending, status = "interpolates", f"All {n} samples are fitted: the limit interpolates."
        return {"status": status, "ending": ending, "gain": gain, "gain_bound": gain}

    def caveats(self, story: Story) -> dict[str, Any]:
        """What was assumed and what stays open."""
        if self.start.net is not None:
            return {}
        view = "signs and activation pattern only"
        if any(self.members[g].size > 1 for g in story.groups):
            return {"view": view, "undetermined": ("how a group shares its norm (taken equal)",)}
        return {"view": view}
