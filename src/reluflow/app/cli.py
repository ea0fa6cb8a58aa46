"""reluflow on the command line: exit 0 fine, 1 a claim fails, 2 bad input."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from reluflow._version import __version__
from reluflow.errors import ReluflowError

app = typer.Typer(
    name="reluflow",
    help="What a two-layer ReLU network learns when training starts from small weights.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


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


def _print_json(value: Any) -> None:
    print(
        json.dumps(
            value, indent=2, default=lambda v: v.tolist() if hasattr(v, "tolist") else str(v)
        )
    )


@app.command()
def reproduce(
    paper: Annotated[str | None, typer.Argument(help="BF24, TK24, ...")] = None,
    figure: Annotated[str | None, typer.Argument(help="F1, F2, ...")] = None,
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for the pictures.")] = Path(
        "out"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="A smaller version in seconds.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make figures of the papers: all of them, those of one paper, or one."""
    from reluflow.papers import chosen
    from reluflow.papers import reproduce as make

    results = []
    for key in chosen(paper, figure):
        print(f"{' '.join(key)}: working (first use compiles kernels)", file=sys.stderr)
        result = make(*key, out, quick)
        results.append(result)
        if not as_json:
            print(f"{result.paper} {result.name}: {result.title}")
            for line in result.summary:
                print(f"  {line}")
            for path in result.files:
                print(f"  wrote {path}")
    if as_json:
        _print_json(
            [
                {
                    "paper": r.paper,
                    "figure": r.name,
                    "title": r.title,
                    "files": [str(path) for path in r.files],
                    "numbers": r.numbers,
                    "settings": r.settings,
                }
                for r in results
            ]
        )


@app.command()
def datasets(as_json: AsJson = False) -> None:
    """List the built-in datasets."""
    from reluflow.problem.datasets import REGISTRY

    if as_json:
        _print_json({name: entry.description for name, entry in REGISTRY.items()})
        return
    width = max(map(len, REGISTRY))
    for name, entry in REGISTRY.items():
        print(f"{name:<{width}}  {entry.description}")


@app.command()
def bench(
    what: Annotated[
        str | None, typer.Argument(help="descend, landscape, ...; all by default")
    ] = None,
) -> None:
    """Measure: ratios against plain implementations, taken in one run on this machine."""
    from reluflow.app.bench import run_benchmarks

    run_benchmarks(what)


def main() -> None:
    """Entry point: one sentence and exit 2 for bad input, no traceback."""
    try:
        app(standalone_mode=False)
    except ReluflowError as error:
        print(f"reluflow: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except typer.Abort:
        raise SystemExit(130) from None
    except Exception as error:
        if hasattr(error, "exit_code") and hasattr(error, "show"):  # usage errors of the parser
            error.show()
            raise SystemExit(2) from None
        raise


if __name__ == "__main__":
    main()
