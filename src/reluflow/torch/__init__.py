"""Measurements of the library on networks people train with PyTorch; `pip install reluflow[torch]`.

Nothing here imports torch before it is used. Readers of images, the dominoes and the probes need
no torch at all.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from reluflow._lazy import LazyPackage, make_lazy
from reluflow.errors import ReluflowError

if TYPE_CHECKING:
    from reluflow.torch.convert import from_torch, to_torch
    from reluflow.torch.dominoes import dominoes
    from reluflow.torch.images import cifar10_images, mnist_images
    from reluflow.torch.models import ResNet18, SmallCNN, scale_parameters
    from reluflow.torch.monitor import Monitor
    from reluflow.torch.probe import Probe
    from reluflow.torch.simplicity import simplicity_bias
    from reluflow.torch.training import Recipe, train

# name -> module that holds it
_HOMES = {
    "from_torch": "reluflow.torch.convert",
    "to_torch": "reluflow.torch.convert",
    "Monitor": "reluflow.torch.monitor",
    "mnist_images": "reluflow.torch.images",
    "cifar10_images": "reluflow.torch.images",
    "dominoes": "reluflow.torch.dominoes",
    "ResNet18": "reluflow.torch.models",
    "SmallCNN": "reluflow.torch.models",
    "scale_parameters": "reluflow.torch.models",
    "Recipe": "reluflow.torch.training",
    "train": "reluflow.torch.training",
    "Probe": "reluflow.torch.probe",
    "simplicity_bias": "reluflow.torch.simplicity",
}

__all__ = [
    "Monitor",
    "Probe",
    "Recipe",
    "ResNet18",
    "SmallCNN",
    "cifar10_images",
    "dominoes",
    "from_torch",
    "mnist_images",
    "scale_parameters",
    "simplicity_bias",
    "to_torch",
    "train",
]

_WITHOUT_TORCH = ("mnist_images", "cifar10_images", "dominoes", "Probe", "simplicity_bias")


def need_torch() -> Any:
    """The module ``torch``, or an error that says how to get it."""
    try:
        importlib.import_module("torch.nn")  # an empty folder "torch" has no such part
        return importlib.import_module("torch")
    except ImportError:
        raise ReluflowError(
            "this part needs PyTorch, which is not installed: pip install 'reluflow[torch]'"
        ) from None


def has_torch() -> bool:
    """Whether PyTorch can be imported."""
    try:
        need_torch()
    except ReluflowError:
        return False
    return True


class _Package(LazyPackage):
    """Says how to get PyTorch when a name that needs it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name in _HOMES and name not in _WITHOUT_TORCH:
            need_torch()
        return super().__getattr__(name)


make_lazy(__name__, _HOMES)
sys.modules[__name__].__class__ = _Package
