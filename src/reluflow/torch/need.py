"""One sentence where PyTorch is missing."""

from __future__ import annotations

import importlib
from typing import Any

from reluflow.errors import ReluflowError


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
