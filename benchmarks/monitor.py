"""What a Monitor costs at its default settings: the same training with and without it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from reluflow.errors import ReluflowError
from reluflow.torch import need_torch

MODELS = ("MLP 784-256-10", "CNN of three convolutions, 64 x 32")


def run(console: Callable[[str], object] = print, seconds: float = 10.0) -> list[dict[str, Any]]:
    """Print the ratio of the time per step, measured in turns within one run; the rows."""
    try:
        torch = need_torch()
    except ReluflowError as missing:
        console(f"monitor benchmark skipped: {missing}")
        return []
    from torch import nn

    from reluflow.torch import Monitor, SmallCNN

    def mlp() -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))

    shapes = {MODELS[0]: (mlp, (64, 1, 28, 28)), MODELS[1]: (lambda: SmallCNN(16), (64, 3, 64, 32))}
    console(f"{'monitor at default settings':<38}{'ratio':>8}{'records':>9}{'own share':>11}")
    rows: list[dict[str, Any]] = []
    for name, (build, shape) in shapes.items():
        torch.manual_seed(0)
        x, y = torch.randn(512, *shape[1:]), torch.randint(10, (512,))
        model = build()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

        def step(model: nn.Module = model, optimizer: object = optimizer, x=x, y=y) -> None:
            chosen = torch.randint(512, (64,))
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[chosen]), y[chosen]).backward()
            optimizer.step()

        for _ in range(20):
            step()
        monitor = Monitor(model, data=(x, y))
        spent, counts = [0.0, 0.0], [0, 0]
        began, turn = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:  # turns of 20 steps, bare and watched
            start = time.perf_counter()
            for _ in range(20):
                step()
                if turn:
                    monitor.step()
            took = time.perf_counter() - start
            spent[turn] += took
            if not turn:
                monitor._began += took  # its budget is a share of the watched loop alone
            counts[turn] += 20
            turn = 1 - turn
        ratio = (spent[1] / counts[1]) / (spent[0] / counts[0])
        share = monitor._spent / spent[1]
        console(f"{name:<38}{ratio:8.3f}{len(monitor.records):9d}{share:11.1%}")
        records = len(monitor.records)
        rows.append({"name": name, "ratio": ratio, "records": records, "own_share": share})
    return rows


if __name__ == "__main__":
    run()
