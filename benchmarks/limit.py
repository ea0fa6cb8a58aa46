"""The limit process: seconds per prediction, and the simulation it replaces."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from reluflow import datasets, flow, initialize, limit, stationary

NAMES = ("three-points", "stewart", "toy6", "xor", "separable")


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Wall-clock time of one call, and its result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def run(console: Callable[[str], object] = print) -> list[dict[str, Any]]:
    """Print seconds and ratios and return them as rows; compilation is outside the timing."""
    problem = datasets.three_points()
    net = initialize(problem, 200, scale=1.0, rng=0)
    limit(problem, net)
    flow(problem, net.scaled(-5.0), t_end=1.0)
    console(f"{'limit, m = 200':<24}{'seconds':>10}{'jumps':>8}  ending")
    rows: list[dict[str, Any]] = []
    for name in NAMES:
        data = datasets.load(name)
        start = initialize(data, 200, scale=1.0, rng=0)
        took, process = seconds(lambda data=data, start=start: limit(data, start))
        console(f"{name:<24}{took:10.3f}{process.n_jumps:8d}  {process.ending}")
        rows.append(
            {"name": name, "seconds": took, "jumps": process.n_jumps, "ending": process.ending}
        )
    took, _ = seconds(lambda: limit(problem, net))
    ran, end = seconds(lambda: flow(problem, net.scaled(-1000.0), stop=stationary(1e-10)))
    steps = float(end.times[-1]) / 1e-3
    console(
        f"three points from e^-1000: flow {ran:.2f} s, {ran / took:.0f} times as long as limit; "
        f"descent at lr 1e-3 would take {steps:.2g} steps"
    )
    rows.append(
        {
            "name": "three points from e^-1000",
            "seconds": took,
            "flow_seconds": ran,
            "ratio": ran / took,
            "descent_steps": steps,
        }
    )
    return rows


if __name__ == "__main__":
    run()
