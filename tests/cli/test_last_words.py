"""How a command ends that cannot go on: one sentence, the right exit code, no traceback."""

import subprocess
import sys
import warnings

import pytest
import typer

from reluflow import ReluflowError
from reluflow.cli import main as door
from reluflow.cli.base import Interrupted


@pytest.fixture
def ending(monkeypatch, capsys):
    """What `main` prints and returns if a command raises an error."""

    def end(error):
        def app(**_):
            raise error

        monkeypatch.setattr(door, "app", app)
        monkeypatch.setattr(door, "_collect_rarely", lambda: None)
        monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
        with pytest.raises(SystemExit) as stopped:
            door.main()
        return stopped.value.code, capsys.readouterr().err

    return end


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ReluflowError("the label\nis missing"), 2, "the label is missing"),
        (PermissionError(13, "Permission denied", "out"), 2, "out: Permission denied"),
        (OSError("disk gone"), 2, "cannot read or write: disk gone"),
        (MemoryError(), 2, "memory ran out: use fewer neurons, samples or records"),
        (KeyboardInterrupt(), 130, "reluflow: interrupted\n"),
        (typer.Abort(), 130, "reluflow: interrupted\n"),
        (Interrupted("run it again"), 130, "interrupted: run it again"),
    ],
)
def test_one_sentence_and_an_exit_code(ending, error, code, said):
    found, text = ending(error)
    assert found == code
    assert said in text
    assert text.startswith("reluflow: ")
    assert text.count("\n") == 1


def test_a_defect_keeps_its_traceback(ending):
    with pytest.raises(ZeroDivisionError):
        ending(ZeroDivisionError())


def test_warnings_of_libraries_are_not_for_the_reader(capsys):
    door._show_warning("two\n classes", UserWarning, "file", 1)
    door._show_warning("old name", DeprecationWarning, "file", 1)
    assert capsys.readouterr().err == "reluflow: two classes\n"


@pytest.mark.parametrize("command", ["claims", "datasets"])
def test_a_reader_who_has_seen_enough_is_no_error(command):
    call = [sys.executable, "-m", "reluflow", command]
    with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()  # as `| head` does, here before the first line
        error = process.stderr.read().decode()
        assert (process.wait(120), error) == (0, "")
