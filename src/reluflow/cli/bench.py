"""Finds and runs the benchmarks, which live beside the package in ``benchmarks/``."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import reluflow
from reluflow.errors import ReluflowError


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
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
