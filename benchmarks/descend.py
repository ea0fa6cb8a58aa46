"""descend against a plain PyTorch loop of the same problem, ratios measured in one run.

The PyTorch loop is float64 autograd with SGD, the way the papers' scripts are written; its cost per
step is measured on a few hundred steps, with one thread and with all, and the better one counts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from reluflow import Network, Problem, datasets, descend, initialize
from reluflow.descent.model import dense_work
from reluflow.network import axis_start
from reluflow.papers.tk24.figures.xor import (
    FOUR_EPOCHS,
    FOUR_SCALES,
    WIDE,
    four_neuron_rate,
)


def cases() -> list[dict[str, Any]]:
    """The rows of the table: problem, start, step sizes and the ratio that is asked for."""
    three = datasets.three_points(loss="square")
    xor, wide = datasets.symmetric_xor(), datasets.skewed_xor(math.pi / 2)
    return [
        {
            "name": "three points, m=200,000, 2,000,000 steps",
            "problem": three,
            "net": initialize(three, 200_000, scale=1e-3, rng=0),
            "lr": 1e-3,
            "steps": 2_000_000,
            "probe": 60,
            "asked": 1000,
        },
        {
            "name": f"XOR, four neurons, {FOUR_EPOCHS:,} steps",
            "problem": xor,
            "net": axis_start(xor, FOUR_SCALES["F1"]),
            "lr": np.array([four_neuron_rate(t) for t in range(FOUR_EPOCHS)]),
            "steps": FOUR_EPOCHS,
            "probe": 1500,
            "asked": 300,
        },
        {
            "name": f"XOR, m={WIDE['m']}, {WIDE['epochs']:,} steps",
            "problem": wide,
            "net": initialize(wide, WIDE["m"], scale=WIDE["scale"], kind="pytorch", rng=2),
            "lr": WIDE["lr"],
            "steps": WIDE["epochs"],
            "probe": 30,
            "asked": 20,
        },
    ]


def torch_step(problem: Problem, net: Network, steps: int) -> float:
    """Seconds per step of the plain PyTorch loop, with the better number of threads."""
    import torch

    X, y = torch.tensor(problem.X), torch.tensor(problem.y)

    def loop(count: int) -> float:
        W = torch.nn.Parameter(torch.tensor(np.array(net.W)))
        a = torch.nn.Parameter(torch.tensor(np.array(net.a)))
        optimizer = torch.optim.SGD([W, a], lr=1e-3)
        started = time.perf_counter()
        for _ in range(count):
            optimizer.zero_grad()
            f = torch.relu(X @ W.T) @ a
            if problem.loss.margin:
                loss = torch.nn.functional.softplus(-y * f).mean()
            else:
                loss = ((f - y) ** 2).mean()
            loss.backward()
            optimizer.step()
        return (time.perf_counter() - started) / count

    best = math.inf
    threads = torch.get_num_threads()
    for count in sorted({1, threads}):
        torch.set_num_threads(count)
        loop(max(3, steps // 10))
        best = min(best, loop(steps))
    torch.set_num_threads(threads)
    return best


def run(console: Callable[[str], None] = print) -> list[dict[str, Any]]:
    """Print one line per case and return the rows."""
    try:
        import torch

        against = f"PyTorch {torch.__version__}"
    except ImportError:
        against = None
        console("PyTorch is missing (pip install 'reluflow[torch]'): no ratios, only our times.")
    console(f"descend against a plain loop in {against or 'PyTorch (not installed)'}")
    rows: list[dict[str, Any]] = []
    for case in cases():
        problem, net = case["problem"], case["net"]
        how = {"lr": case["lr"], "steps": case["steps"]}
        short = case["lr"][:2] if isinstance(case["lr"], np.ndarray) else case["lr"]
        descend(problem, net, lr=short, steps=2, backend="lumped")
        descend(problem, net, lr=short, steps=2, backend="dense")
        started = time.perf_counter()
        result = descend(problem, net, progress=False, **how)
        ours = time.perf_counter() - started
        backend = result.cost["backend"]
        row: dict[str, Any] = {
            "name": case["name"],
            "seconds": ours,
            "steps": case["steps"],
            "backend": backend,
            "asked": case["asked"],
        }
        line = (
            f"  {case['name']}: {ours:.3f} s ({backend}, {ours / case['steps'] * 1e6:.2f} us/step"
        )
        line += f", dense model {dense_work(problem.n, problem.d, net.m) / 1e3:.1f} us/step)"
        if against:
            theirs = torch_step(problem, net, case["probe"])
            ratio = theirs * case["steps"] / ours
            line += f"; loop {theirs * 1e6:.0f} us/step = {theirs * case['steps']:.0f} s"
            line += f"; ratio {ratio:.0f} (asked {case['asked']})"
            row |= {"loop_seconds_per_step": theirs, "ratio": ratio}
        console(line)
        rows.append(row)
    return rows


if __name__ == "__main__":
    run()
