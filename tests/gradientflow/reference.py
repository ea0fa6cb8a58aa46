"""Independent reference: extrapolation in 50 digits, kinks met one at a time by bisection.

``python tests/gradientflow/reference.py`` writes reference.json, the stored answers of the tests.
Nothing of reluflow is used: patterns, sliding and crossings are decided here from scratch.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import mpmath as mp
import numpy as np

mp.mp.dps = 50
SEQUENCE = [2, 4, 6, 8, 10, 12, 14, 16]  # substeps of the modified midpoint rule: order 16


class Reference:
    """Gradient flow of a small network in 50 digits."""

    def __init__(self, X, y, loss, leak, W, a, tol="1e-20"):
        self.X = [[mp.mpf(float(v)) for v in row] for row in X]
        self.y = [mp.mpf(float(v)) for v in y]
        self.loss, self.leak, self.tol = loss, mp.mpf(float(leak)), mp.mpf(tol)
        self.n, self.d, self.m = len(X), len(X[0]), len(a)
        self.z = [[*map(mp.mpf, w), mp.mpf(b)] for w, b in zip(W, a, strict=True)]
        self.t = mp.mpf(0)
        self.u = [[1 if self.dot(z, x) > 0 else -1 for x in self.X] for z in self.z]
        self.events = []

    def dot(self, z, x):
        return mp.fdot(z[: self.d], x)

    def pull(self, z):
        f = [mp.mpf(0)] * self.n
        for j in range(self.m):
            for k in range(self.n):
                if self.u[j][k] and (self.u[j][k] > 0 or self.leak):
                    h = self.dot(z[j], self.X[k]) * z[j][-1]
                    f[k] += h if self.u[j][k] > 0 else self.leak * h
        if self.loss == "half_square":
            return [(yk - fk) / self.n for yk, fk in zip(self.y, f, strict=True)]
        if self.loss == "square":
            return [2 * (yk - fk) / self.n for yk, fk in zip(self.y, f, strict=True)]
        q = [yk * fk for yk, fk in zip(self.y, f, strict=True)]
        if self.loss == "exponential":
            return [yk * mp.exp(-v) / self.n for yk, v in zip(self.y, q, strict=True)]
        return [yk / (1 + mp.exp(v)) / self.n for yk, v in zip(self.y, q, strict=True)]

    def force(self, u, c):
        """D of a pattern and the slopes on its faces."""
        D = [mp.mpf(0)] * self.d
        for k in range(self.n):
            s = 1 if u[k] > 0 else (self.leak if u[k] < 0 else 0)
            if s:
                for e in range(self.d):
                    D[e] += s * c[k] * self.X[k][e]
        K = [k for k in range(self.n) if u[k] == 0]
        slopes = {}
        if K:
            gram = mp.matrix([[mp.fdot(self.X[p], self.X[q]) for q in K] for p in K])
            right = mp.matrix([-mp.fdot(self.X[p], D) for p in K])
            tau = mp.lu_solve(gram, right)
            for i, k in enumerate(K):
                slopes[k] = tau[i] / c[k]
                for e in range(self.d):
                    D[e] += tau[i] * self.X[k][e]
        return D, slopes

    def velocity(self, z):
        c = self.pull(z)
        out = []
        known = {}
        for j in range(self.m):
            key = tuple(self.u[j])
            if key not in known:
                known[key] = self.force(self.u[j], c)[0]
            D = known[key]
            out.append([z[j][-1] * v for v in D] + [mp.fdot(z[j][: self.d], D)])
        return out

    def step(self, h):
        """Extrapolated state after h and an error estimate relative to each neuron."""
        rows = []
        start = self.velocity(self.z)
        for i, count in enumerate(SEQUENCE):
            s = h / count
            old = self.z
            now = add(old, start, s)
            for _ in range(count - 1):
                old, now = now, add(old, self.velocity(now), 2 * s)
            last = self.velocity(now)
            end = [
                [(p + q + s * v) / 2 for p, q, v in zip(a, b, c, strict=True)]
                for a, b, c in zip(old, now, last, strict=True)
            ]
            row = [end]
            for k in range(1, i + 1):
                ratio = (mp.mpf(SEQUENCE[i]) / SEQUENCE[i - k]) ** 2 - 1
                row.append(
                    [
                        [p + (p - q) / ratio for p, q in zip(a, b, strict=True)]
                        for a, b in zip(row[k - 1], rows[i - 1][k - 1], strict=True)
                    ]
                )
            rows.append(row)
        best, other = rows[-1][-1], rows[-1][-2]
        error = max(
            mp.sqrt(sum((p - q) ** 2 for p, q in zip(a, b, strict=True)) / mp.fdot(a, a))
            for a, b in zip(best, other, strict=True)
        )
        return best, error

    def margin(self, z):
        """(value, neuron, sample) of everything that must stay positive."""
        found = []
        c = self.pull(z)
        for j in range(self.m):
            slopes = self.force(self.u[j], c)[1] if 0 in self.u[j] else {}
            for k in range(self.n):
                if self.u[j][k]:
                    found.append((self.u[j][k] * self.dot(z[j], self.X[k]) / mp.norm(z[j]), j, k))
                else:
                    found.append((min(slopes[k] - self.leak, 1 - slopes[k]), j, k))
        return found

    def arrive(self, j, k):
        c = self.pull(self.z)
        u, a = self.u[j], self.z[j][-1]
        size = mp.fdot(self.X[k], self.X[k])
        if u[k] == 0:
            slope = self.force(u, c)[1][k]
            u[k] = 1 if abs(slope - 1) < abs(slope - self.leak) else -1
            self.events.append((j, k, float(self.t), "exit"))
            return
        side, u[k] = u[k], 0
        slopes = self.force(u, c)[1]
        if a * c[k] < 0 and self.leak < slopes[k] < 1:
            shift = self.dot(self.z[j], self.X[k]) / size
            for e in range(self.d):
                self.z[j][e] -= shift * self.X[k][e]
            self.events.append((j, k, float(self.t), "slide"))
        else:
            u[k] = -side
            self.events.append((j, k, float(self.t), "cross"))
        # other faces of this neuron may have to be left now
        for i in [i for i in range(self.n) if u[i] == 0]:
            slope = self.force(u, c)[1][i]
            if not self.leak < slope < 1:
                u[i] = 1 if slope >= 1 else -1
                self.events.append((j, i, float(self.t), "exit"))

    def run(self, t_end):
        t_end, h = mp.mpf(t_end), mp.mpf("0.1")
        while self.t < t_end:
            h = min(h, t_end - self.t)
            while True:
                new, error = self.step(h)
                if error <= self.tol:
                    break
                h *= max(mp.mpf("0.2"), mp.mpf("0.8") * (self.tol / error) ** (mp.mpf(1) / 15))
            low = [item for item in self.margin(new) if item[0] < 0]
            if not low:
                self.z, self.t = new, self.t + h
                h *= min(
                    3, mp.mpf("0.8") * (self.tol / max(error, self.tol / 10**9)) ** (mp.mpf(1) / 15)
                )
                continue
            # earliest crossing by the Illinois rule on the step length
            start = {(j, k): v for v, j, k in self.margin(self.z)}
            best = None
            for _, j, k in low:
                length, state = self.root(j, k, start[(j, k)], h)
                if best is None or length < best[0]:
                    best = (length, state, j, k)
            length, state, j, k = best
            self.z, self.t = state, self.t + length
            self.arrive(j, k)
        return self

    def root(self, j, k, left, h):
        def value(length):
            state, _ = self.step(length)
            return next(v for v, p, q in self.margin(state) if (p, q) == (j, k)), state

        a, fa = mp.mpf(0), left
        if fa <= 0:  # rounding left it on the wrong side: it has just arrived
            return a, self.z
        b, (fb, state) = h, value(h)
        side = 0
        for _ in range(60):
            c = (fa * b - fb * a) / (fa - fb)
            fc, state = value(c)
            if abs(fc) < mp.mpf("1e-22") or abs(b - a) < mp.mpf("1e-24"):
                return c, state
            if fc * fb > 0:
                b, fb = c, fc
                if side == -1:
                    fa /= 2
                side = -1
            else:
                a, fa = c, fc
                if side == 1:
                    fb /= 2
                side = 1
        return c, state


def add(z, v, s):
    return [[p + s * q for p, q in zip(a, b, strict=True)] for a, b in zip(z, v, strict=True)]


def cases():
    """Small random problems: every loss, scales 1e-3 to 1e-12, with and without leak."""
    out = []
    losses = ["half_square", "logistic", "exponential", "square"]
    for i, (loss, scale) in enumerate(
        (loss, scale) for scale in (1e-3, 1e-6, 1e-12) for loss in losses
    ):
        rng = np.random.default_rng(100 + i)
        n, d, m = (5, 2, 4) if i % 2 else (4, 3, 5)
        X = np.round(rng.standard_normal((n, d)), 3)
        y = rng.choice([-1.0, 1.0], n)
        if loss in ("half_square", "square"):
            y = np.round(y * rng.uniform(0.5, 2.0, n), 3)
        W = np.round(rng.standard_normal((m, d)), 3)
        a = rng.choice([-1.0, 1.0], m) * np.linalg.norm(W, axis=1)
        if i % 3 == 2:
            a = np.round(rng.standard_normal(m), 3)  # unbalanced
        leak = 0.0 if i % 4 < 3 else 0.2
        fast = {"logistic": 0.5, "square": 2.0}.get(loss, 1.0)
        rate = max(
            np.linalg.norm(((X @ v > 0) * y * fast / n) @ X) for v in rng.standard_normal((4000, d))
        )
        t_end = float(np.round((np.log(1 / scale) + 4.0) / rate, 2))
        out.append(
            dict(
                loss=loss,
                scale=scale,
                leak=leak,
                X=X.tolist(),
                y=y.tolist(),
                W=(scale * W).tolist(),
                a=(scale * a).tolist(),
                t_end=t_end,
            )
        )
    return out


def solve(case):
    """Directions, log-norms, outer weights and events at t_end, as floats."""
    run = Reference(case["X"], case["y"], case["loss"], case["leak"], case["W"], case["a"])
    run.run(case["t_end"])
    norms = [mp.sqrt(mp.fdot(z[:-1], z[:-1])) for z in run.z]
    return {
        **case,
        "directions": [[float(v / s) for v in z[:-1]] for z, s in zip(run.z, norms, strict=True)],
        "log_norms": [float(mp.log(s)) for s in norms],
        "ratio": [float(z[-1] / s) for z, s in zip(run.z, norms, strict=True)],
        "events": run.events,
    }


if __name__ == "__main__":
    target = Path(__file__).with_name("reference.json")
    which = [int(v) for v in sys.argv[1:]]
    everything = cases()
    stored = json.loads(target.read_text()) if target.exists() else [None] * len(everything)
    for i in which or range(len(everything)):
        stored[i] = solve(everything[i])
        print(i, stored[i]["loss"], stored[i]["scale"], len(stored[i]["events"]), flush=True)
        target.write_text(json.dumps(stored, indent=1))
