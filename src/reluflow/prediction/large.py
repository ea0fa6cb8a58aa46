r"""The critical point near active neurons on large data, by products with the samples alone.

On a pattern the loss is convex in :math:`u_j = a_j w_j` (see `reluflow.prediction.arrival`), and
Newton's step solves :math:`M^T h M z = M^T c`. Here M is never formed: conjugate gradients from
z = 0 need two products with the samples per neuron and round. The norm of their iterates only
grows, so a critical point that is not near shows after a few rounds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reluflow.arrays import Array, Mask
from reluflow.prediction.crew import Crew

ENTRIES = 100_000  # neurons times entries of X beyond which this is used
_NEWTON = 12
_ROUNDS = 200  # of conjugate gradients
_SOLVED = 1e-9  # residual of a linear system, relative
_STILL = 1e-11  # |D_j| over the first sum of |c_k||x_k| at a critical point


class Pattern:
    """f = sum_j Phi_j u_j on the cones of active neurons, as products with the samples."""

    def __init__(self, acting: Crew) -> None:
        problem, U = acting.problem, acting.U
        self.X = problem.X
        self.slopes = np.where(U > 0, 1.0, np.where(U < 0, problem.leak, 0.0))
        self.V, self.size = acting.V, np.exp(acting.log)[:, None]
        self.normals = [problem.X[row == 0] for row in U]
        self.inverses = [np.linalg.pinv(N) if len(N) else N.T for N in self.normals]

    def _metric(self, Z: Array) -> Array:
        """Root of B_j = rho_j^2 (I + v_j v_j^T) times each row."""
        along = np.einsum("ji,ji->j", Z, self.V)[:, None]
        return np.asarray(self.size * (Z + (np.sqrt(2.0) - 1.0) * along * self.V))

    def _free(self, Z: Array) -> Array:
        """Rows off the samples that their neurons slide on."""
        for j, (N, inverse) in enumerate(zip(self.normals, self.inverses, strict=True)):
            if len(N):
                Z[j] -= inverse @ (N @ Z[j])
        return Z

    def move(self, Z: Array) -> Array:
        """Change of u (k, d) along coordinates Z (k, d)."""
        return self._metric(self._free(Z.copy()))

    def outputs(self, u: Array) -> Array:
        """Phi u (n,)."""
        return np.asarray(np.einsum("jn,jn->n", self.slopes, u @ self.X.T))

    def force(self, c: Array) -> Array:
        """M^T c as rows (k, d)."""
        return self._free(self._metric((self.slopes * c) @ self.X))


def newton(
    acting: Crew, far: Mask | None, most: float
) -> tuple[Array, Array, Array, float, Array] | None:
    """Critical point on the pattern of ``acting``, within a relative distance ``most`` of it.

    Returns u (k, d) there, its outputs, the first move of the outputs, the decay rate along it and
    the pull there; None where there is none so near.
    """
    problem, pattern = acting.problem, Pattern(acting)
    first = (acting.s * np.exp(2.0 * acting.log))[:, None] * acting.V
    length = np.linalg.norm(first, axis=1)
    u, f = first, pattern.outputs(first)
    way, rate = np.zeros(problem.n), 0.0

    def too_far(moved: Array) -> bool:
        return bool((np.linalg.norm(u + moved - first, axis=1) > most * length).any())

    for step in range(_NEWTON):
        c, h = problem.pull_at(f), problem.weight * problem.loss.bend(f, problem.y)
        if far is not None:
            c, h = np.where(far, 0.0, c), np.where(far, 0.0, h)
        g = pattern.force(c)
        left = np.linalg.norm(g / pattern.size, axis=1).max(initial=0.0)
        if left <= _STILL * problem.total_pull:
            return u, f, way, rate, c
        z = _conjugate(pattern, h, g, too_far)
        if z is None:
            return None
        moved = pattern.move(z)
        shift = pattern.outputs(moved)
        if step == 0:
            way = shift
            rate = float(shift @ (h * shift)) / max(float(np.sum(z * z)), 1e-300)
        u, f = u + moved, f + shift
    return None


def _conjugate(
    pattern: Pattern, h: Array, g: Array, leaves: Callable[[Array], bool]
) -> Array | None:
    """z with M^T h M z = g by conjugate gradients; None once it ``leaves`` or does not converge."""
    z, r = np.zeros_like(g), g.copy()
    p, square = r.copy(), float(np.sum(r * r))
    goal = _SOLVED**2 * square
    for _ in range(_ROUNDS):
        if square <= goal:
            return z
        q = pattern.force(h * pattern.outputs(pattern.move(p)))
        bend = float(np.sum(p * q))
        if bend <= 0.0:
            return None
        step = square / bend
        z, r = z + step * p, r - step * q
        if leaves(pattern.move(z)):
            return None
        before, square = square, float(np.sum(r * r))
        p = r + (square / before) * p
    return None
