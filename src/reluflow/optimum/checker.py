r"""Re-verifies a stored certificate from its data alone; shares no code with what made it.

Every claim rests on an inequality evaluated here. With :math:`G_c(v) = \sum_k c_k \phi(\langle v,
x_k\rangle)` and :math:`B \ge \max_{|v| = 1} |G_c(v)|`: a network's margin is at most B/2 for c_k =
l_k y_k, l >= 0, sum l = 1; the squared norm of a network with f(x_k) = y_k is at least
2 <c, y> / B; a square loss exceeds its minimum over all widths by the part of the residuals inside
the outputs <b, x_k> + |x_k| t_h(k) (one t for each line of samples) that networks can have.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from reluflow.errors import ReluflowError
from reluflow.optimum import exact
from reluflow.optimum.certificate_file import Certificate, Check, Report, read_certificate

ROUND = 1e-12  # float64 errs by less on sums, relative to the sum of the absolute terms
GAP, LOOSE = 1e-6, 1e-2  # bounds further apart show no optimum, larger KKT residuals show nothing
MOST_SIGNS, MOST_EXACT = 16, 300_000  # kinks with signs enumerated; products done exactly


def check_certificate(
    file: str | os.PathLike[str], X: Any = None, y: Any = None, max_bytes: int = 1 << 28
) -> Report:
    """Check a certificate written by `write_certificate`.

    Parameters
    ----------
    file : path
        One JSON file; whatever is wrong with its contents is a failed check with a name.
    X, y : arrays, optional
        The data it should be about; equality is then checked too.
    max_bytes : int
        Larger files are refused unread.
    """
    try:
        stored = read_certificate(file, max_bytes)
        case = Case(stored)
    except (ReluflowError, KeyError, TypeError, ValueError) as error:
        return Report("unreadable", [Check("format", math.nan, math.nan, "failed", str(error))])
    if X is not None or y is not None:
        same = all(g is None or np.array_equal(g, h) for g, h in ((X, case.X), (y, case.y)))
        case.report.add("data", same, same, 1.0, "the data given are those of the certificate")
    with np.errstate(all="ignore"):
        getattr(case, stored.kind.replace("-", "_"))(**stored.claim)
    return case.report


class Case:
    """Data, loss, arrays and report of one certificate; a method for each kind."""

    def __init__(self, stored: Certificate) -> None:
        about, self.net, self.report = stored.problem, stored.arrays, Report(stored.kind)
        self.most, self.same = self.report.at_most, self.report.equal
        self.X, self.y, self.leak = self.net["X"], self.net["y"], float(about["leak"])
        self.phi = lambda z: np.where(z > 0.0, z, self.leak * z)
        factors = {"half_square": 1.0, "square": 2.0, "logistic": 1.0, "exponential": 1.0}
        reductions = {"mean": 1.0 / len(self.y), "sum": 1.0}
        self.factor = factors[about["loss"]] * about["factor"] * reductions[about["reduction"]]
        self.margin, self.logistic = "square" not in about["loss"], about["loss"] == "logistic"
        if not (0.0 <= self.leak < 1.0 and 0.0 < self.factor < math.inf):
            raise ValueError(f"leak {self.leak} or loss factor {self.factor} out of range")
        if (self.margin or "margin" in stored.kind) and not set(self.y) <= {-1.0, 1.0}:
            raise ValueError("labels that are not -1 or 1")
        self.size = np.linalg.norm(self.X, axis=1)
        U = self.X / np.where(self.size > 0.0, self.size, 1.0)[:, None]
        # the line through 0 of each sample (its first sample, -1 for x = 0), side and distance
        self.line, self.side, self.off = np.full(len(U), -1), np.ones(len(U)), np.zeros(len(U))
        for k in np.flatnonzero(self.size > 0.0):
            p = U @ U[k]
            off = np.linalg.norm(U - np.outer(p, U[k]), axis=1)
            on = (off <= 1e-10) & (self.line < 0) & (self.size > 0.0) & (self.line[k] < 0)
            self.line[on], self.side[on], self.off[on] = k, np.sign(p[on]), (self.size * off)[on]
        if "W" in self.net:
            W, a = self.net["W"], self.net["a"]
            self.f = self.phi(self.X @ W.T) @ a
            self.terms = float(np.abs(a) @ np.linalg.norm(W, axis=1) * self.size.max())
            self.norm2 = float(np.sum(W**2) + np.sum(a**2))

    def loss_at(self, f: np.ndarray) -> float:
        if not self.margin:
            return float(0.5 * self.factor * np.sum((f - self.y) ** 2))
        each = np.logaddexp(0.0, -self.y * f) if self.logistic else np.exp(-self.y * f)
        return float(self.factor * np.sum(each))

    def pull(self) -> np.ndarray:
        """Minus the derivative of the loss in the outputs."""
        if not self.margin:
            return self.factor * (self.y - self.f)
        q = self.y * self.f
        return self.factor * self.y * np.exp(-np.logaddexp(0.0, q) if self.logistic else -q)

    def exact_outputs(self, W: Any, a: Any) -> list[Any] | None:
        """f(x_k) as rational numbers, None when that is too much work."""
        few = self.X.size * len(a) <= MOST_EXACT
        return [exact.output(W, a, x, self.leak) for x in self.X] if few else None

    def loss_is(self, loss: float) -> tuple[float, float]:
        """Check the claimed loss; returns it recomputed, and the size of its terms."""
        got = self.loss_at(self.f)
        scale = got + float(np.abs(self.pull()).sum() * self.terms)
        self.same("loss", got, loss, ROUND * scale)
        return got, scale

    def margin_is(self, margin: float) -> np.ndarray:
        """Check the claimed normalised margin and its sign; returns y_k f(x_k)."""
        q = self.y * self.f
        self.same("margin", q.min() / self.norm2, margin, ROUND * self.terms / self.norm2)
        positive: bool | None = bool(q.min() > 0.0)
        if abs(q.min()) <= ROUND * self.terms:
            f = self.exact_outputs(self.net["W"], self.net["a"])
            positive = None if f is None else [exact.sign(v) for v in f] == list(self.y)
        self.report.add("all classified", positive, q.min(), 0.0)
        return np.asarray(q)

    def slopes(self) -> np.ndarray:
        """Slope of neuron j at sample k, shape (n, m): by sign, exact in doubt, and as listed."""
        W, net = self.net["W"], self.net
        P, size = self.X @ W.T, np.outer(self.size, np.linalg.norm(W, axis=1))
        j, k, s = net["kink_neuron"].astype(int), net["kink_sample"].astype(int), net["kink_slope"]
        inside = (j >= 0) & (j < len(W)) & (k >= 0) & (k < len(self.y))
        inside &= (j == net["kink_neuron"]) & (k == net["kink_sample"])
        self.report.add("kink places", bool(inside.all()), inside.sum(), len(j))
        j, k, s = j[inside], k[inside], s[inside]
        slopes, listed = np.where(P > 0.0, 1.0, self.leak), np.zeros(P.shape, dtype=bool)
        slopes[k, j], listed[k, j] = s, True
        near = np.abs(P) / np.where(size > 0.0, size, 1.0)
        self.most("kink distance", near[listed].max(initial=0.0), 1e-6)
        self.most("kink slopes", np.maximum(self.leak - s, s - 1.0).max(initial=0.0), ROUND)
        doubt = np.argwhere((near <= ROUND) & ~listed & (size > 0.0))
        few = doubt.size * W.shape[1] <= MOST_EXACT
        self.report.add("signs in doubt", few or None, doubt.size * W.shape[1], MOST_EXACT)
        for k, j in doubt if few else ():
            slopes[k, j] = 1.0 if exact.sign(exact.dot(W[j], self.X[k])) > 0 else self.leak
        return slopes

    def max_margin_linear(self, margin: float, upper_bound: float) -> None:
        w, dual, R = self.net["w"], self.net["dual"], float(self.size.max())
        q = self.y * (self.X @ w)
        self.same("unit w", float(np.linalg.norm(w)), 1.0, ROUND)
        self.same("margin", float(q.min()), margin, ROUND * R)
        doubt = np.flatnonzero(q <= ROUND * R)
        signs = (exact.sign(exact.dot(w, self.X[k])) == self.y[k] for k in doubt)
        self.report.add("all classified", all(signs), q.min(), 0.0)
        self.report.add("multipliers >= 0", bool(dual.min() >= 0.0 < dual.sum()), dual.min(), 0.0)
        bound = float(np.linalg.norm((dual * self.y) @ self.X) / dual.sum())
        self.most("upper bound", bound, upper_bound + ROUND * R)
        self.most("gap", upper_bound - margin, GAP * upper_bound)

    def kkt_margin(self, margin: float, residual: float, complementarity: float) -> None:
        W, a, dual = self.net["W"], self.net["a"], self.net["dual"]
        q, slopes = self.margin_is(margin), self.slopes()
        self.report.add("multipliers >= 0", bool(dual.min() >= 0.0 < dual.sum()), dual.min(), 0.0)
        inner = W - a[:, None] * ((slopes * (dual * self.y)[:, None]).T @ self.X)
        outer = a - (dual * self.y) @ self.phi(self.X @ W.T)
        distance = math.sqrt((np.sum(inner**2) + np.sum(outer**2)) / self.norm2)
        self.most("residual", distance, residual + ROUND)
        self.most("residual small", residual, LOOSE)
        slack = float(dual @ (q - q.min()) / (dual.sum() * q.min()))
        self.most("complementarity", slack, complementarity + ROUND)
        self.most("complementarity small", complementarity, LOOSE)

    def max_margin_network(self, margin: float, upper_bound: float) -> None:
        self.margin_is(margin)
        dual = self.net["dual"]
        self.report.add("multipliers >= 0", bool(dual.min() >= 0.0 < dual.sum()), dual.min(), 0.0)
        B, done = self.largest_G(dual / dual.sum() * self.y, 2.0 * upper_bound)
        ok = bool(2.0 * upper_bound * (1 + 1e-9) >= B) if done else None
        self.report.add("upper bound", ok, 0.5 * B, upper_bound)
        self.most("gap", upper_bound - margin, GAP * upper_bound)

    def min_norm(self, norm2: float, lower_bound: float, error: float) -> None:
        self.most("fit", float(np.abs(self.f - self.y).max()), error + ROUND * self.terms)
        self.most("fit small", error, 1e-9 * float(np.abs(self.y).max()))
        self.same("norm", self.norm2, norm2, ROUND * self.norm2)
        value = 2.0 * float(self.net["dual"] @ self.y)
        B, done = self.largest_G(self.net["dual"], value / lower_bound)
        ok = bool(0.0 < lower_bound * (1 - 1e-9) <= value / B) if done else None
        self.report.add("lower bound", ok, value / B, lower_bound)
        self.most("gap", norm2 - lower_bound, GAP * norm2)

    def stationary(self, loss: float, residual: float) -> None:
        W, a, c, slopes = self.net["W"], self.net["a"], self.pull(), self.slopes()
        self.loss_is(loss)
        tie, clarke = 0.0, True
        for j in set(self.net["kink_neuron"]) & set(range(len(a))):
            listed = self.net["kink_sample"][self.net["kink_neuron"] == j]
            here = np.setdiff1d(self.line[listed[listed < len(c)].astype(int)], [-1])
            for h in here:  # the same t from every sample of a line
                t = (slopes[self.line == h, int(j)] - self.leak) / (1.0 - self.leak) - 0.5
                tie = max(tie, float(np.ptp(t * self.side[self.line == h])))
            kappa = np.array([c[self.line == h] @ self.size[self.line == h] for h in here])
            rank = np.linalg.matrix_rank(self.X[here] / self.size[here, None], tol=1e-9)
            clarke &= bool(rank == len(here) or (kappa >= 0).all() or (kappa <= 0).all())
        self.most("slopes of parallel samples", tie, 1e-9)
        self.report.add("set is Clarke's", clarke or None, clarke, 1.0)
        inner = a[:, None] * ((slopes * c[:, None]).T @ self.X)
        force = np.abs(c) if self.margin else self.factor * (np.abs(self.f) + np.abs(self.y))
        whole = math.sqrt(self.norm2) * float(force @ self.size)
        distance = math.hypot(np.linalg.norm(inner), np.linalg.norm(c @ self.phi(self.X @ W.T)))
        self.most("residual", distance, residual + ROUND * whole)
        self.most("residual small", residual, GAP * whole)

    def not_global(self, loss: float, sign: float, size: float, gain: float) -> None:
        v, (now, scale) = self.net["vector"], self.loss_is(loss)
        self.report.add("sign and size", abs(sign) == 1 and size > 0.0, sign, size)
        self.same("unit vector", float(np.linalg.norm(v)), 1.0, ROUND)
        fall = now - self.loss_at(self.f + sign * size * self.phi(self.X @ v))
        self.same("gain", fall, gain, ROUND * scale)
        falls = bool(fall > 0.0) if abs(fall) > ROUND * scale else None
        if falls is None:
            f, g = self.exact_outputs(self.net["W"], self.net["a"]), self.exact_outputs([v], [sign])
            if f is not None and g is not None and not self.margin:
                h = [p + exact.rational(size) * q for p, q in zip(f, g, strict=True)]
                falls = bool(exact.square_sum(h, self.y) < exact.square_sum(f, self.y))
        self.report.add("loss falls", falls, fall, 0.0)

    def global_minimum(self, loss: float, excess: float) -> None:
        self.loss_is(loss)
        self.most("square loss", float(self.margin), 0.0)
        lines = np.unique(self.line[self.line >= 0])
        reach = np.hstack([self.X, np.where(self.line[:, None] == lines, self.size[:, None], 0.0)])
        U, sizes, _ = np.linalg.svd(reach, full_matrices=False)
        part = U[:, sizes > 1e-10 * sizes[0]].T @ (self.y - self.f)
        height = 0.5 * self.factor * float(np.sum((np.abs(self.y) + np.abs(self.f)) ** 2))
        over = 0.5 * self.factor * float(part @ part)
        self.most("excess", over, excess + ROUND**2 * height)
        self.most("excess small", excess, ROUND * height)

    def largest_G(self, c: np.ndarray, target: float) -> tuple[float, bool]:
        """A bound on max |G_c| over unit vectors, no tighter than target; False if too much work.

        In the plane every sector is looked at. Else, for s = 1, -1, each choice of signs of the
        kinks that are convex in s G leaves a concave function, bounded as `_concave` says.
        """
        scale, on = float(np.abs(c) @ self.size), (self.line >= 0) & (c != 0.0)
        heads = np.unique(self.line[on])
        N = self.X[heads] / self.size[heads, None]
        mass = np.array([c[self.line == h] @ self.size[self.line == h] for h in heads])
        Z = 0.5 * (1.0 - self.leak) * mass[:, None] * N
        m, s_of = 0.5 * (1.0 + self.leak) * c @ self.X, np.sign(np.sum(Z * N, axis=1))
        error = float(np.abs(c) @ self.off) + 4e-16 * (len(heads) + len(m) + 50) * scale
        small = np.linalg.norm(Z, axis=1) <= 1e-15 * scale
        error, Z, s_of = error + np.linalg.norm(Z[small], axis=1).sum(), Z[~small], s_of[~small]
        _, sizes, V = np.linalg.svd(np.vstack([Z, m]), full_matrices=False)
        if len(Z) and len(sizes) >= 2 and sizes[2:].sum() <= 1e-14 * scale:
            return _on_circle(Z @ V[:2].T, s_of, V[:2] @ m) + error, True
        best = 0.0
        for s in (1.0, -1.0):
            up, down = s * Z[s_of == s], Z[s_of == -s]
            if len(up) > MOST_SIGNS:
                return math.inf, False
            bits = np.arange(2 ** len(up))[:, None] >> np.arange(len(up)) & 1
            best = max(best, _concave(s * m + (2.0 * bits - 1.0) @ up, down, target))
        return best + error, True


def _concave(g: np.ndarray, Z: np.ndarray, target: float) -> float:
    """Largest over rows g of max_v <g, v> - sum_i |<z_i, v>| <= |g + t Z|, any t in [-1, 1]^N."""
    best, t = 0.0, np.zeros((len(g), len(Z)))
    for sweep in range(1000):
        r = g + t @ Z
        size = np.linalg.norm(r, axis=1)
        best, still = max(best, size[size <= target].max(initial=0.0)), size > target
        g, t, r = g[still], t[still], r[still]
        if not len(g) or not len(Z):
            break
        for i, z in enumerate(Z):  # one t at a time
            new = np.clip(t[:, i] - r @ z / (z @ z), -1.0, 1.0)
            r += (new - t[:, i])[:, None] * z
            t[:, i] = new
        for row in range(min(len(g), 100) if sweep % 50 == 49 else 0):  # all inner t at once
            free, trial = np.abs(t[row]) < 1.0, t[row].copy()
            move = np.linalg.lstsq(Z[free].T, -r[row], rcond=None)[0]
            trial[free] = np.clip(trial[free] + move, -1.0, 1.0)
            if np.linalg.norm(g[row] + trial @ Z) < np.linalg.norm(r[row]):
                t[row] = trial
    return float(max(best, np.linalg.norm(g + t @ Z, axis=1).max(initial=0.0)))


def _on_circle(Z: np.ndarray, s_of: np.ndarray, m: np.ndarray) -> float:
    """max |G| on the circle: at its kinks, or inside a sector, where G is linear."""
    kinks = np.arctan2(Z[:, 0], -Z[:, 1])[:, None] + [0.0, math.pi]
    kinks = np.sort(np.mod(kinks, math.tau), axis=None)
    gaps, best = np.diff(kinks, append=kinks[0] + math.tau), 0.0
    for start in range(0, len(kinks), 500):  # in parts, to bound memory
        left, gap = kinks[start : start + 500], gaps[start : start + 500]
        at, mid = (np.stack([np.cos(x), np.sin(x)]) for x in (left, left + 0.5 * gap))
        best = max(best, float(np.abs(m @ at + s_of @ np.abs(Z @ at)).max()))
        g = m[:, None] + Z.T @ (s_of[:, None] * np.sign(Z @ mid))
        for s in (1.0, -1.0):  # s G has its maximum inside the sector where s g points into it
            off = np.mod(np.arctan2(s * g[1], s * g[0]) - left + 1e-9, math.tau)
            best = max(best, np.linalg.norm(g[:, off <= gap + 2e-9], axis=0).max(initial=0.0))
    return best
