"""Writes a page with every command and its options, from the command line itself."""

from pathlib import Path
from typing import Any

import typer
from sphinx.application import Sphinx

PAGE = Path("_made/commands.md")


def option_row(option: Any, ctx: Any) -> str:
    """One option or argument as a row: names, what it takes, what it does and its default."""
    first, text = option.get_help_record(ctx) or (option.human_readable_name, option.help or "")
    first, text = (" ".join(part.split()).replace("|", r"\|") for part in (first, text))
    return f"| `{first}` | {text} |"


def command_section(name: str, command: Any, level: int = 2) -> list[str]:
    """Help, usage and options of a command, and those of the commands below it."""
    ctx = command.context_class(command, info_name=name)
    usage = " ".join(command.collect_usage_pieces(ctx))
    lines = [f"{'#' * level} {name}", "", *(command.help or "").replace("\b", "").splitlines(), ""]
    if hasattr(command, "commands"):
        for below, sub in command.commands.items():
            lines += command_section(f"{name} {below}", sub, level + 1)
        return lines
    lines += ["```text", f"{name} {usage}", "```", ""]
    kinds = {"argument": [], "option": []}
    for param in command.params:
        if not param.hidden:
            kinds[param.param_type_name].append(option_row(param, ctx))
    rows = kinds["argument"] + kinds["option"]
    if rows:
        lines += ["| | |", "|---|---|", *rows, ""]
    return lines


def write_page(app: Sphinx) -> None:
    """Write the page before the sources are read."""
    from reluflow.cli.main import app as commands

    group = typer.main.get_command(commands)
    lines = [
        "# Commands",
        "",
        "Every command takes `--help`; errors are one sentence and exit code 2.",
        "",
    ]
    for name, command in sorted(group.commands.items()):
        lines += command_section(f"reluflow {name}", command)
    page = Path(app.srcdir) / PAGE
    page.parent.mkdir(exist_ok=True)
    text = "\n".join(lines) + "\n"
    if not page.exists() or page.read_text() != text:
        page.write_text(text)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect to the start of the build."""
    app.connect("builder-inited", write_page)
    return {"parallel_read_safe": True}
