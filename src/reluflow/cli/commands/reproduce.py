"""reluflow reproduce."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reluflow.cli.base import AsJson, Out, Scaled, Workers, app, print_json, size_given


@app.command()
def reproduce(
    paper: Annotated[str | None, typer.Argument(help="BF24, TLB26, MMV24, ...")] = None,
    figure: Annotated[str | None, typer.Argument(help="F1, F2, ...")] = None,
    out: Out = Path("out"),
    quick: Annotated[
        bool, typer.Option("--quick", help="A smaller version: a paper in about a minute.")
    ] = False,
    scaled: Scaled = False,
    full: Annotated[bool, typer.Option("--full", help="The papers' own sizes (default).")] = False,
    seed: Annotated[
        int,
        typer.Option(
            "--seed", min=0, help="Of random draws; figures with a fixed sample keep theirs."
        ),
    ] = 0,
    workers: Workers = None,
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            help="Where deep networks are trained: cpu, cuda or auto (default: RELUFLOW_DEVICE, "
            "or a GPU where there is one).",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make figures of the papers and check their claims: all, those of one paper, or one figure.

    What is in the folder already, with the same settings, is not made again. Exit code 1 if a
    claim does not come out as it is known to.
    """
    size = size_given("full", quick=quick, scaled=scaled, full=full)
    from reluflow.papers import reproduce as make

    done = make(paper, figure, out, size, seed=seed, workers=workers, device=device, say=True)
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
        left_out = [
            {"paper": s.paper, "figure": s.name, "shows": s.shows, "claims": list(s.claims)}
            for s in done.left_out
        ]
        page = str(done.page)
        print_json({"figures": figures, "claims": claims, "left_out": left_out, "page": page})
    else:
        for f in done.figures:
            print(f"{f.paper} {f.name}: {f.title}")
            for line in f.summary:
                print(f"  {line}")
            for path in f.files:
                print(f"  wrote {path}")
        for sketch in done.left_out:
            print(sketch.sentence)
        for verdict in done.all_verdicts:
            print(verdict.text())
        print(f"wrote {done.page}")
    raise typer.Exit(1 if done.surprising else 0)
