"""JSON of what the library holds: arrays, dataclasses and numbers that are not finite."""

from __future__ import annotations

import json
import math
from typing import Any


def to_plain(value: Any) -> Any:
    """Dictionaries, lists, numbers and text only.

    Arrays become lists and dataclasses dictionaries; NaN becomes null and an infinity the text
    "inf" or "-inf", since JSON has no such numbers; anything else becomes its text.
    """
    if isinstance(value, dict):
        return {str(k): to_plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(v) for v in value]
    if hasattr(value, "tolist"):
        return to_plain(value.tolist())
    if hasattr(value, "__dataclass_fields__"):
        return {name: to_plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def json_text(value: Any) -> str:
    """The value as indented JSON."""
    return json.dumps(to_plain(value), indent=2)
