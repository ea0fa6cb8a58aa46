"""reluflow reproduce."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reluflow.app.base import AsJson, Out, Workers, app, print_json
from reluflow.errors import ReluflowError


@app.command()
def reproduce(
    paper: Annotated[str | None, typer.Argument(help="BF24, TLB26, MMV24, ...")] = None,
    figure: Annotated[str | None, typer.Argument(help="F1, F2, ...")] = None,
    out: Out = Path("out"),
    quick: Annotated[bool, typer.Option("--quick", help="A smaller version in seconds.")] = False,
    scaled: Annotated[
        bool, typer.Option("--scaled", help="As --full, deep networks scaled down: no GPU.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="The papers' own sizes (default).")] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of all random draws.")] = 0,
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Make figures of the papers and check their claims: all, those of one paper, or one figure.

    What is in the folder already, with the same settings, is not made again. Exit code 1 if a
    claim does not come out as it is known to.
    """
    given = [name for name, on in (("quick", quick), ("scaled", scaled), ("full", full)) if on]
    if len(given) > 1:
        both = " and ".join(f"--{name}" for name in given[:2])
        raise ReluflowError(f"{both} contradict each other: give one of them")
    from reluflow.papers import reproduce as make

    size = given[0] if given else "full"
    done = make(paper, figure, out, size, seed=seed, workers=workers, say=True)
    if as_json:
        figures = [
            {
                "paper": f.paper,
                "figure": f.name,
                "title": f.title,
                "files": [str(path) for path in f.files],
                "numbers": f.numbers,
                "settings": f.settings,
                "resumed": f.resumed,
                "verdicts": [v.to_dict() for v in f.verdicts],
            }
            for f in done.figures
        ]
        claims = [v.to_dict() for v in done.verdicts]
        print_json({"figures": figures, "claims": claims, "page": str(done.page)})
    else:
        for f in done.figures:
            print(f"{f.paper} {f.name}: {f.title}")
            for line in f.summary:
                print(f"  {line}")
            for path in f.files:
                print(f"  wrote {path}")
        for verdict in done.all_verdicts:
            print(verdict.line())
        print(f"wrote {done.page}")
    raise typer.Exit(1 if done.surprising else 0)
