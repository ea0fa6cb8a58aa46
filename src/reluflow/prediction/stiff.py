"""A stiff solver for stretches of a fast phase, up to the next kink."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
from scipy.integrate import solve_ivp

from reluflow.arrays import Array

PARTS = 2  # pieces of constant pull for the neurons that ride along, in one step of the solver


class TooRough(Exception):
    """The stiff solver does not get through."""


class Stretch(Protocol):
    """The equation of the active neurons while no kink is met."""

    def velocity(self, t: float, x: Array, /) -> Array:
        """Of the state x; raises `TooRough` when it has been asked for too often."""

    def to_kinks(self, x: Array) -> Array:
        """Distances to kinks, each positive before its kink and 0 at it."""

    def pull(self, x: Array) -> Array:
        """Of the outputs at the state x."""


def to_next_kink(
    stretch: Stretch,
    x: Array,
    span: float,
    atol: Array | float,
    jacobian: Callable[[float, Array], Array] | None = None,
) -> Any:
    """Follow a stretch from the state x for a time ``span`` or up to its next kink.

    Returns what `scipy.integrate.solve_ivp` found (``t``, ``y``, ``sol``), None if a kink is at
    hand or the solver does not get through.
    """
    first = stretch.to_kinks(x) if np.isfinite(x).all() else np.zeros(1)
    if not (first > 0.0).all():
        return None

    def kink(_: float, x: Array) -> float:
        return float((stretch.to_kinks(x) / first).min())

    kink.terminal = True  # type: ignore[attr-defined]
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():  # a trial may go too far
            warnings.simplefilter("ignore", UserWarning)  # of LSODA; its status is looked at
            found = solve_ivp(
                stretch.velocity,
                (0.0, span),
                x,
                method="LSODA",
                rtol=1e-7,
                atol=atol,
                jac=jacobian,
                events=kink,
                dense_output=True,
            )
    except (ValueError, TooRough):  # ValueError: a kink so near the end of a step that the
        return None  # interpolant is beyond it
    if found.status < 0 or found.t[-1] <= 0.0 or not np.isfinite(found.y).all():
        return None
    return found if kink(0.0, found.y[:, -1]) > -1e-3 else None


def pulls(stretch: Stretch, found: Any) -> Iterator[tuple[Array, float]]:
    """Pulls that are constant for a while, and for how long, along what `to_next_kink` found."""
    for t0, t1 in zip(found.t[:-1], found.t[1:], strict=True):
        h = (t1 - t0) / PARTS
        for i in range(PARTS):
            yield stretch.pull(found.sol(t0 + (i + 0.5) * h)), h
