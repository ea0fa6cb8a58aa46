"""What an argument is, checked at the door: a wrong one is one sentence with a remedy.

`check_arguments` reads the annotations of a public function, which say what it takes, and checks
the arguments of each call against them: whole numbers, numbers, texts, flags, paths, arrays, and
objects of the library. What an annotation does not say (shapes, ranges, allowed texts) the function
checks itself.
"""

from __future__ import annotations

import functools
import inspect
import numbers
import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from reluflow.errors import ReluflowError

F = TypeVar("F", bound=Callable[..., Any])
_LARGEST = 2**63 - 1

#: type -> how to come by one
_REMEDIES = {
    "Problem": "make one with Problem(X, y) or take one of reluflow.datasets",
    "Network": "make one with initialize(problem, m) or Network(W, a)",
    "Trajectory": "give what flow(problem, net) or descend(problem, net, ...) returned",
    "JumpProcess": "give what limit(problem, net) returned",
    "Alignment": "give what align(problem, net) returned",
    "ExtremalVectors": "give what extremal_vectors(problem) returned",
    "Explanation": "give what explain(problem) returned",
    "Certificate": "give one of certificates(problem, net)",
    "Axes": "make them with fig, ax = plt.subplots(), or leave ax out",
}


def _is_number(value: Any) -> bool:
    plain = isinstance(value, numbers.Real | np.number) and not isinstance(value, complex)
    if isinstance(value, np.ndarray):
        plain = value.ndim == 0 and value.dtype.kind in "iuf"
    return plain and not isinstance(value, bool | np.bool_ | np.complexfloating)


def _is_float(value: Any) -> bool:
    if not _is_number(value):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def _is_whole(value: Any) -> bool:
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool | np.bool_)
    return whole and abs(int(value)) <= _LARGEST


def _is_numeric_array(value: Any) -> bool:
    if isinstance(value, str | bytes | dict | set) or callable(value):
        return False
    try:
        array = np.asarray(value)
        return array.dtype.kind in "iufb" or (
            array.dtype.kind == "O" and np.asarray(array, dtype=float).dtype.kind == "f"
        )
    except (TypeError, ValueError, OverflowError):
        return False


def _is_random_source(value: Any) -> bool:
    try:
        np.random.default_rng(value)
    except (TypeError, ValueError):
        return False
    return True


#: part of an annotation -> what it is called, and whether a value is that
_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "float": ("a number", _is_float),
    "int": ("a whole number", _is_whole),
    "bool": ("True or False", lambda v: isinstance(v, bool | np.bool_)),
    "str": ("a text", lambda v: isinstance(v, str)),
    "os.PathLike[str]": ("a path", lambda v: isinstance(v, os.PathLike)),
    "ArrayLike": ("an array of numbers", _is_numeric_array),
    "Array": ("an array of numbers", _is_numeric_array),
    "Sequence[float]": ("a list of numbers", _is_numeric_array),
    "Rng": ("a seed >= 0, a Generator, a SeedSequence or None", _is_random_source),
    "np.random.Generator": ("a Generator", lambda v: isinstance(v, np.random.Generator)),
    "Mapping[str, Any]": ("a mapping", lambda v: isinstance(v, Mapping)),
    "None": ("None", lambda v: v is None),
}


def _is_named(value: Any, name: str) -> bool:
    """Whether a value is of the class of this name, or of one derived from it."""
    return any(kind.__name__ == name for kind in type(value).__mro__)


def _complaint(value: Any, parts: list[str], name: str) -> str:
    """Why a value is not what an annotation says; empty if it is, or if that cannot be told."""
    named = []
    for part in parts:
        if part in _REMEDIES:
            if _is_named(value, part):
                return ""
            named.append(f"{'an' if part[0] in 'AEIOU' else 'a'} {part}")
        elif part in _KINDS:
            what, holds = _KINDS[part]
            if holds(value):
                return ""
            if part != "None":
                named.append(what)
        else:
            return ""
    remedy = _REMEDIES.get(parts[0])
    shown = type(value).__name__ if len(repr(value)) > 40 else repr(value)
    if type(value).__module__ == "numpy" and np.ndim(value):
        shown = f"an array of shape {np.shape(value)}"
    return f"{name} must be {' or '.join(named)}, got {shown}" + (f": {remedy}" if remedy else "")


def check_arguments(function: F) -> F:
    """Decorate a public function: arguments that its annotations exclude are refused in words."""
    signature = inspect.signature(function)
    parts = {
        name: [part.strip() for part in str(parameter.annotation).split("|")]
        for name, parameter in signature.parameters.items()
        if parameter.annotation is not parameter.empty
    }

    @functools.wraps(function)
    def checked(*args: Any, **options: Any) -> Any:
        try:
            given = signature.bind(*args, **options).arguments
        except TypeError:  # said better by the function itself
            return function(*args, **options)
        for name, value in given.items():
            if name in parts:
                complaint = _complaint(value, parts[name], name)
                if name in ("rng", "seed") and _is_whole(value) and value < 0:
                    complaint = f"{name} must be {_KINDS['Rng'][0]}, got {value}"
                if complaint:
                    raise ReluflowError(complaint)
        return function(*args, **options)

    return checked  # type: ignore[return-value]
