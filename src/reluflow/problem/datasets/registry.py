"""Names of the built-in datasets, and the one way from a name or a path to a problem."""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.problem.datasets import (
    bf24,
    hints,
    llwa21,
    mmv24,
    mnist,
    tk24,
    tlb26,
)
from reluflow.problem.problem import Problem
from reluflow.problem.readers import SUFFIXES


@dataclass(frozen=True)
class Dataset:
    """A built-in dataset: its name, what it is in one line, and the function that makes it.

    Attributes
    ----------
    name : str
    make : callable
    """

    name: str
    make: Callable[..., Problem]

    @property
    def description(self) -> str:
        """First line of the function's docstring."""
        return (inspect.getdoc(self.make) or "").partition("\n")[0]

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options :func:`load` takes for it."""
        return tuple(inspect.signature(self.make).parameters)


_MAKERS: dict[str, Callable[..., Problem]] = {
    "three-points": bf24.three_points,
    "a3c": bf24.a3c,
    "assumption3": bf24.assumption3_box,
    "stewart": bf24.stewart,
    "xor": tk24.symmetric_xor,
    "skewed-xor": tk24.skewed_xor,
    "ideal-xor": tk24.ideal_xor,
    "xor-orbit": tk24.xor_orbit,
    "remaining": tk24.remaining_fixture,
    "orthonormal": tlb26.orthonormal,
    "golden": tlb26.golden,
    "toy6": mmv24.toy6,
    "two-points": mmv24.two_points,
    "separable": mmv24.separable,
    "symmetric-separable": llwa21.symmetric_separable,
    "hinted": hints.hinted,
    "figure1-left": llwa21.figure1_left,
    "figure1-middle": llwa21.figure1_middle,
    "figure1-right": hints.figure1_right,
    "gaussian-teacher": llwa21.gaussian_teacher,
    "mnist": mnist.mnist_pair,
    "mnist-digits": mnist.mnist_digits,
}
REGISTRY: dict[str, Dataset] = {name: Dataset(name, make) for name, make in _MAKERS.items()}

#: Options that :func:`load` takes for files: those of :meth:`reluflow.Problem.from_table`.
FILE_OPTIONS = tuple(inspect.signature(Problem.from_table).parameters)[1:]


@check_arguments
def read_csv(path: str | os.PathLike[str], **options: Any) -> Problem:
    """A table in a text file.

    Parameters
    ----------
    path : path
    **options
        Those of :meth:`reluflow.Problem.from_table`.

    Returns
    -------
    Problem
    """
    return Problem.from_table(path, **options)


@check_arguments
def read_npz(path: str | os.PathLike[str], **options: Any) -> Problem:
    """Arrays ``X`` and ``y`` of an .npz file.

    Parameters
    ----------
    path : path
    **options
        Those of :meth:`reluflow.Problem.from_table`.

    Returns
    -------
    Problem
    """
    return Problem.from_table(path, **options)


@check_arguments
def names() -> tuple[str, ...]:
    """Names of the built-in datasets.

    Returns
    -------
    tuple of str
    """
    return tuple(REGISTRY)


@check_arguments
def load(name_or_path: str | os.PathLike[str], **options: Any) -> Problem:
    """A problem from the name of a built-in dataset or the path of a table.

    Parameters
    ----------
    name_or_path : str or path
        A name of :func:`names`, or a file (.csv, .tsv, .parquet, .xlsx, .npz).
    **options
        Options of the dataset's function, for files those of :meth:`reluflow.Problem.from_table`;
        for all of them ``smoothing``, the radius of a smoothed activation (what is known of the
        plain one's end points is then left out).

    Returns
    -------
    Problem

    Examples
    --------
    >>> load("two-points", angle=0.001).n
    2
    """
    name = os.fspath(name_or_path)
    if name in REGISTRY:
        dataset = REGISTRY[name]
        smoothing = options.pop("smoothing", 0.0)
        _check_options(name, options, (*dataset.options, "smoothing"))
        problem = dataset.make(**options)
        return problem.replace(smoothing=smoothing, known={}) if smoothing != 0.0 else problem
    if Path(name).suffix.lower() in SUFFIXES or Path(name).exists():
        _check_options(name, options, FILE_OPTIONS)
        return Problem.from_table(name, **options)
    close = difflib.get_close_matches(name, REGISTRY, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"the names are {', '.join(REGISTRY)}"
    raise ReluflowError(
        f"unknown dataset {name!r}: expected a built-in name or a .csv or .npz file; {hint}"
    )


def _check_options(name: str, given: dict[str, Any], known: tuple[str, ...]) -> None:
    wrong = [option for option in given if option not in known]
    if wrong:
        raise ReluflowError(
            f"{name} has no option {wrong[0]!r}: expected one of {', '.join(known)}"
        )
