"""What a network is trained on: the recipe, batches on a device, features of all images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from reluflow.errors import ReluflowError
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
            images = _shifted(images, recipe.crop, generator)
        return self.normalized(images)


def _shifted(images: Tensor, most: int, generator: torch.Generator) -> Tensor:
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
