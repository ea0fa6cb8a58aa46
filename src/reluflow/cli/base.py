"""What all commands share: the application, common options, JSON output, --quiet."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO, TypeVar

import typer

from reluflow._version import __version__
from reluflow.errors import ReluflowError
from reluflow.runtime.plain import json_text

if TYPE_CHECKING:
    from reluflow.problem import Problem

Command = TypeVar("Command", bound=Callable[..., Any])
_shown: list[TextIO] = []  # where JSON goes while --quiet holds back everything else


Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print nothing but errors (and JSON, with --json).")
]


class Interrupted(typer.Abort):
    """Ctrl-C, with what to do next in a sentence."""


class App(typer.Typer):
    """Typer, with --quiet in every command."""

    def command(self, name: str | None = None, **named: Any) -> Callable[[Command], Command]:
        """Register a command."""
        register = super().command(name, **named)

        def decorate(function: Command) -> Command:
            register(_with_quiet(function))
            return function

        return decorate


def _with_quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """The command with an option --quiet that holds back what it prints."""

    @functools.wraps(function)
    def run(*arguments: Any, quiet: bool = False, **named: Any) -> Any:
        with _silence() if quiet else contextlib.nullcontext():
            return function(*arguments, **named)

    given = inspect.signature(function, eval_str=True)
    option = inspect.Parameter(
        "quiet", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Quiet
    )
    parameters = [*given.parameters.values(), option]
    run.__signature__ = given.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Nothing is printed but JSON; errors are printed by the entry point, outside."""
    _shown.append(sys.stdout)
    try:
        with (
            open(os.devnull, "w") as nowhere,
            contextlib.redirect_stdout(nowhere),
            contextlib.redirect_stderr(nowhere),
        ):
            yield
    finally:
        _shown.pop()


app = App(
    name="reluflow",
    help="What a two-layer ReLU network learns when training starts from small weights.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _known_data(incomplete: str) -> list[str]:
    """Completions of DATA: built-in names, and files a command reads."""
    from reluflow.problem.datasets import names
    from reluflow.problem.readers import SUFFIXES

    place = Path(incomplete)
    folder = place if incomplete.endswith("/") else place.parent
    files = []
    with contextlib.suppress(OSError):
        for path in sorted(folder.iterdir()):
            if path.is_dir() or path.suffix in (*SUFFIXES, ".toml", ".nc"):
                files.append(f"{path}/" if path.is_dir() else str(path))
    return [name for name in [*names(), *files] if name.startswith(incomplete)]


DataName = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A table (.csv, .tsv, .parquet, .xlsx), an .npz with X and y, or a built-in name.",
        autocompletion=_known_data,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Workers = Annotated[
    int | None,
    typer.Option("--workers", min=0, help="Processes (all cores by default); 0: this one alone."),
]
Out = Annotated[Path, typer.Option("-o", "--out", help="Folder for what is made.")]


Scaled = Annotated[
    bool, typer.Option("--scaled", help="As --full, deep networks scaled down: no GPU.")
]


def size_given(default: str, **given: bool) -> str:
    """The one size whose option was given."""
    names = [name for name, on in given.items() if on]
    if len(names) > 1:
        both = " and ".join(f"--{name}" for name in names[:2])
        raise ReluflowError(f"{both} contradict each other: give one of them")
    return names[0] if names else default


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


def print_notes(problem: Problem) -> None:
    """Say what was assumed when a table was read: the first lines of an answer."""
    from reluflow.problem.tables import notes_of

    for sentence in notes_of(problem):
        print(sentence)


def print_json(value: Any) -> None:
    """Print any plain value; arrays become lists, what JSON cannot hold becomes null or text."""
    print(json_text(value), file=_shown[-1] if _shown else None)
