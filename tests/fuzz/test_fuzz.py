"""No input, however strange, ends in a traceback, a hang or more memory than a laptop has."""

import subprocess
import sys
from pathlib import Path

import pytest

INPUTS = Path(__file__).with_name("inputs.py")
COUNTS = {
    "csv": 400,
    "npz": 400,
    "nc": 200,
    "certificates": 300,
    "toml": 300,
    "arguments": 250,
    "labels": 200,
    "estimators": 200,
    "studio": 200,
    "checkpoints": 120,
    "journals": 120,
    "reports": 200,
}


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


@pytest.mark.parametrize("kind", ["csv", "npz", "toml", "certificates", "labels", "reports"])
def test_some(kind, tmp_path):
    assert tried(kind, 25, 1, tmp_path).startswith("refused")


DEFECTS = {
    "traceback": ("raise KeyError('a defect')", "KeyError: 'a defect'"),
    "hang": ("while True: pass", ""),  # ended by the system, without a word
    "memory": ("np.empty(5 << 30, np.uint8)", "AssertionError: input 1 took "),
    "memory as a sentence": ("try_memory()", "AssertionError: input 1 took "),
}


@pytest.mark.parametrize("what", DEFECTS)
def test_a_defect_is_seen(tmp_path, what):
    """At the second input, put into the function that tries it: what the limits are for."""
    code, said = DEFECTS[what]
    script = f"""
import sys
sys.path.insert(0, {str(INPUTS.parent)!r})
import inputs
import numpy as np
from reluflow import ReluflowError
def try_memory():
    try:
        np.empty(5 << 30, np.uint8)
    except MemoryError:
        pass
    raise ReluflowError("too large")
def defect(rng, place):
    defect.calls += 1
    if defect.calls == 2:
        {code}
defect.calls, inputs.KINDS["reports"], inputs.SECONDS = 0, defect, 2
inputs.main("reports", 3, 0, {str(tmp_path)!r})
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.split() == ["input", "0", "input", "1"]
    assert done.returncode != 0
    assert said in done.stderr
