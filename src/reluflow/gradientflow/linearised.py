r"""The flow of all columns linearised: a resolvent that costs no more than its coupling.

A column of cone u obeys y' = M_u(c) y and c depends on all columns through the outputs alone, so
the derivative J of the velocity is a closed form in each cone plus what the pull couples,

.. math:: (J \delta)_i = M_u \delta_i + (a_i\, \delta D_u, \langle w_i, \delta D_u \rangle), \quad
    \delta D_u = \sum_k s_{uk} x_k\, \delta c_k, \quad \delta c = H \delta f, \quad
    \delta f_k = \sum_u s_{uk} \langle x_k, \delta \mu_u \rangle,

with :math:`\mu_u = \sum_{j \in u} a_j w_j` and H = dc/df: diagonal, in the clock of the loss
:math:`-\mathrm{diag}(b) + c c^T`. To solve :math:`(\lambda - J) \delta = r` let R be the resolvent
of M_u (:math:`\lambda^2 - |D_u|^2` is all it divides by) and :math:`\Gamma_u(\lambda)` the change
of mu_u by a force: then :math:`\delta\mu = \mu(R r) + \Gamma K \delta\mu` with
:math:`K_{uv} = \sum_k s_{uk} x_k H s_{vk} x_k^T`, as many unknowns as cones times features.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.gradientflow.cones import State
from reluflow.kernels.codes import EXPONENTIAL, SQUARE
from reluflow.kernels.flow_types import Data

Values = NDArray[Any]  # real or complex
Solve = Callable[[Values], tuple[Values, Values]]
FELT = 1e-17  # part of the largest cone's moments below which a cone moves no output


def bends(data: Data, f: Array) -> Array:
    """-d log |c_k| / d q_k of a loss of margins, but for 1 / L; |dc_k / df_k| of a square."""
    if data.kind == SQUARE:
        return np.full(f.size, data.weight * data.factor)
    if data.kind == EXPONENTIAL:
        return np.ones(f.size)
    q = data.y * f
    return np.asarray(np.exp(-np.logaddexp(0.0, -q)))


class Coupling:
    """Slopes, samples and columns of a state, as the linear algebra wants them."""

    def __init__(self, s: State) -> None:
        self.data, self.cones, G = s.data, s.cones, s.U.shape[0]
        self.start = s.cones.offset[:-1]
        self.own = np.repeat(np.arange(G, dtype=np.int64), np.diff(s.cones.offset))
        XS = s.cones.S[:, :, None] * s.data.X  # (G, n, d), off the samples of faces
        for g in np.flatnonzero(s.faces):
            N = s.cones.N[s.cones.n_offset[g] : s.cones.n_offset[g + 1]]
            XS[g] -= (XS[g] @ N.T) @ N
        self.shape = XS.shape
        self.flat = np.ascontiguousarray(XS.transpose(1, 0, 2)).reshape(XS.shape[1], -1)

    def forces(self, c: Array) -> Array:
        """D_u of each cone; of several pulls (rows) at once."""
        G, _, d = self.shape
        return np.asarray((c @ self.flat).reshape(*c.shape[:-1], G, d))

    def move(self, C: Values, D: Values) -> Values:
        """M_u applied to columns: (a D, <w, D>)."""
        D = D[..., self.own, :]
        along = np.sum(C[..., :-1] * D, axis=-1, keepdims=True)
        return np.concatenate([C[..., -1:] * D, along], axis=-1)

    def weighted(self, C: Array) -> Array:
        """Q C of each cone, in units of the outputs."""
        cones, out = self.cones, np.empty_like(C)
        for g in range(cones.size.size):
            part = slice(cones.offset[g], cones.offset[g + 1])
            Q = cones.Q[cones.q_offset[g] : cones.q_offset[g + 1]]
            r = part.stop - part.start
            QC = Q.reshape(r, r) @ C[part] if cones.lumped[g] else Q[:, None] * C[part]
            out[part] = cones.size[g] * QC
        return out

    def add_up(self, rows: Values) -> Values:
        """Sums over the columns of each cone."""
        return np.asarray(np.add.reduceat(rows, self.start, axis=0))


class Linearised:
    """J at columns C, pull c and bends (:func:`bends`)."""

    def __init__(self, coupling: Coupling, C: Array, c: Array, bend: Array) -> None:
        self.at, self.C, data = coupling, C, coupling.data
        self.c, self.bend = c, bend
        self.D = coupling.forces(c)
        self.QC = coupling.weighted(C)
        moments = coupling.add_up(C[:, :, None] * self.QC[:, None, :])
        self.aa, self.wa, self.ww = moments[:, -1, -1], moments[:, :-1, -1], moments[:, :-1, :-1]
        size = self.aa + np.trace(self.ww, axis1=1, axis2=2)
        self.felt = np.flatnonzero(size > FELT * size.max(initial=0.0))
        G, n, d = coupling.shape
        felt = coupling.flat.reshape(n, G, d)[:, self.felt].reshape(n, -1)
        change = -(bend if data.kind == SQUARE else bend * np.abs(c))[:, None] * felt
        if data.by_loss:
            change += c[:, None] * (c @ felt)
        # forces of every cone by the moments that are felt
        self.K = (coupling.flat.T @ change).reshape(G, d, -1)
        self.samples = felt

    @property
    def unknowns(self) -> int:
        """Of the linear systems."""
        return int(self.samples.shape[1])

    def resolvent(self, value: complex) -> Solve:
        """A function that solves (value - J) delta = r for delta, and gives delta f as well.

        Where there is no solution it is not finite, which the step is refused for.
        """
        from scipy.linalg import get_lapack_funcs

        D, felt, d = self.D, self.felt, self.D.shape[1]
        gap = value**2 - np.sum(D * D, axis=1)
        B, p, W, s = D[felt], self.wa[felt], self.ww[felt], self.aa[felt]
        weight = (1.0 / gap[felt])[:, None, None]
        Gamma = B[:, :, None] * (value * p + s[:, None] * B)[:, None, :] * (weight / value)
        Gamma = Gamma + weight * (value * W + p[:, :, None] * B[:, None, :])
        Gamma = Gamma + (s / value)[:, None, None] * np.eye(d)
        system = np.eye(self.unknowns) - (Gamma @ self.K[felt]).reshape(2 * (self.unknowns,))
        factorise = get_lapack_funcs("getrf", (system,))
        factors = factorise(system)[:2] if self.unknowns else None
        own, QC = self.at.own, self.QC

        def apart(r: Values) -> Values:
            """(value - M)^-1 r, column by column."""
            along = np.sum(D[own] * r[:, :-1], axis=1)
            a = (value * r[:, -1] + along) / gap[own]
            return np.column_stack([(r[:, :-1] + D[own] * a[:, None]) / value, a])

        def solve(r: Values) -> tuple[Values, Values]:
            alone = apart(r)
            rows = QC[:, -1:] * alone[:, :-1] + QC[:, :-1] * alone[:, -1:]
            mean = self.at.add_up(rows)[felt].ravel()
            if factors is not None:
                mean = get_lapack_funcs("getrs", (factors[0], mean))(*factors, mean)[0]
            pushed = self.at.move(self.C, self.K @ mean)
            return alone + apart(pushed), self.samples @ mean

        return solve
