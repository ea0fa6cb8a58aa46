"""What a monitor reads off a layer, and measures at one step; nothing here changes the model."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from reluflow.arrays import AnyArray
from reluflow.errors import ReluflowError

KINDS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


@dataclass(eq=False)
class Layer:
    """A watched layer; neuron j is row j of its weights, flattened, with its bias at the end.

    ``rows`` are the neurons that are followed one by one, ``after`` the next layer if its inputs
    are this layer's outputs, ``last`` whether the model lists no layer after it.
    """

    name: str
    module: nn.Module
    rows: Tensor
    after: nn.Module | None = None
    last: bool = False
    top: Tensor | None = field(default=None)  # estimate of the top singular vector

    @property
    def title(self) -> str:
        """Path in the model, kind and width: ``features.0, Conv2d 3 to 16``."""
        shape = self.weight.shape
        return f"{self.name}, {type(self.module).__name__} {shape[1]} to {shape[0]}"

    @property
    def weight(self) -> Tensor:
        """The weights, one neuron first."""
        weight: Tensor = self.module.weight  # type: ignore[assignment]
        return weight

    @property
    def parts(self) -> list[Tensor]:
        """Weight and, if there is one, bias."""
        bias = self.module.bias
        return [self.weight] if bias is None else [self.weight, bias]  # type: ignore[list-item]

    def neurons(self, parts: list[Tensor]) -> Tensor:
        """Followed neurons (k, d), d counting the bias; of weights or of gradients."""
        return torch.cat(
            [part.flatten(1) if part.ndim > 1 else part[:, None] for part in parts], 1
        )[self.rows]

    def outgoing(self) -> Tensor | None:
        """Squared norm of what leaves each followed neuron, None without a next layer."""
        if self.after is None:
            return None
        weight: Tensor = self.after.weight  # type: ignore[assignment]
        m = self.weight.shape[0]
        if isinstance(self.after, nn.Linear):  # one column, or one block after flattening
            squares = weight.square().reshape(weight.shape[0], m, -1)
            return squares.sum(dim=(0, 2))[self.rows]
        return weight.square().transpose(0, 1).flatten(1).sum(1)[self.rows]

    def spectral_norm(self, iterations: int = 3) -> Tensor:
        """Largest singular value by power iteration, going on from the last call."""
        W = self.weight.flatten(1)
        if self.top is None or self.top.device != W.device:
            self.top, iterations = W.new_ones(W.shape[1]), 20
        for _ in range(iterations):
            v = W.T @ (W @ self.top)
            self.top = v / v.norm().clamp_min(torch.finfo(v.dtype).tiny)
        norm: Tensor = (W @ self.top).norm()
        return norm

    @property
    def lists_inputs(self) -> bool:
        """Whether :meth:`inputs` can be asked: linear layers and 2-d convolutions."""
        if isinstance(self.module, nn.Conv2d):
            return self.module.groups == 1 and not isinstance(self.module.padding, str)
        return isinstance(self.module, nn.Linear)

    def inputs(self, x: Tensor, per_sample: int, generator: torch.Generator) -> Tensor:
        """What the neurons are multiplied with: (n, p, d), p patches of each sample for a
        convolution (drawn if there are more), with a constant 1 where there is a bias."""
        conv = self.module
        if isinstance(conv, nn.Linear):
            rows = x.reshape(len(x), -1, x.shape[-1])
        elif not isinstance(conv, nn.Conv2d) or isinstance(conv.padding, str):
            raise ReluflowError(
                f"{self.name} does not list its inputs: expected a linear layer or a 2-d "
                "convolution with its padding in pixels"
            )
        else:
            rows = nn.functional.unfold(
                x,
                conv.kernel_size,
                conv.dilation,
                conv.padding,
                conv.stride,
            ).transpose(1, 2)
        if rows.shape[1] > per_sample:
            rows = rows[:, torch.randperm(rows.shape[1], generator=generator)[:per_sample]]
        if self.module.bias is not None:
            rows = torch.cat([rows, torch.ones_like(rows[..., :1])], dim=-1)
        return rows


def find_layers(
    model: nn.Module, names: list[str] | None, neurons: int, generator: torch.Generator
) -> list[Layer]:
    """The layers to watch, in the order in which the model lists them."""
    known = {n: m for n, m in model.named_modules() if isinstance(m, KINDS)}
    wanted = list(known) if names is None else names
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        listed = ", ".join(known) or "none"
        raise ReluflowError(
            f"no layer {', '.join(map(repr, unknown)) or 'at all'} to watch: expected linear or "
            f"convolutional layers of the model, which has {listed}"
        )
    order = list(known)
    layers = []
    for name in wanted:
        module = known[name]
        count = module.weight.shape[0]
        rows = torch.randperm(count, generator=generator)[:neurons].sort().values
        following = order.index(name) + 1
        last = following == len(order)
        after = None if last else known[order[following]]
        if after is not None and not _fits(module, after):
            after = None
        layers.append(Layer(name, module, rows.to(module.weight.device), after, last))
    return layers


def _fits(module: nn.Module, after: nn.Module) -> bool:
    """Whether the outputs of a layer can be the inputs of the next one listed."""
    outside = int(module.weight.shape[0])  # type: ignore[index]
    inside = int(after.weight.shape[1])  # type: ignore[index]
    if isinstance(after, nn.Linear) and not isinstance(module, nn.Linear):
        return inside % outside == 0
    return bool(inside == outside and isinstance(after, nn.Linear) == isinstance(module, nn.Linear))


@contextlib.contextmanager
def given_to(layers: list[Layer]) -> Iterator[dict[str, Tensor]]:
    """What each layer is given when the model runs inside, by name."""
    given: dict[str, Tensor] = {}

    def keeper(name: str) -> Callable[[nn.Module, Any], None]:
        def keep(module: nn.Module, arguments: Any) -> None:
            given.setdefault(name, arguments[0].detach())

        return keep

    hooks = [layer.module.register_forward_pre_hook(keeper(layer.name)) for layer in layers]
    try:
        yield given
    finally:
        for hook in hooks:
            hook.remove()


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


def measure(layer: Layer, gradient: list[Tensor] | None) -> dict[str, AnyArray]:
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
