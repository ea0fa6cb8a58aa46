"""Sizes that samples, labels and their pull may have: products of them stay within the floats."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reluflow.errors import ReluflowError

if TYPE_CHECKING:
    from reluflow.problem.problem import Problem

#: What is largest lies between these or is 0: third powers and their quotients are then floats.
#: The limit process was seen to overflow from 1e70 on.
SMALLEST, LARGEST = 1e-50, 1e50
#: The square of a smaller sample is near the end of floats, so that it has no direction.
FAINTEST = 1e-100


def check_sizes(problem: Problem) -> None:
    """Raise where products of the data, or of their pull on a silent network, leave the floats."""
    X = problem.X
    entries = np.maximum(X.max(axis=1), -X.min(axis=1))
    _check_largest(entries, "X[{}] has an entry", "rescale X")
    faint = np.flatnonzero((entries > 0.0) & (entries < FAINTEST))
    if faint.size:
        raise ReluflowError(
            f"X[{faint[0]}] has no entry larger than {entries[faint[0]]:.3g}: expected samples "
            f"that are 0 or at least {FAINTEST:g}, set such rows to 0"
        )
    labels = np.abs(problem.y)
    _check_largest(labels.max(axis=1) if problem.several else labels, "y[{}] is", "rescale y")
    rates = problem.pull_sizes * np.sqrt(np.einsum("ki,ki->k", X, X))
    _check_largest(rates, "sample {} has a slope of the loss times |x|", "rescale X or y")


def _check_largest(sizes: NDArray[np.float64], words: str, remedy: str) -> None:
    k = int(np.argmax(sizes))
    if sizes[k] != 0.0 and not SMALLEST <= sizes[k] <= LARGEST:
        raise ReluflowError(
            f"{words.format(k)} of size {sizes[k]:.3g}, the largest: expected one between "
            f"{SMALLEST:g} and {LARGEST:g}, beyond which products overflow or vanish; {remedy}"
        )
