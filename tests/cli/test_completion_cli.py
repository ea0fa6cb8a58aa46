"""Completion in shells, --quiet and --json in every command, --version."""

import json
import os
import subprocess
import sys

import pytest

from reluflow import __version__
from reluflow.cli import main as _commands  # noqa: F401  registers them
from reluflow.cli.base import _known_data, app

COMMANDS = [command.callback.__name__ for command in app.registered_commands]


def shell(*arguments, **environment):
    command = [sys.executable, "-m", "reluflow.cli.main", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **environment}
    )


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion_script_is_shown(name):
    named = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}  # name it instead of guessing
    done = shell("--show-completion", name, **named)
    assert done.returncode == 0, done.stderr
    assert "_RELUFLOW_COMPLETE" in done.stdout


def complete(words):
    position = str(len(words.split(" ")) - 1)
    asked = {"_RELUFLOW_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": position}
    return shell(**asked).stdout.split()


def test_commands_and_data_are_completed():
    assert complete("reluflow si") == ["simulate"]
    assert complete("reluflow predict three") == ["three-points"]


def test_files_are_completed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toyota.csv").write_text("")
    (tmp_path / "toys.md").write_text("")
    (tmp_path / "toybox").mkdir()
    assert _known_data("toy") == ["toy6", "toybox/", "toyota.csv"]


def test_version(cli):
    assert cli("--version").out == f"reluflow {__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_json_and_quiet(cli, command):
    shown = cli(command, "--help").out
    assert "--json" in shown
    assert "--quiet" in shown


@pytest.mark.parametrize("command", ["run", "show", "plot", "list"])
def test_so_has_every_command_of_sweep(cli, command):
    shown = cli("sweep", command, "--help").out
    assert "--json" in shown
    assert "--quiet" in shown


def test_quiet_leaves_json_and_errors(cli):
    assert cli("sweep", "list", "--quiet").out == ""
    assert json.loads(cli("sweep", "list", "-q", "--json").out)
    assert cli("datasets", "--quiet").out == ""
    assert "toy6" in json.loads(cli("datasets", "-q", "--json").out)
    assert cli("predict", "nothing", "-q").err.startswith("reluflow: unknown dataset")
