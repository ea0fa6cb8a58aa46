"""Extremal vectors in the plane, in space and of 16 samples in any dimension, with times."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from reluflow import Problem
from reluflow.landscape import extremal_vectors, max_G

SIZES = [(10_000, 2, "both"), (60, 3, "both"), (16, 10, "both"), (16, 10, "one"), (16, 30, "one")]
BOUNDS = [(300, 3), (300, 4), (100, 5), (40, 20)]


def gaussian(n: int, d: int, leak: float, seed: int = 0, signs: str = "both") -> Problem:
    """Gaussian samples and labels; with signs="one" the labels' absolute values."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)), rng.normal(size=n)
    return Problem(X, np.abs(y) if signs == "one" else y, leak=leak)


def run(console: Callable[[str], object] = print) -> list[dict[str, object]]:
    """Print sizes and times and return them as rows; compilation is outside the timing."""
    for n, d in ((20, 2), (6, 3), (6, 5)):  # warm-up
        extremal_vectors(gaussian(n, d, 0.0))
        extremal_vectors(gaussian(n, d, 0.0), method="branch")
        max_G(gaussian(n, d, 0.0), method="cells")
        max_G(gaussian(n, d, 0.0), method="signs")
    rows: list[dict[str, object]] = []
    console("extremal vectors (Gaussian data)")
    console(
        f"{'n':>6} {'d':>3} {'signs':>5} {'leak':>5} {'method':>12} {'exact':>6} {'points':>7} "
        f"{'seconds':>8}"
    )
    for n, d, signs in SIZES:
        for leak in (0.0, 0.2):
            problem = gaussian(n, d, leak, signs=signs)
            start = time.perf_counter()
            found = extremal_vectors(problem)
            took = time.perf_counter() - start
            console(
                f"{n:>6} {d:>3} {signs:>5} {leak:>5g} {found.method:>12} {found.exact!s:>6} "
                f"{len(found):>7} {took:>8.3f}"
            )
            rows.append(
                {
                    "name": "extremal vectors",
                    "n": n,
                    "d": d,
                    "signs": signs,
                    "leak": leak,
                    "method": found.method,
                    "exact": found.exact,
                    "points": len(found),
                    "seconds": took,
                }
            )
    console("max |G| with upper bound")
    console(f"{'n':>6} {'d':>3} {'method':>12} {'exact':>6} {'bound/value - 1':>16} {'seconds':>8}")
    for n, d in BOUNDS:
        problem = gaussian(n, d, 0.0)
        start = time.perf_counter()
        best = max_G(problem)
        took = time.perf_counter() - start
        excess = best.upper_bound / best.value - 1
        console(f"{n:>6} {d:>3} {best.method:>12} {best.exact!s:>6} {excess:>16.1e} {took:>8.3f}")
        rows.append(
            {
                "name": "max |G|",
                "n": n,
                "d": d,
                "method": best.method,
                "exact": best.exact,
                "excess": excess,
                "seconds": took,
            }
        )
    return rows


if __name__ == "__main__":
    run()
