"""reluflow bench: finds the benchmarks in ``benchmarks/`` of the source tree and runs them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

import reluflow
from reluflow.cli.base import AsJson, app, print_json
from reluflow.errors import ReluflowError


@app.command()
def bench(
    what: Annotated[
        str | None, typer.Argument(help="descend, landscape, ...; all by default")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure: ratios against plain implementations, taken in one run on this machine."""
    if not as_json:
        run_benchmarks(what)
        return
    lines: list[str] = []
    rows = run_benchmarks(what, lines.append)
    print_json({"rows": rows, "lines": lines})


def folder() -> Path:
    """benchmarks/ of the source tree, or the copy inside an installed package."""
    package = Path(reluflow.__file__).parent
    for place in (package.parents[1] / "benchmarks", package / "benchmarks"):
        if (place / "descend.py").is_file():
            return place
    raise ReluflowError("the benchmarks are not installed: run them from the source tree")


def available() -> dict[str, Path]:
    """Name to file of each benchmark."""
    return {p.stem: p for p in sorted(folder().glob("*.py")) if not p.stem.startswith("_")}


def run_benchmarks(
    what: str | None, console: Callable[[str], Any] = print
) -> dict[str, list[dict[str, Any]]]:
    """Run one benchmark, or all; the rows of each."""
    found = available()
    if what is not None and what not in found:
        raise ReluflowError(f"no benchmark {what!r}: expected one of {', '.join(found)}")
    return {
        name: _load(name, path).run(console) for name, path in found.items() if what in (None, name)
    }


def _load(name: str, path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"reluflow_benchmark_{name}", path)
    if spec is None or spec.loader is None:
        raise ReluflowError(f"{path} cannot be loaded as a benchmark: expected a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
