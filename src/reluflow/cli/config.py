"""Settings of a run: a TOML file, options of the command line, or both, validated by field.

.. code-block:: toml

    [data]
    source = "three-points"   # a built-in name, or a file with data beside this one
    loss = "square"           # and any other option of the dataset

    [network]
    m = 2000
    scale = 1e-3
    seed = 0

    [run]                     # with lr and steps gradient descent, otherwise gradient flow
    lr = 1e-3
    steps = 200000

    [save]
    geometric = 1.05
    observe = ["norm2", "stable_rank"]
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from reluflow.errors import ReluflowError

MAX_BYTES = 1 << 20  # of a configuration file
_DESCENT = ("lr", "steps", "batch_size", "replacement", "train", "backend", "dtype", "seed")
_FLOW = ("t_end", "stop_loss", "clock", "rtol", "on_branch", "kinks", "max_steps", "max_seconds")


class Section(BaseModel):
    """A part of the configuration; unknown fields and other types are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Data(Section):
    """What to learn: a source and the options of its dataset (loss, leak, bias, n, rng, ...)."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)
    source: str = Field(min_length=1)

    @property
    def options(self) -> dict[str, Any]:
        """Everything but the source; :func:`reluflow.datasets.load` knows which it takes."""
        return dict(self.model_extra or {})


class Neurons(Section):
    """The start: see :func:`reluflow.initialize`."""

    m: int = Field(default=200, ge=1)
    scale: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    log_scale: float | None = Field(default=None, allow_inf_nan=False)
    kind: str = "balanced"
    seed: int = Field(default=0, ge=0)
    signs: Literal["random", 1, -1] | list[Literal[1, -1]] = "random"
    normalize: Literal["sqrt_m", "none"] | None = None
    outer_factor: float = 1.0

    @model_validator(mode="after")
    def _one_scale(self) -> Neurons:
        if self.scale is not None and self.log_scale is not None:
            raise ValueError("scale and log_scale contradict each other: give one of them")
        return self


class Run(Section):
    """How to train: gradient descent (lr, steps) or gradient flow (t_end, stop_loss)."""

    method: Literal["descend", "flow"] | None = None
    lr: float | list[float] | None = None
    steps: int | None = Field(default=None, ge=0)
    batch_size: int | None = Field(default=None, ge=1)
    replacement: bool = False
    train: Literal["both", "first"] = "both"
    weight_decay: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    backend: Literal["auto", "lumped", "dense"] = "auto"
    dtype: Literal["float64", "float32"] = "float64"
    seed: int = Field(default=0, ge=0)
    t_end: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    stop_loss: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    clock: Literal["time", "loss"] = "time"
    rtol: float | None = Field(default=None, ge=1e-13, le=1e-2)
    on_branch: Literal["stay", "leave"] = "stay"
    kinks: bool | None = None
    max_steps: int = Field(default=1_000_000, ge=1)
    max_seconds: float | None = Field(default=None, gt=0)

    @property
    def descends(self) -> bool:
        """Whether this is gradient descent."""
        return self.method == "descend" or (self.method is None and self.lr is not None)

    @model_validator(mode="after")
    def _consistent(self) -> Run:
        given = self.model_fields_set
        if self.method is None and self.lr is None and self.steps is not None:
            raise ValueError("steps counts gradient steps: give lr too, or t_end for the flow")
        if self.descends:
            for name in ("lr", "steps"):
                if getattr(self, name) is None:
                    raise ValueError(f"gradient descent needs {name}: give lr and steps")
            wrong, rest = [f for f in _FLOW if f in given], "gradient flow: drop it or drop lr"
        else:
            wrong, rest = [f for f in _DESCENT if f in given], "gradient descent, not to a flow"
        if wrong:
            raise ValueError(f"{wrong[0]} belongs to {rest}")
        return self


class Save(Section):
    """What to record, and when."""

    every: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    geometric: float | None = Field(default=None, gt=1, allow_inf_nan=False)
    first: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    at: list[float] | None = None
    observe: list[str] = Field(default_factory=list)
    states: bool | None = None

    @model_validator(mode="after")
    def _one_policy(self) -> Save:
        given = [name for name in ("every", "geometric", "at") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"{given[0]} and {given[1]} contradict each other: give one of them")
        if self.first is not None and self.geometric is None:
            raise ValueError("first is where geometric begins: give geometric with it")
        return self


class Config(Section):
    """The four sections of a run."""

    data: Data
    network: Neurons = Field(default_factory=Neurons)
    run: Run = Field(default_factory=Run)
    save: Save = Field(default_factory=Save)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, defaults included."""
        return self.model_dump(mode="json")


def read_config(
    path: str | Path | None, changes: Mapping[str, Mapping[str, Any]] | None = None
) -> Config:
    """The configuration of a TOML file with some fields changed by options.

    Parameters
    ----------
    path : path, or None for options alone
        A data file named in it is looked for beside it.
    changes : section to field to value
        Options of the command line: they win over the file, and errors name them as options.
    """
    settings = {} if path is None else read_toml(path)
    changed = {(s, f) for s, fields in (changes or {}).items() for f in fields}
    for section, fields in (changes or {}).items():
        given = settings.get(section, {})
        if fields and isinstance(given, dict):  # anything else is refused below
            settings[section] = {**given, **fields}
    try:
        config = Config.model_validate(settings)
    except ValidationError as error:
        raise ReluflowError(_sentence(error, path, changed)) from None
    if path is not None and ("data", "source") not in changed:
        near = {"source": config.data.source, "test": config.data.options.get("test", "")}
        found = {name: Path(path).parent / file for name, file in near.items() if file}
        update = {name: str(place) for name, place in found.items() if place.exists()}
        return config.model_copy(update={"data": config.data.model_copy(update=update)})
    return config


def read_toml(path: str | Path) -> dict[str, Any]:
    """The tables of a TOML file of moderate size."""
    place = Path(path)
    if not place.is_file():
        what = "is a folder" if place.is_dir() else "does not exist"
        raise ReluflowError(f"{place} {what}: expected a configuration in TOML")
    if place.stat().st_size > MAX_BYTES:
        raise ReluflowError(f"{place} has more than {MAX_BYTES:,} bytes: expected a configuration")
    try:
        return tomllib.loads(place.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise ReluflowError(f"{place} is not text in UTF-8: expected TOML") from None
    except tomllib.TOMLDecodeError as error:
        raise ReluflowError(f"{place} is not valid TOML: {error}") from None


def _sentence(
    error: ValidationError, path: str | Path | None, options: set[tuple[str, str]]
) -> str:
    """The first fault: which field, what was expected, what was got."""
    faults = error.errors(include_url=False)
    fault = next((f for f in faults if f["type"] == "extra_forbidden"), faults[0])
    place = tuple(str(part) for part in fault["loc"])
    section, field = place[0], place[1] if len(place) > 1 else ""
    if not field and fault["type"] == "value_error":  # a contradiction inside a section
        return f"{_origin(path, options, section)}{fault['ctx']['error']}"
    if (section, field) in options:
        name = "--" + field.replace("_", "-")
    else:
        name = f"{'' if path is None else f'{path}: '}[{section}]" + (f" {field}" if field else "")
    got = f", got {fault['input']!r:.60}"
    match fault["type"]:
        case "extra_forbidden":
            model = Config if not field else Config.model_fields[section].annotation
            known = ", ".join(getattr(model, "model_fields", {}))
            return f"{name} is unknown: expected one of {known}"
        case "missing":
            return f"{name} is missing: give it"
        case "model_type" | "dict_type":
            return f"{name} must be a section, a line [{section}] with fields below it{got}"
    words = fault["msg"].removeprefix("Input ").removeprefix("Value error, ")
    words = words.replace("should be", "must be").replace("should have", "must have")
    return f"{name} {words}{got}"


def _origin(path: str | Path | None, options: set[tuple[str, str]], section: str) -> str:
    if path is None or any(name == section for name, _ in options):
        return ""
    return f"{path}: [{section}] "
