"""No input, however strange, ends in a traceback, a hang or more memory than a laptop has."""

import subprocess
import sys
from pathlib import Path

import pytest

INPUTS = Path(__file__).with_name("inputs.py")
COUNTS = {"csv": 400, "npz": 400, "nc": 200, "certificates": 300, "toml": 300, "arguments": 150}


def tried(kind, count, seed, folder):
    """Try inputs in a process with limits; its last lines."""
    done = subprocess.run(
        [sys.executable, str(INPUTS), kind, str(count), str(seed), str(folder)],
        capture_output=True,
        text=True,
        timeout=3600,
    )
    last = done.stdout.strip().splitlines()[-1:]
    assert done.returncode == 0, f"{kind}, seed {seed}, {last}: {done.stderr[-800:]}"
    assert done.stderr == ""
    return last[0]


def test_there_are_enough():
    assert sum(COUNTS.values()) >= 1500


@pytest.mark.slow
@pytest.mark.parametrize("kind", COUNTS)
def test_many(kind, tmp_path):
    said = tried(kind, COUNTS[kind], 0, tmp_path)
    assert said.endswith(f"of {COUNTS[kind]}")


@pytest.mark.parametrize("kind", ["csv", "npz", "toml", "certificates"])
def test_some(kind, tmp_path):
    assert tried(kind, 25, 1, tmp_path).startswith("refused")
