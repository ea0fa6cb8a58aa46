"""Two-layer models between PyTorch and the library, weight by weight."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.network import Network

_SILENT = (nn.Flatten, nn.Identity, nn.Dropout)  # change no number at evaluation
_EXPECTED = "expected nn.Sequential(Linear, ReLU or LeakyReLU, Linear)"


def from_torch(
    model: nn.Module, *, output: int | None = None, leak: float | None = None, bias: float = 1.0
) -> Network:
    r"""The :class:`reluflow.Network` that a two-layer PyTorch model is.

    .. math:: f(x) = \sum_j a_j \phi(\langle w_j, x \rangle + b_j)

    Parameters
    ----------
    model : torch.nn.Module
        ``nn.Sequential(Linear, ReLU | LeakyReLU, Linear)`` or any module made of these in this
        order; Flatten, Dropout and Identity are passed over. The last layer has no bias, or a
        bias of 0: the library's model has none there.
    output : int, optional
        Which output to take when the last layer has several.
    leak : float, optional
        Slope on negative inputs, for a model that applies its activation as a function.
    bias : float
        Value of the constant feature that stands for the first layer's bias; its column of ``W``
        is b / bias.

    Returns
    -------
    Network
        In float64; the weights are the model's own, to the last digit.
    """
    first, last, slope = _layers(model, leak)
    W = first.weight.detach().cpu().numpy().astype(np.float64)
    A = last.weight.detach().cpu().numpy().astype(np.float64)
    if A.shape[0] > 1 and output is None:
        raise ReluflowError(
            f"the model has {A.shape[0]} outputs, a Network has one: choose one with output="
        )
    row = 0 if output is None else output
    if not -A.shape[0] <= row < A.shape[0]:
        raise ReluflowError(f"output {row} does not exist: the model has {A.shape[0]}")
    if last.bias is not None and float(last.bias.detach()[row]) != 0.0:
        raise ReluflowError(
            f"the last layer has a bias of {float(last.bias.detach()[row]):g}, the library's model "
            "has none there: build it with Linear(..., bias=False)"
        )
    if first.bias is None:
        return Network(W, A[row], leak=slope)
    b = first.bias.detach().cpu().numpy().astype(np.float64)
    return Network(np.hstack([W, b[:, None] / bias]), A[row], leak=slope, bias=bias)


def _layers(model: nn.Module, leak: float | None) -> tuple[nn.Linear, nn.Linear, float]:
    """The two linear layers and the slope of the activation between them."""
    leaves: list[Any] = [
        m for m in model.modules() if not list(m.children()) and not isinstance(m, _SILENT)
    ]
    names = ", ".join(type(m).__name__ for m in leaves) or "nothing"
    linear = [m for m in leaves if isinstance(m, nn.Linear)]
    if len(linear) != 2 or linear[0].out_features != linear[1].in_features:
        raise ReluflowError(f"the model is not a two-layer network: {_EXPECTED}, got {names}")
    between = leaves[1:-1] if leaves[0] is linear[0] and leaves[-1] is linear[1] else [None, None]
    if not between and leak is not None:
        return linear[0], linear[1], float(leak)
    if len(between) == 1 and isinstance(between[0], nn.ReLU | nn.LeakyReLU):
        slope = getattr(between[0], "negative_slope", 0.0)
        if leak is not None and leak != slope:
            raise ReluflowError(f"the activation has slope {slope:g} on negatives, leak={leak:g}")
        return linear[0], linear[1], float(slope)
    hint = "; if it applies its activation as a function, give leak=" if not between else ""
    raise ReluflowError(f"the model is not a two-layer network: {_EXPECTED}, got {names}{hint}")


class TwoLayer(nn.Sequential):
    """Linear, ReLU or LeakyReLU, Linear, which takes features with or without a constant column.

    The constant feature of a problem is the bias of the first layer here: a last column that
    holds it (as ``problem.X`` has) is left out, one with other values is refused. Arrays and
    frames are taken too.
    """

    def __init__(self, *layers: nn.Module, constant: float | None = None) -> None:
        super().__init__(*layers)
        self.constant = constant

    def forward(self, x: Any) -> Any:
        """Outputs (n, 1) at the rows of x."""
        first: Any = self[0]
        if not isinstance(x, torch.Tensor):
            x = torch.as_tensor(np.array(x, dtype=np.float64), dtype=first.weight.dtype)
        d, given = first.in_features, x.shape[-1]
        if self.constant is not None and given == d + 1:
            same = torch.compiler.is_compiling() or bool((x[..., -1] == self.constant).all())
            if not same:
                raise ReluflowError(
                    f"x has {given} columns and the last is not the constant {self.constant:g}: "
                    f"expected {d} features, with or without it"
                )
            x = x[..., :-1]
        elif given != d:
            more = "" if self.constant is None else f", or {d + 1} with the constant as the last"
            raise ReluflowError(f"x has {given} columns: expected {d} features{more}")
        return super().forward(x)  # type: ignore[no-untyped-call]


@check_arguments
def to_torch(net: Network, *, dtype: torch.dtype = torch.float64) -> nn.Sequential:
    """The PyTorch model with the weights of a :class:`reluflow.Network`.

    Parameters
    ----------
    net : Network
        Weights; a ``log_scale`` is multiplied out, which floats must be able to hold.
    dtype : torch.dtype
        float64 keeps every digit.

    Returns
    -------
    torch.nn.Sequential
        Linear, ReLU or LeakyReLU, Linear without bias; the first layer has a bias if the network
        has a constant feature. It takes the features alone, as well as ``problem.X`` with the
        constant as its last column. Outputs have shape (n, 1).
    """
    W, a = net.weights()
    lost = (W == 0.0) & (net.W != 0.0)
    small = torch.finfo(dtype).smallest_normal
    if lost.any() or (np.abs(a) < small)[net.a != 0.0].any():
        raise ReluflowError(
            f"weights down to exp({float(np.min(net.log_factors)):.4g}) do not fit into {dtype}: "
            "use net.scaled() to enlarge them first"
        )
    d = net.d - (net.bias is not None)
    first = nn.Linear(d, net.m, bias=net.bias is not None, dtype=dtype)
    last = nn.Linear(net.m, 1, bias=False, dtype=dtype)
    between: nn.Module = nn.LeakyReLU(net.leak) if net.leak else nn.ReLU()
    with torch.no_grad():
        first.weight.copy_(torch.from_numpy(np.array(W[:, :d])))
        last.weight.copy_(torch.from_numpy(np.array(a[None])))
        if net.bias is not None:
            first.bias.copy_(torch.from_numpy(W[:, d] * net.bias))
    return TwoLayer(first, between, last, constant=net.bias)
