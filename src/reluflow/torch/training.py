"""Training of the domino experiments: SGD with Nesterov momentum, resumable epoch by epoch."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from reluflow.runtime import Checkpoint, Interrupt, Progress
from reluflow.runtime.checkpoint import fingerprint
from reluflow.torch.batches import Batches, Recipe, device_of
from reluflow.torch.dominoes import Part

Look = Callable[[int, nn.Module], Mapping[str, Any]]


def train(
    model: nn.Module,
    part: Part,
    recipe: Recipe,
    *,
    labels: str = "objects",
    seed: int = 0,
    device: str = "auto",
    look: Look | None = None,
    look_at: Sequence[int] = (),
    checkpoint: str | os.PathLike[str] | None = None,
    until: int | None = None,
    progress: bool | str = "auto",
) -> list[dict[str, Any]]:
    """Train a model; killed and called again it continues with the same numbers.

    Parameters
    ----------
    model : torch.nn.Module
        Trained in place.
    part : Part
        Training images.
    recipe : Recipe
    labels : {"objects", "digits"}
        What the network is to learn.
    seed : int
        Of the order of images and their augmentation; every epoch has its own generator.
    device : str
        "cpu", "cuda" or "auto".
    look : function, optional
        Called as ``look(epoch, model)`` at the epochs of ``look_at``, 0 being before training; what
        it returns is added to the record of that epoch.
    look_at : epochs
    checkpoint : path, optional
        File with the whole state, written after every epoch and kept at the end.
    until : int, optional
        Stop after this epoch; the schedule stays that of ``recipe.epochs``.
    progress : bool or "auto"

    Returns
    -------
    list of dict
        One record an epoch: ``epoch``, mean ``loss``, share of training images ``right`` and what
        ``look`` said.
    """
    where = device_of(device)
    model.to(where, memory_format=torch.channels_last)  # type: ignore[call-overload]
    data = Batches(part, labels, where)
    optimizer = torch.optim.SGD(
        model.parameters(),
        lr=recipe.lr,
        momentum=recipe.momentum,
        nesterov=recipe.momentum > 0,
        weight_decay=recipe.weight_decay,
    )
    start = {name: value.cpu().numpy() for name, value in model.state_dict().items()}
    about = {**asdict(recipe), "labels": labels, "seed": seed, "look_at": sorted(look_at)}
    start["data"] = np.array([len(data), int(part.images[:: max(1, len(data) // 64)].sum())])
    saved = Checkpoint(checkpoint, fingerprint(start, about), 0.0)
    records = _restore(saved, model, optimizer)
    last = recipe.epochs if until is None else min(until, recipe.epochs)
    if not records:
        records = [{"epoch": 0, **_looked(look, look_at, 0, model)}]
        saved.write(_state(model, optimizer, records))
    began, first = time.monotonic(), len(records) - 1
    with Interrupt() as stop, Progress(last, "train", progress) as bar:
        for epoch in range(first + 1, last + 1):
            loss, right = _epoch(model, data, recipe, optimizer, epoch - 1, seed)
            records.append(
                {
                    "epoch": epoch,
                    "loss": loss,
                    "right": right,
                    **_looked(look, look_at, epoch, model),
                }
            )
            saved.write(_state(model, optimizer, records))
            bar.update(epoch, time.monotonic() - began, f"loss {loss:.3g}, right {right:.1%}")
            if stop.requested:
                break
    return records


def _looked(look: Look | None, at: Sequence[int], epoch: int, model: nn.Module) -> dict[str, Any]:
    return {} if look is None or epoch not in at else dict(look(epoch, model))


def _epoch(
    model: nn.Module, data: Batches, recipe: Recipe, optimizer: Any, epoch: int, seed: int
) -> tuple[float, float]:
    """Mean loss and share of right answers of one pass."""
    generator = torch.Generator().manual_seed((seed << 20) + epoch)
    order = torch.randperm(len(data), generator=generator)
    each = -(-len(data) // recipe.batch)
    steps = each * recipe.epochs
    total = torch.zeros(2, device=data.images.device)
    model.train()
    for i in range(each):
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate(epoch * each + i, steps)
        rows = order[i * recipe.batch : (i + 1) * recipe.batch].to(data.images.device)
        y = data.labels[rows]
        scores = model(data.draw(rows, recipe, generator))
        loss = nn.functional.cross_entropy(scores, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            total += torch.stack([loss * len(rows), (scores.argmax(1) == y).sum()])
    loss_sum, right = (total / len(data)).tolist()
    return loss_sum, right


def _state(model: nn.Module, optimizer: Any, records: list[dict[str, Any]]) -> dict[str, NDArray]:
    """Weights, statistics, momentum and records as arrays: no pickle."""
    state = {f"model/{k}": v.cpu().numpy() for k, v in model.state_dict().items()}
    for k, parameter in enumerate(model.parameters()):
        buffer = optimizer.state.get(parameter, {}).get("momentum_buffer")
        if buffer is not None:
            state[f"momentum/{k}"] = buffer.cpu().numpy()
    return {**state, "records": np.array(json.dumps(records))}


def _restore(saved: Checkpoint, model: nn.Module, optimizer: Any) -> list[dict[str, Any]]:
    """Put a saved state back; the records so far, none when nothing was saved."""
    state = saved.read()
    if state is None:
        return []
    parts = {k[6:]: torch.from_numpy(v) for k, v in state.items() if k.startswith("model/")}
    model.load_state_dict(parts)
    for k, parameter in enumerate(model.parameters()):
        if f"momentum/{k}" in state:
            buffer = torch.from_numpy(state[f"momentum/{k}"]).to(parameter.device)
            kept = torch.empty_like(parameter).copy_(buffer)  # in the parameter's memory format
            optimizer.state[parameter] = {"momentum_buffer": kept}
    return list(json.loads(str(state["records"])))
