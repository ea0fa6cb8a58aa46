r"""Kinks of a network: the slopes a neuron may choose there, and whether the point is a minimum.

Samples on one line through the origin share a hyperplane, so their slopes are tied: with
:math:`\phi(z) = \frac{1+\mathrm{leak}}2 z + \frac{1-\mathrm{leak}}2 |z|` a neuron on the
hyperplanes K (unit normals n_h) has the gradients

.. math:: D = b + \sum_{h \in K} t_h \kappa_h n_h, \qquad t \in [-1, 1]^K,

b from the samples off the hyperplanes and the linear halves of those on them. This is the Clarke
subdifferential of G when the normals are independent or the kappa have one sign, and contains it
otherwise.

Local minimum or saddle: an exact test. Near a network every neuron with a_j not 0 acts through
v_j = |a_j| w_j, an open map, and the outputs move by a positively homogeneous A(dv). The loss is
convex in the outputs, so

.. math:: L(f + A(dv)) - L(f) \ge -\langle c, A(dv) \rangle = -\sum_j s_j H_j(dv_j), \qquad
          H_j(\delta) = \langle b_j, \delta \rangle + \sum_{h \in K_j} \kappa_h |\langle n_h,
          \delta \rangle|,

with equality to first order. Hence, c the pull and s_j the sign of a_j:

* a_j not 0 (w_j = 0 allowed): descent of first order if some s_j H_j(delta) > 0;
* a_j = 0, w_j not 0: descent of second order if H_j is not 0 everywhere;
* w_j = 0 and a_j = 0: descent of second order if G is not 0 everywhere;
* none of these for any neuron: a local minimum. A critical network without kinks and without zero
  weights is always one.

The neighbourhood in which it is a minimum may be as small as the smallest neuron: a tiny neuron
inactive on all samples rests, although one moved by more than its own size may grow.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.landscape.bound import MaxG, max_G
from reluflow.landscape.canonical import PATTERN_TOL, hyperplanes
from reluflow.optimum.own_size import BLOCK, EPS, ROUNDING, SAME, without_underflow
from reluflow.problem import Problem

ALIVE, NO_OUTER, NO_INNER, ZERO = range(4)  # what a neuron has: both weights, w only, a only, none


@dataclass(frozen=True, eq=False)
class Kinks:
    """Hyperplanes of the data under a pull c: what the slopes of a neuron act on."""

    normals: Array  # (H, d), unit
    member: NDArray[np.intp]  # (n,) hyperplane of each sample, -1 for a zero sample
    side: Array  # (n,) +1 or -1: the sample points along its normal or against it
    kappa: Array  # (H,)
    halves: Array  # (H, d) linear halves of the samples of each hyperplane
    moments: Array  # (n, d) c_k x_k
    leak: float

    @classmethod
    def of(cls, problem: Problem, c: Array, tol: float = PATTERN_TOL) -> Kinks:
        """The kinks of G_c."""
        normals, member, length = hyperplanes(problem.X, tol)
        on = member >= 0
        kappa, halves = np.zeros(len(normals)), np.zeros(normals.shape)
        moments = c[:, None] * problem.X
        np.add.at(kappa, member[on], 0.5 * (1.0 - problem.leak) * (c * np.abs(length))[on])
        np.add.at(halves, member[on], 0.5 * (1.0 + problem.leak) * moments[on])
        side = np.where(length < 0.0, -1.0, 1.0)
        return cls(normals, member, side, kappa, halves, moments, problem.leak)

    def patterns(self, directions: Array, tol: float) -> NDArray[np.int8]:
        """Sign of <w, n_h>, 0 within tol of the hyperplane, for unit (or zero) rows."""
        out = np.empty((len(directions), len(self.normals)), dtype=np.int8)
        block = max(1, BLOCK // max(1, len(self.normals)))
        for start in range(0, len(directions), block):
            p = directions[start : start + block] @ self.normals.T
            out[start : start + block] = np.sign(p) * (np.abs(p) > tol)
        return out

    def distinct_patterns(
        self, directions: Array, tol: float
    ) -> tuple[NDArray[np.int8], NDArray[np.intp]]:
        """The patterns that occur, one a row, and which of them each direction has."""
        u = self.patterns(directions, tol)
        if u.shape[1] == 0:
            return u[:1], np.zeros(len(u), dtype=np.intp)
        rows = np.ascontiguousarray(u).view(np.dtype((np.void, u.shape[1]))).reshape(-1)
        _, first, index = np.unique(rows, return_index=True, return_inverse=True)
        return u[first], index.reshape(-1)

    def base(self, u: NDArray[np.int8]) -> Array:
        """b: the gradient with t = 0 on the hyperplanes where u is 0."""
        return np.asarray(self.halves.sum(axis=0) + (u * self.kappa) @ self.normals)

    def steepest(self, u: NDArray[np.int8]) -> tuple[Array, Array]:
        """The gradient D of minimal norm over the free t, and t (the signs where not free)."""
        from reluflow.kernels.boxls import box_least_norm

        t, D = u.astype(np.float64), self.base(u)
        free = np.flatnonzero((u == 0) & (self.kappa != 0.0))
        if len(free):
            Z = np.ascontiguousarray(self.kappa[free, None] * self.normals[free])
            chosen = np.empty(len(free))
            box_least_norm(D.copy(), Z, -1.0, chosen, D)
            ends = np.abs(np.abs(chosen) - 1.0) <= ROUNDING  # a slope of 1e-16 is none
            t[free] = np.where(ends, np.sign(chosen), chosen)
        return D, t

    def slopes(self, t: Array) -> Array:
        """Slope of the activation at each sample, for t of shape (..., H)."""
        padded = np.append(t, np.zeros((*t.shape[:-1], 1)), axis=-1)  # member -1: a zero sample
        tied = np.where(self.member >= 0, self.side * padded[..., self.member], -1.0)
        return self.leak + 0.5 * (1.0 - self.leak) * (1.0 + tied)

    def on(self, u: NDArray[np.int8]) -> NDArray[np.bool_]:
        """Samples (n,) whose hyperplane holds a neuron of pattern u; zero samples do not count."""
        return np.asarray((self.member >= 0) & (np.append(u, 1)[self.member] == 0))

    def is_clarke(self, u: NDArray[np.int8]) -> bool:
        """Whether all t on the hyperplanes of u = 0 are limits: the set is Clarke's, not larger."""
        free = (u == 0) & (self.kappa != 0.0)
        signs = np.sign(self.kappa[free])
        if free.sum() <= 1 or np.all(signs == signs[0]):
            return True
        return bool(np.linalg.matrix_rank(self.normals[free], tol=1e-9) == free.sum())


@dataclass(frozen=True, eq=False)
class Descent:
    """How neuron `neuron` lowers the loss: it moves by a small multiple of `direction`.

    order 1: w_j moves along `direction` and the loss falls at `rate` times |a_j|. order 2: w_j
    moves by eps and a_j by a smaller multiple of `sign`, or both grow from zero alike; the loss
    falls by `rate` times their product.
    """

    neuron: int
    direction: Array = field(repr=False)
    sign: int
    order: int
    rate: float


def best_move(kinks: Kinks, u: NDArray[np.int8], sign: int | None, budget: int | None) -> MaxG:
    """Largest sign * H(delta) over unit delta (largest |H| when sign is None), with its bound."""
    b = kinks.base(u)
    free = (u == 0) & (kinks.kappa != 0.0)
    N, kappa = kinks.normals[free], kinks.kappa[free]
    size = float(np.linalg.norm(b))
    if not free.any():
        way = 1 if sign is None else sign
        vector = way * b / size if size > 0.0 else np.eye(1, len(b))[0]
        return MaxG(size, vector, way, size, True, "none", 0)
    line = b[None] / size if size > 0.0 else np.zeros((1, len(b)))
    X = np.vstack([N, -N, line, -line])  # |z| = phi(z) + phi(-z), z = phi(z) - phi(-z)
    pull = without_underflow(np.concatenate([kappa, kappa, [size, -size]]))
    return max_G(Problem(X, np.zeros(len(X))), pull, sign, budget=budget, tol=SAME)


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """What a small move of a neuron meets, with each sample's pull known up to a share of its size.

    problem, kinks : the data, and their hyperplanes under the pull c
    patterns (p, H) : the distinct patterns of the neurons
    changes : for each of them the change of the pulls, in shares (n,), that balances it exactly
    c, h (n,) : the pulls, and their sizes
    tol : the share up to which a pull counts as zero
    """

    problem: Problem
    kinks: Kinks
    patterns: NDArray[np.int8]
    changes: list[Array]
    c: Array
    h: Array
    tol: float

    def move(self, p: int, state: int, sign: int, budget: int | None) -> MaxG:
        """The move of a neuron of pattern p that lowers the loss fastest."""
        kinks = Kinks.of(self.problem, self._balanced(p), SAME) if self.rests(p) else self.kinks
        return best_move(kinks, self.patterns[p], None if state == NO_OUTER else sign, budget)

    def rests(self, p: int) -> bool:
        """Whether w_j does not move, or would not if a_j were not 0."""
        return bool(np.abs(self.changes[p]).max() <= self.tol)

    def certain(self, p: int, state: int, move: MaxG) -> bool:
        """Whether a move lowers the loss whatever the pulls are within their shares.

        A neuron without weights, or without a_j where w_j would turn, has such moves. Around one
        that rests, moves feel the pulls of the samples on whose hyperplanes it lies.
        """
        if state == ZERO or not self.rests(p):
            return move.value > self.rounding(self.c)
        felt = np.abs(self.problem.X @ move.vector) * self.kinks.on(self.patterns[p])
        return move.value > self.tol * float(felt @ self.h) + self.rounding(self._balanced(p))

    def negligible(self, p: int, state: int, move: MaxG) -> bool:
        """Whether no move has a rate beyond what the pulls leave open."""
        if state == ZERO or not self.rests(p):
            return False
        c, on = self._balanced(p), self.kinks.on(self.patterns[p])
        open_to = np.minimum(np.abs(c), self.tol * self.h)
        most = float(open_to[on] @ np.linalg.norm(self.problem.X[on], axis=1))
        return move.upper_bound <= most + self.rounding(c)

    def rounding(self, c: Array) -> float:
        """Of a sum of pulls."""
        lengths = self.problem.norms
        return 64.0 * EPS * self.problem.n * float(np.abs(c) @ lengths)

    def _balanced(self, p: int) -> Array:
        return np.asarray(self.c + self.h * self.changes[p])


def local_kind(
    place: Neighbourhood,
    index: NDArray[np.intp],
    states: NDArray[np.intp],
    signs: NDArray[np.intp],
    escape: MaxG,
    budget: int | None,
) -> tuple[str, Descent | None]:
    """'minimum', 'saddle' (with a descent) or 'undecided'.

    index (m,) is the pattern of each neuron, escape the largest |G|.
    """
    decided = True
    cases = np.stack([index, states, np.where(states == ALIVE, signs, 0)], axis=1)
    cases[states == NO_INNER, 2] = signs[states == NO_INNER]
    _, first = np.unique(cases, axis=0, return_index=True)
    best: Descent | None = None
    for j in first:
        p, state, s = int(index[j]), int(states[j]), int(signs[j])
        move = escape if state == ZERO else place.move(p, state, s, budget)
        if place.certain(p, state, move):
            order = 1 if state in (ALIVE, NO_INNER) else 2
            if best is None or move.value > best.rate:
                best = Descent(int(j), move.vector, move.sign, order, move.value)
        elif not place.negligible(p, state, move):
            decided = False
    if best is not None:
        return "saddle", best
    return ("minimum" if decided else "undecided"), None
