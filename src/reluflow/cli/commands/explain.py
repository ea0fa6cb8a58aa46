"""reluflow explain."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from reluflow.cli.base import AsJson, DataName, Interrupted, Out, app, print_json
from reluflow.cli.options import (
    DataOptions,
    ImageShape,
    image_shape_of,
    with_data_options,
)


@app.command()
@with_data_options
def explain(
    data: DataName,
    about: DataOptions,
    m: Annotated[int, typer.Option("--m", help="Number of neurons.")] = 200,
    scale: Annotated[float, typer.Option("--scale", help="Size of the initial weights.")] = 1e-6,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the initial weights.")] = 0,
    lr: Annotated[
        float | None, typer.Option("--lr", help="Gradient descent with this step size.")
    ] = None,
    steps: Annotated[int | None, typer.Option("--steps", help="With --lr: how many.")] = None,
    weight_decay: Annotated[
        float, typer.Option("--weight-decay", help="Penalty on the weights, (decay/2) |theta|^2.")
    ] = 0.0,
    seconds: Annotated[float, typer.Option("--seconds", help="Budget of each stage.")] = 120.0,
    image_shape: ImageShape = None,
    out: Out = Path("out"),
    as_json: AsJson = False,
) -> None:
    """Say what a network learns from DATA when it starts small; write a report.

    Predicts, simulates, compares and certifies, and prints the verdict. The folder gets
    report.html, report.json, run.nc and certificates/. After a kill the same command goes on.
    Exit code 1 if a claim that applies fails.
    """
    from reluflow.explanation.explain import explain as explain_problem
    from reluflow.explanation.explanation import paragraph
    from reluflow.explanation.files import report_on_other_data, working_in
    from reluflow.explanation.settings import Settings
    from reluflow.explanation.verdict.words import data_notes

    began = time.monotonic()
    problem = about.problem(data)
    shape = image_shape_of(image_shape)
    settings = Settings(m, scale, seed, lr, steps, seconds, shape, weight_decay)
    settings.check(problem)
    old = report_on_other_data(out, settings.key(problem))
    out_stream = sys.stdout

    def show(topic: str, text: str) -> None:
        """Above the progress bar on a terminal; a bar must not take what goes into a file."""
        stream = sys.stdout if out_stream.isatty() else out_stream
        with suppress(BrokenPipeError):  # a reader who has gone does not end the work
            print(paragraph(topic, text), file=stream, flush=True)

    with working_in(out):  # refuse before anything is printed
        pass
    if not as_json:
        print(*data_notes(problem), problem, sep="\n", flush=True)
    try:
        found = explain_problem(
            problem,
            m=m,
            scale=scale,
            seed=seed,
            lr=lr,
            steps=steps,
            out=out,
            image_shape=shape,
            weight_decay=weight_decay,
            seconds=seconds,
            on_sentence=None if as_json else show,
        )
    except KeyboardInterrupt:
        raise Interrupted(f"the same command goes on from what is in {out}") from None
    if as_json:
        print_json(found.to_dict())
    else:
        for line in (*found.left_out, *(verdict.line() for verdict in found.failed)):
            print(line)
        print(f"wrote {out / 'report.html'}")
    if old is not None:
        print(f"replaced the report on {old}", file=sys.stderr if as_json else sys.stdout)
    if sys.stderr.isatty():
        print(f"{time.monotonic() - began:.1f} s", file=sys.stderr)
    raise typer.Exit(1 if found.failed else 0)
