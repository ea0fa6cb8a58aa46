"""descend on MNIST 0 and 1 ([MMV24]_ Figure 5) against bare matrix products, and flow beside it.

A step of descent is two matrix products, X W^T and its transpose with the images, and element-wise
work. GFLOP/s counts the products over all pixels for both; descend leaves out pixels that are zero
on every image (a fifth), so its ratio may exceed 1. The bare ones have the same shapes and threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from reluflow import Problem, ReluflowError, datasets, descend, flow
from reluflow.papers.mmv24.figures.digits import LR, STEPS, WIDTH, small_start

PROBE = 20  # steps measured at once
ROUNDS = 3  # the best of so many counts, products and steps by turns
IMAGES = 200  # of each digit, where flow is compared with the whole descent


def products(problem: Problem, dtype: str) -> Callable[[], float]:
    """A function that gives the seconds of the two bare products of one step."""
    X = np.ascontiguousarray(problem.X, dtype=dtype)
    W = np.random.default_rng(0).standard_normal((WIDTH, problem.d)).astype(dtype)
    H, D = np.empty((problem.n, WIDTH), dtype), np.empty_like(W)

    def measure() -> float:
        started = time.perf_counter()
        for _ in range(PROBE):
            np.dot(X, W.T, out=H)
            np.dot(H.T, X, out=D)
        return (time.perf_counter() - started) / PROBE

    return measure


def steps(problem: Problem, dtype: str) -> Callable[[], float]:
    """A function that gives the seconds of a step of descent."""
    net = small_start(problem, 0)
    how: dict[str, Any] = {"lr": LR, "backend": "dense", "dtype": dtype, "progress": False}
    few, many = 2, 2 + PROBE

    def measure() -> float:
        spent = []
        for count in (few, many):  # what is done once cancels in the difference
            started = time.perf_counter()
            descend(problem, net, steps=count, save=[0], observe=_nothing, **how)
            spent.append(time.perf_counter() - started)
        return (spent[1] - spent[0]) / PROBE

    return measure


def _nothing(problem: Problem, net: Any) -> float:
    return 0.0


def speed(problem: Problem, dtype: str) -> dict[str, Any]:
    """GFLOP/s of descent and of the bare products, by turns."""
    work = 4e-9 * problem.n * problem.d * WIDTH
    bare, step = products(problem, dtype), steps(problem, dtype)
    bare()
    found = [(bare(), step()) for _ in range(ROUNDS)]
    best = [work / min(times) for times in zip(*found, strict=True)]
    return {"dtype": dtype, "bare": best[0], "descend": best[1], "ratio": best[1] / best[0]}


def compare(problem: Problem) -> dict[str, Any]:
    """Gradients of descent and of flow to the same end, and how far the two are apart."""
    net = small_start(problem, 0)
    at = range(0, STEPS + 1, 500)
    started = time.perf_counter()
    one = descend(problem, net, lr=LR, steps=STEPS, save=at, observe="stable_rank", progress=False)
    middle = time.perf_counter()
    two = flow(
        problem,
        net,
        t_end=LR * STEPS,
        save=LR * np.array(at),
        observe="stable_rank",
        kinks=False,
        progress=False,
    )
    ended = time.perf_counter()
    return {
        "steps": STEPS,
        "evaluations": two.cost["evaluations"],
        "loss": float(np.abs(two.loss / one.loss - 1).max()),
        "rank": float(np.abs(two["stable_rank"] / one["stable_rank"] - 1)[2:].max()),
        "seconds": [middle - started, ended - middle],
    }


def run(console: Callable[[str], None] = print) -> list[dict[str, Any]]:
    """Print one line per row."""
    try:
        problem = datasets.mnist_pair(1, 0)
    except ReluflowError as missing:
        console(f"MNIST benchmark skipped: {missing}")
        return []
    console(f"descend on MNIST 1/0, {problem.n:,} images of {problem.d} pixels, {WIDTH} neurons")
    rows = []
    for dtype in ("float64", "float32"):
        row = speed(problem, dtype)
        console(
            f"  {dtype}: {row['descend']:.1f} GFLOP/s, bare products {row['bare']:.1f} GFLOP/s, "
            f"ratio {row['ratio']:.2f} (asked 0.5)"
        )
        rows.append(row)
    row = compare(datasets.mnist_pair(1, 0, per_class=IMAGES))
    console(
        f"  {2 * IMAGES} images to the end: descend {row['steps']:,} gradients "
        f"({row['seconds'][0]:.0f} s), flow {row['evaluations']:,} ({row['seconds'][1]:.0f} s); "
        f"loss within {row['loss']:.1e}, stable rank within {row['rank']:.1e}"
    )
    return [*rows, row]


if __name__ == "__main__":
    run()
