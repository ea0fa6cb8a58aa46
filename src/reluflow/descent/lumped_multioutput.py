"""Gradient descent of a wide network with several outputs by cones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array, Indices
from reluflow.errors import ReluflowError
from reluflow.kernels.codes import DIVERGED, DONE
from reluflow.network import Network
from reluflow.problem import Problem

_LARGE = 10.0  # entry of a propagator at which it begins anew: its condition is the square of that
_ROUNDING = 1e-13  # of products with such a propagator


class LumpedVectors:
    r"""A stepper of `descend` for outputs in R^K that moves activation cones.

    In the cone u all neurons z = (w, a) take the same step

    .. math:: z \leftarrow F_u z, \qquad F_u = I + \eta \begin{pmatrix} 0 & M_u \\ M_u^\top & 0
              \end{pmatrix}, \qquad M_u = \sum_k \phi'_{u_k} x_k c_k^\top,

    and f needs the moments :math:`S_u = \sum_j z_j z_j^\top` alone, so that a step costs as much as
    there are cones. Neurons are kept as they were when the propagator P_u of their cone was I. One
    is looked at when the rows :math:`P_u^\top x_k / |x_k|` have moved as far as it was from its
    nearest hyperplane.
    """

    def __init__(self, problem: Problem, net: Network, both: bool, limit: float) -> None:
        if net.log_scale is not None:
            raise ReluflowError(
                "backend='lumped' with several outputs takes weights without log_scale: use 'dense'"
            )
        self.problem, self.both, self.limit = problem, both, limit
        self.e = problem.d + problem.K
        self.size = np.where(problem.norms > 0.0, problem.norms, np.inf)
        self.Z = np.hstack([net.W, net.a]).astype(np.float64)
        self.looks = 0
        self._gather()

    def _gather(self) -> None:
        """Cones of the neurons as they are, with fresh propagators."""
        active = self.Z[:, : self.problem.d] @ self.problem.X.T > 0.0
        patterns, cone = np.unique(active, axis=0, return_inverse=True)
        self.cone: Indices = np.asarray(cone).ravel().astype(np.intp)
        self.index = {row.tobytes(): i for i, row in enumerate(patterns)}
        self.slope = np.where(patterns, 1.0, self.problem.leak)
        self.P = np.tile(np.eye(self.e), (len(patterns), 1, 1))
        self.S = np.zeros((len(patterns), self.e, self.e))
        self.rows = self._rows()
        self.moved = np.zeros(len(patterns))
        self.mark = np.zeros(len(self.Z))
        self.slack = np.zeros(len(self.Z))
        self._sum(np.arange(len(patterns)))
        self._measure(np.arange(len(self.Z)), self.Z[:, : self.problem.d] @ self.problem.X.T)

    def _rows(self) -> Array:
        """P_u^T x_k / |x_k| of all cones and samples, (cones, n, e)."""
        return np.asarray((self.problem.X / self.size[:, None]) @ self.P[:, : self.problem.d])

    def _sum(self, cones: Indices) -> None:
        """Moments of some cones from their neurons."""
        for u in cones:
            Z = self.Z[self.cone == u] @ self.P[u].T
            self.S[u] = Z.T @ Z

    def _measure(self, neurons: Indices, products: Array) -> None:
        """How far the nearest hyperplane is, for neurons with the given products now."""
        norms = np.linalg.norm(self.Z[neurons], axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            far = np.where(self.size < np.inf, np.abs(products) / self.size, np.inf)
            slack = np.where(norms > 0.0, far.min(axis=1) / norms, np.inf)
        self.slack[neurons], self.mark[neurons] = slack, self.moved[self.cone[neurons]]

    def _step(self, rate: float, batch: NDArray[np.int64]) -> bool:
        """One step of all cones; False when the outputs left the range of numbers."""
        problem, d = self.problem, self.problem.d
        X, y, slope, weight = problem.X, problem.y, self.slope, problem.weight
        if batch.size:
            batch = batch[batch >= 0]
            X, y, slope = X[batch], y[batch], slope[:, batch]
            weight = 1.0 / batch.size if problem.reduction == "mean" else 1.0
        f = np.sum(slope[:, :, None] * (X @ self.S[:, :d, d:]), axis=0)
        if not np.max(np.abs(f)) <= self.limit:
            return False
        C = -weight * problem.loss.slope(f, y)
        M = rate * (X.T @ (slope[:, :, None] * C))  # (cones, d, K)
        F = np.tile(np.eye(self.e), (len(M), 1, 1))
        F[:, :d, d:] = M
        if self.both:
            F[:, d:, :d] = M.transpose(0, 2, 1)
        self.P = F @ self.P
        self.S = F @ self.S @ F.transpose(0, 2, 1)
        rows = self._rows()
        self.moved += np.linalg.norm(rows - self.rows, axis=2).max(axis=1)
        self.rows = rows
        self._look()
        return True

    def _look(self) -> None:
        """Neurons that may have met a hyperplane; those that did change their cone."""
        gone = self.moved[self.cone] - self.mark
        due = np.flatnonzero(gone >= self.slack - _ROUNDING)
        if due.size:
            self.looks += due.size
            now = np.einsum("jpq,jq->jp", self.P[self.cone[due]], self.Z[due])
            products = now[:, : self.problem.d] @ self.problem.X.T
            active = products > 0.0
            crossed = (active != (self.slope[self.cone[due]] == 1.0)).any(axis=1)
            self._measure(due[~crossed], products[~crossed])
            if crossed.any():
                self._change(due[crossed], now[crossed], active[crossed], products[crossed])
        if np.abs(self.P).max() > _LARGE:
            self.Z = self._current()
            self._gather()

    def _change(self, neurons: Indices, now: Array, active: NDArray[np.bool_], at: Array) -> None:
        """Put neurons into the cones they are in now, new ones among them."""
        touched = set(self.cone[neurons].tolist())
        for j, z, row in zip(neurons, now, active, strict=True):
            u = self.index.setdefault(row.tobytes(), len(self.index))
            if u == len(self.P):
                self.slope = np.vstack([self.slope, np.where(row, 1.0, self.problem.leak)])
                self.P = np.concatenate([self.P, np.eye(self.e)[None]])
                self.S = np.concatenate([self.S, np.zeros((1, self.e, self.e))])
                self.moved = np.append(self.moved, 0.0)
            self.Z[j], self.cone[j] = np.linalg.solve(self.P[u], z), u
            touched.add(u)
        if len(self.rows) < len(self.P):
            self.rows = self._rows()
        self._sum(np.array(sorted(touched)))
        self._measure(neurons, at)

    def _current(self) -> Array:
        """All neurons as they are now."""
        out = np.empty_like(self.Z)
        for u in range(len(self.P)):
            mine = self.cone == u
            out[mine] = self.Z[mine] @ self.P[u].T
        return out

    def advance(self, rates: Array, batches: NDArray[np.int64]) -> tuple[int, int]:
        """Take up to len(rates) steps: (code, steps taken)."""
        for taken, (rate, batch) in enumerate(zip(rates, batches, strict=True)):
            if not self._step(float(rate), batch):
                return DIVERGED, taken
        return DONE, len(rates)

    def weights(self) -> tuple[Array, Array, Array | None]:
        """Current (W, A, log_scale)."""
        Z, d = self._current(), self.problem.d
        return Z[:, :d], Z[:, d:], None

    def outputs(self) -> Array | None:
        """None: they are computed from the weights."""
        return None

    def pack(self) -> dict[str, NDArray[Any]]:
        """Whole state as arrays, for a checkpoint."""
        names = ("Z", "cone", "slope", "P", "S", "rows", "moved", "mark", "slack")
        return {f"lumped.{name}": getattr(self, name) for name in names}

    def unpack(self, packed: dict[str, NDArray[Any]]) -> None:
        """Restore what :meth:`pack` gave."""
        for name, value in packed.items():
            setattr(self, name.removeprefix("lumped."), np.array(value))
        self.index = {row.tobytes(): i for i, row in enumerate(self.slope == 1.0)}

    def cost(self) -> dict[str, Any]:
        """The method, cones at the end, and how often a neuron was looked at."""
        kernel = f"numpy, {self.problem.K} outputs"
        return {"backend": "lumped", "kernel": kernel, "cones": len(self.P), "looks": self.looks}
