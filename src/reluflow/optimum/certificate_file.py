"""Certificates as files: one JSON document with the data, the claim and what proves it.

Numbers are written so that they read back to the same float. Nothing here computes: what a
certificate claims is re-verified by :mod:`reluflow.optimum.checker`.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow._version import __version__
from reluflow.errors import ReluflowError
from reluflow.runtime.files import write_text

Array = NDArray[np.float64]

FORMAT = "reluflow-certificate-1"
_NETWORK = {"W": "md", "a": "m"}
_KINKS = {"kink_neuron": "k", "kink_sample": "k", "kink_slope": "k"}

#: kind -> shapes of its arrays beside X (n, d) and y (n,), and the names of its claimed numbers
KINDS: dict[str, tuple[dict[str, str], str]] = {
    "max-margin-linear": ({"w": "d", "dual": "n"}, "margin upper_bound"),
    "kkt-margin": ({**_NETWORK, **_KINKS, "dual": "n"}, "margin residual complementarity"),
    "max-margin-network": ({**_NETWORK, "dual": "n"}, "margin upper_bound"),
    "min-norm": ({**_NETWORK, "dual": "n"}, "norm2 lower_bound error"),
    "stationary": ({**_NETWORK, **_KINKS}, "loss residual"),
    "not-global": ({**_NETWORK, "vector": "d"}, "loss sign size gain"),
    "global-minimum": ({**_NETWORK}, "loss excess"),
}


@dataclass(frozen=True, eq=False)
class Certificate:
    """A claim about data, with the arrays that prove it.

    kind : one of `KINDS`
        "max-margin-linear": w reaches `margin` and no hyperplane through 0 more than `upper_bound`.
        "kkt-margin": the network's direction is a KKT point of the margin up to `residual` and
        `complementarity` (both relative). "max-margin-network": the network's normalised margin
        against a bound on that of every network. "min-norm": the network fits the labels up to
        `error`; its squared norm against a bound for every network that fits. "stationary": 0 is
        within `residual` of the subdifferential of the loss, with the slopes given at kinks.
        "not-global": one more neuron of the given size lowers the loss by `gain`.
        "global-minimum": no network of any width has a loss below `loss` minus `excess`.
    problem : loss, factor, leak, reduction and name.
    claim : the numbers claimed.
    arrays : X, y and the proof; names and shapes are those of `KINDS`.
    """

    kind: str
    problem: dict[str, Any]
    claim: dict[str, float]
    arrays: dict[str, Array] = field(repr=False)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ReluflowError(f"unknown kind {self.kind!r}: expected one of {', '.join(KINDS)}")
        shapes, names = KINDS[self.kind]
        shapes = {"X": "nd", "y": "n", **shapes}
        missing = (set(shapes) ^ set(self.arrays)) | (set(names.split()) ^ set(self.claim))
        if missing:
            raise ReluflowError(
                f"a {self.kind} certificate has the arrays {', '.join(shapes)} and the claims "
                f"{names}: missing or too many are {', '.join(sorted(missing))}"
            )
        sizes: dict[str, int] = {}
        for name, letters in shapes.items():
            array = np.asarray(self.arrays[name], dtype=np.float64)
            fits = array.ndim == len(letters)
            for letter, length in zip(letters, array.shape, strict=False):
                fits &= sizes.setdefault(letter, length) == length
                fits &= length > 0 or letter == "k"
            if not fits:
                raise ReluflowError(
                    f"array {name} has shape {array.shape}: expected ({', '.join(letters)}) with "
                    "the sizes of the other arrays"
                )
            if not np.isfinite(array).all():
                raise ReluflowError(f"array {name} holds an entry that is not a finite number")
            self.arrays[name] = array
        for name, value in self.claim.items():
            if not isinstance(value, int | float) or not math.isfinite(value):
                raise ReluflowError(f"claim {name} is {value!r}: expected a finite number")


def write_certificate(certificate: Certificate, path: str | os.PathLike[str]) -> Path:
    """Write a certificate to ``path`` (JSON): beside it first, then renamed.

    Parameters
    ----------
    certificate : Certificate
    path : path
        Usually ending in ``.json``; an existing file is replaced.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise ReluflowError(f"folder {target.parent} does not exist: create it first")
    document = {
        "format": FORMAT,
        "kind": certificate.kind,
        "software": f"reluflow {__version__}",
        "problem": certificate.problem,
        "claim": certificate.claim,
        "arrays": {
            name: {"shape": list(array.shape), "data": array.ravel().tolist()}
            for name, array in certificate.arrays.items()
        },
    }
    try:
        return write_text(target, json.dumps(document, allow_nan=False))
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
        return Certificate(stored["kind"], stored["problem"], dict(stored["claim"]), arrays)
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


@dataclass(frozen=True)
class Check:
    """One inequality of a certificate; status is "passed", "failed" or "unverified"."""

    name: str
    measured: float
    bound: float
    status: str
    remark: str = ""


@dataclass
class Report:
    """What `check_certificate` found: `ok` only when every check passed."""

    kind: str
    checks: list[Check] = field(default_factory=list)

    @property
    def status(self) -> str:
        """ "accepted", "rejected" (a check failed) or "unverified" (none did, some not done)."""
        found = {check.status for check in self.checks}
        if "failed" in found:
            return "rejected"
        return "accepted" if found == {"passed"} else "unverified"

    @property
    def ok(self) -> bool:
        """Whether the certificate is accepted."""
        return self.status == "accepted"

    @property
    def failed(self) -> list[str]:
        """Names of the checks that failed."""
        return [check.name for check in self.checks if check.status == "failed"]

    def add(self, name: str, ok: bool | None, got: float, bound: float, remark: str = "") -> None:
        """Append a check; ok is None when it could not be done."""
        status = "unverified" if ok is None else "passed" if ok else "failed"
        self.checks.append(Check(name, float(got), float(bound), status, remark))

    def at_most(self, name: str, got: float, bound: float) -> None:
        """Append got <= bound."""
        self.add(name, bool(got <= bound), got, bound)

    def equal(self, name: str, got: float, claimed: float, error: float) -> None:
        """Append |got - claimed| <= error."""
        self.add(name, bool(abs(got - claimed) <= error), got, claimed)

    def __str__(self) -> str:
        lines = [f"{self.kind}: {self.status}"]
        for check in self.checks:
            remark = f", {check.remark}" if check.remark else ""
            numbers = f"{check.measured:.9g} against {check.bound:.9g}"
            lines.append(f"  {check.status:<10} {check.name}: {numbers}{remark}")
        return "\n".join(lines)
