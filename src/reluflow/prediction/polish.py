r"""The critical point that active neurons are heading for, to rounding.

In coordinates :math:`u_j = a_j w_j` the loss is convex while no neuron changes its pattern:
:math:`f = \sum_j \Phi_j u_j` with :math:`\Phi_j` the samples times the slopes of neuron j. So a
critical point whose active neurons are not zero solves :math:`\Phi_j^T c = 0` for all j, a linear
system for square losses, a few Newton steps for others. A neuron that slides on hyperplanes keeps
to their intersection. The flow is :math:`\dot u_j = B_j \Phi_j^T c`,
:math:`B_j = \rho_j^2 (I + v_j v_j^T)`; where the solution is not unique, the one nearest in this
metric is the flow's own limit up to second order in the distance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag, null_space

from reluflow.arrays import Array
from reluflow.landscape.alignment import D
from reluflow.prediction.crew import Crew, first_total

ON = 1e-10  # |<v, x_k>| <= ON |x_k|: the neuron lies on the hyperplane
_RANK = 1e-11  # singular values below this, relative, are flat directions
_NEWTON = 30


@dataclass(frozen=True, eq=False)
class Linear:
    """The flow of the active neurons around a critical point, u = u* + R z, z' = -S z.

    Attributes
    ----------
    values, vectors : arrays (p,), (p, p)
        Eigenvalues of S = M^T H M and eigenvectors.
    pulls : array (n, p)
        Derivative of the pull with respect to z: -H M.
    start : array (p,)
        z at the state that was polished.
    """

    values: Array
    vectors: Array
    pulls: Array
    start: Array

    @property
    def relaxation(self) -> float:
        """Time constant of the slowest mode that is not flat."""
        top = self.values.max(initial=0.0)
        modes = self.values[self.values > 1e-12 * top]
        return float(1.0 / modes.min()) if modes.size else 0.0

    def pull_shift(self, t0: float, t1: float) -> Array:
        """Average of c - c* over [t0, t1] along the linear flow."""
        rate = np.maximum(self.values, 0.0)
        x = rate * (t1 - t0)
        mean = np.where(x > 1e-8, -np.expm1(-x) / np.where(x > 0, x, 1.0), 1.0 - 0.5 * x)
        amplitude = np.exp(-rate * t0) * mean * (self.vectors.T @ self.start)
        return self.pulls @ (self.vectors @ amplitude)


@dataclass(frozen=True, eq=False)
class Polished:
    """A critical point near a crew's state.

    Attributes
    ----------
    crew : Crew
        The active neurons there.
    pull : array (n,)
        The pull there, 0 where it is rounding.
    distance : float
        Largest relative change of an active neuron's a w.
    residual : float
        Largest |D_j|, kinks free, over the first sum of |c_k||x_k|.
    same : bool
        Whether every neuron kept its pattern, its sign and a size of its own.
    flat : bool
        Whether critical points near it form a continuum.
    linear : Linear
        The flow around it.
    """

    crew: Crew
    pull: Array
    distance: float
    residual: float
    same: bool
    flat: bool
    linear: Linear


def keeps_sides(crew: Crew) -> bool:
    """Whether no active neuron lies beyond a hyperplane of whose sides it holds one."""
    X = crew.problem.X
    z = crew.acting.V @ X.T
    return bool((crew.acting.U * z >= -ON * np.linalg.norm(X, axis=1)).all())


def clean_pull(crew: Crew, c: Array, floor: float = 1e-12) -> Array:
    """c with entries at rounding level set to zero."""
    return np.where(np.abs(c) > floor * np.abs(crew.problem.pull).max(), c, 0.0)


def polish(crew: Crew, far: NDArray[np.bool_] | None = None) -> Polished | None:
    """The critical point on the pattern of ``crew``, None if Newton's method finds none.

    Samples marked ``far`` are on their way to infinity (margin losses) and pull no more.
    """
    problem, acting = crew.problem, crew.acting
    u = (acting.s * np.exp(2.0 * acting.log))[:, None] * acting.V
    sides = acting.U
    slopes = np.where(sides > 0, 1.0, np.where(sides < 0, problem.leak, 0.0))
    bases = [_basis(problem.X[row == 0], problem.d) for row in sides]
    columns = block_diag(*(_metric_root(acting, j) @ bases[j] for j in range(len(u))))
    Phi = np.hstack([slope[:, None] * problem.X for slope in slopes])
    M = Phi @ columns
    x, f = u.ravel().copy(), Phi @ u.ravel()
    start, flat = np.zeros(M.shape[1]), False
    for step in range(_NEWTON):
        with np.errstate(over="ignore"):  # Newton's method may leave for infinity
            h = problem.weight * problem.loss.bend(f, problem.y)
            c = problem.pull_at(f)
        if not (np.isfinite(h).all() and np.isfinite(c).all()):
            return None
        if far is not None:
            h, c = np.where(far, 0.0, h), np.where(far, 0.0, c)
        root = np.sqrt(h)
        with np.errstate(divide="ignore", invalid="ignore"):
            right = np.where(h > 0, c / root, 0.0)
        z, _, rank, _ = np.linalg.lstsq(root[:, None] * M, right, rcond=_RANK)
        flat = rank < M.shape[1]
        x += columns @ z
        start -= z
        f = Phi @ x
        if not np.isfinite(x).all() or np.abs(f).max() > 1e6 * (1.0 + np.abs(problem.y).max()):
            return None
        if step and np.abs(columns @ z).max() <= 1e-15 * np.abs(x).max():
            break
    else:
        if problem.loss.margin:
            return None
    found = x.reshape(u.shape)
    size = np.linalg.norm(found, axis=1)
    if not (np.isfinite(size).all() and (size > 0.0).all()):
        return None
    distance = float((np.linalg.norm(found - u, axis=1) / np.linalg.norm(u, axis=1)).max())
    aside = np.einsum("ji,ji->j", found, u) <= 0.0
    if aside.any():
        size = np.where(aside, np.linalg.norm(u, axis=1), size)
        found = np.where(aside[:, None], u, found)
    there = replace(acting, V=acting.s[:, None] * found / size[:, None], log=0.5 * np.log(size))
    c = clean_pull(crew, problem.pull_at(f))
    if far is not None:
        c[far] = 0.0
    h = problem.weight * problem.loss.bend(f, problem.y)
    values, vectors = np.linalg.eigh(M.T @ (h[:, None] * M))
    linear = Linear(values, vectors, -h[:, None] * M, start)
    same = not aside.any() and keeps_sides(there)
    gradient = np.linalg.norm(D(problem, there.V, c, tol=ON), axis=1)
    residual = float(gradient.max() / first_total(problem)) if len(gradient) else 0.0
    return Polished(there, c, distance, residual, same, flat, linear)


def _basis(normals: Array, d: int) -> Array:
    """Orthonormal basis of the directions orthogonal to the given normals."""
    return np.eye(d) if len(normals) == 0 else null_space(normals)


def _metric_root(acting: Crew, j: int) -> Array:
    """Square root of B_j = rho^2 (I + v v^T)."""
    v = acting.V[j]
    return np.exp(acting.log[j]) * (np.eye(v.size) + (np.sqrt(2.0) - 1.0) * np.outer(v, v))
