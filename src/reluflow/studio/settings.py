"""What a view asks for: data, start, loss; checked, and made into a problem and a network."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reluflow.errors import ReluflowError
from reluflow.network import Network, initialize
from reluflow.problem import Problem, datasets

MOST_NEURONS = 200_000
MOST_POINTS = 500  # drawn by hand
MOST_TEXT = 16 << 20  # bytes of a table
LOWEST = -1000.0  # log of the smallest scale
_FEATURES = 64  # of points given one by one

Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e9, le=1e9)]


class _Plain(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class BuiltIn(_Plain):
    """A built-in set, by name."""

    source: Literal["built-in"] = "built-in"
    name: Annotated[str, Field(max_length=100)] = "three-points"


class Points(_Plain):
    """Points given one by one: features, then the label."""

    source: Literal["points"]
    rows: Annotated[
        list[Annotated[list[Number], Field(min_length=2, max_length=_FEATURES + 1)]],
        Field(min_length=1, max_length=MOST_POINTS),
    ]


class Table(_Plain):
    """A table as text; binary files travel beside the settings and are named here."""

    source: Literal["table"]
    name: Annotated[str, Field(max_length=200)] = "table.csv"
    text: Annotated[str, Field(max_length=MOST_TEXT)] = ""
    label: Annotated[str, Field(max_length=200)] | None = None
    standardize: bool = False
    drop_missing: bool = False


class Start(_Plain):
    """The initial weights."""

    m: Annotated[int, Field(ge=1, le=MOST_NEURONS, strict=True)] = 200
    scale: Annotated[float, Field(gt=0.0, le=100.0, allow_inf_nan=False)] | None = 1e-6
    log_scale: Annotated[float, Field(ge=LOWEST, le=4.7)] | None = None
    kind: Annotated[str, Field(max_length=40)] = "balanced"
    signs: Literal["random", "+1", "-1"] = "random"
    seed: Annotated[int, Field(ge=0, le=2**31, strict=True)] = 0


class Settings(_Plain):
    """One side of a comparison, whole."""

    data: Annotated[BuiltIn | Points | Table, Field(discriminator="source")] = BuiltIn()
    loss: Literal["half_square", "square", "logistic", "exponential"] | None = None
    leak: Annotated[float, Field(ge=0.0, lt=1.0)] | None = None
    bias: Annotated[float, Field(ge=-1e6, le=1e6)] | None = None
    start: Start = Start()
    t_end: Annotated[float, Field(gt=0.0, le=1e12)] | None = None


class Refused(ReluflowError):
    """Input that is refused, and the field it stands in."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field, self.sentence = field, sentence


def read_settings(given: Any) -> Settings:
    """Settings from plain values; `Refused` names the first field that is wrong."""
    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = [str(part) for part in first["loc"] if part not in ("built-in", "points", "table")]
        name = place[-1] if place else "settings"
        got = repr(first.get("input"))
        shown = got if len(got) <= 40 else got[:37] + "..."
        why = first["msg"][0].lower() + first["msg"][1:]
        raise Refused(".".join(place) or "settings", f"{name}: {why}, got {shown}") from None


def problem_of(settings: Settings, blob: bytes | None = None) -> Problem:
    """The problem that settings ask for.

    Parameters
    ----------
    settings : Settings
    blob : bytes, optional
        Contents of a table that is no text (.xlsx, .parquet, .npz).
    """
    data = settings.data
    if isinstance(data, Points):
        return _points(settings, data)
    if isinstance(data, Table):
        return _table(settings, data, blob)
    try:
        problem = datasets.load(data.name)
    except ReluflowError as error:
        raise Refused("data.name", str(error)) from None
    changes: dict[str, Any] = {}
    if settings.loss is not None and settings.loss != problem.loss.name:
        changes["loss"] = settings.loss
    if settings.leak is not None and settings.leak != problem.leak:
        changes["leak"] = settings.leak
    if settings.bias is not None and (settings.bias or None) != problem.bias:
        changes["bias"] = settings.bias or None
    if not changes:
        return problem
    try:
        return problem.replace(**changes, known={})
    except ReluflowError as error:
        raise Refused("loss" if "loss" in changes else "leak", str(error)) from None


def _points(settings: Settings, data: Points) -> Problem:
    widths = {len(row) for row in data.rows}
    if len(widths) > 1:
        raise Refused("data.rows", "points differ in their number of coordinates: give all alike")
    rows = np.array(data.rows, dtype=float)
    try:
        return Problem(
            rows[:, :-1],
            rows[:, -1],
            loss=settings.loss or "half_square",  # type: ignore[arg-type]
            leak=settings.leak or 0.0,
            bias=settings.bias or None,
            name="points",
        )
    except ReluflowError as error:
        raise Refused(
            "loss" if "loss needs labels" in str(error) else "data.rows", str(error)
        ) from None


def _table(settings: Settings, data: Table, blob: bytes | None) -> Problem:
    """Through a file of the given name, since every rule of reading is the file readers'."""
    name = Path(data.name).name or "table.csv"
    if not Path(name).suffix:
        name += ".csv"
    with tempfile.TemporaryDirectory(prefix="reluflow-studio-") as folder:
        path = Path(folder) / name
        path.write_bytes(data.text.encode() if blob is None else blob)
        try:
            return Problem.from_table(
                path,
                loss=settings.loss,
                leak=settings.leak or 0.0,
                bias=settings.bias or None,
                label=data.label or None,
                standardize=data.standardize,
                drop_missing=data.drop_missing,
                max_bytes=MOST_TEXT,
            )
        except ReluflowError as error:
            said = str(error).replace(str(path), name).replace(f"{folder}/", "")
            raise Refused("data.text", said) from None


def start_of(settings: Settings, problem: Problem) -> Network:
    """The initial network that settings ask for."""
    given = settings.start
    exact = given.log_scale is not None
    try:
        return initialize(
            problem,
            given.m,
            None if exact else given.scale,
            given.kind,
            given.seed,
            log_scale=given.log_scale,
            signs="random" if given.signs == "random" else float(given.signs),
        )
    except ReluflowError as error:
        field = "kind" if "kind" in str(error) and "sign" not in str(error) else "signs"
        raise Refused(f"start.{field}", str(error)) from None


def script_of(settings: Settings, t_end: float | None) -> str:
    """Python that gives the same numbers."""
    data, start = settings.data, settings.start
    given = {"loss": settings.loss, "leak": settings.leak, "bias": settings.bias or None}
    kept = "".join(f", {name}={value!r}" for name, value in given.items() if value is not None)
    if settings.bias == 0.0 and isinstance(data, BuiltIn):
        kept += ", bias=None"
    if isinstance(data, BuiltIn):
        lines = [f"problem = rf.datasets.load({data.name!r})"]
        if kept:
            lines.append(f"problem = problem.replace({kept[2:]})")
    elif isinstance(data, Points):
        lines = [
            f"rows = np.array({data.rows!r})",
            f"problem = rf.Problem(rows[:, :-1], rows[:, -1]{kept})",
        ]
    else:
        options = "".join(
            f", {name}={value!r}"
            for name, value in (
                ("label", data.label),
                ("standardize", data.standardize),
                ("drop_missing", data.drop_missing),
            )
            if value
        )
        lines = [f"problem = rf.Problem.from_table({data.name!r}{options}{kept})"]
    size = f"scale={start.scale!r}" if start.log_scale is None else f"log_scale={start.log_scale!r}"
    signs = "" if start.signs == "random" else f", signs={start.signs}"
    kind = "" if start.kind == "balanced" else f", kind={start.kind!r}"
    lines += [
        f"net = rf.initialize(problem, {start.m}, {size}{kind}{signs}, rng={start.seed})",
        "",
        "print(rf.extremal_vectors(problem))  # where small neurons turn",
        "process = rf.limit(problem, net)  # the jumps, without training",
        "print(process)",
        "print(process.jump_times(log_scale=float(net.log_norms.max())))",
        "",
        f"run = rf.flow(problem, net{'' if t_end is None else f', t_end={t_end!r}'})",
        "print(run)",
    ]
    head = ["import numpy as np", "", "import reluflow as rf", ""]
    return "\n".join([*(head if isinstance(data, Points) else head[2:]), *lines, ""])
