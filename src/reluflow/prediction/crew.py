"""Balanced neurons under a frozen pull: some make f, others only ride along.

A crew holds active neurons (the first ``n_active`` rows, which make f) and tracers (dormant
neurons, too small to be felt). Neuron j is :math:`e^{l_j} (v_j, s_j)` with |v_j| = 1: in the limit
of small starts every neuron that grew is balanced. Under a constant pull each of them moves in
closed form, kinks included (`reluflow.kernels.early`). Weight decay lambda leaves directions as
they are and lowers every log norm by lambda per unit of time.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from reluflow.arrays import Array, Indices, Mask, Sides
from reluflow.kernels.codes import STILL, UNRESOLVED
from reluflow.landscape.early import most_events
from reluflow.landscape.products import sample_products
from reluflow.problem import Problem

NO_PULL = 7e-13  # |D| below this times the first sum of |c_k||x_k| is no pull
NO_RATE = 1e-10  # rates below this times the first sum of |c_k||x_k| are zero
_LARGE = 100_000  # entries of X from which products of the samples are used on short ways too
_PARALLEL = 7e-15  # the same in the kernels, against the sum they are given


def settling_times(last: Array, rates: Array) -> Array:
    """How long neurons take to settle: their last event, and one unit of the rate of growth."""
    return last + np.divide(1.0, rates, out=np.zeros_like(rates), where=rates > 0.0)


@dataclass(frozen=True, eq=False)
class Settled:
    """Where tracers end under a constant pull.

    Attributes
    ----------
    V : array (k, d)
        Limit directions.
    rates : array (k,)
        Eventual slope of log|w|: positive where they grow, negative where they shrink for ever.
    offsets : array (k,)
        Limit of log|w| - rate * t.
    dead : array (k,), bool
        No sample is active any more (leak = 0).
    lost : array (k,), bool
        The path could not be followed.
    U : array (k, n)
        Sides of the hyperplanes on which they end.
    times : array (k,)
        How long settling takes: the last event and one unit of the rate.
    """

    V: Array
    rates: Array
    offsets: Array
    dead: Mask
    lost: Mask
    U: Sides
    times: Array

    def rows(self, index: Indices) -> Settled:
        """Some of them, or some of them several times."""
        return Settled(*(getattr(self, part.name)[index] for part in fields(self)))


@dataclass(frozen=True, eq=False)
class Crew:
    """Unit directions V (k, d), signs s (k,) and log norms (k,) of active neurons and tracers.

    The sides U (k, n) of the hyperplanes are part of the state, since a direction may tend to a
    hyperplane and must not forget from where: -1, 1, or 0 for one that slides.
    """

    problem: Problem
    V: Array
    s: Array
    log: Array
    U: Sides
    n_active: int
    floor: float
    decay: float = 0.0
    Z: Array | None = None  # V X^T where it is known

    @classmethod
    def of(
        cls,
        problem: Problem,
        V: Array,
        s: Array,
        log: Array,
        U: Sides,
        n_active: int = 0,
        decay: float = 0.0,
    ) -> Crew:
        """A crew whose smallest noticeable pull is set by the silent network."""
        floor = NO_PULL / _PARALLEL * problem.total_pull
        return cls(
            problem,
            np.ascontiguousarray(V, dtype=float).reshape(-1, problem.d),
            np.array(s, dtype=float),
            np.array(log, dtype=float),
            np.ascontiguousarray(U, dtype=np.int8).reshape(-1, problem.n),
            n_active,
            floor,
            decay,
        )

    def rows(self, index: slice | Indices, n_active: int) -> Crew:
        """Some of the crew, the first ``n_active`` of them active."""
        return Crew(  # not by `replace`, which takes longer than all of this
            self.problem,
            self.V[index],
            self.s[index],
            self.log[index],
            self.U[index],
            n_active,
            self.floor,
            self.decay,
            None if self.Z is None else self.Z[index],
        )

    def at(self, V: Array, log: Array) -> Crew:
        """The same neurons with other directions and log norms."""
        Z = None if self.Z is None else V @ self.problem.X.T
        return replace(self, V=V, log=log, Z=Z)

    @property
    def acting(self) -> Crew:
        """The active neurons alone."""
        return self.rows(slice(self.n_active), self.n_active)

    @property
    def riding(self) -> Crew:
        """The tracers alone."""
        return self.rows(slice(self.n_active, None), 0)

    def with_parts(self, acting: Crew, riding: Crew) -> Crew:
        """This crew with its active neurons and its tracers replaced."""
        return replace(
            self,
            V=np.vstack([acting.V, riding.V]),
            log=np.concatenate([acting.log, riding.log]),
            U=np.vstack([acting.U, riding.U]),
            Z=None,
        )

    def distinct(self) -> tuple[Crew, Indices]:
        """This crew with one tracer for all that are the same in every bit, and each one's place.

        On a plateau neurons of many starts settle in few directions: what they go through from
        there on is the same, and their exponents, which differ, are not part of it.
        """
        places: dict[tuple[bytes, ...], int] = {}
        of = np.empty(len(self.s) - self.n_active, dtype=np.int64)
        first = list(range(self.n_active))
        for i in range(self.n_active, len(self.s)):
            parts = (self.V[i], self.s[i], self.log[i], self.U[i])
            key = tuple(part.tobytes() for part in parts)
            if key not in places:
                places[key] = len(places)
                first.append(i)
            of[i - self.n_active] = places[key]
        return self.rows(np.array(first), self.n_active), of

    def change_since(self, old: Crew) -> float:
        """Largest change of a neuron, in direction and log norm."""
        return float(max(np.abs(self.V - old.V).max(), np.abs(self.log - old.log).max()))

    def outputs(self) -> Array:
        """f(x_k), made by the active neurons."""
        k = self.n_active
        z = self.problem.X @ self.V[:k].T if self.Z is None else self.Z[:k].T
        with np.errstate(over="ignore", invalid="ignore"):  # a trial step may go too far
            size = self.s[:k] * np.exp(2.0 * self.log[:k])
            return np.maximum(z, self.problem.leak * z) @ size

    def pull(self) -> Array:
        """The pull c (n,) at these outputs."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.problem.pull_at(self.outputs())

    def after(self, c: Array, t: float) -> Crew:
        """Everybody after a time t under the constant pull c."""
        return self.move(c, t)[0]

    def move(self, c: Array, t: float) -> tuple[Crew, Array]:
        """Everybody after a time t under the constant pull c, and by how much log norms grew.

        The growth has all its digits where log norms themselves are too large to show it.
        """
        _, _, V, log, U, _, Z = self._ride(c, t)
        if self.decay:
            log = log - self.decay * t
        p, k = self.problem, self.n_active
        return Crew(p, V, self.s, self.log + log, U, k, self.floor, self.decay, Z), log

    def settle(self, c: Array) -> Settled:
        """Limit directions and rates of everybody under the constant pull c."""
        ends, rates, V, offsets, U, last, _ = self._ride(c, np.inf)
        if self.decay:
            rates = rates - self.decay
        times = settling_times(last, rates)
        return Settled(V, rates, offsets + self.log, ends == STILL, ends == UNRESOLVED, U, times)

    def _ride(
        self, c: Array, t: float
    ) -> tuple[Sides, Array, Array, Array, Sides, Array, Array | None]:
        # active neurons leave a hyperplane that comes to repel: they are pressed against it from
        # the side of vanishing slope, so that staying is the exception
        from reluflow.kernels.early import ride_all

        p = self.problem
        hold = np.arange(len(self.s)) >= self.n_active
        most = most_events(p.n)
        # on short ways through few kinks what is made ready would cost more than it saves
        products = sample_products(p) if np.isinf(t) or p.X.size > _LARGE else None
        ends, rates, V, offsets, U, last, Z = ride_all(
            self.V, self.s, self.U, p.X, c, p.leak, hold, self.floor, t, most, products, self.Z
        )
        return ends, rates, V, offsets, U, last, Z
