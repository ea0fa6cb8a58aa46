"""What a monitor measures at one step; nothing here changes the model."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from reluflow.errors import ReluflowError
from reluflow.torch.layers import Layer


class evaluating:
    """Context in which a model is in evaluation mode, each module's own mode being restored."""

    def __init__(self, model: nn.Module) -> None:
        self.modes = [(module, module.training) for module in model.modules()]

    def __enter__(self) -> None:
        for module, _ in self.modes:
            module.training = False

    def __exit__(self, *_: object) -> None:
        for module, mode in self.modes:
            module.training = mode


def default_loss(outputs: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy, logistic loss or half the mean square, by the shapes."""
    if outputs.ndim > 1 and outputs.shape[1] > 1:
        return nn.functional.cross_entropy(outputs, y)
    f, t = outputs.reshape(-1), y.reshape(-1).to(outputs.dtype)
    if bool((t.abs() == 1).all()):
        return nn.functional.softplus(-t * f).mean()
    return 0.5 * (f - t).square().mean()


def margins(outputs: Tensor, y: Tensor) -> tuple[float, float]:
    """Least and median margin: right score less the best other one, or y f(x)."""
    if outputs.ndim > 1 and outputs.shape[1] > 1:
        right = outputs.gather(1, y.reshape(-1, 1)).squeeze(1)
        other = outputs.scatter(1, y.reshape(-1, 1), -torch.inf).amax(1)
        all_of = right - other
    else:
        all_of = outputs.reshape(-1) * y.reshape(-1)
    return float(all_of.min()), float(all_of.median())


def measure(layer: Layer, gradient: list[Tensor] | None) -> dict[str, NDArray]:
    """Everything of one layer at one step, as arrays."""
    W = layer.neurons(layer.parts)
    norms = W.norm(dim=1)
    total = layer.weight.norm()
    out = {
        "norms": norms,
        "directions": W / norms.clamp_min(torch.finfo(W.dtype).tiny)[:, None],
        "frobenius": total,
        "stable_rank": (total / layer.spectral_norm().clamp_min(torch.finfo(W.dtype).tiny)) ** 2,
    }
    if gradient is not None:
        out["gradient_cosine"] = -nn.functional.cosine_similarity(
            W, layer.neurons(gradient), eps=torch.finfo(W.dtype).tiny
        )
    leaving = layer.outgoing()
    if leaving is not None:
        both = (norms.square() + leaving).clamp_min(torch.finfo(W.dtype).tiny)
        out["balance"] = (norms.square() - leaving) / both
    return {name: value.float().cpu().numpy() for name, value in out.items()}


def open_writer(writer: Any) -> Any:
    """A TensorBoard writer for a folder; anything with ``add_scalar`` is taken as it is."""
    if writer is None or hasattr(writer, "add_scalar"):
        return writer
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ReluflowError(
            f"writing {writer} needs TensorBoard, which is not installed: pip install tensorboard"
        ) from None
    return SummaryWriter(str(writer))


def write(writer: Any, record: dict[str, Any]) -> None:
    """Scalars of one record; arrays as their mean."""
    for name, value in record.items():
        if isinstance(value, dict):
            for what, array in value.items():
                if what != "directions":
                    writer.add_scalar(f"{name}/{what}", float(np.mean(array)), record["step"])
        elif name != "step":
            writer.add_scalar(f"model/{name}", float(value), record["step"])
