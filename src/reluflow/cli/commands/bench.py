"""reluflow bench."""

from __future__ import annotations

from typing import Annotated

import typer

from reluflow.cli.base import AsJson, app, print_json


@app.command()
def bench(
    what: Annotated[
        str | None, typer.Argument(help="descend, landscape, ...; all by default")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure: ratios against plain implementations, taken in one run on this machine."""
    from reluflow.cli.bench import run_benchmarks

    if not as_json:
        run_benchmarks(what)
        return
    lines: list[str] = []
    rows = run_benchmarks(what, lines.append)
    print_json({"rows": rows, "lines": lines})
