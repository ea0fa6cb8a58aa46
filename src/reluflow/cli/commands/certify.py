"""reluflow certify."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reluflow.cli.base import AsJson, app, print_json, print_notes
from reluflow.cli.options import DataOptions, with_data_options
from reluflow.errors import ReluflowError
from reluflow.runtime.words import plural

if TYPE_CHECKING:
    from reluflow.trajectory import Trajectory


@app.command()
@with_data_options
def certify(
    what: Annotated[
        str, typer.Argument(metavar="RUN.nc|DATA", help="A stored run, or data by name or file.")
    ],
    about: DataOptions,
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

    Options of the problem are for DATA; a stored run has its own. Exit code 1 if a claim fails.
    """
    from reluflow.claims.certify import certify as check
    from reluflow.claims.verdict import Status

    run = None
    if Path(what).suffix.lower() == ".nc":
        run = _read_run(what, list(about.given()))
        problem = run.problem
    else:
        problem = about.problem(what)
    found = check(problem, run, claims or None, out)
    failed = [v for v in found if v.status is Status.FAILS]
    if as_json:
        print_json([v.to_dict() for v in found])
    else:
        print_notes(problem)
        away = [v for v in found if v.status is Status.OUT_OF_SCOPE]
        for verdict in found:
            if every or claims or verdict not in away:
                print(verdict.line())
        rest = (
            ""
            if every or claims or not away
            else f" {len(away)} {plural(len(away), 'does', 'do')} not apply (--all lists them)."
        )
        checked = len(found) - len(away)
        print(
            f"{checked} {plural(checked, 'claim')} checked, {len(failed)} "
            f"{plural(len(failed), 'fails', 'fail')}.{rest}"
        )
        if out is not None:
            print(f"wrote certificates into {out}{_grades(out)}")
    raise typer.Exit(1 if failed else 0)


def _grades(folder: Path) -> str:
    """Kind and grade of the certificates in a folder."""
    from reluflow.optimum.certificate_file import read_certificate

    made = [read_certificate(path) for path in sorted(folder.glob("certificate-*.json"))]
    return ": " + ", ".join(f"{c.kind} {c.grade}" for c in made) if made else ""


def _read_run(what: str, given: list[str]) -> Trajectory:
    """A stored run, which has its problem with it."""
    from reluflow.trajectory import Trajectory

    if given:
        raise ReluflowError(
            f"--{given[0].replace('_', '-')} changes data, and {what} is a stored run with its "
            "own: leave it out, or give the data instead"
        )
    return Trajectory.load(what)
