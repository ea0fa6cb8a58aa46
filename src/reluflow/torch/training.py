"""Training of the domino experiments: the recipe, batches on a device, resumable SGD, features."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from reluflow.arrays import AnyArray
from reluflow.errors import ReluflowError
from reluflow.runtime import Checkpoint, Interrupt, Progress
from reluflow.runtime.checkpoint import fingerprint
from reluflow.torch.dominoes import LABELS, Part, statistics


@dataclass(frozen=True)
class Recipe:
    """How a network is trained ([TK24]_ Appendix F.1; the values are the paper's).

    Attributes
    ----------
    epochs : int
    batch : int
    lr : float
        Largest step size: reached after a linear warm-up, then falling linearly to 0.
    warmup : float
        Share of the steps that are warm-up.
    momentum, weight_decay : float
        Nesterov momentum and decay of all parameters.
    flip : bool
        Mirror half of the training images.
    crop : int
        Shift training images by up to so many pixels (4 for the baseline on CIFAR-10 alone).
    """

    epochs: int = 256
    batch: int = 128
    lr: float = 0.125
    warmup: float = 0.125
    momentum: float = 0.9
    weight_decay: float = 5e-4
    flip: bool = True
    crop: int = 0

    def rate(self, step: int, steps: int) -> float:
        """Step size of one of ``steps`` steps."""
        warm = self.warmup * steps
        if step < warm:
            return self.lr * step / max(1.0, warm)
        return self.lr * max(0.0, (steps - step) / max(1.0, steps - warm))


def device_of(name: str = "auto") -> torch.device:
    """ "cpu", "cuda", "mps", or "auto": a GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        why = str(error).splitlines()[0][:120]
        raise ReluflowError(f"device {name!r} cannot be used here ({why}): try cpu") from None
    return device


class Batches:
    """Images on a device as bytes; batches are normalised, mirrored and shifted when drawn."""

    def __init__(self, part: Part, labels: str, device: torch.device) -> None:
        if labels not in LABELS:
            raise ReluflowError(f"labels must be one of {', '.join(LABELS)}, got {labels!r}")
        self.images = torch.from_numpy(np.ascontiguousarray(part.images)).to(device)
        self.labels = torch.from_numpy(getattr(part, labels).astype(np.int64)).to(device)
        shift, factor = statistics(part.images.shape[1])
        self.shift, self.factor = (torch.from_numpy(v).to(device) for v in (shift, factor))

    def __len__(self) -> int:
        return len(self.images)

    def normalized(self, images: Tensor) -> Tensor:
        """Bytes (n, H, W, 3) as floats (n, 3, H, W)."""
        return (images.permute(0, 3, 1, 2).float() / 255 - self.shift) / self.factor

    def draw(self, rows: Tensor, recipe: Recipe, generator: torch.Generator) -> Tensor:
        """Training images, augmented."""
        images = self.images[rows]
        if recipe.flip:
            mirrored = torch.rand(len(rows), generator=generator) < 0.5
            images = torch.where(
                mirrored.to(images.device)[:, None, None, None], images.flip(2), images
            )
        if recipe.crop:
            images = _shift(images, recipe.crop, generator)
        return self.normalized(images)


def _shift(images: Tensor, most: int, generator: torch.Generator) -> Tensor:
    """Each image shifted by its own (dy, dx), black where nothing is known."""
    n, height, width, _ = images.shape
    padded = nn.functional.pad(images, (0, 0, most, most, most, most))
    off = torch.randint(0, 2 * most + 1, (2, n, 1), generator=generator).to(images.device)
    rows = off[0] + torch.arange(height, device=images.device)
    columns = off[1] + torch.arange(width, device=images.device)
    which = torch.arange(n, device=images.device)[:, None, None]
    return padded[which, rows[:, :, None], columns[:, None, :]]


def extract(
    model: nn.Module, part: Part, device: torch.device | None = None, batch: int = 512
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Features (n, k) and scores (n, classes) of all images, in evaluation mode."""
    where = device or next(model.parameters()).device
    data = Batches(part, "objects", where)
    was, found = model.training, []
    model.eval()
    with torch.no_grad():
        for start in range(0, len(data), batch):
            inside = model.features(data.normalized(data.images[start : start + batch]))  # type: ignore[operator]
            found.append((inside.cpu().numpy(), model.fc(inside).cpu().numpy()))  # type: ignore[operator]
    model.train(was)
    return np.concatenate([f for f, _ in found]), np.concatenate([s for _, s in found])


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
        records = [{"epoch": 0, **_look(look, look_at, 0, model)}]
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
                    **_look(look, look_at, epoch, model),
                }
            )
            saved.write(_state(model, optimizer, records))
            bar.update(epoch, time.monotonic() - began, f"loss {loss:.3g}, right {right:.1%}")
            if stop.requested:
                break
    return records


def _look(look: Look | None, at: Sequence[int], epoch: int, model: nn.Module) -> dict[str, Any]:
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
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        with torch.no_grad():
            total += torch.stack([loss * len(rows), (scores.argmax(1) == y).sum()])
    loss_sum, right = (total / len(data)).tolist()
    return loss_sum, right


def _state(model: nn.Module, optimizer: Any, records: list[dict[str, Any]]) -> dict[str, AnyArray]:
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
