"""Certificates as files: one JSON document with the data, the claim and what proves it.

Numbers are written so that they read back to the same float. Nothing here computes: what a
certificate claims is proved or rejected by :mod:`reluflow.optimum.checker`.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from reluflow._version import __version__
from reluflow.arrays import Array
from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.optimum.checker import FORMAT, KINDS, Check, Report, check_document, claims_of
from reluflow.runtime.files import write_text

__all__ = [
    "FORMAT",
    "GRADES",
    "KINDS",
    "Certificate",
    "Check",
    "Report",
    "read_certificate",
    "write_certificate",
]


GRADES = {
    "PROVED": "every step is exact, or in arithmetic rounded outward",
    "CHECKED": "numerical only",
}


@dataclass(frozen=True, eq=False)
class Certificate:
    """A claim about data, with the arrays that prove it.

    Attributes
    ----------
    kind : str
        One of `KINDS`; what each states, in formulas, is in docs/certificates.md.
    problem : dict
        Loss, factor, leak, reduction and name.
    claim : dict
        The numbers claimed.
    arrays : dict
        X, y and the proof.
    grade : {"PROVED", "CHECKED"}
        PROVED: names and shapes of claims and arrays are those of `KINDS`, and `check` goes
        through. CHECKED: the numbers were computed in floats; there is no proof.
    """

    kind: str
    problem: dict[str, Any]
    claim: dict[str, float]
    arrays: dict[str, Array] = field(repr=False)
    grade: str = "PROVED"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ReluflowError(f"unknown kind {self.kind!r}: expected one of {', '.join(KINDS)}")
        if self.grade not in GRADES:
            raise ReluflowError(f"unknown grade {self.grade!r}: expected {' or '.join(GRADES)}")
        shapes = {"X": "nd", "y": "n"}
        if self.grade == "PROVED":
            self._check_names()
            shapes |= dict(each.split(":") for each in KINDS[self.kind].split())
        sizes: dict[str, int] = {}
        for name in self.arrays:
            array = np.asarray(self.arrays[name], dtype=np.float64)
            letters = shapes.get(name)
            fits = letters is None or array.ndim == len(letters)
            for letter, length in zip(letters or "", array.shape, strict=False):
                fits &= sizes.setdefault(letter, length) == length
                fits &= length > 0 or letter not in "nd"
            if not fits:
                raise ReluflowError(
                    f"array {name} has shape {array.shape}: expected ({', '.join(letters or '')}) "
                    "with the sizes of the other arrays"
                )
            if not np.isfinite(array).all():
                raise ReluflowError(f"array {name} holds an entry that is not a finite number")
            self.arrays[name] = array
        for name, value in self.claim.items():
            if not isinstance(value, int | float) or not math.isfinite(value):
                raise ReluflowError(f"claim {name} is {value!r}: expected a finite number")

    def _check_names(self) -> None:
        names = ["X", "y", *(each.split(":")[0] for each in KINDS[self.kind].split())]
        claims = claims_of(self.kind)
        missing = (set(names) ^ set(self.arrays)) | (set(claims) ^ set(self.claim))
        if missing:
            raise ReluflowError(
                f"a {self.kind} certificate has the arrays {', '.join(names)} and the claims "
                f"{', '.join(claims)}: missing or too many are {', '.join(sorted(missing))}"
            )

    def document(self) -> dict[str, Any]:
        """What the file holds, as plain values."""
        return {
            "format": FORMAT,
            "kind": self.kind,
            "grade": self.grade,
            "software": f"reluflow {__version__}",
            "problem": self.problem,
            "claim": self.claim,
            "arrays": {
                name: {"shape": list(array.shape), "data": array.ravel().tolist()}
                for name, array in self.arrays.items()
            },
        }

    def check(self) -> Report:
        """What the checker finds."""
        return check_document(self.document())


@check_arguments
def write_certificate(certificate: Certificate, path: str | os.PathLike[str]) -> Path:
    """Write a certificate to ``path`` (JSON): beside it first, then renamed.

    Parameters
    ----------
    certificate : Certificate
    path : path
        Usually ending in ``.json``; an existing file is replaced.

    Returns
    -------
    Path
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise ReluflowError(f"folder {target.parent} does not exist: create it first")
    try:
        return write_text(target, json.dumps(certificate.document(), allow_nan=False))
    except OSError as error:
        raise ReluflowError(f"cannot write {target}: {error.strerror or error}") from None


def read_certificate(path: str | os.PathLike[str], max_bytes: int = 1 << 28) -> Certificate:
    """Read a certificate: JSON alone, so that nothing in the file can run or claim memory.

    Parameters
    ----------
    path : path
    max_bytes : int
        Larger files are refused unread; no array holds more entries than its file.
    """
    source = Path(path)
    if not source.is_file():
        raise ReluflowError(f"{source} does not exist or is not a file: expected a certificate")
    size = source.stat().st_size
    if size > max_bytes:
        raise ReluflowError(
            f"{source} has {size} bytes, more than max_bytes={max_bytes}: raise max_bytes if the "
            "file is trusted"
        )
    try:
        stored = json.loads(source.read_bytes().decode("utf-8"), parse_constant=_not_finite)
        if stored["format"] != FORMAT:
            raise ValueError(f"unknown format {stored['format']!r}, expected {FORMAT!r}")
        arrays = {str(name): _array(name, entry) for name, entry in stored["arrays"].items()}
        claim, grade = dict(stored["claim"]), stored["grade"]
        return Certificate(stored["kind"], stored["problem"], claim, arrays, grade)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as e:
        what = f"no {e}" if isinstance(e, KeyError) else str(e)
        raise ReluflowError(f"{source.name} is not a certificate: {what}") from None


def _array(name: str, entry: dict[str, Any]) -> Array:
    """An array from its shape and entries, counted before anything is allocated."""
    shape, values = entry["shape"], entry["data"]
    if not all(type(s) is int and s >= 0 for s in shape) or math.prod(shape) != len(values):
        raise ValueError(f"array {name} has shape {shape} and {len(values)} entries")
    if any(type(v) not in (int, float) for v in values):
        raise ValueError(f"array {name} holds an entry that is not a number")
    return np.array(values, dtype=np.float64).reshape(shape)


def _not_finite(name: str) -> float:
    raise ValueError(f"the file holds {name}")
