"""Benchmarks of flow: growth with scale and width, accuracy, and a work-precision table.

``python benchmarks/flow.py`` or ``reluflow bench flow``. Everything is measured in one run, after a
warm-up that compiles the kernels.
"""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from reluflow import Network, Problem, datasets, initialize
from reluflow.gradientflow import flow, stationary

Row = dict[str, Any]


def seconds(work: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """Least time of a few calls, and the last result."""
    best, out = math.inf, None
    for _ in range(repeats):
        start = time.perf_counter()
        out = work()
        best = min(best, time.perf_counter() - start)
    return best, out


def six_neurons() -> tuple[Problem, Network]:
    """64 orthonormal points, six neurons of scale e^-1000 ([TLB26]_ Figures 1, 3, 4)."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        W = rng.standard_normal((6, 64))
        if (W > 0).any(axis=0).all():
            W /= np.linalg.norm(W, axis=1, keepdims=True)
            y = np.abs(rng.standard_normal(64))
            return Problem(np.eye(64), y, loss="square"), Network(W, np.ones(6), log_scale=-1000.0)
    raise AssertionError("no draw covers all points")


def descent_step(problem: Problem, m: int, count: int = 200) -> float:
    """Seconds per plain gradient step (NumPy), the cost a training loop pays at least."""
    rng = np.random.default_rng(0)
    W, a = 1e-3 * rng.standard_normal((m, problem.d)), 1e-3 * rng.standard_normal(m)
    X, y = problem.X, problem.y

    def loop() -> None:
        nonlocal W, a
        for _ in range(count):
            S = X @ W.T
            active = S > 0
            r = 2.0 * (y - (S * active) @ a) / len(y)
            G = active * r[:, None]
            W, a = W + 0.01 * a[:, None] * (G.T @ X), a + 0.01 * np.sum(G * S, axis=0)

    return seconds(loop, 3)[0] / count


def torch_step(problem: Problem, m: int, count: int = 200) -> float | None:
    """Seconds per step of the plain PyTorch loop; None without torch."""
    try:
        import torch
    except ImportError:
        return None
    X, y = torch.tensor(problem.X), torch.tensor(problem.y)
    W = (1e-3 * torch.randn(m, problem.d, dtype=torch.float64)).requires_grad_()
    a = (1e-3 * torch.randn(m, dtype=torch.float64)).requires_grad_()
    optimizer = torch.optim.SGD([W, a], lr=0.01)

    def loop() -> None:
        for _ in range(count):
            optimizer.zero_grad()
            torch.mean((torch.relu(X @ W.T) @ a - y) ** 2).backward()
            optimizer.step()

    return seconds(loop, 3)[0] / count


def orthonormal(console: Callable[[str], None]) -> list[Row]:
    problem, net = six_neurons()
    end = 12_000.0
    flow(problem, net, t_end=10.0)
    ours, run = seconds(lambda: flow(problem, net, t_end=end), 3)
    steps = end / 0.01
    console(
        f"six neurons, 64 orthonormal points, e^-1000, to t = {end:g}: flow {ours:.3f} s, "
        f"{run.cost['steps']} steps"
    )
    row: Row = {"name": "six neurons", "seconds": ours, "steps": run.cost["steps"], "asked": 1000}
    for name, one in (("NumPy", descent_step(problem, 6)), ("PyTorch", torch_step(problem, 6))):
        if one is not None:
            console(
                f"  GD at lr 0.01, {name}, extrapolated: {one * steps:.0f} s, "
                f"ratio {one * steps / ours:.0f} (wanted >= 1000)"
            )
            row[f"ratio_{name.lower()}"] = one * steps / ours
    return [row]


def width(console: Callable[[str], None]) -> list[Row]:
    problem = datasets.three_points(loss="square")
    flow(problem, initialize(problem, 100, scale=1e-3, rng=0), t_end=30.0)
    rows: list[Row] = []
    for scale in (1e-3, 1e-100):
        times = {}
        for m in (2_000, 200_000):
            net = initialize(problem, m, scale=scale, rng=0)
            times[m], run = seconds(
                lambda net=net: flow(problem, net, stop=stationary(1e-10), states=False),
                3 if m == 2_000 else 1,
            )
            console(
                f"three points, m={m}, scale {scale:g}, to stationarity 1e-10: "
                f"{times[m]:.2f} s, {run.cost['steps']} steps"
            )
        growth = times[200_000] / times[2_000]
        console(f"  growth with width: {growth:.1f} (wanted <= 30)")
        rows.append(
            {
                "name": "growth with width",
                "scale": scale,
                "seconds": list(times.values()),
                "ratio": growth,
                "asked": 30,
            }
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    console(f"  peak memory of this process: {peak:.2f} GB (wanted < 1)")
    return [*rows, {"name": "peak memory", "gigabytes": peak, "asked": 1}]


def scales(console: Callable[[str], None]) -> list[Row]:
    problem = Problem(np.eye(4), [4.0, 3.0, 2.0, 1.0])
    rows = np.array([[1, 1, -1, -1], [-1, 1, 1, -1], [-1, -1, 1, 1.0]]) / 2
    steps = {}
    for power in (3, 10, 40, 100, 300):
        L = power * math.log(10)
        run = flow(problem, Network(rows, np.ones(3), log_scale=-L), t_end=2.33 * L + 40)
        steps[power] = run.cost["steps"]
    console("steps at scale 1e-k, golden case: " + ", ".join(f"{k}: {v}" for k, v in steps.items()))
    ratio = steps[300] / steps[3]
    console(f"  steps(1e-300)/steps(1e-3) = {ratio:.2f} (wanted <= 2)")
    return [{"name": "growth with scale", "steps": steps, "ratio": ratio, "asked": 2}]


def one_sample(y: float, p: float, a: float, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """p and a of p' = a (y - a p), a' = p (y - a p): one active sample of norm 1.

    p + a = S v^(1/2) and p - a = E v^(-1/2) with v' = 2 y v - S^2 v^2 / 2 + E^2 / 2, v(0) = 1: a
    logistic curve between the roots of the right-hand side.
    """
    S, E = p + a, p - a
    high = (2 * y + math.sqrt(4 * y * y + S * S * E * E)) / S**2
    low = -(E * E) / (S * S * high)
    power = np.log((1 - low) / (high - 1)) + 0.5 * S**2 * (high - low) * times
    v = low + (high - low) / (1 + np.exp(-power))
    return (S * np.sqrt(v) + E / np.sqrt(v)) / 2, (S * np.sqrt(v) - E / np.sqrt(v)) / 2


def accuracy(console: Callable[[str], None]) -> list[Row]:
    """Directions and log-norms at scale 1e-12 against a closed form.

    On orthonormal samples, neurons that are active on one sample each do not see one another.
    """
    y = np.array([2.0, 1.0, 0.5])
    W = -np.array([[0.0, 0.7, 0.2], [0.4, 0.0, 0.9], [0.1, 0.3, 0.0]])
    p, a = np.array([0.3, 0.8, 0.5]), np.array([1.0, 1.2, 1.1])
    W, p, a = 1e-12 * (W + np.diag(p)), 1e-12 * p, 1e-12 * a
    times = np.linspace(0.0, 80.0, 161)  # the last neuron has grown at t = 55
    problem = Problem(np.eye(3), y, reduction="sum")
    took, run = seconds(lambda: flow(problem, Network(W, a), t_end=80.0, save=times))
    angle = gap = 0.0
    for j in range(3):
        exact = np.tile(W[j], (len(times), 1))
        exact[:, j], outer = one_sample(y[j], p[j], a[j], times)
        size = np.linalg.norm(exact, axis=1)
        for i, net in enumerate(run.networks):
            found = net.directions[j] - exact[i] / size[i]
            angle = max(angle, float(np.linalg.norm(found)))
            gap = max(gap, abs(float(net.log_norms[j]) - math.log(size[i])))
            gap = max(gap, abs(float(np.log(net.weights()[1][j] / outer[i]))))
    console(
        f"accuracy at scale 1e-12, against a closed form: directions {angle:.1e} rad "
        f"(wanted < 1e-6), logarithms of sizes {gap:.1e}; {took:.3f} s"
    )
    return [{"name": "accuracy at scale 1e-12", "radians": angle, "log_size": gap, "asked": 1e-6}]


def work_precision(console: Callable[[str], None]) -> list[Row]:
    """Largest error of log-norms against flow at rtol 1e-12, and the number of velocities."""
    problem = Problem([[1.0, 0.4], [0.3, 1.0], [0.9, 0.8]], [1.0, 2.0, 0.5])
    rng = np.random.default_rng(0)
    W = 1e-6 * np.abs(rng.standard_normal((4, 2)))
    net = Network(W, np.linalg.norm(W, axis=1))
    end, X, y, d, m = 60.0, problem.X, problem.y, 2, 4
    best = flow(problem, net, t_end=end, rtol=1e-12).final.log_norms

    def velocity(t: float, v: np.ndarray) -> np.ndarray:
        W, a = v[: m * d].reshape(m, d), v[m * d :]
        S = X @ W.T
        active = S > 0
        G = active * ((y - (S * active) @ a) / len(y))[:, None]
        return np.concatenate([(a[:, None] * (G.T @ X)).ravel(), np.sum(G * S, axis=0)])

    rows: list[Row] = []
    console("work-precision (three points in one cone, scale 1e-6): error, velocities, seconds")
    for rtol in (1e-4, 1e-6, 1e-8, 1e-10):
        t, run = seconds(lambda rtol=rtol: flow(problem, net, t_end=end, rtol=rtol), 3)
        error = np.abs(run.final.log_norms - best).max()
        count = run.cost["evaluations"]
        console(f"  flow    rtol {rtol:.0e}: {error:.1e}  {count:6d}  {t:.4f}")
        rows.append(_precision("flow", rtol, None, error, count, t))
    start = np.concatenate([net.W.ravel(), net.a])
    for name in ("DOP853", "Radau"):
        for rtol, atol in ((1e-6, 1e-6), (1e-6, 1e-12), (1e-8, 1e-14), (1e-10, 1e-16)):
            t, out = seconds(
                lambda name=name, rtol=rtol, atol=atol: solve_ivp(
                    velocity, (0, end), start, method=name, rtol=rtol, atol=atol
                )
            )
            final = np.linalg.norm(out.y[: m * d, -1].reshape(m, d), axis=1)
            error = np.abs(np.log(final) - best).max()
            console(
                f"  {name:7s} rtol {rtol:.0e} atol {atol:.0e}: {error:.1e}  {out.nfev:6d}  {t:.4f}"
            )
            rows.append(_precision(name, rtol, atol, error, out.nfev, t))
    return rows


def _precision(
    method: str, rtol: float, atol: float | None, error: float, velocities: int, took: float
) -> Row:
    return {
        "name": "work and precision",
        "method": method,
        "rtol": rtol,
        "atol": atol,
        "error": float(error),
        "velocities": velocities,
        "seconds": took,
    }


def run(console: Callable[[str], None] = print) -> list[Row]:
    """Print every row and return them."""
    parts = (scales, accuracy, orthonormal, width, work_precision)
    return [row for part in parts for row in part(console)]


if __name__ == "__main__":
    run()
