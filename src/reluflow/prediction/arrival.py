r"""The critical point that active neurons are heading for, to rounding, and when they have arrived.

In coordinates :math:`u_j = a_j w_j` the loss is convex while no neuron changes its pattern:
:math:`f = \sum_j \Phi_j u_j` with :math:`\Phi_j` the samples times the slopes of neuron j. So a
critical point whose active neurons are not zero solves :math:`\Phi_j^T c = 0` for all j, a linear
system for square losses, a few Newton steps for others. A neuron that slides on hyperplanes keeps
to their intersection. The flow is :math:`\dot u_j = B_j \Phi_j^T c`,
:math:`B_j = \rho_j^2 (I + v_j v_j^T)`; where the solution is not unique, the one nearest in this
metric is the flow's own limit up to second order in the distance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag, null_space
from scipy.optimize import linprog

from reluflow.arrays import Array, Mask
from reluflow.landscape.alignment import D
from reluflow.prediction.crew import NO_PULL, Crew
from reluflow.prediction.large import ENTRIES, newton

ON = 1e-10  # |<v, x_k>| <= ON |x_k|: the neuron lies on the hyperplane
_RANK = 1e-11  # singular values below this, relative, are flat directions
_NEWTON = 30
_ROUNDED = 1e-10  # a step this small that does not shrink any more is rounding
_ASTRAY = 1.0  # relative distance from which Newton's method does not come back to the vicinity
_NEAR = 1e-5  # relative distance at which a critical point ends the phase
_NEAR_UNIQUE = 1e-2  # the same where it is the only one and the tail meets no kink
_GONE = 1e-6  # an active neuron this small beside the largest, and shrinking, is leaving
_FAR = 1e-9  # pull, over the largest at first, of a sample that is fitted at infinity only
FITTED = -float(np.log(_FAR))  # the margin of such a sample
_SEPARATED = 1e-3  # pull, over its first, of a sample that is on the right side for good
_TAIL_NODES = 24


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
    return bool((crew.acting.U * z >= -ON * crew.problem.norms).all())


def clean_pull(crew: Crew, c: Array, floor: float = 1e-12) -> Array:
    """c with entries at rounding level set to zero."""
    return np.where(np.abs(c) > floor * np.abs(crew.problem.pull).max(), c, 0.0)


def polish(crew: Crew, far: Mask | None = None) -> Polished | None:
    """The critical point on the pattern of ``crew``, None if Newton's method finds none.

    Samples marked ``far`` are on their way to infinity (margin losses) and pull no more.
    """
    problem, acting = crew.problem, crew.acting
    u, columns, Phi = _on_pattern(acting)
    M = Phi @ columns
    x, f = u.ravel().copy(), Phi @ u.ravel()
    start, flat, before = np.zeros(M.shape[1]), False, np.inf
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
        if not np.isfinite(x).all() or _distance(x.reshape(u.shape), u) > _ASTRAY:
            return None
        moved = float(np.abs(columns @ z).max() / np.abs(x).max())
        if step and (moved <= 1e-15 or 0.5 * before <= moved <= _ROUNDED):  # rounding is left
            break
        before = moved
    else:
        if problem.loss.margin:
            return None
    found = x.reshape(u.shape)
    size = np.linalg.norm(found, axis=1)
    if not (np.isfinite(size).all() and (size > 0.0).all()):
        return None
    distance = _distance(found, u)
    aside = np.einsum("ji,ji->j", found, u) <= 0.0
    if aside.any():
        size = np.where(aside, np.linalg.norm(u, axis=1), size)
        found = np.where(aside[:, None], u, found)
    there = acting.at(acting.s[:, None] * found / size[:, None], 0.5 * np.log(size))
    c = clean_pull(crew, problem.pull_at(f))
    if far is not None:
        c[far] = 0.0
    h = problem.weight * problem.loss.bend(f, problem.y)
    values, vectors = np.linalg.eigh(M.T @ (h[:, None] * M))
    linear = Linear(values, vectors, -h[:, None] * M, start)
    same = not aside.any() and keeps_sides(there)
    gradient = np.linalg.norm(D(problem, there.V, c, tol=ON), axis=1)
    residual = float(gradient.max() / problem.total_pull) if len(gradient) else 0.0
    return Polished(there, c, distance, residual, same, flat, linear)


def _polish_large(core: Crew, far: Mask) -> Polished | None:
    """As :func:`polish`, for data too large for systems of all weights.

    Only a point within `_NEAR_UNIQUE` is found. The flow around it is taken to be that along the
    way to it, one mode at its mean rate.
    """
    acting, problem = core.acting, core.problem
    there = newton(acting, far, _NEAR_UNIQUE)
    if there is None:
        return None
    found, _, way, rate, c = there
    size = np.linalg.norm(found, axis=1)
    at = acting.at(acting.s[:, None] * found / size[:, None], 0.5 * np.log(size))
    u = (acting.s * np.exp(2.0 * acting.log))[:, None] * acting.V
    c = np.where(far, 0.0, clean_pull(core, c))
    h = np.where(far, 0.0, problem.weight * problem.loss.bend(acting.outputs(), problem.y))
    linear = Linear(np.array([rate]), np.eye(1), -(h * way)[:, None], np.array([-1.0]))
    residual = float(np.linalg.norm(D(problem, at.V, c, tol=ON), axis=1).max(initial=0.0))
    residual /= problem.total_pull
    return Polished(at, c, _distance(found, u), residual, keeps_sides(at), False, linear)


def polish_penalised(crew: Crew) -> Polished | None:
    r"""As :func:`polish`, with weight decay: :math:`\Phi_j^T c = \lambda u_j / |u_j|`.

    Balanced neurons have :math:`\frac12 (|w_j|^2 + a_j^2) = |u_j|`, so the penalised loss
    :math:`L(\sum_j \Phi_j u_j) + \lambda \sum_j |u_j|` is convex on a pattern as well, and the flow
    is :math:`\dot u_j = B_j (\Phi_j^T c - \lambda u_j / |u_j|)` in the same metric.
    """
    problem, acting, decay = crew.problem, crew.acting, crew.decay
    u, columns, Phi = _on_pattern(acting)
    M = Phi @ columns
    x, start, flat = u.ravel().copy(), np.zeros(M.shape[1]), False
    for step in range(_NEWTON):
        found = x.reshape(u.shape)
        size = np.linalg.norm(found, axis=1)
        f = Phi @ x
        h = problem.weight * problem.loss.bend(f, problem.y)
        if not (np.isfinite(h).all() and (size > 0.0).all()) or _distance(found, u) > _ASTRAY:
            return None
        unit = found / size[:, None]
        bend = [(np.eye(len(v)) - np.outer(v, v)) / r for v, r in zip(unit, size, strict=True)]
        S = M.T @ (h[:, None] * M) + decay * columns.T @ block_diag(*bend) @ columns
        force = M.T @ problem.pull_at(f) - decay * columns.T @ unit.ravel()
        z, _, rank, _ = np.linalg.lstsq(S, force, rcond=_RANK)
        flat = rank < M.shape[1]
        if step and np.abs(columns @ z).max() <= 4e-16 * np.abs(x).max():
            break
        x, start = x + columns @ z, start - z
    there = acting.at(acting.s[:, None] * unit, 0.5 * np.log(size))
    aside = bool((np.einsum("ji,ji->j", found, u) <= 0.0).any())
    c = problem.pull_at(f)
    values, vectors = np.linalg.eigh(0.5 * (S + S.T))
    linear = Linear(values, vectors, -h[:, None] * M, start)
    left = D(problem, there.V, c, tol=ON) - decay * there.s[:, None] * there.V
    residual = float(np.linalg.norm(left, axis=1).max() / problem.total_pull) if len(u) else 0.0
    same = not aside and keeps_sides(there)
    return Polished(there, c, _distance(found, u), residual, same, flat, linear)


def _on_pattern(acting: Crew) -> tuple[Array, Array, Array]:
    r"""Neurons :math:`u_j = s_j |w_j| w_j`, columns in which they may move, and Phi: f = Phi u.

    A neuron moves off the samples it slides on, in the metric B_j of the flow of u.
    """
    problem = acting.problem
    u = (acting.s * np.exp(2.0 * acting.log))[:, None] * acting.V
    sides = acting.U
    slopes = np.where(sides > 0, 1.0, np.where(sides < 0, problem.leak, 0.0))
    bases = [_basis(problem.X[row == 0], problem.d) for row in sides]
    columns = block_diag(*(_metric_root(acting, j) @ bases[j] for j in range(len(u))))
    Phi = np.hstack([slope[:, None] * problem.X for slope in slopes])
    return u, columns, Phi


def _distance(found: Array, u: Array) -> float:
    """Largest change of a row of u, over its norm."""
    return float((np.linalg.norm(found - u, axis=1) / np.linalg.norm(u, axis=1)).max())


def _basis(normals: Array, d: int) -> Array:
    """Orthonormal basis of the directions orthogonal to the given normals."""
    return np.eye(d) if len(normals) == 0 else null_space(normals)


def _metric_root(acting: Crew, j: int) -> Array:
    """Square root of B_j = rho^2 (I + v v^T)."""
    v = acting.V[j]
    root = np.eye(v.size) + (np.sqrt(2.0) - 1.0) * np.outer(v, v)
    return np.asarray(np.exp(acting.log[j]) * root)


@dataclass(frozen=True, eq=False)
class Arrival:
    """The critical point, who shrinks to zero on the way, and which samples go to infinity.

    ``found`` is None where all samples do.
    """

    found: Polished | None
    leaving: Mask
    far: Mask


def _find_leaving(crew: Crew, c: Array) -> Mask:
    """Active neurons that are tiny and shrink as fast as their size does."""
    acting = crew.acting
    small: Mask = acting.log < acting.log.max() + np.log(_GONE)
    if small.any():
        small &= acting.settle(c).rates < 0.0
    return small


def separated(acting: Crew, c: Array) -> Mask:
    """Active neurons (k,) all of whose samples have a large margin, which then grows for ever.

    At a critical point <w_j, D_j> = sum_k |c_k| y_k s_j phi(<w_j, x_k>) is 0 for each neuron, so
    that one of the samples it reads has a margin of 0 or less: none lies ahead in these cones.
    """
    problem = acting.problem
    if not problem.loss.margin:
        return np.zeros(len(acting.s), dtype=bool)
    close = np.abs(c) >= _SEPARATED * np.abs(problem.pull)
    return np.asarray(~(reads(acting) & close).any(axis=1))


def reads(acting: Crew) -> Mask:
    """Samples (k, n) on which each active neuron has a slope."""
    leak = acting.problem.leak
    return np.asarray((acting.U > 0) | ((acting.U < 0) & (leak > 0.0)))


def _samples_at_infinity(core: Crew, c: Array, long: bool) -> Mask:
    """Samples on their way to infinity (margin losses).

    Their pull has become small beside the first one, or a neuron that reads them is `separated`,
    and either feels no pull any more or has been so for ``long``.
    """
    problem = core.problem
    if not problem.loss.margin:
        return np.zeros(problem.n, dtype=bool)
    far: Mask = np.abs(c) < _FAR * np.abs(problem.pull).max()
    apart = separated(core.acting, c)
    if apart.any() and not long:
        force = np.linalg.norm(D(problem, core.V, c, tol=ON), axis=1)
        apart &= force <= 2.0 * NO_PULL * problem.total_pull
    return np.asarray(far | reads(core.acting)[apart].any(axis=0))


def with_large_margin(acting: Crew, c: Array) -> Mask:
    """Samples (n,) of a margin loss that are on the right side by so much that they hardly pull."""
    problem = acting.problem
    if not problem.loss.margin:
        return np.zeros(problem.n, dtype=bool)
    return np.asarray(np.abs(c) < _SEPARATED * np.abs(problem.pull))


def free_to_grow(acting: Crew, wide: Mask) -> Mask:
    r"""Samples among ``wide`` whose margins can grow for ever while no other output changes.

    On a pattern the loss is convex in u, and a margin loss tends to its infimum along u + r z,
    r to infinity, where :math:`y_k (\Phi z)_k > 0` on these samples, :math:`(\Phi z)_k = 0` on all
    others, and every neuron keeps to its cone, :math:`s_j U_{jk} \langle z_j, x_k\rangle \ge 0`
    (= 0 where it slides). The largest such set is found by one linear program.
    """
    problem = acting.problem
    _, _, Phi = _on_pattern(acting)
    rows = problem.y[:, None] * Phi / problem.norms[:, None]
    (n, p), k = rows.shape, int(wide.sum())
    walls = [(U * s)[:, None] * problem.X for U, s in zip(acting.U, acting.s, strict=True)]
    slides = [problem.X[U == 0] for U in acting.U]
    inside = np.hstack([block_diag(*walls), np.zeros((n * len(walls), k))])
    growing = np.hstack([rows[wide], -np.eye(k)])
    still = np.vstack([rows[~wide], block_diag(*slides)])
    found = linprog(
        np.concatenate([np.zeros(p), -np.ones(k)]),
        A_ub=-np.vstack([inside, growing]),
        b_ub=np.zeros(len(inside) + k),
        A_eq=np.hstack([still, np.zeros((len(still), k))]),
        b_eq=np.zeros(len(still)),
        bounds=[(None, None)] * p + [(0.0, 1.0)] * k,
    )
    out = np.zeros(n, dtype=bool)
    if found.status == 0:
        out[wide] = found.x[p:] > 0.5
    return out


def arrival(
    crew: Crew, c: Array, long: bool = False, growing: Mask | None = None
) -> Arrival | None:
    """The critical point this state is bound for, if it is near enough to be sure.

    Neurons that have been `separated` for ``long`` are taken to stay so, and margins of the samples
    ``growing`` to grow for ever.
    """
    leaving = _find_leaving(crew, c)
    stay = np.flatnonzero(~leaving)
    core = crew.rows(stay, len(stay))
    if core.decay:  # weights stay finite
        far = np.zeros(core.problem.n, dtype=bool)
        found = polish_penalised(core)
    else:
        far = _samples_at_infinity(core, c, long)
        if growing is not None:
            far |= growing
        if far.all():
            return Arrival(None, leaving, far)
        large = len(core.s) * core.problem.X.size > ENTRIES
        found = _polish_large(core, far) if large else polish(core, far)
    if found is None or not found.same or found.residual > 1e-10:
        return None
    if found.distance > _NEAR:
        # along the ways to infinity nothing is unique, but all outputs that are left are
        several = found.flat and growing is None
        if several or found.distance > _NEAR_UNIQUE or leaving.any():
            return None
        if not _tail_keeps_pattern(core, found):
            return None
    return Arrival(found, leaving, far)


def _tail_keeps_pattern(core: Crew, found: Polished) -> bool:
    """Whether no active neuron crosses a hyperplane on the straight way to the critical point."""
    a, b = core.acting, found.crew
    start = np.exp(2.0 * a.log)[:, None] * a.V
    end = np.exp(2.0 * b.log)[:, None] * b.V
    way = ((1 - share) * start + share * end for share in np.linspace(0.0, 1.0, 9))
    return all(keeps_sides(a.at(w / np.linalg.norm(w, axis=1)[:, None], a.log)) for w in way)


def ride_tail(riding: Crew, t: float, found: Polished) -> tuple[Crew, float]:
    """Tracers under the linear flow's pull until that is within rounding of its limit."""
    linear = found.linear
    felt = np.abs(linear.vectors.T @ linear.start) > 1e-14 * np.abs(linear.start).max()
    values = linear.values[felt & (linear.values > 1e-12 * linear.values.max())]
    if values.size == 0:
        return riding, t
    ends = np.geomspace(0.02 / values.max(), 40.0 / values.min(), _TAIL_NODES)
    for t0, t1 in zip(np.concatenate([[0.0], ends[:-1]]), ends, strict=True):
        riding = riding.after(found.pull + linear.pull_shift(t0, t1), t1 - t0)
    return riding, t + ends[-1]
