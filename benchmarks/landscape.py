"""Extremal vectors at the sizes of the design: exact, with wall-clock times."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from reluflow import Problem
from reluflow.landscape import extremal_vectors, max_G

SIZES = [(10_000, 2), (60, 3), (16, 10)]
BOUNDS = [(300, 3), (300, 4), (100, 5), (40, 20)]


def gaussian(n: int, d: int, leak: float, seed: int = 0) -> Problem:
    """Gaussian samples and labels."""
    rng = np.random.default_rng(seed)
    return Problem(rng.normal(size=(n, d)), rng.normal(size=n), leak=leak)


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
        f"{'n':>6} {'d':>3} {'leak':>5} {'method':>12} {'exact':>6} {'points':>7} {'seconds':>8}"
    )
    for n, d in SIZES:
        for leak in (0.0, 0.2):
            problem = gaussian(n, d, leak)
            start = time.perf_counter()
            found = extremal_vectors(problem)
            took = time.perf_counter() - start
            console(
                f"{n:>6} {d:>3} {leak:>5g} {found.method:>12} {found.exact!s:>6} {len(found):>7} "
                f"{took:>8.3f}"
            )
            rows.append(
                dict(n=n, d=d, leak=leak, method=found.method, exact=found.exact, seconds=took)
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
        rows.append(dict(n=n, d=d, method=best.method, exact=best.exact, seconds=took))
    return rows


if __name__ == "__main__":
    run()
