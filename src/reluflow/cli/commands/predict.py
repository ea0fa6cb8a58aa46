"""reluflow predict."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reluflow.cli.base import AsJson, DataName, app, print_json, print_notes
from reluflow.cli.options import (
    DataOptions,
    ImageShape,
    Kind,
    LogScale,
    Neurons,
    Seed,
    given_only,
    image_shape_of,
    scale_option,
    with_data_options,
)
from reluflow.errors import ReluflowError


@app.command()
@with_data_options
def predict(
    data: DataName,
    about: DataOptions,
    m: Neurons = None,
    scale: Annotated[float | None, scale_option("1e-6")] = None,
    log_scale: LogScale = None,
    kind: Kind = None,
    seed: Seed = None,
    width: Annotated[
        str | None, typer.Option(help="infinite: every basin is populated, no start is drawn.")
    ] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Budget of the limit process.")] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Budget of the proofs that follow the process.")
    ] = None,
    image_shape: ImageShape = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Folder for pictures and predict.json.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what small weights will do, without training.

    Extremal vectors, which neuron turns to which of them, and the process of jumps that gradient
    flow follows as the weights at the start shrink.
    """
    from reluflow.cli.config import read_config
    from reluflow.cli.predict import predict as find
    from reluflow.cli.simulation import problem_of, start_of
    from reluflow.problem.tables import notes_of

    start = {"m": m, "scale": scale, "log_scale": log_scale, "kind": kind, "seed": seed}
    changes = given_only(data={"source": data, **about.given()}, network=start)
    if width is not None:
        if width != "infinite":
            raise ReluflowError(f"--width is infinite or left out, got {width!r}: use --m")
        if changes["network"]:
            name = next(iter(changes["network"])).replace("_", "-")
            raise ReluflowError(f"--width infinite and --{name} contradict each other: give one")
    if scale is None and log_scale is None and width is None:
        scale = changes["network"]["scale"] = 1e-6
    if max_seconds is not None and not max_seconds > 0:
        raise ReluflowError(f"--max-seconds must be positive, got {max_seconds:g}")
    shape = image_shape_of(image_shape)
    if shape is not None and out is None:
        raise ReluflowError("--image-shape draws pictures: give a folder for them with -o")
    config = read_config(None, changes)
    problem = problem_of(config)
    if shape is not None:
        from reluflow.plot.images import image_shape as check_shape

        check_shape(problem.d, shape, problem.bias)
    if out is not None:
        from reluflow.plot.render import make_folder

        make_folder(out)
    size = "this start"
    if scale is not None or log_scale is not None:
        size = f"--log-scale {log_scale:g}" if scale is None else f"--scale {scale:g}"
    found = find(problem, None if width else start_of(config, problem), max_seconds, size, seconds)
    files = [] if out is None else found.write(out, shape)
    if as_json:
        notes = list(notes_of(problem))
        print_json({**found.to_dict(), "notes": notes, "files": [str(path) for path in files]})
        return
    print_notes(problem)
    print(found.text())
    for path in files:
        print(f"wrote {path}")
