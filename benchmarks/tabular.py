"""Ordinary tables: ``explain`` end to end, and a PyTorch loop that trains to the same loss."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from reluflow import Network, Problem, explain, initialize
from reluflow.torch import has_torch

WIDTH, SCALE, LR = 200, 1e-6, 0.05
STEPS, SECONDS = 50_000, 60.0  # of the loop, at most
HARVEST = Path(__file__).parents[1] / "examples" / "harvest.csv"
_LOOK = 50  # steps between two looks at the clock


def frames() -> Mapping[str, Callable[[], Any]]:
    """Tables by name, the label last: data frames made by scikit-learn without a download."""
    from sklearn import datasets as made

    def named(loader: Callable[..., Any], keep: int | None = None) -> Any:
        frame = loader(as_frame=True).frame
        frame = frame if keep is None else frame[frame["target"] < keep]
        return frame.loc[:, frame.nunique() > 1]

    def drawn(X: np.ndarray, y: np.ndarray) -> Any:
        from pandas import DataFrame

        return DataFrame(X, columns=["x", "y"]).assign(label=y)

    return {
        "iris, 2 classes": lambda: named(made.load_iris, 2),
        "wine, 2 classes": lambda: named(made.load_wine, 2),
        "breast cancer": lambda: named(made.load_breast_cancer),
        "diabetes": lambda: named(made.load_diabetes),
        "digits 0 and 1": lambda: named(made.load_digits, 2),
        "moons": lambda: drawn(*made.make_moons(200, noise=0.1, random_state=0)),
        "circles": lambda: drawn(*made.make_circles(300, noise=0.05, factor=0.5, random_state=0)),
        "harvest": lambda: HARVEST,
    }


def torch_loop(problem: Problem, net: Network, target: float) -> dict[str, Any]:
    """Full-batch descent in PyTorch from the same weights until the loss is at most ``target``.

    Ends after `STEPS` steps or `SECONDS` of processor time at the latest.
    """
    import torch

    X, y = torch.from_numpy(problem.X.copy()), torch.from_numpy(problem.y.copy())
    W, a = (torch.from_numpy(np.array(part)).requires_grad_() for part in net.weights())
    optimizer = torch.optim.SGD([W, a], lr=LR)
    began, steps, loss = time.process_time(), 0, np.inf
    while steps < STEPS:
        optimizer.zero_grad()
        f = torch.relu(X @ W.T) @ a
        if problem.loss.margin:
            value = torch.nn.functional.softplus(-y * f).mean()
        else:
            value = 0.5 * ((f - y) ** 2).mean()
        loss = float(value.detach())
        if loss <= target or not np.isfinite(loss):
            break
        value.backward()
        optimizer.step()
        steps += 1
        if steps % _LOOK == 0 and time.process_time() - began > SECONDS:
            break
    return {
        "torch_seconds": time.process_time() - began,
        "torch_steps": steps,
        "torch_loss": loss,
        "torch_reached": loss <= target,
    }


def measure(name: str, table: Any) -> dict[str, Any]:
    """One table: processor time of ``explain`` with its files, and of the loop."""
    problem = Problem.from_table(table, standardize=True, bias=1.0)
    with TemporaryDirectory() as folder:
        began = time.process_time()
        found = explain(problem, WIDTH, SCALE, out=folder, progress=False)
        took = time.process_time() - began
    jumps = 0 if found.process is None else found.process.n_jumps
    row = {
        "name": name,
        "rows": problem.n,
        "features": problem.d,
        "seconds": took,
        "whole": found.run.status.ok and found.process is not None and found.alignment is not None,
        "jumps": jumps,
        "loss": found.loss,
        "log_loss": float(problem.log_value(found.outputs)),
    }
    if has_torch():
        row |= torch_loop(problem, initialize(problem, WIDTH, SCALE, rng=0), found.loss)
    return row


def line(row: Mapping[str, Any]) -> str:
    """A row of the table in text."""
    size = f"{row['rows']} x {row['features']}"
    loss = f"{row['loss']:.3g}" if row["loss"] > 1e-30 else f"exp({row['log_loss']:.3g})"
    text = (
        f"{row['name']:<18}{size:>10}{row['seconds']:9.1f} s  {'yes' if row['whole'] else 'no':<6}"
    )
    text += f"{row['jumps']:>6}{loss:>16}"
    if "torch_seconds" not in row:
        return text
    if row["torch_reached"]:
        return text + f"{row['torch_seconds']:9.1f} s, {row['torch_steps']:,} steps"
    return text + (
        f"{row['torch_seconds']:9.1f} s, not reached in {row['torch_steps']:,} steps "
        f"({row['torch_loss']:.3g})"
    )


def run(console: Callable[[str], object] = print) -> list[dict[str, Any]]:
    """Print the table and return its rows; kernels are compiled before anything is timed."""
    explain(Problem(np.eye(2), [1.0, 2.0]), 4, SCALE, progress=False)
    loop = f"PyTorch to the same loss, lr {LR:g}" if has_torch() else "(PyTorch is not installed)"
    console(f"m = {WIDTH}, scale {SCALE:g}, columns centred and scaled; processor time")
    console(
        f"{'table':<18}{'size':>10}{'explain':>11}  {'whole':<6}{'jumps':>6}{'loss':>16}  {loop}"
    )
    rows = []
    for name, table in frames().items():
        rows.append(measure(name, table()))
        console(line(rows[-1]))
    return rows


if __name__ == "__main__":
    run()
