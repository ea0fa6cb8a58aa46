"""reluflow datasets."""

from __future__ import annotations

from reluflow.cli.base import AsJson, app, print_json


@app.command()
def datasets(as_json: AsJson = False) -> None:
    """List the built-in datasets."""
    from reluflow.problem.datasets import REGISTRY

    if as_json:
        print_json({name: entry.description for name, entry in REGISTRY.items()})
        return
    width = max(map(len, REGISTRY))
    for name, entry in REGISTRY.items():
        print(f"{name:<{width}}  {entry.description}")
