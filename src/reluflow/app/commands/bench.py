"""reluflow bench."""

from __future__ import annotations

from typing import Annotated

import typer

from reluflow.app.base import app


@app.command()
def bench(
    what: Annotated[
        str | None, typer.Argument(help="descend, landscape, ...; all by default")
    ] = None,
) -> None:
    """Measure: ratios against plain implementations, taken in one run on this machine."""
    from reluflow.app.bench import run_benchmarks

    run_benchmarks(what)
