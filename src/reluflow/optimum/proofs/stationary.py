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

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from reluflow.optimum.proofs.rounding import sides_of
from reluflow.optimum.stationarity_result import Stationarity
from reluflow.problem import Problem

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

INSIDE = 1e-7  # slopes this far inside [leak, 1] are those of a neuron held on a kink
CLOSE = 1e-6  # neurons of one face with 1 - cosine below this move as one
SINGULAR = 1e-9  # relative size of a pivot that counts as zero
MOST_UNKNOWNS = 120


@dataclass(frozen=True, eq=False)
class Face:
    """Neurons of one cone or face: slopes (n,), 0 on its kinks, and which samples these are."""

    slopes: Array
    kinks: tuple[int, ...]
    neurons: list[int]


def stationary_arrays(
    problem: Problem, found: Stationarity, W: Array, a: Array, kept: NDArray[np.intp]
) -> dict[str, Array] | None:
    """The proof arrays of a stationary point near (W, a); None when no regular system is found."""
    if problem.loss.margin:
        return None
    system = _System(problem, W, a, *_kinks(problem, found, W, a, kept))
    return system.solve()


def _kinks(
    problem: Problem, found: Stationarity, W: Array, a: Array, kept: NDArray[np.intp]
) -> tuple[Mask, Array]:
    """Which neuron is held on which kink (m, n), and the side (+1, -1, 0) of every other pair."""
    X, leak = problem.X, problem.leak
    sides = sides_of(W, X)
    c = problem.pull_at(np.maximum(X @ W.T, leak * (X @ W.T)) @ a)
    pulls = np.abs(c) > 1e-7 * np.abs(problem.pull).max(initial=0.0)
    near = found.kinked[kept] & (a != 0.0)[:, None]
    h = (found.slopes[kept] - leak) / (1.0 - leak)
    held = near & pulls & (h > INSIDE) & (h < 1.0 - INSIDE)
    sides = np.where(near & ~held & pulls, np.where(h > 0.5, 1, -1), sides)
    return held, np.where(held, 0, sides)


class _System:
    """Unknowns, equations and the numbers they start from."""

    def __init__(self, problem: Problem, W: Array, a: Array, held: Mask, sides: Array) -> None:
        self.X, self.y, self.W, self.a = problem.X, problem.y, W, a
        self.leak, self.kappa = problem.leak, problem.weight * problem.loss.curvature
        self.m, self.n, self.d = len(a), problem.n, problem.d
        self.place, self.leader = W.copy(), np.arange(self.m)
        self.share, self.sides = np.ones(self.m), sides
        self._nudge(held, sides)
        self.faces = self._faces(held, sides)

    def _nudge(self, held: Mask, sides: Array) -> None:
        """Neurons that rest on the other side of a sample, or on it, take the side they need."""
        other = ~held & (sides != sides_of(self.W, self.X)) & self.X.any(axis=1)
        for j, k in np.argwhere(other):
            x, size = self.X[k], np.linalg.norm(self.X[k])
            goal = sides[j, k] * 1e-9 * np.linalg.norm(self.W[j]) * size
            self.place[j] += (goal - self.place[j] @ x) / size**2 * x

    def _faces(self, held: Mask, sides: Array) -> list[Face]:
        """Neurons by their slopes and kinks; those of a face lead each other."""
        slopes = np.where(held, 0.0, np.where(sides > 0, 1.0, self.leak))
        slopes[:, ~self.X.any(axis=1)] = 0.0
        keys = np.hstack([slopes, held])
        _, index = np.unique(keys, axis=0, return_inverse=True)
        faces = []
        for i in range(index.max() + 1):
            members = np.flatnonzero(index.reshape(-1) == i)
            members = members[np.argsort(-np.abs(self.a[members]) * self._size(members))]
            kinks = tuple(int(k) for k in np.flatnonzero(held[members[0]]))
            if kinks:
                members = self._lead(members)
            faces.append(Face(slopes[members[0]], kinks, [int(j) for j in members]))
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
        n, d, X = self.n, self.d, self.X
        # a tau for each kink of each face; an equation <w, x> = 0 for each leader on it
        taus = [(i, k) for i, face in enumerate(self.faces) for k in face.kinks]
        T = len(taus)
        kinks = [
            (r, k, t) for t, (i, k) in enumerate(taus) for r in self.faces[i].neurons
        ]
        all_rows = np.vstack([self._rows(i, face, taus) for i, face in enumerate(self.faces)])
        zero = _units_in_span(all_rows, n)
        if any(k in zero for _, k in taus):
            return None
        lines, rows = [np.eye(n + T)[k] for k in zero], [(-1, k) for k in zero]
        seen: set[bytes] = set()
        for i, face in enumerate(self.faces):
            block = self._rows(i, face, taus)
            block[:, zero] = 0.0
            if block.any() and block.tobytes() not in seen:
                seen.add(block.tobytes())
                lines += list(block)
                rows += [(face.neurons[0], e) for e in range(d)]
        outer = np.bincount(self.leader, self.a * self.share, self.m)
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
        for number, (r, k, _) in enumerate(kinks):
            start = T + d * [q for q, _ in movers].index(r)
            J[len(L) + number, start : start + d] = X[k]
        tau = self._first_taus(taus, L)
        for _ in range(4):  # the shortest step that solves them all
            F = self._values(L, kinks, tau)
            step = np.linalg.lstsq(J, -F, rcond=1e-12)[0] if len(F) else np.zeros(0)
            tau = tau + step[:T]
            for (r, e), move in zip(entries, step[T:], strict=True):
                self.place[r, e] += move
        columns = _regular_columns(J, T)
        if columns is None:
            return None
        free = [entries[i - T] for i in columns[: len(columns) - T]]
        A = J[:, columns]
        Y = np.linalg.inv(A) if len(A) else A
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
            "inverse": Y.reshape(len(radius), len(radius)),
        }

    def _rows(self, i: int, face: Face, taus: list[tuple[int, int]]) -> Array:
        """D of a face (d, n + T) as a function of (c, tau)."""
        out = np.zeros((self.d, self.n + len(taus)))
        out[:, : self.n] = (face.slopes[:, None] * self.X).T
        for t, (owner, k) in enumerate(taus):
            if owner == i:
                out[:, self.n + t] = self.X[k]
        return out

    def _movers(self, face: Face, outer: Array) -> list[int]:
        """Who may move: everyone on a kink; otherwise the neuron that has to move least."""
        if face.kinks or not face.slopes.any():
            return face.neurons if face.kinks else []
        away = self.X.any(axis=1)
        distance = np.abs(self.W[face.neurons] @ self.X[away].T)
        distance /= np.linalg.norm(self.X[away], axis=1)
        room = distance.min(axis=1) * np.abs(outer[face.neurons])
        return [face.neurons[int(room.argmax())]]

    def _pull(self) -> Array:
        """c at the present place."""
        f = np.zeros(self.n)
        outer = np.bincount(self.leader, self.a * self.share, self.m)
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
        outer = np.abs(np.bincount(self.leader, self.a * self.share, self.m))
        height = np.abs(self.y)
        for face in self.faces:
            for r in face.neurons:
                height = height + outer[r] * (np.abs(self.X) @ np.abs(self.place[r]))
        size = np.abs(L) @ np.concatenate([self.kappa * height, np.abs(tau)])
        on = [float(np.abs(self.place[r]) @ np.abs(self.X[k])) for r, k, _ in kinks]
        error = np.abs(self._values(L, kinks, tau))
        error = error + 8 * eps * (self.n + self.d) * np.concatenate([size, on])
        reach = 2.0 * np.abs(Y) @ error
        wrong = np.abs(np.eye(len(A)) - Y @ A) + 4 * eps * len(A) * np.abs(Y) @ np.abs(A)
        radius = reach
        for _ in range(30):
            radius = reach + 2.0 * wrong @ radius
        return np.asarray(radius)


def _column(pairs: list, i: int) -> Array:
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
