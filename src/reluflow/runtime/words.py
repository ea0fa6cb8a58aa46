"""Counts, lists and numbers as they stand in a sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence

_SMALL = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
LISTED = 8  # items of a list before the rest is only counted
WHOLE = 1e-8  # of a whole that may be missing from what is called all of it


def plural(number: int, thing: str, things: str = "") -> str:
    """``thing`` or its plural: ``plural(2, "entry", "entries")``."""
    return thing if number == 1 else things or thing + "s"


def count(number: int, thing: str, things: str = "") -> str:
    """``count(1, "neuron")`` is "one neuron"; numbers up to ten in words."""
    word = _SMALL[number] if number < len(_SMALL) else f"{number:,}"
    return f"{word} {plural(number, thing, things)}"


def join(items: Sequence[str], most: int = LISTED) -> str:
    """``a, b and c``; beyond ``most`` items the rest is counted."""
    if len(items) > most:
        return ", ".join(items[:most]) + f" and {len(items) - most:,} more"
    if len(items) < 2:
        return "".join(items)
    return ", ".join(items[:-1]) + " and " + items[-1]


def number(value: float) -> str:
    """Six digits, and 0 without a point."""
    return "0" if value == 0.0 else f"{value:.6g}"


def share(part: float, whole: float) -> str:
    """``99.98 %`` of a whole, never rounded up to all of it."""
    rest = max(1.0 - part / whole, 0.0)
    if rest <= WHOLE:
        return "100 %"
    digits = max(1, -math.floor(math.log10(100.0 * rest)) + 1)
    return f"{math.floor(100.0 * (1.0 - rest) * 10**digits) / 10**digits:.{digits}f} %"


def percent(value: float) -> str:
    """``+1.3 %``; what rounds to nothing has no sign."""
    shown = f"{100 * value:+.1f}"
    return f"{shown if float(shown) else '0.0'} %"
