"""Options that several commands take: the data, the loss, the start."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
LossName = Annotated[
    str | None, typer.Option("--loss", help="half_square, square, logistic or exponential.")
]
Leak = Annotated[float | None, typer.Option("--leak", help="Slope on negative inputs, 0 to 1.")]
Reduction = Annotated[str | None, typer.Option("--reduction", help="mean or sum over samples.")]
Bias = Annotated[float | None, typer.Option("--bias", help="Append a constant feature.")]
With = Annotated[
    list[str] | None,
    typer.Option("--with", metavar="NAME=VALUE", help="Option of a dataset; may be repeated."),
]


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


def changes_of(
    data: Mapping[str, Any], options: Sequence[str] | None, **sections: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """The options that were given, by section of the configuration."""
    extra = dataset_options(options)
    twice = [name for name in extra if data.get(name) is not None]
    if twice:
        raise ReluflowError(f"--{twice[0]} and --with {twice[0]} contradict each other: give one")
    given = {"data": {**data, **extra}, **sections}
    return {
        name: {field: value for field, value in fields.items() if value is not None}
        for name, fields in given.items()
    }


def data_of(
    source: str,
    loss: str | None,
    leak: float | None,
    reduction: str | None,
    bias: float | None,
    options: Sequence[str] | None,
) -> Problem:
    """The problem meant by DATA and the options that change it."""
    from reluflow.problem import datasets

    changes = {"loss": loss, "leak": leak, "reduction": reduction, "bias": bias}
    return datasets.load(source, **changes_of(changes, options)["data"])


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
