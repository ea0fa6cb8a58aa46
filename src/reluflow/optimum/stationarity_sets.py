r"""The slopes a neuron may choose at its kinks, and the gradient of minimal norm they give.

Samples on one line through the origin share a hyperplane, so their slopes are tied: with
:math:`\phi(z) = \frac{1+\mathrm{leak}}2 z + \frac{1-\mathrm{leak}}2 |z|` a neuron on the
hyperplanes K (unit normals n_h) has the gradients

.. math:: D = b + \sum_{h \in K} t_h \kappa_h n_h, \qquad t \in [-1, 1]^K,

b from the samples off the hyperplanes and the linear halves of those on them. This is the Clarke
subdifferential of G when the normals are independent or the kappa have one sign, and contains it
otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.landscape.canonical import PATTERN_TOL, hyperplanes
from reluflow.optimum.own_size import BLOCK, ROUNDING
from reluflow.problem import Problem


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
        return (self.member >= 0) & (np.append(u, 1)[self.member] == 0)

    def is_clarke(self, u: NDArray[np.int8]) -> bool:
        """Whether all t on the hyperplanes of u = 0 are limits: the set is Clarke's, not larger."""
        free = (u == 0) & (self.kappa != 0.0)
        signs = np.sign(self.kappa[free])
        if free.sum() <= 1 or np.all(signs == signs[0]):
            return True
        return bool(np.linalg.matrix_rank(self.normals[free], tol=1e-9) == free.sum())
