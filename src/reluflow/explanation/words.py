"""Names of samples and features, and numbers, in sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from reluflow.arrays import Array
from reluflow.prediction.views import NOTHING
from reluflow.problem import Problem

_NAMES = 8  # listed at most
NAMED = 2 * _NAMES  # samples beyond which only their number is said
_SMALL = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
SHOWN = 4  # directions described, jumps listed
ALL = 1e-8  # of a whole that may be missing from all of it
FAINT = 0.1  # of the strongest feature: below it a direction hardly reads a feature


def count(number: int, thing: str, plural: str = "") -> str:
    """``count(1, "neuron")`` is "one neuron"; numbers up to ten in words."""
    word = _SMALL[number] if number < len(_SMALL) else f"{number:,}"
    return f"{word} {thing if number == 1 else plural or thing + 's'}"


def listed(items: Sequence[str]) -> str:
    """``a, b and c``; a long list is cut."""
    if len(items) > _NAMES:
        return ", ".join(items[:_NAMES]) + f" and {len(items) - _NAMES:,} more"
    if len(items) < 2:
        return "".join(items)
    return ", ".join(items[:-1]) + " and " + items[-1]


def samples(index: Sequence[int], n: int) -> str:
    """``all 6 samples``, ``samples 0 and 3``, ``no sample``."""
    if len(index) == n:
        return {1: "the sample", 2: "both samples"}.get(n, f"all {n:,} samples")
    if not index:
        return "no sample"
    if len(index) > NAMED:
        return f"{len(index):,} of {n:,} samples"
    return ("sample " if len(index) == 1 else "samples ") + listed([str(k) for k in index])


def feature_names(problem: Problem) -> list[str]:
    """Column names of a file if known, else x0, x1, ...; the bias feature is "the constant"."""
    plain = problem.d - (problem.bias is not None)
    given = problem.known.get("features")
    if given is not None and len(given) == plain:
        names = [str(name) for name in given]
    else:
        names = ["x"] if plain == 1 else [f"x{i}" for i in range(plain)]
    return names + (["the constant"] if problem.bias is not None else [])


def strengths(problem: Problem, direction: Array) -> Array:
    """How much each feature moves <v, x>: |v_i| times the root mean square of the feature."""
    size = np.abs(direction) * np.sqrt(np.mean(problem.X**2, axis=0))
    top = float(size.max())
    return size / top if top > 0.0 else size


def reads(problem: Problem, direction: Array) -> str:
    """The features a direction reads, the strongest first, with their signs."""
    size, names = strengths(problem, direction), feature_names(problem)
    order = [i for i in np.argsort(-size, kind="stable") if size[i] >= FAINT]
    if problem.d > 30:
        return f"{len(order)} of {problem.d} features"
    return listed([f"{names[i]} ({'+' if direction[i] > 0 else '-'})" for i in order])


def number(value: float) -> str:
    """Six digits; tiny numbers are called 0 with their size."""
    return "0" if value == 0.0 else f"{value:.6g}"


def loss_number(value: float, first: float) -> str:
    """A loss; 0 where it is rounding beside the first one."""
    return "0" if value <= NOTHING * first else number(value)


def share(part: float, whole: float) -> str:
    """``99.98 %`` of a whole, never rounded up to all of it."""
    rest = max(1.0 - part / whole, 0.0)
    if rest <= ALL:
        return "100 %"
    digits = max(1, -math.floor(math.log10(100.0 * rest)) + 1)
    return f"{math.floor(100.0 * (1.0 - rest) * 10**digits) / 10**digits:.{digits}f} %"


def percent(value: float) -> str:
    """``+1.3 %``."""
    return f"{100 * value:+.1f} %"
