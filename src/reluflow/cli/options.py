"""Options that several commands take: the data, the loss, the start."""

from __future__ import annotations

import functools
import inspect
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, cast, get_type_hints

import typer

from reluflow.cli.base import Command
from reluflow.errors import ReluflowError

if TYPE_CHECKING:
    from reluflow.problem import Problem

# None stands for the default, so that a configuration file may set what no option does
Neurons = Annotated[int | None, typer.Option("--m", help="Number of neurons; 200 by default.")]


def scale_option(default: str) -> typer.models.OptionInfo:
    """--scale, whose default is the command's."""
    option: typer.models.OptionInfo = typer.Option(
        "--scale", help=f"Size of the initial weights; {default} by default."
    )
    return option


LogScale = Annotated[
    float | None, typer.Option("--log-scale", help="Its natural logarithm, for sizes below 1e-300.")
]
Kind = Annotated[
    str | None,
    typer.Option(
        "--kind",
        help="Law of the initial weights: balanced (by default), sphere, dominated, "
        "dominated_box, gaussian, he, he_uniform or pytorch.",
    ),
]
Seed = Annotated[
    int | None, typer.Option("--seed", help="Seed of the initial weights; 0 by default.")
]
With = Annotated[
    list[str] | None,
    typer.Option("--with", metavar="NAME=VALUE", help="Option of a dataset; may be repeated."),
]


@dataclass(frozen=True)
class DataOptions:
    """Options of every command that takes DATA, as they were given."""

    loss: Annotated[
        str | None,
        typer.Option(
            help="half_square, square, logistic, exponential or, for classes, softmax; for files "
            "what the labels ask for."
        ),
    ] = None
    leak: Annotated[float | None, typer.Option(help="Slope on negative inputs, 0 to 1.")] = None
    reduction: Annotated[str | None, typer.Option(help="mean or sum over samples.")] = None
    bias: Annotated[float | None, typer.Option(help="Append a constant feature.")] = None
    label: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Files: the label's column; the last by default."),
    ] = None
    classes: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Files: keep these two classes, A is +1 and B is -1."),
    ] = None
    one_vs_rest: Annotated[
        str | None,
        typer.Option(metavar="A", help="Files: class A is +1, all others are -1."),
    ] = None
    standardize: Annotated[
        bool, typer.Option("--standardize", help="Files: centre and scale the columns.")
    ] = False
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Files: leave out rows with blank cells.")
    ] = False
    test: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Rows that are not trained on, to test on."),
    ] = None
    holdout: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Files: share of the rows not trained on, to test on."),
    ] = None
    options: With = None

    def given(self) -> dict[str, Any]:
        """Options of the dataset that were given, by name."""
        named = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "options"}
        named = {n: v for n, v in named.items() if v is not None and v is not False}
        extra = dataset_options(self.options)
        for name in extra:
            if name in named:
                option = name.replace("_", "-")
                raise ReluflowError(f"--{option} and --with {name} contradict each other: give one")
        return {**named, **extra}

    def problem(self, source: str) -> Problem:
        """The problem meant by DATA and these options."""
        from reluflow.problem import datasets

        return datasets.load(source, **self.given())


def with_data_options(function: Command) -> Command:
    """The command with the fields of :class:`DataOptions` as options of its own.

    They take the place of its parameter of that type, so that each is written down once.
    """
    given = inspect.signature(function, eval_str=True)
    slot = next(n for n, p in given.parameters.items() if p.annotation is DataOptions)
    hints = get_type_hints(DataOptions, include_extras=True)
    names = [f.name for f in fields(DataOptions)]

    @functools.wraps(function)
    def run(**named: Any) -> Any:
        about = DataOptions(**{name: named.pop(name) for name in names})
        return function(**named, **{slot: about})

    parameters: list[inspect.Parameter] = []
    for name, parameter in given.parameters.items():
        if name == slot:
            parameters += [
                inspect.Parameter(
                    f.name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=f.default,
                    annotation=hints[f.name],
                )
                for f in fields(DataOptions)
            ]
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    run.__signature__ = given.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return cast(Command, run)


def dataset_options(given: Sequence[str] | None) -> dict[str, Any]:
    """``["n=64", "law=normal"]`` as values: those of TOML, anything else is text.

    >>> dataset_options(["n=64", "law=normal", "rotate=true"])
    {'n': 64, 'law': 'normal', 'rotate': True}
    """
    found: dict[str, Any] = {}
    for item in given or ():
        name, sign, value = item.partition("=")
        name = name.strip().replace("-", "_")
        if not sign or not name.isidentifier() or name == "source":
            raise ReluflowError(f"--with takes NAME=VALUE, an option of the dataset, got {item!r}")
        if name in found:
            raise ReluflowError(f"--with {name} is given twice: give it once")
        try:
            found[name] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[name] = value.strip()
    return found


def given_only(**sections: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The options that were given, by section of the configuration."""
    return {
        name: {field: value for field, value in options.items() if value is not None}
        for name, options in sections.items()
    }


ImageShape = Annotated[
    str | None,
    typer.Option("--image-shape", metavar="ROWSxCOLUMNS", help="Draw directions as images."),
]


def image_shape_of(text: str | None) -> tuple[int, int] | None:
    """``"28x28"`` as two numbers.

    >>> image_shape_of("28x28")
    (28, 28)
    """
    if text is None:
        return None
    parts = text.lower().split("x")
    if len(parts) != 2 or not all(part.isdigit() and int(part) > 0 for part in parts):
        raise ReluflowError(f"--image-shape must be ROWSxCOLUMNS such as 28x28, got {text!r}")
    return int(parts[0]), int(parts[1])
