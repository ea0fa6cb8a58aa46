"""[TK24]_ Appendix B.1: G of the smoothed activation on the sphere, and flows on it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import beta

from reluflow.arrays import Array
from reluflow.problem import Problem, losses
from reluflow.problem.activation import SmoothedRelu

STARTS = 64  # of the search for extrema
TURNS = 6000  # most power steps of it


@dataclass(frozen=True, eq=False)
class Sphere:
    """G(w) = sum_k c_k phi(w, x_k), c the pull of a silent network, phi smoothed."""

    problem: Problem

    @property
    def phi(self) -> SmoothedRelu:
        """The smoothed activation."""
        found = self.problem.smoothed
        assert found is not None
        return found

    def G(self, W: Array) -> Array:
        """G at the rows of W."""
        return np.asarray(self.problem.pull @ self.phi.value(W, self.problem.X))

    def g(self, W: Array) -> Array:
        """Gradient of G at the rows of W."""
        return self.phi.pulled(W, self.problem.X, self.problem.pull)

    def across(self, W: Array) -> Array:
        """P g at unit rows."""
        g = self.g(W)
        return np.asarray(g - np.sum(g * W, axis=1, keepdims=True) * W)

    def tangential(self, w: Array) -> Array:
        """Eigenvalues of Hess G at a unit vector on its tangent space, ascending."""
        H = np.tensordot(self.problem.pull, self.phi.hessian(w[None], self.problem.X)[:, 0], 1)
        basis = np.linalg.svd(w[None])[2][1:]
        return np.asarray(np.linalg.eigvalsh(basis @ H @ basis.T))

    @cached_property
    def b0(self) -> float:
        """Bound on the Lipschitz constant of G (Remark B.4), for inputs within R of 0."""
        R = self.problem.norms
        return float(np.abs(self.problem.pull) @ (R + self.phi.radius))

    @cached_property
    def b1(self) -> float:
        """Bound on the Lipschitz constant of P g on the sphere (Remark B.7)."""
        d, xi, R = self.problem.d, self.phi.radius, self.problem.norms
        K = 1 / beta(0.5, (d + 1) / 2)
        return 2 * self.b0 + float(np.abs(self.problem.pull) @ (K * (xi / (d + 1) + R**2 / xi)))

    def climb(self, W: Array, signs: Array) -> Array:
        """Where s G leads from unit rows, by power steps with a shift that makes s G grow."""
        shift = 0.5 * self.b1
        for _ in range(TURNS):
            new = shift * W + signs[:, None] * self.g(W)
            new /= np.linalg.norm(new, axis=1, keepdims=True)
            moved = np.abs(new - W).max()
            W = new
            if moved <= 1e-14:
                break
        return W

    @cached_property
    def extrema(self) -> tuple[Array, Array]:
        """Maxima of s G found from spread starts, and their signs, largest |G| first."""
        rng = np.random.default_rng(0)
        W = rng.standard_normal((STARTS, self.problem.d))
        W /= np.linalg.norm(W, axis=1, keepdims=True)
        signs = np.where(np.arange(STARTS) % 2 == 0, 1.0, -1.0)
        W = self.climb(W, signs)
        order = np.argsort(-signs * self.G(W))
        W, signs = W[order], signs[order]
        keep: list[int] = []
        for j in range(STARTS):
            same = [np.linalg.norm(W[j] - W[i]) < 1e-4 and signs[j] == signs[i] for i in keep]
            if signs[j] * self.G(W[j : j + 1])[0] > 1e-6 and not any(same):
                keep.append(j)
        return W[keep], signs[keep]

    @cached_property
    def lam(self) -> float:
        """Largest |G| found on the sphere."""
        W, signs = self.extrema
        return float(np.max(signs * self.G(W)))

    def turn(self, W: Array, signs: Array, times: Array, rtol: float = 1e-11) -> Array:
        """Linearised flow r' = s P g(r), (log |a|)' = s G(r): (times, m, d + 1) from log 1."""
        m, d = W.shape

        def speed(_: float, state: Array) -> Array:
            r = state.reshape(m, d + 1)[:, :d]
            r = r / np.linalg.norm(r, axis=1, keepdims=True)
            return np.column_stack([signs[:, None] * self.across(r), signs * self.G(r)]).ravel()

        start = np.column_stack([W, np.zeros(m)]).ravel()
        found = solve_ivp(
            speed, (0.0, times[-1]), start, "DOP853", times, rtol=rtol, atol=rtol
        ).y.T.reshape(len(times), m, d + 1)
        found[:, :, :d] /= np.linalg.norm(found[:, :, :d], axis=2, keepdims=True)
        return np.asarray(found)


@cache
def skewed(xi: float = 0.3) -> Sphere:
    """Three points on which the extremum e1 is not regular: the tangential Hessian is positive."""
    X = np.array([[1.0, 0.0, 0.0], [0.0, 0.1, 0.0], [0.0, -0.1, 0.0]])
    return Sphere(Problem(X, np.ones(3), losses.Logistic(), smoothing=xi, name="three-on-a-ridge"))


def ball_draw(rng: np.random.Generator, n: int, d: int, xi: float) -> Problem:
    """Random labels on uniform points of the unit ball."""
    X = rng.standard_normal((n, d))
    X *= (rng.random(n) ** (1 / d) / np.linalg.norm(X, axis=1))[:, None]
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return Problem(X, y, losses.Logistic(), smoothing=xi, name="ball")
