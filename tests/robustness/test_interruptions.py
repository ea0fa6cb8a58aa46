"""Ctrl-C at any moment and readers that go away: one sentence or none, never a traceback."""

import builtins
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

COMMAND = [sys.executable, "-m", "reluflow"]
LONG = 300.0  # seconds after which something hangs, on a machine with much else to do


def begin(arguments, folder):
    """A command in a group of its own that hears Ctrl-C, whatever started the tests."""
    return subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def seconds_of(process):
    """Processor time that a process has taken."""
    try:
        with open(f"/proc/{process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except OSError:
        return float("inf")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def interrupted(arguments, moment, folder):
    """Exit code and words of a command that Ctrl-C meets after so much processor time."""
    process = begin(arguments, folder)
    try:
        end = time.monotonic() + 20.0  # where others work for it, it may never take so long itself
        while process.poll() is None and seconds_of(process) < moment and time.monotonic() < end:
            time.sleep(0.005)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=LONG)
    finally:
        process.kill()
        process.wait()
    return process.returncode, said


COMMANDS = {
    "explain": ("explain", "three-points", "--m", "20", "-o", "out"),
    "predict": ("predict", "three-points", "--m", "50"),
    "descent": ("simulate", "three-points", "--lr", "1e-5", "--steps", "9000000", "-o", "run.nc"),
    "flow": ("simulate", "three-points", "--t-end", "2000", "--rtol", "1e-12", "-o", "run.nc"),
    "sweep": ("sweep", "jump-times", "-o", "table.jsonl", "--workers", "2"),
    "claims": ("claims", "BF24", "--run"),
    "reproduce": ("reproduce", "bf24", "f1", "--quick", "-o", "out"),
    "certify": ("certify", "three-points"),
    "studio": ("studio", "--no-open"),
    "datasets": ("datasets",),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_at_random_moments(name, tmp_path):
    rng = np.random.default_rng(len(name))
    for number, most in enumerate((0.3, 1.0, 3.0)):
        folder = tmp_path / str(number)
        folder.mkdir()
        code, said = interrupted(COMMANDS[name], rng.uniform(0.15, most), folder)
        assert code in (0, 130), said[-800:]  # it may have come to its end before
        assert "Traceback" not in said
        if code != 0:
            assert said.strip().splitlines()[-1].startswith("reluflow: interrupted")


def test_ctrl_c_while_the_command_is_imported(monkeypatch, capsys):
    """Before there is a command that could say so."""
    from reluflow import __main__

    real = builtins.__import__

    def pressed(name, *rest, **named):
        if name == "reluflow.cli.main":
            raise KeyboardInterrupt
        return real(name, *rest, **named)

    before = signal.getsignal(signal.SIGINT), sys.excepthook
    try:
        with monkeypatch.context() as patch:
            patch.setattr(builtins, "__import__", pressed)
            with pytest.raises(SystemExit) as left:
                __main__.main()
    finally:
        signal.signal(signal.SIGINT, before[0])
        sys.excepthook = before[1]
    assert left.value.code == 130
    assert capsys.readouterr().err == "reluflow: interrupted\n"


PRESSED = """
import signal, time, weakref
signal.signal(signal.SIGINT, signal.default_int_handler)
from reluflow.cli import main as module

class Thing:
    pass

def press(_):
    raise KeyboardInterrupt  # as the handler of SIGINT does while this callback runs

def app(**_):
    thing = Thing()
    kept = weakref.ref(thing, press)
    del thing
    time.sleep(60)

module.app = app
module.main()
"""


def test_ctrl_c_in_a_callback_is_not_dropped():
    done = subprocess.run([sys.executable, "-c", PRESSED], capture_output=True, text=True)
    assert done.returncode == 130
    assert done.stderr == "reluflow: interrupted\n"


TURNED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from reluflow import __main__
from reluflow.cli import main as module

def app(**_):
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        sys.excepthook(*sys.exc_info())  # as C code does that imports NumPy
        raise ValueError("KeyboardInterrupt: ")

module.app = app
__main__.main()
"""


def test_ctrl_c_that_a_library_turns_into_an_error_of_its_own():
    """Seen with pydantic, whose SchemaError has the KeyboardInterrupt in its words, and NumPy."""
    done = subprocess.run([sys.executable, "-c", TURNED], capture_output=True, text=True)
    assert done.returncode == 130
    assert done.stderr == "reluflow: interrupted\n"


PRESSED_IN_A_STRING = {
    "command": """
        from reluflow.cli import main as module
        module.app = lambda **_: exec("raise KeyboardInterrupt")
    """,
    "imports": """
        import builtins
        real = builtins.__import__
        def press(name, *rest, **named):
            if name == "reluflow.cli.main":
                exec("raise KeyboardInterrupt")
            return real(name, *rest, **named)
        builtins.__import__ = press
    """,
}


@pytest.mark.parametrize("where", PRESSED_IN_A_STRING)
def test_ctrl_c_in_the_code_of_a_string_ends_as_any_other(where, tmp_path):
    """As while namedtuple or dataclass compile theirs: 130, not an end by the signal."""
    pressed = textwrap.dedent(PRESSED_IN_A_STRING[where])
    (tmp_path / "pressed.py").write_text(pressed + "from reluflow.__main__ import main\nmain()\n")
    run = [sys.executable, "-m", "pressed"]
    done = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 130
    assert done.stderr == "reluflow: interrupted\n"


def test_ctrl_c_that_the_parser_meets_is_said(monkeypatch, capsys):
    from reluflow.cli import main as module

    monkeypatch.setattr(module, "app", lambda **_: 130)
    with pytest.raises(SystemExit) as left:
        module.main()
    assert left.value.code == 130
    assert capsys.readouterr().err == "reluflow: interrupted\n"


@pytest.mark.parametrize(
    "arguments",
    [("datasets", "--json"), ("claims", "--json"), ("predict", "three-points", "--m", "3")],
)
def test_a_reader_that_goes_away(arguments, tmp_path):
    """As in `reluflow claims --json | head -1`."""
    process = begin(arguments, tmp_path)
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(LONG) in (0, 1), said  # 1 from the parser, where it prints itself
    assert said == ""
