"""The points of a sweep: what its fields may hold, the settings, and a seed for each point."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reluflow.errors import ReluflowError

MOST_POINTS = 10_000_000
"""Points a sweep may have: one row and some bytes of memory each."""
_LISTED = 10_000  # repetitions beyond which the title of a table has their number alone
_RANGE = {"from", "to", "num", "step", "log"}


def flatten(grid: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted name, specification) of each field of nested sections.

    >>> dict(flatten({"init": {"m": [2, 4]}, "clock.t_end": 5.0}))
    {'init.m': [2, 4], 'clock.t_end': 5.0}
    """
    for name, spec in grid.items():
        if not isinstance(name, str):
            raise ReluflowError(f"names of fields are text, got {name!r}")
        if isinstance(spec, Mapping) and not ({"from", "value"} & set(spec)):
            yield from flatten(spec, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", spec


def read_field(name: str, spec: Any) -> tuple[bool, list[Any]]:
    """(whether the field is swept, its values) of a specification.

    A list, array or range is swept; ``{"from": 1, "to": 9, "step": 2}`` and ``{"from": 1e-12,
    "to": 1.0, "num": 7, "log": True}`` are ranges, both ends included; ``{"value": [1, 2]}`` is a
    list that is one value.

    >>> read_field("init.m", {"from": 1, "to": 100, "num": 3, "log": True})
    (True, [1, 10, 100])
    """
    if isinstance(spec, Mapping):
        if set(spec) == {"value"}:
            return False, [plain(name, spec["value"], nested=True)]
        return True, _range(name, spec)
    listed = isinstance(spec, list | tuple | range)
    if listed or (isinstance(spec, np.ndarray) and spec.ndim > 0):
        _check_count(name, len(spec))
        values = [plain(name, value, nested=True) for value in spec]
        if not values:
            raise ReluflowError(f"{name} is an empty list: a sweep needs at least one value")
        texts = [repr(value) for value in values]
        if len(set(texts)) < len(texts):
            twice = next(text for text in texts if texts.count(text) > 1)
            raise ReluflowError(f"{name} lists {twice} twice: give each value once")
        return True, values
    return False, [plain(name, spec)]


def _range(name: str, spec: Mapping[str, Any]) -> list[Any]:
    wrong = set(spec) - _RANGE
    if wrong or not {"from", "to"} <= set(spec) or ("num" in spec) == ("step" in spec):
        raise ReluflowError(
            f"{name} is not a range: expected from, to and either num or step (and log with num), "
            f"got {', '.join(map(str, spec)) or 'nothing'}"
        )
    numbers = {key: plain(name, spec[key]) for key in ("from", "to", "num", "step") if key in spec}
    if not all(type(v) in (int, float) and math.isfinite(v) for v in numbers.values()):
        raise ReluflowError(f"{name} is not a range: from, to, num and step are finite numbers")
    low, high = numbers["from"], numbers["to"]
    whole = isinstance(low, int) and isinstance(high, int)
    if "step" in numbers:
        step = numbers["step"]
        count = (high - low) / step if step else -1.0
        if spec.get("log") or count < 0:
            raise ReluflowError(f"{name} is an empty range: step leads from `from` to `to`")
        _check_count(name, count + 1)
        made = low + step * np.arange(math.floor(count * (1 + 1e-12)) + 1)
        whole = whole and isinstance(step, int)
    else:
        num = numbers["num"]
        if type(num) is not int or num < 1:
            raise ReluflowError(f"{name} is an empty range: num is a whole number of at least 1")
        _check_count(name, num)
        if not spec.get("log"):
            made = np.linspace(low, high, num)
        elif low > 0 and high > 0:
            made = np.geomspace(low, high, num)
        else:
            raise ReluflowError(f"{name} is logarithmic: from and to must be positive")
        whole = whole and (bool(spec.get("log")) or bool(np.all(made == np.rint(made))))
    return [int(v) for v in np.unique(np.rint(made))] if whole else [float(v) for v in made]


def _check_count(what: str, count: float) -> None:
    """Refuse more values, or points, than a sweep can hold, before any is made."""
    if not count <= MOST_POINTS:
        number = f"{count:,.0f}" if count < 1e15 else f"{count:.3g}" if count < 1e300 else "far"
        raise ReluflowError(
            f"{what} has {number} values, more than the {MOST_POINTS:,} points a sweep can have: "
            "give fewer, or several sweeps"
        )


def plain(name: str, value: Any, nested: bool = False) -> Any:
    """A value JSON can hold, for settings."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if nested and isinstance(value, list | tuple | np.ndarray):
        return [plain(name, item, nested=True) for item in value]
    raise ReluflowError(
        f"{name} holds {type(value).__name__}: settings are numbers, text, true/false or lists of "
        "them"
    )


RESERVED = ("index", "point", "seed", "draw", "status", "message", "seconds")
"""Columns every table has; no field and no result may take their names."""


@dataclass(frozen=True, slots=True)
class Point:
    """One run of a sweep.

    ``id`` is a hash of the settings and the repetition ``seed``; ``draw`` that of what its random
    numbers are keyed by (the same without the fields in ``shared``).
    """

    index: int
    id: str
    seed: int
    draw: str
    settings: dict[str, Any]


def seeds_of(root: int, draw: str) -> np.random.SeedSequence:
    """The random numbers of a point: a child of the sweep's seed, keyed by the point alone.

    It depends neither on the order of the points nor on who runs them.
    """
    words = tuple(int(draw[i : i + 8], 16) for i in range(0, len(draw), 8))
    return np.random.SeedSequence(root, spawn_key=words)


@dataclass(frozen=True)
class Grid:
    """Cross product of factors, each one swept field or several that vary together.

    Points are made from their index when asked for; none is stored.
    """

    fixed: Mapping[str, Any]
    factors: tuple[Mapping[str, Sequence[Any]], ...]
    seeds: Sequence[int]
    root: int
    shared: tuple[str, ...] = ()

    def __len__(self) -> int:
        return math.prod(self.sizes)

    @property
    def sizes(self) -> list[int]:
        """Number of values of each factor, and of repetitions."""
        return _sizes(self.factors, self.seeds)

    @property
    def fields(self) -> tuple[str, ...]:
        """All fields, swept ones first."""
        return (*self.swept, *self.fixed)

    @property
    def swept(self) -> tuple[str, ...]:
        """Fields with several values."""
        return tuple(name for factor in self.factors for name in factor)

    def values(self, name: str) -> Sequence[Any]:
        """All values of a field; empty if there is no such field."""
        if name in self.fixed:
            return [self.fixed[name]]
        return next((factor[name] for factor in self.factors if name in factor), [])

    def point(self, index: int) -> Point:
        """The point at a position; repetitions vary fastest, then the last factor."""
        rest, places = index, []
        for size in reversed(self.sizes):
            rest, place = divmod(rest, size)
            places.append(place)
        settings = dict(self.fixed)
        for factor, place in zip(self.factors, reversed(places[1:]), strict=True):
            settings |= {name: values[place] for name, values in factor.items()}
        seed = self.seeds[places[0]]
        drawn = {name: v for name, v in settings.items() if name not in self.shared}
        return Point(index, digest([settings, seed]), seed, digest([drawn, seed]), settings)

    def describe(self) -> dict[str, Any]:
        """Plain values that determine the grid."""
        counted = isinstance(self.seeds, range) and len(self.seeds) > _LISTED
        return {
            "fixed": dict(self.fixed),
            "factors": [{k: list(v) for k, v in factor.items()} for factor in self.factors],
            "seeds": repr(self.seeds) if counted else list(self.seeds),
            "seed": self.root,
            "shared": sorted(self.shared),
        }


def count_described(about: Mapping[str, Any]) -> int:
    """How many points :meth:`Grid.describe` speaks of."""
    seeds = about["seeds"]
    if isinstance(seeds, str):  # "range(0, 20000)", or with a step
        seeds = range(*map(int, seeds.removeprefix("range(").removesuffix(")").split(",")))
    return math.prod(_sizes(about["factors"], seeds))


def _sizes(factors: Iterable[Mapping[str, Sequence[Any]]], seeds: Sequence[int]) -> list[int]:
    return [*(len(next(iter(factor.values()))) for factor in factors), len(seeds)]


def digest(value: Any) -> str:
    """First 128 bits of a hash of plain values; 1 and 1.0 are the same setting."""
    text = json.dumps(_same(value), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _same(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _same(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_same(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def make_grid(
    grid: Mapping[str, Any],
    seeds: int | Iterable[int] = 1,
    root: int = 0,
    pair: Iterable[Iterable[str]] = (),
    shared: Iterable[str] = (),
) -> Grid:
    """The grid meant by the arguments of :func:`reluflow.sweeps.sweep`."""
    fixed: dict[str, Any] = {}
    swept: dict[str, list[Any]] = {}
    for name, spec in flatten(grid):
        if name in fixed or name in swept:
            raise ReluflowError(f"{name} is given twice")
        if name in RESERVED:
            raise ReluflowError(f"a field cannot be called {name!r}, a column of every table has")
        is_swept, values = read_field(name, spec)
        if is_swept:
            swept[name] = values
        else:
            fixed[name] = values[0]
    factors: list[Mapping[str, Sequence[Any]]] = []
    paired: set[str] = set()
    groups = [tuple(group) for group in pair]
    for group in groups:
        for name in group:
            if name not in swept:
                raise ReluflowError(f"pair names {name!r}, not a field with several values")
            if name in paired:
                raise ReluflowError(f"pair names {name!r} twice: a field is in one group")
            paired.add(name)
        lengths = {name: len(swept[name]) for name in group}
        if len(set(lengths.values())) != 1:
            said = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise ReluflowError(f"paired fields need equally many values, got {said}")
    for name in swept:
        group = next((g for g in groups if name in g), (name,))
        if group[0] == name:
            factors.append({member: swept[member] for member in group})
    shared = tuple(shared)
    for name in shared:
        if name not in swept and name not in fixed:
            raise ReluflowError(f"shared names {name!r}, which is not a field of this sweep")
    made = Grid(fixed, tuple(factors), _repetitions(seeds), _whole(root, "seed"), shared)
    _check_count("the grid", math.prod(made.sizes))
    return made


def _repetitions(seeds: int | Iterable[int]) -> Sequence[int]:
    if isinstance(seeds, range | list | tuple):
        _check_count("seeds", len(seeds))
    if isinstance(seeds, bool) or not isinstance(seeds, int | np.integer):
        try:
            listed = tuple(_whole(s, "seeds") for s in seeds)  # type: ignore[union-attr]
        except TypeError:
            raise ReluflowError(f"seeds is a number or a list of numbers, got {seeds!r}") from None
        if not listed or len(set(listed)) < len(listed):
            raise ReluflowError("seeds must be a list of different numbers, at least one")
        return listed
    if seeds < 1:
        raise ReluflowError(f"seeds is the number of repetitions, at least 1, got {seeds}")
    _check_count("seeds", int(seeds))
    return range(int(seeds))


def _whole(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise ReluflowError(f"{name} must be a whole number of at least 0, got {value!r}")
    return int(value)
