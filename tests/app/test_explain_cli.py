"""reluflow explain on the command line, killed and resumed."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "reluflow.app.cli", "explain"]


def run(*arguments, **how):
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, **how)


def test_verdict_and_files(tmp_path):
    done = run("three-points", "-o", tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data == json.loads((tmp_path / "report.json").read_text())
    assert data["end"]["stationarity"]["kind"] == "stationary, not global"


def test_bad_input_is_one_sentence_and_leaves_nothing(tmp_path):
    out = tmp_path / "out"
    done = run("three-points", "--scale", "5", "-o", out)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not out.exists()


def results(folder: Path) -> dict[str, bytes]:
    files = [p for p in folder.rglob("*") if p.suffix in (".html", ".json")]
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


@pytest.mark.slow
def test_killed_at_random_moments_it_ends_the_same(tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    began = time.monotonic()
    assert run("toy6", "-o", whole).returncode == 0
    length = time.monotonic() - began
    draw = random.Random(1)
    for _ in range(4):
        child = subprocess.Popen(
            [*COMMAND, "toy6", "-o", str(broken)], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(draw.uniform(0.2, 1.0) * length)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        assert not list(broken.glob("*.part"))
    assert run("toy6", "-o", broken).returncode == 0
    assert results(broken) == results(whole)
    assert not (broken / ".explain").exists()
