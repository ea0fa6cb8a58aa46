"""reluflow certify."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from reluflow.app.base import AsJson, app, print_json


@app.command()
def certify(
    what: Annotated[
        str, typer.Argument(metavar="RUN.nc|DATA", help="A stored run, or data by name or file.")
    ],
    claims: Annotated[
        list[str] | None, typer.Option("--claims", help="A paper or a claim; may be repeated.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Folder for certificates of the end.")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Also list claims whose hypotheses fail here.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check what the papers' theorems say about a run, or about data alone.

    Exit code 1 if a claim fails.
    """
    from reluflow.claims.certify import certify as check
    from reluflow.claims.verdict import Status

    problem, run = _read(what)
    found = check(problem, run, claims or None, out)
    failed = [v for v in found if v.status is Status.FAILS]
    if as_json:
        print_json([v.to_dict() for v in found])
    else:
        away = [v for v in found if v.status is Status.OUT_OF_SCOPE]
        for verdict in found:
            if every or claims or verdict not in away:
                print(verdict.line())
        rest = (
            "" if every or claims or not away else f" {len(away)} do not apply (--all lists them)."
        )
        print(f"{len(found) - len(away)} claims checked, {len(failed)} fail.{rest}")
        if out is not None:
            print(f"wrote certificates into {out}")
    raise typer.Exit(1 if failed else 0)


def _read(what: str) -> tuple[Any, Any]:
    """(problem, run) of a stored run; (problem, None) of data."""
    if Path(what).suffix.lower() == ".nc":
        from reluflow.trajectory import Trajectory

        run = Trajectory.load(what)
        return run.problem, run
    from reluflow.problem import datasets

    return datasets.load(what), None
