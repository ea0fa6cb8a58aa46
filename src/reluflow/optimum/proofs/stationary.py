r"""The equations of an exact stationary point near a network, and the box that holds one.

For a square loss :math:`c_k = \kappa (y_k - f_k)` is linear in the inner weights as long as every
neuron keeps its side of every sample. The point sought has D = 0 in the cone of every neuron,

.. math:: D_u = \sum_k \phi'_{u_k} c_k x_k + \sum_{k \in K} \tau_k x_k = 0, \qquad
          \langle w_j, x_k \rangle = 0 \ (k \in K),

with :math:`\tau_k = h_k c_k`, h_k in [leak, 1], on the kinks K: linear equations in (w, tau). Where
the cones force c_k = 0 that equation takes the place of those it makes dependent. Weights that are
not needed as unknowns stay; neurons that share a face and a direction move as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from reluflow.arrays import Array, Mask
from reluflow.optimum.proofs.attempt import box_radius, sides_of
from reluflow.optimum.stationarity import Stationarity
from reluflow.problem import Problem

INSIDE = (1e-5, 1e-3, 1e-9)  # slopes this far inside [leak, 1] are those of a neuron held on a kink
CLOSE = 1e-6  # neurons of one face with 1 - cosine below this move as one
SINGULAR = 1e-9  # relative size of a pivot that counts as zero
MOST_UNKNOWNS = 120
MOVERS = 3  # neurons of a cone that may move, by clearance and by size
PULLS = 1e-9  # relative size of c_k from which sample k pulls
CLEARANCES = (0.0, 1e-8, 1e-6, 1e-4)  # relative distance that neurons are to keep from other kinks


@dataclass(frozen=True, eq=False)
class Face:
    """Neurons of one cone or face: slopes (n,), 0 on its kinks; these, and those that pull."""

    slopes: Array
    kinks: tuple[int, ...]
    pulling: tuple[int, ...]
    neurons: list[int]


def stationary_proofs(
    problem: Problem, found: Stationarity, W: Array, a: Array, kept: NDArray[np.intp]
) -> Iterator[dict[str, Array]]:
    """Proof arrays of a stationary point near (W, a), the most likely and nearest first."""
    if problem.loss.margin:
        return
    for inside in INSIDE:
        for clearance in CLEARANCES:
            try:
                system = _settle(problem, found, W, a, kept, inside, clearance)
                arrays = system.solve()
            except np.linalg.LinAlgError:  # singular after all, or without finite numbers
                continue
            if arrays is not None and system.keeps_sides():
                yield arrays


def _settle(
    problem: Problem,
    found: Stationarity,
    W: Array,
    a: Array,
    kept: NDArray[np.intp],
    inside: float,
    clearance: float,
) -> _System:
    """The system whose kinks agree with the samples that it forces to be silent."""
    P = problem.X @ W.T
    c = problem.pull_at(np.maximum(P, problem.leak * P) @ a)
    silent = np.abs(c) <= PULLS * np.abs(problem.pull).max(initial=0.0)
    near = found.kinked[kept] & np.asarray((a != 0.0) & W.any(axis=1))[:, None]
    h = (found.slopes[kept] - problem.leak) / (1.0 - problem.leak)
    sides = sides_of(W, problem.X)
    sides = np.where(sides == 0, -1, sides)
    for _ in range(problem.n + 1):
        # on a kink: held by a slope inside [leak, 1], or the sample does not pull
        held = near & ~silent & (h > inside) & (h < 1.0 - inside)
        still = near & silent
        given = np.where(near & ~silent, np.where(h > 0.5, 1, -1), sides)
        system = _System(problem, W, a, held, still, np.where(held | still, 0, given), clearance)
        forced = system.silent()
        if (forced == silent).all():
            break
        silent = forced
    return system


class _System:
    """Unknowns, equations and the numbers they start from."""

    def __init__(
        self,
        problem: Problem,
        W: Array,
        a: Array,
        held: Mask,
        still: Mask,
        sides: NDArray[np.int64],
        clearance: float,
    ) -> None:
        self.X, self.y, self.W, self.a = problem.X, problem.y, W, a
        self.leak, self.kappa = problem.leak, problem.weight * problem.loss.curvature
        self.m, self.n, self.d = len(a), problem.n, problem.d
        self.place, self.leader = W.copy(), np.arange(self.m)
        self.share, self.sides = np.ones(self.m), sides
        self.held, self.on, self.clearance = held, held | still, clearance
        self.close = np.zeros_like(held)  # kinks from which a neuron is pushed off
        self._push_off()
        self.faces = self._faces()
        # a tau for each kink of each face at which the sample pulls
        self.taus = [(i, k) for i, face in enumerate(self.faces) for k in face.pulling]

    def keeps_sides(self) -> bool:
        """Whether the neurons have come to rest on the sides they were given."""
        leads = np.unique(self.leader)
        away = ~self.on[leads] & self.X.any(axis=1)
        found = sides_of(self.place[leads], self.X)
        return bool((found == self.sides[leads])[away].all())

    def silent(self) -> Mask:
        """Samples whose pull D = 0 in all cones forces to be 0."""
        rows = np.vstack([self._rows(i) for i in range(len(self.faces))])
        out = np.zeros(self.n, dtype=bool)
        out[_units_in_span(rows, self.n)] = True
        return out

    def _push_off(self) -> None:
        """Neurons too near to a kink, or beyond it, go to the side they need, by a short way."""
        sizes = np.linalg.norm(self.X, axis=1)
        for j, w in enumerate(self.W):
            goal = self.clearance * np.linalg.norm(w) * sizes
            p = self.X @ w
            on = self.on[j] & (sizes > 0.0)
            close = ~self.on[j] & (sizes > 0.0) & (self.sides[j] * p <= goal)
            if not close.any() or not w.any():
                continue
            target = np.where(close, self.sides[j] * np.maximum(2.0 * goal, 1e-300), 0.0)
            rows = on | close
            step = np.linalg.lstsq(self.X[rows], (target - p)[rows], rcond=1e-10)[0]
            self.place[j], self.close[j] = w + step, close

    def _faces(self) -> list[Face]:
        """Neurons by their slopes and kinks; those on kinks that are close lead each other."""
        slopes = np.where(self.on, 0.0, np.where(self.sides > 0, 1.0, self.leak))
        slopes[:, ~self.X.any(axis=1)] = 0.0
        keys = np.hstack([slopes, self.on, self.held])
        _, index = np.unique(keys, axis=0, return_inverse=True)
        faces = []
        for i in range(index.max() + 1):
            members = np.flatnonzero(index.reshape(-1) == i)
            members = members[np.argsort(-np.abs(self.a[members]) * self._size(members))]
            first = members[0]
            kinks = tuple(int(k) for k in np.flatnonzero(self.on[first]))
            pulling = tuple(int(k) for k in np.flatnonzero(self.held[first]))
            if kinks:
                members = self._lead(members)
            faces.append(Face(slopes[first], kinks, pulling, [int(j) for j in members]))
        return faces

    def _size(self, members: NDArray[np.intp]) -> Array:
        return np.asarray(np.linalg.norm(self.W[members], axis=1))

    def _lead(self, members: NDArray[np.intp]) -> NDArray[np.intp]:
        """Neurons close to a larger one of the face follow it; those that lead are returned."""
        leaders: list[int] = []
        for j in members:
            for r in leaders:
                size = np.linalg.norm(self.W[r])
                cosine = self.W[j] @ self.W[r] / (size * np.linalg.norm(self.W[j]))
                if cosine > 1.0 - CLOSE:
                    self.leader[j] = r
                    self.share[j] = float(self.W[j] @ self.W[r] / size**2)
                    break
            else:
                leaders.append(int(j))
        return np.array(leaders)

    def solve(self) -> dict[str, Array] | None:
        """Choose equations and unknowns, solve, and put a box around the solution."""
        n, d, X, taus = self.n, self.d, self.X, self.taus
        T = len(taus)
        # an equation <w, x> = 0 for each leader on a kink, with the tau of its face if it pulls
        number = {tau: t for t, tau in enumerate(taus)}
        kinks = [
            (r, k, number.get((i, k), -1))
            for i, face in enumerate(self.faces)
            for k in face.kinks
            for r in face.neurons
        ]
        zero = [int(k) for k in np.flatnonzero(self.silent())]
        if any((k in zero) != (t < 0) for _, k, t in kinks):
            return None
        lines, rows = [np.eye(n + T)[k] for k in zero], [(-1, k) for k in zero]
        seen: set[bytes] = set()
        for i, face in enumerate(self.faces):
            block = self._rows(i)
            block[:, zero] = 0.0
            slopes = np.where(np.isin(np.arange(n), zero), 0.0, face.slopes)
            if slopes.any() and not face.pulling:  # D = 0 whatever the scale
                first = slopes[slopes != 0.0][0]
                slopes, block = slopes / first, block / first
            key = slopes.tobytes() + bytes(str(i if face.pulling else ""), "ascii")
            if block.any() and key not in seen:
                seen.add(key)
                lines += list(block)
                rows += [(face.neurons[0], e) for e in range(d)]
        outer = self._outer()
        movers = [(r, i) for i, face in enumerate(self.faces) for r in self._movers(face, outer)]
        entries = [(r, e) for r, _ in movers for e in range(d)]
        L = np.array(lines).reshape(-1, n + T)
        if len(L) + len(kinks) > MOST_UNKNOWNS:
            return None
        pulls = np.zeros((n, len(entries)))
        for column, (r, i) in enumerate(movers):
            slopes = -self.kappa * outer[r] * self.faces[i].slopes
            pulls[:, column * d : (column + 1) * d] = slopes[:, None] * X
        J = np.zeros((len(L) + len(kinks), T + len(entries)))
        J[: len(L), :T], J[: len(L), T:] = L[:, n:], L[:, :n] @ pulls
        start = {r: T + d * column for column, (r, _) in enumerate(movers)}
        for line, (r, k, _) in enumerate(kinks):
            J[len(L) + line, start[r] : start[r] + d] = X[k]
        tau = self._first_taus(taus, L)
        along = self._along(J, T, start)
        for guide in (along, along, along, J, J):  # the shortest step that solves them all
            F = self._values(L, kinks, tau)
            step = np.linalg.lstsq(guide, -F, rcond=1e-11)[0] if len(F) else np.zeros(J.shape[1])
            tau = tau + step[:T]
            for r, begin in start.items():
                self.place[r] += self._within(r, guide is along) @ step[begin : begin + d]
        columns = _regular_columns(J, T)
        if columns is None:
            return None
        free = [entries[i - T] for i in columns[: len(columns) - T]]
        A = J[:, columns]
        Y = np.asarray(np.linalg.inv(A), dtype=float).reshape(len(A), len(A))
        for _ in range(3):
            step = -Y @ self._values(L, kinks, tau)
            for (r, e), move in zip(free, step, strict=False):
                self.place[r, e] += move
            tau = tau + step[len(free) :]
        radius = self._radius(A, Y, L, kinks, tau)
        return {
            "place": self.place,
            "leader": self.leader.astype(float),
            "share": self.share,
            "free_neuron": _column(free, 0),
            "free_entry": _column(free, 1),
            "row_neuron": _column(rows, 0),
            "row_index": _column(rows, 1),
            "kink_neuron": _column(kinks, 0),
            "kink_sample": _column(kinks, 1),
            "kink_tau": _column(kinks, 2),
            "tau": tau,
            "radius": radius,
            "inverse": Y,
        }

    def _rows(self, i: int) -> Array:
        """D of face i as a function of (c, tau), shape (d, n + T)."""
        out = np.zeros((self.d, self.n + len(self.taus)))
        out[:, : self.n] = (self.faces[i].slopes[:, None] * self.X).T
        for t, (owner, k) in enumerate(self.taus):
            if owner == i:
                out[:, self.n + t] = self.X[k]
        return out

    def _movers(self, face: Face, outer: Array) -> list[int]:
        """Who may move: those on kinks, and the neurons of other cones with most leverage."""
        if face.kinks or not face.slopes.any():
            return face.neurons if face.kinks else []
        away = self.X.any(axis=1)
        distance = np.abs(self.place[face.neurons] @ self.X[away].T)
        distance /= np.linalg.norm(self.X[away], axis=1)
        clearance = distance.min(axis=1) * np.abs(outer[face.neurons])
        first = [int(i) for i in np.argsort(-clearance)[:MOVERS]]
        largest = [int(i) for i in np.argsort(-np.abs(outer[face.neurons]))[:MOVERS]]
        return [face.neurons[i] for i in dict.fromkeys(first + largest)]

    def _within(self, r: int, restrict: bool) -> Array:
        """The moves that leave a neuron as far from the kinks it was pushed off as it is."""
        near = self.X[self.close[r]]
        if not restrict or not len(near):
            return np.eye(self.d)
        return np.asarray(np.eye(self.d) - np.linalg.pinv(near) @ near)

    def _along(self, J: Array, T: int, start: dict[int, int]) -> Array:
        """J for moves within."""
        out = J.copy()
        for r, begin in start.items():
            out[:, begin : begin + self.d] = J[:, begin : begin + self.d] @ self._within(r, True)
        return out

    def _outer(self) -> Array:
        """The outer weight of each leader with those it leads."""
        return np.bincount(self.leader, self.a * self.share, self.m).astype(float)

    def _pull(self) -> Array:
        """c at the present place."""
        f = np.zeros(self.n)
        outer = self._outer()
        for face in self.faces:
            for r in face.neurons:
                f += outer[r] * face.slopes * (self.X @ self.place[r])
        return self.kappa * (self.y - f)

    def _first_taus(self, taus: list[tuple[int, int]], L: Array) -> Array:
        if not taus:
            return np.zeros(0)
        return np.asarray(np.linalg.lstsq(L[:, self.n :], -L[:, : self.n] @ self._pull())[0])

    def _values(self, L: Array, kinks: list[tuple[int, int, int]], tau: Array) -> Array:
        on = [float(self.place[r] @ self.X[k]) for r, k, _ in kinks]
        return np.concatenate([L @ np.concatenate([self._pull(), tau]), on])

    def _radius(
        self, A: Array, Y: Array, L: Array, kinks: list[tuple[int, int, int]], tau: Array
    ) -> Array:
        """A box that Krawczyk's operator maps into itself, with room for rounding."""
        if not len(A):
            return np.zeros(0)
        eps = float(np.finfo(float).eps)
        outer = np.abs(self._outer())
        height = np.abs(self.y)
        for face in self.faces:
            for r in face.neurons:
                height = height + outer[r] * (np.abs(self.X) @ np.abs(self.place[r]))
        size = np.abs(L) @ np.concatenate([self.kappa * height, np.abs(tau)])
        on = [float(np.abs(self.place[r]) @ np.abs(self.X[k])) for r, k, _ in kinks]
        error = np.abs(self._values(L, kinks, tau))
        error = error + 8 * eps * (self.n + self.d) * np.concatenate([size, on])
        return box_radius(A, Y, error)


def _column(pairs: Sequence[tuple[int, ...]], i: int) -> Array:
    return np.array([pair[i] for pair in pairs], dtype=float)


def _units_in_span(rows: Array, n: int) -> list[int]:
    """Which of the first n unit vectors lie in the span of the rows."""
    sizes = np.linalg.norm(rows, axis=1)
    rows = rows[sizes > 0.0] / sizes[sizes > 0.0, None]
    if not len(rows):
        return []
    _, values, V = np.linalg.svd(rows, full_matrices=False)
    V = V[values > SINGULAR * values[0]]
    return [k for k in range(n) if V[:, k] @ V[:, k] > 1.0 - 1e-9]


def _regular_columns(J: Array, T: int) -> list[int] | None:
    """Columns of J that make it square and regular, the first T of them in any case (put last)."""
    E = len(J)
    if E == 0:
        return []
    if E < T:
        return None
    Q, R = np.linalg.qr(J[:, :T]) if T else (np.zeros((E, 0)), np.zeros((0, 0)))
    if T and np.abs(np.diag(R)).min() <= SINGULAR * np.abs(R).max():
        return None
    rest = J[:, T:] - Q @ (Q.T @ J[:, T:])
    if E == T:
        return list(range(T))
    if rest.shape[1] < E - T:
        return None
    _, R, order = qr(rest, pivoting=True, mode="economic")
    pivots = np.abs(np.diag(R))
    if len(pivots) < E - T or pivots[E - T - 1] <= SINGULAR * pivots[0]:
        return None
    return [T + int(i) for i in order[: E - T]] + list(range(T))
