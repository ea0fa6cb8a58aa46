"""What a field of a sweep may hold: one value, a list of values, or a range."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from reluflow.errors import ReluflowError

_RANGE = {"from", "to", "num", "step", "log"}


def flatten(grid: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted name, specification) of each field of nested sections.

    >>> dict(flatten({"init": {"m": [2, 4]}, "clock.t_end": 5.0}))
    {'init.m': [2, 4], 'clock.t_end': 5.0}
    """
    for name, spec in grid.items():
        if not isinstance(name, str):
            raise ReluflowError(f"names of fields are text, got {name!r}")
        if isinstance(spec, Mapping) and not ({"from", "value"} & set(spec)):
            yield from flatten(spec, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", spec


def read_field(name: str, spec: Any) -> tuple[bool, list[Any]]:
    """(whether the field is swept, its values) of a specification.

    A list, array or range is swept; ``{"from": 1, "to": 9, "step": 2}`` and ``{"from": 1e-12,
    "to": 1.0, "num": 7, "log": True}`` are ranges, both ends included; ``{"value": [1, 2]}`` is a
    list that is one value.

    >>> read_field("init.m", {"from": 1, "to": 100, "num": 3, "log": True})
    (True, [1, 10, 100])
    """
    if isinstance(spec, Mapping):
        if set(spec) == {"value"}:
            return False, [plain(name, spec["value"], nested=True)]
        return True, _range(name, spec)
    if isinstance(spec, list | tuple | range | np.ndarray) and np.ndim(spec) > 0:
        values = [plain(name, value, nested=True) for value in spec]
        if not values:
            raise ReluflowError(f"{name} is an empty list: a sweep needs at least one value")
        texts = [repr(value) for value in values]
        if len(set(texts)) < len(texts):
            twice = next(text for text in texts if texts.count(text) > 1)
            raise ReluflowError(f"{name} lists {twice} twice: give each value once")
        return True, values
    return False, [plain(name, spec)]


def _range(name: str, spec: Mapping[str, Any]) -> list[Any]:
    wrong = set(spec) - _RANGE
    if wrong or not {"from", "to"} <= set(spec) or ("num" in spec) == ("step" in spec):
        raise ReluflowError(
            f"{name} is not a range: expected from, to and either num or step (and log with num), "
            f"got {', '.join(map(str, spec)) or 'nothing'}"
        )
    numbers = {key: plain(name, spec[key]) for key in ("from", "to", "num", "step") if key in spec}
    if not all(type(v) in (int, float) and math.isfinite(v) for v in numbers.values()):
        raise ReluflowError(f"{name} is not a range: from, to, num and step are finite numbers")
    low, high = numbers["from"], numbers["to"]
    whole = isinstance(low, int) and isinstance(high, int)
    if "step" in numbers:
        step = numbers["step"]
        count = (high - low) / step if step else -1.0
        if spec.get("log") or count < 0:
            raise ReluflowError(f"{name} is an empty range: step leads from `from` to `to`")
        made = low + step * np.arange(math.floor(count * (1 + 1e-12)) + 1)
        whole = whole and isinstance(step, int)
    else:
        num = numbers["num"]
        if type(num) is not int or num < 1:
            raise ReluflowError(f"{name} is an empty range: num is a whole number of at least 1")
        if not spec.get("log"):
            made = np.linspace(low, high, num)
        elif low > 0 and high > 0:
            made = np.geomspace(low, high, num)
        else:
            raise ReluflowError(f"{name} is logarithmic: from and to must be positive")
        whole = whole and (bool(spec.get("log")) or bool(np.all(made == np.rint(made))))
    return [int(v) for v in np.unique(np.rint(made))] if whole else [float(v) for v in made]


def plain(name: str, value: Any, nested: bool = False) -> Any:
    """A value JSON can hold, for settings."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if nested and isinstance(value, list | tuple | np.ndarray):
        return [plain(name, item, nested=True) for item in value]
    raise ReluflowError(
        f"{name} holds {type(value).__name__}: settings are numbers, text, true/false or lists of "
        "them"
    )
