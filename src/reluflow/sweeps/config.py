"""Sweeps as TOML files, checked field by field."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reluflow.errors import ReluflowError

READY = Path(__file__).parent / "ready"
"""Folder of the sweeps that come with the library."""


class Plot(BaseModel):
    """What ``reluflow sweep plot`` draws by default."""

    model_config = ConfigDict(extra="forbid", strict=True)

    kind: str = ""
    x: str = ""
    y: list[str] = Field(default_factory=list)
    value: str = ""
    by: str = ""
    title: str = ""
    xlabel: str = ""
    ylabel: str = ""
    xscale: str = ""
    yscale: str = ""


class Config(BaseModel):
    """A sweep: the fields of its TOML file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    task: str
    seeds: int | list[int] = 1
    seed: int = 0
    problem: dict[str, Any] = Field(default_factory=dict)
    init: dict[str, Any] = Field(default_factory=dict)
    clock: dict[str, Any] = Field(default_factory=dict)
    settings: dict[str, Any] = Field(default_factory=dict)
    observe: list[str] = Field(default_factory=list)
    pair: list[list[str]] = Field(default_factory=list)
    shared: list[str] = Field(default_factory=list)
    keep: bool = False
    out: str = ""
    plot: Plot = Field(default_factory=Plot)

    @property
    def grid(self) -> dict[str, Any]:
        """Sections in one mapping; ``settings`` are fields without a prefix."""
        sections = {"problem": self.problem, "init": self.init, "clock": self.clock}
        return {**{name: part for name, part in sections.items() if part}, **self.settings}


def ready_names() -> list[str]:
    """Names of the sweeps that come with the library."""
    return sorted(path.stem for path in READY.glob("*.toml"))


def read_config(name_or_path: str | Path) -> tuple[Config, Path]:
    """The checked sweep of a TOML file, or of a name in :func:`ready_names`, and its path."""
    path = Path(name_or_path)
    if str(name_or_path) in ready_names():
        path = READY / f"{name_or_path}.toml"
    try:
        with open(path, "rb") as file:
            data = tomllib.load(file)
    except OSError as error:
        raise ReluflowError(
            f"cannot read {path} ({error.strerror}): expected a TOML file or one of the ready "
            f"sweeps {', '.join(ready_names())}"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ReluflowError(f"{path} is not TOML: {error}") from None
    try:
        return Config.model_validate(data), path
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            known = Plot.model_fields if field.startswith("plot.") else Config.model_fields
            raise ReluflowError(
                f"{path}: unknown field {field!r}, expected one of {', '.join(known)}"
            ) from None
        if first["type"] == "missing":
            raise ReluflowError(f"{path}: field {field!r} is missing") from None
        text = first["msg"][0].lower() + first["msg"][1:]
        raise ReluflowError(f"{path}: field {field!r}: {text}, got {first['input']!r}") from None
