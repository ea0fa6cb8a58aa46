"""Gradient descent by cones: builds and grows the state that kernels.lumped steps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.descent.model import lumped_weights
from reluflow.descent.samples import Samples, join_scale, split_scale
from reluflow.descent.tree import (
    chains,
    circle_bounds,
    cones_of,
    flips_of,
    hash_table,
    inverse_of,
    plant,
)
from reluflow.kernels import lumps as kernel
from reluflow.kernels.codes import DONE, GROW
from reluflow.kernels.lumped import lumped_steps
from reluflow.kernels.wheel import NEVER, NONE, PER_LEVEL, SLOTS
from reluflow.network import Network

_SMALL = 2.0**-64  # common factor of all weights below which it goes into the powers of two
_PER_CONE = (
    "inside",
    "head",
    "mark",
    "used",
    "due",
    "arc",
    "P",
    "S",
    "level",
    "unit",
    "path",
    "growth",
    "dirt",
)


class Lumped:
    """Cones with their propagators and moments; see :mod:`reluflow.kernels.lumped`.

    Parameters
    ----------
    samples : Samples
    net : Network
        Start.
    both : bool
        Whether the outer weights are trained.
    limit : float
        Outputs beyond it count as diverged.
    dense_work : float
        Cost of a dense step in the units of :mod:`reluflow.descent.model`; inf never hands over.
    """

    def __init__(
        self, samples: Samples, net: Network, both: bool, limit: float, dense_work: float
    ) -> None:
        self.samples, self.both, self.limit, self.dense_work = samples, both, limit, dense_work
        self.shrunk = 1.0  # weight decay: the weights, but for untrained outer ones, over the state
        self.scaled = net.log_scale is not None
        self.work = lumped_weights(samples.n, samples.d)
        n, d, m = samples.n, samples.d, net.m
        self.dims = (0,) * d if d <= 3 else np.empty(d)
        exponent, mantissa = split_scale(net.log_scale, m)
        patterns, cone = cones_of(samples.X, net.W)
        bound, owner, alone = circle_bounds(samples.X)
        neurons = {
            "Z": np.column_stack([net.W, net.a]) * mantissa[:, None],
            "exponent": exponent,
            "cone": cone,
            "link": np.full(m, NONE),
            "pending": np.zeros(m, dtype=np.int64),
            "loose": np.zeros(m, dtype=np.int64),
            "calm": np.full(m, NONE),
            "near": np.full(m, NONE),
            "rest": np.zeros(m),
            "other": np.full(m, NONE),
            "size2": np.ones(m),
            "scratch": np.zeros(m, dtype=np.int64),
            "X": samples.X.copy(),
            "size": np.linalg.norm(samples.X, axis=1),
            "code": np.random.default_rng(0).integers(0, 1 << 63, n, dtype=np.uint64),
            "bound": bound,
            "owner": owner,
            "alone": alone,
            "ray": np.column_stack([np.cos(bound), np.sin(bound)]),
            "A": np.zeros((n, d)),
            "f": np.zeros(n),
            "c": np.zeros(n),
            "counts": np.zeros(kernel.N_COUNTS, dtype=np.int64),
        }
        self._shared = tuple(neurons)
        self.lumps, _ = self._plant_cones(neurons, patterns)
        L, cones = self.lumps, len(patterns)
        slot = NEVER * PER_LEVEL
        L.head[:cones, slot], L.link[:], L.inside[:cones] = chains(L.cone, cones)
        L.used[:cones] = 1 << NEVER
        L.growth[:cones] = np.inf  # so that the kernel sums moments and files neurons at once

    def _plant_cones(
        self, neurons: dict[str, NDArray[Any]], patterns: NDArray[np.uint8]
    ) -> tuple[kernel.Lumps, NDArray[np.int64]]:
        """Empty cones with the given patterns (row 0 silent) and place for as many; their order."""
        order, parents = plant(patterns)
        cones, n, e = len(order), self.samples.n, self.samples.d + 1
        patterns = patterns[order]
        start, count, sample, sign = flips_of(patterns, parents)
        neurons["cone"] = inverse_of(order)[neurons["cone"]]
        neurons["counts"][[kernel.CONES, kernel.FLIPS]] = cones, sample.size
        keys = np.bitwise_xor.reduce(np.where(patterns, neurons["code"], np.uint64(0)), axis=1)
        capacity = max(2 * cones, neurons["bound"].size) + 64  # with two features, all there can be

        def pad(values: NDArray[Any], extra: int) -> NDArray[Any]:
            return np.concatenate([values, np.zeros((extra, *values.shape[1:]), values.dtype)])

        lumps = kernel.Lumps(
            **neurons,
            pattern=pad(patterns, capacity - cones),
            key=pad(keys, capacity - cones),
            inside=np.zeros(capacity, np.int64),
            head=np.full((capacity, SLOTS), NONE),
            mark=np.full((capacity, SLOTS), np.inf),
            used=np.zeros(capacity, np.int64),
            due=np.full(capacity, np.inf),
            P=np.tile(np.eye(e), (capacity, 1, 1)),
            S=np.zeros((capacity, e, e)),
            level=np.zeros(capacity, np.int64),
            unit=np.ones(capacity),
            path=np.zeros(capacity),
            growth=np.ones(capacity),
            dirt=np.zeros(capacity),
            D=np.zeros((capacity, e - 1)),
            T=np.zeros((capacity, e - 1)),
            parent=pad(parents, capacity - cones),
            flip_start=pad(start, capacity - cones),
            flip_count=pad(count, capacity - cones),
            flip_sample=pad(sample, sample.size + 4 * n),
            flip_sign=pad(sign, sample.size + 4 * n),
            table=hash_table(keys, 1 << int(np.ceil(np.log2(4 * capacity)))),
            arc=np.full(capacity, NONE),
            arc_cone=np.full(neurons["bound"].size, NONE),
        )
        return lumps, order

    def _grow(self) -> None:
        """Drop empty cones, re-plant the others and make place for as many again."""
        old = self.lumps._asdict()
        cones = int(self.lumps.counts[kernel.CONES])
        kept = np.unique(np.append(old["cone"], 0))  # row 0, the silent cone, is the root
        place = np.full(cones, NONE)
        place[kept] = np.arange(kept.size)
        neurons = {name: old[name] for name in self._shared}
        neurons["cone"] = place[neurons["cone"]]
        neurons["other"][:] = NONE
        new, order = self._plant_cones(neurons, old["pattern"][kept])
        for name in _PER_CONE:
            getattr(new, name)[: kept.size] = old[name][kept[order]]
        known = np.flatnonzero(new.arc[: kept.size] != NONE)
        new.arc_cone[new.arc[known]] = known
        self.lumps = new

    def advance(self, rates: Array, batches: NDArray[np.int64]) -> tuple[int, int]:
        if self.samples.decay == 0.0:
            return self._advance(rates, np.empty(0), batches)
        code, taken = DONE, 0
        while code == DONE and taken < rates.size:
            lrs, shrunk = self._decayed_steps(rates[taken:])
            piece = batches[taken : taken + lrs.size]
            factors = shrunk[:-1] ** 2 if self.both else shrunk[:-1]
            code, done = self._advance(lrs, factors, piece)
            taken += done
            self.shrunk = float(shrunk[done])
            if self.shrunk < _SMALL:
                self._absorb()
        return code, taken

    def _decayed_steps(self, rates: Array) -> tuple[Array, Array]:
        """Steps of the state, and the weights over the state before and after each of them.

        With q = 1 - h lambda all weights are multiplied by q in a step, and the state of the
        weights over the product p of the q moves by h/q, for z <- q z + h M z. Where outer weights
        stay as they are, w <- q w + h a D and w / p moves by h/p. The steps end with the one after
        which p is small.
        """
        keep = 1.0 - rates * self.samples.decay
        shrunk = np.cumprod(np.concatenate([[self.shrunk], keep]))
        count = min(int(np.sum(shrunk[1:] >= _SMALL)) + 1, rates.size)
        divisor = keep if self.both else shrunk[1:]
        return rates[:count] / divisor[:count], shrunk[: count + 1]

    def _absorb(self) -> None:
        """Bring the common factor of the weights back near 1: by powers of two, which are exact."""
        if not self.both:  # inner and outer weights differ by it, so the state is made anew
            W, a, log_scale = self.weights()
            net = Network(W, a, log_scale, self.samples.leak)
            fresh = Lumped(self.samples, net, self.both, self.limit, self.dense_work)
            self.lumps, self.shrunk = fresh.lumps, 1.0
            return
        L = self.lumps
        self.shrunk, power = math.frexp(self.shrunk)
        L.exponent[:] += power
        L.level[:] += power
        L.unit[:] = np.ldexp(1.0, np.clip(2 * L.level, -2000, 2000))
        L.size2[:] = np.ldexp(1.0, np.clip(2 * L.exponent, -2000, 2000))

    def _advance(self, lrs: Array, factors: Array, batches: NDArray[np.int64]) -> tuple[int, int]:
        """Take steps of the state; ``factors`` as in :func:`lumped_steps`."""
        q, taken = self.samples, 0
        targets = q.targets
        while True:
            code, done = lumped_steps(
                self.dims,
                self.lumps,
                targets,
                q.leak,
                self.both,
                lrs[taken:],
                factors[taken:],
                batches[taken:],
                self.limit,
                self.dense_work,
                self.work,
            )
            taken += done
            if code != GROW:
                return code, taken
            self._grow()

    def weights(self) -> tuple[Array, Array, Array | None]:
        L = self.lumps
        Z = np.empty_like(L.Z)
        order = np.argsort(L.cone, kind="stable")
        for members in np.split(order, np.flatnonzero(np.diff(L.cone[order])) + 1):
            Z[members] = L.Z[members] @ L.P[L.cone[members[0]]].T
        alone = L.calm != NONE
        Z[alone] = L.Z[alone]
        if self.shrunk != 1.0:
            Z[:, : None if self.both else -1] *= self.shrunk
        return join_scale(Z[:, :-1].copy(), Z[:, -1].copy(), L.exponent.copy(), keep=self.scaled)

    def outputs(self) -> Array | None:
        L, leak = self.lumps, self.samples.leak
        if np.isinf(L.growth[L.inside > 0]).any():  # moments not summed yet
            return None
        sums = np.where(L.inside > 0, L.unit, 0.0)[:, None] * L.S[:, :-1, -1]
        alone = L.loose[: L.counts[kernel.LOOSE]]
        outer = L.size2[alone] * L.Z[alone, -1]
        np.add.at(sums, L.cone[alone], outer[:, None] * L.Z[alone, :-1])
        slopes = leak + (1.0 - leak) * L.pattern
        f = np.sum(L.X * (slopes.T @ sums), axis=1)
        if self.shrunk != 1.0:
            f *= self.shrunk**2 if self.both else self.shrunk
        return np.asarray(f[self.samples.row])

    def pack(self) -> dict[str, NDArray[Any]]:
        packed = {f"lumps.{name}": value for name, value in self.lumps._asdict().items()}
        return {**packed, "shrunk": np.array(self.shrunk)}

    def unpack(self, packed: dict[str, NDArray[Any]]) -> None:
        self.lumps = kernel.Lumps(**{n: packed[f"lumps.{n}"] for n in kernel.Lumps._fields})
        self.shrunk = float(packed["shrunk"])

    def cost(self) -> dict[str, Any]:
        counts = self.lumps.counts
        return {
            "backend": "lumped",
            "cones": np.unique(self.lumps.cone).size,
            "looks": int(counts[kernel.LOOKS]),
            "moves": int(counts[kernel.MOVES]),
            "rebases": int(counts[kernel.REBASES]),
        }
