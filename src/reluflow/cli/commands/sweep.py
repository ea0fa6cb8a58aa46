"""reluflow sweep."""

from __future__ import annotations

import sys
from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from reluflow.cli.base import App, AsJson, Workers, app, print_json
from reluflow.errors import ReluflowError


class _RunsByDefault(TyperGroup):
    """``sweep CONFIG`` is ``sweep run CONFIG``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] != "--help":
            args = ["run", *args]
        return super().parse_args(ctx, args)


sweeps = App(cls=_RunsByDefault, no_args_is_help=True)
app.add_typer(sweeps, name="sweep", help="Many runs: over seeds, widths, scales, datasets.")
Table = Annotated[Path, typer.Argument(metavar="TABLE", help="What --out of the sweep named.")]


@sweeps.command()
def run(
    config: Annotated[
        str, typer.Argument(metavar="CONFIG", help="A TOML file, or a ready sweep (see `list`).")
    ],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Table, .parquet or .jsonl.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler, tcp://host:8786.")
    ] = None,
    workers: Workers = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Instead of the file's seeds.")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run failed points again.")] = False,
    new: Annotated[bool, typer.Option("--new", help="Replace what the table holds.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a sweep; points already in the table are skipped. Exit code 1 if points fail."""
    from reluflow.sweeps import sweep
    from reluflow.sweeps.config import read_config

    if scheduler is not None and workers is not None:
        raise ReluflowError("--scheduler and --workers exclude each other: give one of them")
    wanted, path = read_config(config)
    sys.path.insert(0, str(path.parent.resolve()))  # for tasks that live beside the file
    place = out or (Path(wanted.out) if wanted.out else Path(f"{path.stem}.parquet"))
    executor: Any = scheduler if scheduler is not None else ("serial" if workers == 0 else workers)
    table = sweep(
        wanted.task,
        wanted.grid,
        seeds=wanted.seeds if seeds is None else seeds,
        out=place,
        executor=executor,
        seed=wanted.seed,
        pair=wanted.pair,
        shared=wanted.shared,
        observe=wanted.observe,
        keep=wanted.keep,
        retry=retry,
        new=new,
        plot=wanted.plot.model_dump(),
    )
    counts = table.counts()
    if as_json:
        print_json({"table": str(place), "id": table.title["id"], "points": table.points, **counts})
    else:
        print(f"{counts['ok']} of {table.points} points done, {counts['failed']} failed: {place}")
        if counts["failed"]:
            print(f"  the first: {_first_failure(table)}; --retry runs them again")
        if counts["missing"]:
            print(f"  {counts['missing']} are missing: the same command goes on")
    raise typer.Exit(130 if counts["missing"] else 1 if counts["failed"] else 0)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _first_failure(table: Any) -> str:
    return next(str(row["message"]) for row in table.rows() if row["status"] == "failed")


@sweeps.command()
def show(
    table: Table,
    by: Annotated[list[str] | None, typer.Option(help="Field to group by; repeatable.")] = None,
    of: Annotated[list[str] | None, typer.Option(help="Column to summarise; repeatable.")] = None,
    quantile: Annotated[
        list[float] | None, typer.Option(help="In [0, 1]; repeatable; 0.1, 0.5, 0.9 by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Summarise a table: means and quantiles by fields, and what failed."""
    from reluflow.sweeps import read_table
    from reluflow.sweeps.table import split_constant, summary

    found = read_table(table)
    counts = found.counts()
    frame = None
    if counts["ok"]:
        frame = summary(found, by or (), of or (), quantile or (0.1, 0.5, 0.9))
    if as_json:
        rows = [] if frame is None else frame.to_dict("records")
        print_json({"sweep": found.title["sweep"], **counts, "summary": rows})
        return
    said = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    print(f"{found.title['sweep']['task']} over {', '.join(found.swept) or 'seeds'}: {said}")
    if frame is not None:
        hidden = [] if of else [name for name in frame if name.startswith("cost.")]
        differing, same = split_constant(frame.drop(columns=hidden))
        # folded to the width of the terminal, with the fields again before each part
        fields = [name for name in by or found.swept if name in differing]
        print(
            (differing.set_index(fields) if fields else differing).to_string(
                index=bool(fields),
                sparsify=False,
                float_format=lambda v: f"{v:.4g}",
                line_width=get_terminal_size().columns,
            )
        )
        if same:
            print(
                "the same in every row: " + ", ".join(f"{k} {_short(v)}" for k, v in same.items())
            )
        costs = dict.fromkeys(name.split()[0] for name in hidden)
        if costs:
            print(f"what the runs cost is not shown: --of {' --of '.join(costs)}")
    if counts["failed"]:
        print(f"the first failure: {_first_failure(found)}")


@sweeps.command()
def plot(
    table: Table,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Picture, .png, .pdf or .svg.")
    ] = None,
    kind: Annotated[str | None, typer.Option(help="lines or map.")] = None,
    x: Annotated[str | None, typer.Option(help="Field along the x axis.")] = None,
    y: Annotated[list[str] | None, typer.Option(help="Columns (lines) or field (map).")] = None,
    value: Annotated[str | None, typer.Option(help="Column whose mean a map shows.")] = None,
    by: Annotated[str | None, typer.Option(help="Field of colours (lines) or panels.")] = None,
    xscale: Annotated[str | None, typer.Option(help="linear or log.")] = None,
    yscale: Annotated[str | None, typer.Option(help="linear or log.")] = None,
    as_json: AsJson = False,
) -> None:
    """Draw lines with bands, or a map over two fields, as the sweep's [plot] or the options say."""
    from reluflow.plot.render import write_picture
    from reluflow.plot.sweep import plot_sweep
    from reluflow.sweeps import read_table

    found = read_table(table)
    given = {
        "kind": kind,
        "x": x,
        "y": y,
        "value": value,
        "by": by,
        "xscale": xscale,
        "yscale": yscale,
    }
    chosen = {name: option for name, option in given.items() if option}
    wanted = {**found.title.get("plot", {}), **chosen}
    wanted["kind"] = wanted.get("kind") or ("map" if wanted.get("value") else "lines")
    frame = found.to_pandas()
    frame = frame[frame["status"] == "ok"]
    if frame.empty:
        raise ReluflowError(f"{table} has no finished points to draw")
    place = out or table.with_suffix(".png")
    if place.suffix not in (".png", ".pdf", ".svg"):
        raise ReluflowError(f"a picture is a .png, .pdf or .svg file, got {place}")
    try:
        made = write_picture(plot_sweep(frame, **wanted), place)
    except OSError as error:
        raise ReluflowError(f"cannot write {place}: {error.strerror}") from None
    if as_json:
        print_json({"picture": str(made), "plot": wanted})
    else:
        print(f"wrote {made}")


@sweeps.command("list")
def list_ready(as_json: AsJson = False) -> None:
    """The ready sweeps."""
    from reluflow.sweeps.config import READY, ready_names

    found = {}
    for name in ready_names():
        lines = (READY / f"{name}.toml").read_text(encoding="utf-8").splitlines()
        found[name] = " ".join(line[2:] for line in lines if line.startswith("# "))
    if as_json:
        print_json(found)
        return
    for name, about in found.items():
        print(f"{name:<20} {about}")
