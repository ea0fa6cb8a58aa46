"""[TK24]_ Appendix B.1: the smoothed activation, direction flow, and its rate near extrema."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import beta

from reluflow.arrays import Array
from reluflow.claims.claim import Found, experiment
from reluflow.claims.verdict import Comparison, Hypothesis, at_least, at_most, equals
from reluflow.errors import ReluflowError
from reluflow.papers.tk24.claims.four_neurons import general_setting
from reluflow.problem import Problem, datasets, losses
from reluflow.problem.activation import SmoothedRelu

STARTS = 64  # of the search for extrema
TURNS = 6000  # most power steps of it
SLOPE_TOL = 0.02  # relative, for measured rates


def sphere_sample(rng: np.random.Generator, count: int, d: int) -> Array:
    """Uniform unit vectors."""
    V = rng.standard_normal((count, d))
    return np.asarray(V / np.linalg.norm(V, axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class Sphere:
    """G(w) = sum_k c_k phi(w, x_k), c the pull of a silent network, phi smoothed."""

    problem: Problem

    @property
    def phi(self) -> SmoothedRelu:
        """The smoothed activation."""
        found = self.problem.smoothed
        if found is None:
            raise ReluflowError("the activation is not smoothed: give the problem smoothing > 0")
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
        W = sphere_sample(rng, STARTS, self.problem.d)
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
def ridge_sphere(xi: float = 0.3) -> Sphere:
    """Three points on which the extremum e1 is not regular: the tangential Hessian is positive."""
    X = np.array([[1.0, 0.0, 0.0], [0.0, 0.1, 0.0], [0.0, -0.1, 0.0]])
    return Sphere(Problem(X, np.ones(3), losses.Logistic(), smoothing=xi, name="three-on-a-ridge"))


def ball_draw(rng: np.random.Generator, n: int, d: int, xi: float) -> Problem:
    """Random labels on uniform points of the unit ball."""
    X = rng.standard_normal((n, d))
    X *= (rng.random(n) ** (1 / d) / np.linalg.norm(X, axis=1))[:, None]
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return Problem(X, y, losses.Logistic(), smoothing=xi, name="ball")


NODES, WEIGHTS = np.polynomial.legendre.leggauss(80)


def by_quadrature(w: Array, x: Array, xi: float) -> tuple[float, Array]:
    """phi and its gradient as integrals over the coordinate t = sin(angle) along w."""
    d, size, z = w.size, float(np.linalg.norm(w)), float(w @ x)
    low = -math.asin(min(1.0, max(-1.0, z / (xi * size))))
    half = 0.5 * (math.pi / 2 - low)
    t = np.sin(low + half * (NODES + 1))
    weight = half * WEIGHTS * np.cos(low + half * (NODES + 1)) ** d / beta(0.5, (d + 1) / 2)
    gradient = x * weight.sum() + xi * w / size * (weight @ t)
    return float(weight @ (z + xi * size * t)), gradient


@experiment("TK24-PB.2", quick={"draws": 40}, full={"draws": 1000})
def closed_form(seed: int, draws: int) -> list[Comparison]:
    """Value and gradient against quadrature for d = 1..8, Hessian against differences."""
    rng = np.random.default_rng(seed)
    value = gradient = hessian = 0.0
    for d in range(1, 9):
        for _ in range(draws // 4):
            W, X = rng.standard_normal((2, d)), rng.standard_normal((2, d))
            X *= rng.random((2, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
            xi = float(rng.uniform(0.02, 1.0))
            phi = SmoothedRelu(xi)
            v, g = phi.value(W, X), phi.gradient(W, X)
            for k in range(2):
                for j in range(2):
                    reference = by_quadrature(W[j], X[k], xi)
                    value = max(value, abs(v[k, j] - reference[0]))
                    gradient = max(gradient, float(np.abs(g[k, j] - reference[1]).max()))
            if d >= 3:  # C^2 with a Lipschitz Hessian: central differences err by h
                h, u = 1e-6, rng.standard_normal(d)
                bend = (phi.gradient(W + h * u, X) - phi.gradient(W - h * u, X)) / (2 * h)
                size = max(1.0, float(np.abs(bend).max()))
                gap = float(np.abs(phi.hessian(W, X) @ u - bend).max())
                hessian = max(hessian, gap / size)
    c, xi = np.linspace(-1, 1, 201), 0.25
    s = np.sqrt(1 - c**2)
    forms = {
        1: (1 + c) ** 2 / 4,
        2: c * (0.5 + (np.arcsin(c) + c * s) / np.pi) + 2 * s**3 / (3 * np.pi),
        3: (3 + 8 * c + 6 * c**2 - c**4) / 16,
    }
    worst = 0.0
    for d, form in forms.items():
        X = np.zeros((201, d))
        X[:, 0] = xi * c
        made = SmoothedRelu(xi).value(np.eye(1, d), X)[:, 0]
        worst = max(worst, float(np.abs(made - xi * form).max()))
    return [
        at_most(value, 1e-12, error=1e-14, what="value against quadrature, d = 1..8"),
        at_most(gradient, 1e-12, error=1e-14, what="gradient against quadrature, d = 1..8"),
        at_most(hessian, 1e-4, error=1e-6, what="Hessian against differences, d = 3..8"),
        at_most(worst, 1e-14, what="polynomials (d = 1, 3) and the arcsin form (d = 2)"),
    ]


@experiment("TK24-LB.1", quick={"starts": 6}, full={"starts": 40})
def directions_settle(seed: int, starts: int) -> list[Comparison]:
    """Direction flow: s G never falls, the path is of finite length and its end is critical."""
    rng = np.random.default_rng(seed)
    sphere = Sphere(ball_draw(rng, 8, 3, 0.2))
    W = sphere_sample(rng, starts, 3)
    signs = np.where(np.arange(starts) % 2 == 0, 1.0, -1.0)
    slowest = min(
        float(s * sphere.G(w[None])[0] - (s * sphere.tangential(w)).max())
        for w, s in zip(*sphere.extrema, strict=True)
    )
    times = np.linspace(0.0, 60.0 / slowest, 1201)
    path = sphere.turn(W, signs, times)
    G = np.array([signs * sphere.G(r[:, :3]) for r in path])
    steps = np.linalg.norm(np.diff(path[:, :, :3], axis=0), axis=2)
    half = len(steps) // 2
    return [
        at_most(-np.diff(G, axis=0).min(), 1e-9, what="largest fall of s G between records"),
        at_most(steps[half:].sum(axis=0).max(), 1e-6, what="length of the second half of the path"),
        at_most(
            np.linalg.norm(sphere.across(path[-1, :, :3]), axis=1).max(),
            1e-8,
            error=1e-10,
            what="|P g| at the end",
        ),
    ]


def measured_rate(sphere: Sphere, top: Array, sign: float, tangent: Array) -> float:
    """Slope of -log |r - top| under the direction flow started 1e-2 from the extremum."""
    start = top + 1e-2 * tangent / np.linalg.norm(tangent)
    start /= np.linalg.norm(start)
    times = np.linspace(0.0, 10.0 / sphere.lam, 101)
    path = sphere.turn(start[None], np.array([sign]), times)[:, 0, :-1]
    error = np.linalg.norm(path - top, axis=1)
    window = (error < 3e-3) & (error > 1e-6)
    return -float(np.polyfit(times[window], np.log(error[window]), 1)[0])


def ridge() -> tuple[Sphere, Array, Array, list[Hypothesis]]:
    """The counterexample: its extremum e1, the eigenvalues there, and what Theorem 4.1 supposes.

    That e1 is the only global extremum of |G| is seen by ascent and by sampling.
    """
    sphere, e1 = ridge_sphere(), np.array([1.0, 0.0, 0.0])
    rng = np.random.default_rng(0)
    W = sphere_sample(rng, 20_000, 3)
    G, value = np.abs(sphere.G(W)), float(sphere.G(e1[None])[0])
    V, signs = sphere.extrema
    near = np.flatnonzero(signs * sphere.G(V) >= value * (1 - 1e-9))
    alone = len(near) == 1 and np.linalg.norm(V[near[0]] - e1) < 1e-6 and signs[near[0]] > 0
    apart = float(np.linalg.norm(W[0.99 * value < G] - e1, axis=1).max())
    top = Hypothesis(
        "e1 is the global extremum of |G|, and the only one",
        bool(alone and G.max() <= value),
        f"G(e1) = {value:.6f}, largest of 20,000 samples {G.max():.6f}; those above 99 % of it are "
        f"within {apart:.2f} of e1",
    )
    return sphere, e1, sphere.tangential(e1), [*general_setting(sphere.problem), top]


@experiment("TK24-RATE", form="printed")
def no_slower_than_lam(seed: int) -> Found:
    """The error decays at least like exp(-lam t): not at an extremum that is not regular."""
    sphere, e1, _, met = ridge()
    rate = measured_rate(sphere, e1, 1.0, np.array([0.0, 1.0, 0.0]))
    return Found([at_least(rate, sphere.lam, error=1e-4, what="rate along e2 against lam")], met)


@experiment("TK24-RATE", form="repaired", quick={"draws": 3}, full={"draws": 20})
def rate_by_eigenvalue(seed: int, draws: int) -> Found:
    """The slowest rate is lam less the largest tangential eigenvalue; lam at regular extrema."""
    rng = np.random.default_rng(seed)
    sphere, e1, eigenvalues, top = ridge()
    rate = measured_rate(sphere, e1, 1.0, np.array([0.0, 1.0, 0.0]))
    made = [
        equals(sphere.lam, 89 / 480, tolerance=1e-10, what="lam of the counterexample"),
        equals(rate, 19 / 120, tolerance=1e-4, what="its slowest rate, 89/480 - 13/480"),
        equals(rate / (sphere.lam - eigenvalues[-1]), 1.0, tolerance=SLOPE_TOL, what="rate"),
    ]
    regular = Sphere(datasets.xor_orbit().replace(smoothing=0.03))
    rate = measured_rate(regular, e1, 1.0, np.append(0.0, rng.standard_normal(2)))
    made.append(equals(rate / regular.lam, 1.0, tolerance=SLOPE_TOL, what="rate/lam, regular"))
    for _ in range(draws):
        sphere = Sphere(ball_draw(rng, 6, 3, 0.2))
        (w, *_), (s, *_) = sphere.extrema
        H = np.tensordot(
            s * sphere.problem.pull, sphere.phi.hessian(w[None], sphere.problem.X)[:, 0], 1
        )
        P = np.eye(3) - np.outer(w, w)
        values, vectors = np.linalg.eigh(P @ H @ P + 1e3 * np.outer(w, w))
        slowest = measured_rate(sphere, w, s, vectors[:, -2])
        expected = sphere.lam - values[-2]
        made.append(equals(slowest / expected, 1.0, tolerance=SLOPE_TOL, what="rate, random data"))
    return Found(made, top)


@experiment("TK24-R4.5", form="printed")
def hessian_not_negative(seed: int) -> Found:
    """The Hessian of |G| is negative semidefinite at an extremum: not at this one."""
    _, _, eigenvalues, met = ridge()
    return Found([at_most(eigenvalues[-1], 0.0, error=1e-9, what="tangential eigenvalue")], met)


@experiment("TK24-R4.5", form="repaired", quick={"draws": 4}, full={"draws": 40})
def hessian_below_lam(seed: int, draws: int) -> list[Comparison]:
    """A maximum on the sphere gives Hess <= lam on tangents, and 0 where it is regular."""
    rng = np.random.default_rng(seed)
    _, _, eigenvalues, _ = ridge()
    made = [equals(eigenvalues[-1], 13 / 480, tolerance=1e-12, what="eigenvalue, counterexample")]
    worst = -np.inf
    for _ in range(draws):
        sphere = Sphere(ball_draw(rng, 6, 3, 0.2))
        (w, *_), (s, *_) = sphere.extrema
        worst = max(worst, float((s * sphere.tangential(w)).max()) / sphere.lam)
    made.append(at_most(worst, 1.0, error=1e-8, what="largest eigenvalue / lam, random data"))
    regular = Sphere(datasets.xor_orbit().replace(smoothing=0.03))
    flat = max(float(np.abs(regular.tangential(w)).max()) for w in regular.extrema[0][:4])
    return [*made, at_most(flat, 1e-12, what="largest |eigenvalue| at regular extrema")]
