"""The command line in this process: quick, and seen as a user sees it."""

import sys
from dataclasses import dataclass

import pytest


@dataclass
class Done:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str


@pytest.fixture(name="cli")
def _cli(monkeypatch, capsys, tmp_path):
    """Run a command in an empty folder: ``cli("predict", "toy6").code``."""
    from reluflow.cli.main import main

    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["reluflow", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main()
        printed = capsys.readouterr()
        return Done(left.value.code or 0, printed.out, printed.err)

    return run
