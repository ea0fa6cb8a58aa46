"""What all commands share: the application, common options, JSON output."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from reluflow._version import __version__

app = typer.Typer(
    name="reluflow",
    help="What a two-layer ReLU network learns when training starts from small weights.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Out = Annotated[Path, typer.Option("-o", "--out", help="Folder for what is made.")]


def _version(wanted: bool) -> None:
    if wanted:
        print(f"reluflow {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def print_json(value: Any) -> None:
    """Print any plain value; arrays become lists, what JSON cannot hold becomes null or text."""
    print(json.dumps(_plain(value), indent=2))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
