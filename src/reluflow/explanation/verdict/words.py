"""Names of samples and features, and numbers, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reluflow.arrays import Array
from reluflow.prediction.views import NOTHING
from reluflow.problem import Problem
from reluflow.problem.tables import UNEVEN, notes_of
from reluflow.runtime.words import LISTED, join, number

NAMED = 2 * LISTED  # samples beyond which only their number is said
SHOWN = 4  # directions described, jumps listed
FAINT = 0.1  # of the strongest feature: below it a direction hardly reads a feature


def data_notes(problem: Problem) -> tuple[str, ...]:
    """What was assumed about the data, label and loss first; and that columns differ in size."""
    given = notes_of(problem)
    if given:
        return given
    plain = problem.X[:, : problem.d - (problem.bias is not None)]
    with np.errstate(over="ignore"):
        sizes = np.sqrt(np.mean(plain**2, axis=0))
    there = np.flatnonzero((sizes > 0.0) & np.isfinite(sizes))
    if there.size < 2:
        return ()
    large, small = there[np.argmax(sizes[there])], there[np.argmin(sizes[there])]
    ratio = float(sizes[large] / sizes[small])
    if not ratio > UNEVEN:
        return ()
    names = feature_names(problem)
    return (
        f"Features differ in size by a factor {float(f'{ratio:.3g}'):,g} ({names[large]} "
        f"{sizes[large]:.3g}, {names[small]} {sizes[small]:.3g} in quadratic mean): neurons turn "
        "first to the large ones, whatever these say about the label; centred and scaled columns "
        "are alike in this.",
    )


def samples(index: Sequence[int], n: int) -> str:
    """``all 6 samples``, ``samples 0 and 3``, ``no sample``."""
    if len(index) == n:
        return {1: "the sample", 2: "both samples"}.get(n, f"all {n:,} samples")
    if not index:
        return "no sample"
    if len(index) > NAMED:
        return f"{len(index):,} of {n:,} samples"
    return ("sample " if len(index) == 1 else "samples ") + join([str(k) for k in index])


def feature_names(problem: Problem) -> list[str]:
    """Names of all features, the constant one included: :attr:`reluflow.Problem.axis_names`."""
    return problem.axis_names


def strengths(problem: Problem, direction: Array) -> Array:
    """How much each feature moves <v, x>: |v_i| times the root mean square of the feature."""
    size = np.abs(direction) * np.sqrt(np.mean(problem.X**2, axis=0))
    top = float(size.max())
    return np.asarray(size / top if top > 0.0 else size)


def features_read(problem: Problem, direction: Array) -> str:
    """The features a direction reads, the strongest first, with their signs."""
    size, names = strengths(problem, direction), feature_names(problem)
    order = [i for i in np.argsort(-size, kind="stable") if size[i] >= FAINT]
    if problem.d > 30:
        return f"{len(order)} of {problem.d} features"
    return join([f"{names[i]} ({'+' if direction[i] > 0 else '-'})" for i in order])


def loss_number(value: float, first: float) -> str:
    """A loss; 0 where it is rounding beside the first one."""
    return "0" if value <= NOTHING * first else number(value)
