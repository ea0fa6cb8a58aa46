"""reluflow simulate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from reluflow.cli.base import AsJson, Interrupted, _known_data, app, print_json
from reluflow.cli.options import (
    DataOptions,
    Kind,
    LogScale,
    Neurons,
    Seed,
    given_only,
    scale_option,
    with_data_options,
)
from reluflow.runtime.words import plural


@app.command()
@with_data_options
def simulate(
    what: Annotated[
        str,
        typer.Argument(
            metavar="CONFIG.toml|DATA",
            help="Settings of a run, or data by name or file.",
            autocompletion=_known_data,
        ),
    ],
    about: DataOptions,
    out: Annotated[Path, typer.Option("-o", "--out", help="The .nc file to write.")] = Path(
        "run.nc"
    ),
    m: Neurons = None,
    scale: Annotated[float | None, scale_option("1e-3")] = None,
    log_scale: LogScale = None,
    kind: Kind = None,
    seed: Seed = None,
    lr: Annotated[float | None, typer.Option(help="Gradient descent: step size.")] = None,
    steps: Annotated[int | None, typer.Option(help="Gradient descent: number of steps.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Gradient descent: mini-batches.")] = None,
    t_end: Annotated[
        float | None, typer.Option(help="Gradient flow: end; without it, until stationary.")
    ] = None,
    stop_loss: Annotated[float | None, typer.Option(help="Gradient flow: stop there.")] = None,
    clock: Annotated[
        str | None, typer.Option(help="Gradient flow: time, or loss for margin losses.")
    ] = None,
    rtol: Annotated[float | None, typer.Option(help="Gradient flow: relative error.")] = None,
    every: Annotated[
        float | None,
        typer.Option(help="Record every so many steps of descent, or so much time of the flow."),
    ] = None,
    geometric: Annotated[float | None, typer.Option(help="Record at growing distances.")] = None,
    observe: Annotated[
        list[str] | None, typer.Option(help="Record this instead of networks; may be repeated.")
    ] = None,
    pictures: Annotated[Path | None, typer.Option(help="Folder for pictures of the run.")] = None,
    animation: Annotated[
        Path | None, typer.Option(help="Animation of neurons and function, .gif or .mp4.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace another run.")] = False,
    checkpoint_seconds: Annotated[
        float, typer.Option(min=0.0, help="Time between two checkpoints.")
    ] = 30.0,
    as_json: AsJson = False,
) -> None:
    """Train by gradient descent (--lr, --steps) or gradient flow, and store the run.

    The same command continues after a kill; options win over a configuration file. Exit code 1
    if the run diverged or used up its budget.
    """
    from reluflow.cli.config import read_config
    from reluflow.cli.simulation import keep_networks
    from reluflow.cli.simulation import simulate as make

    changes = given_only(
        data=about.given(),
        network={"m": m, "scale": scale, "log_scale": log_scale, "kind": kind, "seed": seed},
        run={
            "lr": lr,
            "steps": steps,
            "batch_size": batch_size,
            "t_end": t_end,
            "stop_loss": stop_loss,
            "clock": clock,
            "rtol": rtol,
        },
        save={"every": every, "geometric": geometric, "observe": observe or None},
    )
    if Path(what).suffix.lower() == ".toml":
        config = read_config(what, changes)
    else:
        config = read_config(None, {**changes, "data": {"source": what, **changes["data"]}})
    if animation is not None:
        from reluflow.plot.animation import check_target

        check_target(animation)
        config = keep_networks(config)
    done = make(config, out, overwrite=overwrite, checkpoint_seconds=checkpoint_seconds)
    if done.made == "interrupted":
        raise Interrupted("the same command goes on from its checkpoint")
    files = [str(done.path)]
    if pictures is not None:
        from reluflow.plot.curves import write_curves

        files += [str(path) for path in write_curves(done.run, pictures)]
    if animation is not None:
        from reluflow.plot.animation import animate

        files.append(str(animate(done.run, animation)))
    made = done.to_dict()
    if as_json:
        print_json({**made, "files": files})
    else:
        _print_run(made, files)
    raise typer.Exit(0 if done.run.status.ok else 1)


def _print_run(about: dict[str, Any], files: list[str]) -> None:
    if about["made"] == "before":
        print(f"{about['file']} is finished already.")
    elif about["made"] == "resumed":
        print("Continued from a checkpoint.")
    for sentence in about["notes"]:
        print(sentence)
    print(about["problem"])
    print(f"{about['status']['sentence']} Loss {about['loss']:.8g}.")
    if about["unseen"] is not None:
        print(about["unseen"]["sentence"])
    kept = "networks" if about["networks"] else ", ".join(about["observables"])
    where = "none" if about["step"] is None else f"to step {about['step']:,}"
    records = f"{about['records']} {plural(about['records'], 'record')}"
    print(f"{records} ({where}, time {about['time']:.6g}) of the loss and {kept}.")
    for path in files:
        print(f"wrote {path}" if about["made"] != "before" or path != about["file"] else path)
