"""Types of arrays, and the checks an array or a number passes when it enters the library."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluflow.errors import ReluflowError
from reluflow.runtime.words import plural

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]
AnyArray = NDArray[Any]  # of numbers, text or flags
Rng = int | np.random.Generator | np.random.SeedSequence | None
Sides = NDArray[np.int8]  # -1, 0 or 1 per sample: the side of a kink a neuron is on


def frozen_array(value: ArrayLike, name: str, ndim: int) -> Array:
    """A read-only float64 copy of ``value``, or a sentence saying why not."""
    try:
        if np.iscomplexobj(value):
            raise TypeError
        array = np.array(value, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError):
        raise ReluflowError(
            f"{name} holds entries that are not real numbers: expected a numeric array, "
            "convert or drop the other columns"
        ) from None
    if array.ndim != ndim:
        raise ReluflowError(
            f"{name} has {array.ndim} dimension(s), expected {ndim}: got shape {array.shape}"
            + (", use X.reshape(-1, 1) for one feature" if ndim == 2 and array.ndim == 1 else "")
        )
    finite = np.isfinite(array)
    if not finite.all():
        bad = np.argwhere(~finite)
        place = ", ".join(str(i) for i in bad[0])
        raise ReluflowError(
            f"{name}[{place}] is {array[tuple(bad[0])]}: expected finite numbers only, "
            f"drop or fill the {len(bad)} offending {plural(len(bad), 'entry', 'entries')}"
        )
    array.setflags(write=False)
    return array


def real_number(value: Any, name: str) -> float:
    """``value`` as a float, or a sentence saying why not."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        got = " ".join(repr(value).split())
        raise ReluflowError(f"{name} must be a number, got {got:.60}") from None


def whole_number(value: Any, name: str, least: int, most: int) -> int:
    """``value`` as an int from ``least`` to ``most``, or a sentence saying why not.

    What is not a whole number, an infinity among them, is refused and not rounded.
    """
    real = isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_)
    if not real and isinstance(value, float | np.floating) and float(value).is_integer():
        value, real = int(value), True
    if not real or not least <= value <= most:
        raise ReluflowError(
            f"{name} must be a whole number from {least:,} to {most:,}, got {value!r}"
        )
    return int(value)


def generator_of(rng: Rng) -> np.random.Generator:
    """The generator meant by an ``rng=`` argument."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise ReluflowError(
            f"rng must be a seed >= 0, a Generator, a SeedSequence or None, got {rng!r}"
        ) from None


def decay_rate(value: Any) -> float:
    """A weight decay as a float, or a sentence saying why not."""
    rate = real_number(value, "weight_decay")
    if not 0.0 <= rate < np.inf:
        raise ReluflowError(
            f"weight_decay must be finite and not negative, got {value!r}: 0 is none"
        )
    return rate


def row_norms(W: Array) -> Array:
    """Norms of rows, safe for entries as small as the smallest float."""
    top = np.max(np.abs(W), axis=1)
    safe = np.where(top > 0, top, 1.0)
    norms: Array = top * np.linalg.norm(W / safe[:, None], axis=1)
    return norms
