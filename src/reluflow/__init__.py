"""What a two-layer ReLU network learns when training starts from small weights.

Public names are imported on first use, so that ``import reluflow`` stays quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from reluflow._version import __version__
from reluflow.errors import ReluflowError

if TYPE_CHECKING:
    from reluflow.descent import descend
    from reluflow.network import Network, axis_start, initialize
    from reluflow.problem import Problem, datasets, losses
    from reluflow.trajectory import Trajectory, cosines, every, geometric, when

# name -> module that holds it (the module itself when the name is a submodule)
_HOMES = {
    "Problem": "reluflow.problem",
    "losses": "reluflow.problem.losses",
    "datasets": "reluflow.problem.datasets",
    "Network": "reluflow.network",
    "initialize": "reluflow.network",
    "axis_start": "reluflow.network",
    "descend": "reluflow.descent",
    "Trajectory": "reluflow.trajectory",
    "cosines": "reluflow.trajectory",
    "every": "reluflow.trajectory",
    "geometric": "reluflow.trajectory",
    "when": "reluflow.trajectory",
}

__all__ = [
    "Network",
    "Problem",
    "ReluflowError",
    "Trajectory",
    "__version__",
    "axis_start",
    "cosines",
    "datasets",
    "descend",
    "every",
    "geometric",
    "initialize",
    "losses",
    "when",
]


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module 'reluflow' has no attribute {name!r}") from None
    module = importlib.import_module(home)
    value = module if home.rpartition(".")[2] == name else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
