r"""The equations of an exact KKT point of the margin near a network, and the box that holds one.

Neurons of one sign s and one side of every active sample share their direction s D at a KKT point,
:math:`D = \sum_k \phi'_k l_k y_k x_k + \sum_{k \in K} \tau_k y_k x_k`, K the kinks they lie on.
With w_j = g_j alpha s D and a_j = g_j alpha s for the members of group b the conditions are

.. math:: |D_b|^2 = 1, \qquad \sum_b N_b \alpha_b^2 \phi'_{bk} \langle D_b, x_k \rangle y_k = 1,
          \qquad \langle D_b, x_k \rangle = 0 \ (k \in K_b), \qquad N_b = \sum_j g_j^2,

as many as the unknowns l, alpha, tau. Newton's method solves them; what the solution violates (a
negative multiplier, a side, a slope outside [leak, 1], a margin below 1) changes the sets, and it
is tried again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.optimum.kkt import KKT
from reluflow.optimum.proofs.attempt import box_radius, sides_of
from reluflow.problem import Problem

SMALL = 1e-6  # relative size below which a multiplier or a neuron is left out at first
REPAIRS, STEPS = 12, 40
SINGULAR = 1e-11
MOST_UNKNOWNS = 120


def kkt_arrays(
    problem: Problem, found: KKT, W: Array, a: Array, kept: NDArray[np.intp]
) -> dict[str, Array] | None:
    """The proof arrays of a KKT point near (W, a), which has q_min = 1; None when none is found."""
    search = _Search(problem, found, W, a, kept)
    try:
        for _ in range(REPAIRS):
            if not search.newton():
                break
            if not search.repair():
                return search.arrays()
    except np.linalg.LinAlgError:  # singular after all, or without finite numbers
        pass
    return None


class _Search:
    """Sets and unknowns: active samples, groups of neurons with their sides, and l, alpha, tau."""

    def __init__(
        self, problem: Problem, found: KKT, W: Array, a: Array, kept: NDArray[np.intp]
    ) -> None:
        self.X, self.y, self.leak = problem.X, problem.y, problem.leak
        size = np.abs(a) * np.linalg.norm(W, axis=1)
        self.share = np.sqrt(size)
        sides, slope = sides_of(W, self.X), np.full((len(a), problem.n), np.nan)
        place = {int(j): i for i, j in enumerate(kept)}
        for (j, k), h in zip(found.kinks, found.slopes, strict=True):
            if int(j) in place and problem.leak < h < 1.0:
                sides[place[int(j)], k], slope[place[int(j)], k] = 0, h
        multipliers = found.multipliers
        self.active = [
            int(k) for k in np.flatnonzero(multipliers > SMALL * multipliers.max(initial=0.0))
        ]
        used = np.flatnonzero(size > SMALL * size.sum())
        keys = np.column_stack([np.sign(a[used]), sides[used][:, self.active]])
        patterns, index = np.unique(keys, axis=0, return_inverse=True)
        self.group = np.full(len(a), -1)
        self.group[used] = index.reshape(-1)
        self.sign, self.pattern = patterns[:, 0], patterns[:, 1:]
        self.l, self.alpha = multipliers[self.active], np.ones(len(patterns))
        self.tau = self._taus(slope)

    def _taus(self, slope: Array) -> dict[tuple[int, int], float]:
        """h l on the kinks of each group, by group and sample."""
        out = {}
        for b, i in np.argwhere(self.pattern == 0):
            k = self.active[i]
            h = slope[self.group == b, k]
            h = h[np.isfinite(h)]
            out[int(b), k] = float(self.l[i] * (h.mean() if len(h) else 0.5))
        return out

    @property
    def counts(self) -> Array:
        """N_b."""
        return np.array([np.sum(self.share[self.group == b] ** 2) for b in range(len(self.sign))])

    def kinks(self) -> list[tuple[int, int]]:
        """Group and place in `active` of every kink, in the order of their unknowns."""
        return [(int(b), int(i)) for b, i in np.argwhere(self.pattern == 0)]

    def values(self, z: Array) -> tuple[Array, Array, Array]:
        """Equations, their derivatives and the D of every group."""
        X, y, counts = self.X[self.active], self.y[self.active], self.counts
        K, B, kinks = len(X), len(self.sign), self.kinks()
        slopes = np.where(self.pattern > 0, 1.0, np.where(self.pattern < 0, self.leak, 0.0))
        V = np.zeros((B, len(z), X.shape[1]))  # D_b = z V[b]
        V[:, :K] = (slopes * y)[:, :, None] * X
        for t, (b, i) in enumerate(kinks):
            V[b, K + B + t] = y[i] * X[i]
        D = np.einsum("i,bid->bd", z, V)
        P, alpha = D @ X.T, z[K : K + B]
        part = (counts * alpha**2)[:, None] * slopes * y
        F = np.concatenate(
            [(D**2).sum(axis=1) - 1.0, (part * P).sum(axis=0) - 1.0, [P[b, i] for b, i in kinks]]
        )
        J = np.zeros((len(F), len(z)))
        J[:B] = 2.0 * np.einsum("bd,bid->bi", D, V)
        J[B : B + K] = np.einsum("bk,bid,kd->ki", part, V, X)
        J[B : B + K, K : K + B] = (2.0 * (counts * alpha)[:, None] * slopes * y * P).T
        for t, (b, i) in enumerate(kinks):
            J[B + K + t] = V[b] @ X[i]
        return F, J, D

    def unknowns(self) -> Array:
        """l, alpha, tau in one vector."""
        tau = [self.tau[b, self.active[i]] for b, i in self.kinks()]
        return np.concatenate([self.l, self.alpha, tau])

    def newton(self) -> bool:
        """Solve the equations for the present sets."""
        z = self.unknowns()
        if not self.active or not len(self.sign) or len(z) > MOST_UNKNOWNS:
            return False
        best = np.inf
        for _ in range(STEPS):
            F, J, _ = self.values(z)
            if not np.isfinite(F).all():
                return False
            size = float(np.abs(F).max())
            if size < 1e-13 or (best < 1e-10 and size >= best):
                break
            best = min(best, size)
            step = np.linalg.lstsq(J, -F, rcond=1e-13)[0]
            most = float(np.abs(step).max() / max(np.abs(z).max(), 1.0))
            z = z + step * min(1.0, 0.5 / max(most, 1e-300))
        K, B = len(self.active), len(self.sign)
        self.l, self.alpha = z[:K], z[K : K + B]
        self.tau = {(b, self.active[i]): z[K + B + t] for t, (b, i) in enumerate(self.kinks())}
        return bool(np.abs(self.values(z)[0]).max() < 1e-10)

    def repair(self) -> bool:
        """Change the sets by what the solution violates most; whether anything was."""
        _, _, D = self.values(self.unknowns())
        U = self.sign[:, None] * D
        if (self.l <= 0.0).any():
            return self._drop(int(self.l.argmin()))
        if (self.alpha <= 1e-6 * self.alpha.max()).any():
            return self._leave_out(int(self.alpha.argmin()))
        P = U @ self.X[self.active].T
        wrong = self.pattern * P
        if (wrong[self.pattern != 0] <= 0.0).any():
            wrong[self.pattern == 0] = np.inf
            group, at = divmod(int(wrong.argmin()), wrong.shape[1])
            self.pattern[group, at] = 0
            slope = 1.0 if P[group, at] < 0 else self.leak
            self.tau[group, self.active[at]] = float(self.l[at] * slope)
            return True
        for (b, k), tau in self.tau.items():
            i = self.active.index(k)
            if not self.leak * self.l[i] <= tau <= self.l[i]:
                self.pattern[b, i] = 1 if tau > self.l[i] else -1
                del self.tau[b, k]
                return True
        S = self.X @ U.T
        weight = self.sign * self.counts * self.alpha**2
        q = self.y * (np.maximum(S, self.leak * S) @ weight)
        q[self.active] = np.inf
        if q.min() < 1.0 - 1e-12:
            k = int(q.argmin())
            self.active.append(k)
            self.l = np.append(self.l, 0.0)
            self.pattern = np.column_stack([self.pattern, np.where(S[k] > 0.0, 1, -1)])
            return True
        return False

    def _drop(self, i: int) -> bool:
        k = self.active.pop(i)
        self.l = np.delete(self.l, i)
        self.pattern = np.delete(self.pattern, i, axis=1)
        self.tau = {key: tau for key, tau in self.tau.items() if key[1] != k}
        return self._merge()

    def _leave_out(self, b: int) -> bool:
        self.group[self.group == b] = -1
        self.group[self.group > b] -= 1
        self.sign, self.alpha = np.delete(self.sign, b), np.delete(self.alpha, b)
        self.pattern = np.delete(self.pattern, b, axis=0)
        self.tau = {(h - (h > b), k): tau for (h, k), tau in self.tau.items() if h != b}
        return True

    def _merge(self) -> bool:
        """Groups that differ in nothing any more become one."""
        keys = np.column_stack([self.sign, self.pattern])
        _, first, index = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        index = index.reshape(-1)
        if len(first) < len(keys):
            on = self.group >= 0
            # the sizes of the members carry over, with one alpha for all
            self.share[on] *= self.alpha[self.group[on]]
            self.alpha = np.ones(len(first))
            new = {}
            for (b, k), tau in self.tau.items():
                new[int(index[b]), k] = tau
            self.tau, self.sign, self.pattern = new, self.sign[first], self.pattern[first]
            self.group[on] = index[self.group[on]]
        return True

    def arrays(self) -> dict[str, Array] | None:
        """The proof, with a box that Krawczyk's operator maps into itself."""
        z = self.unknowns()
        _, J, _ = self.values(z)
        values = np.linalg.svd(J, compute_uv=False)
        if values[-1] <= SINGULAR * values[0]:
            return None
        Y: Array = np.asarray(np.linalg.inv(J), dtype=float)
        for _ in range(3):
            z = z - Y @ self.values(z)[0]
        eps = float(np.finfo(float).eps)
        size = np.abs(J) @ np.abs(z) + 1.0
        error = np.abs(self.values(z)[0]) + 16 * eps * sum(self.X.shape) * size
        return {
            "group": self.group.astype(float),
            "share": self.share,
            "sign": np.asarray(self.sign, dtype=float),
            "active": np.array(self.active, dtype=float),
            "pattern": np.asarray(self.pattern, dtype=float),
            "center": z,
            "radius": box_radius(J, Y, error),
            "inverse": Y,
        }


def distance_of(arrays: dict[str, Array], problem: Problem, W: Array, a: Array) -> float:
    """How far the KKT point of the arrays is from (W, a), up to rounding."""
    active = arrays["active"].astype(int)
    K, B = len(active), len(arrays["sign"])
    z, pattern = arrays["center"], arrays["pattern"]
    slopes = np.where(pattern > 0, 1.0, np.where(pattern < 0, problem.leak, 0.0))
    D = (slopes * z[:K] * problem.y[active]) @ problem.X[active]
    for t, (b, i) in enumerate(np.argwhere(pattern == 0)):
        D[b] += z[K + B + t] * problem.y[active[i]] * problem.X[active[i]]
    group = arrays["group"].astype(int)
    outer = arrays["share"] * np.append(z[K : K + B] * arrays["sign"], 0.0)[group]
    inner = outer[:, None] * np.vstack([D, np.zeros(problem.d)])[group]
    return float(np.sqrt(np.sum((inner - W) ** 2) + np.sum((outer - a) ** 2)))
