"""A reproduction that is killed goes on where it was and ends as if nothing had happened."""

import json
import random
import signal
import subprocess
import sys
import time

import pytest

COMMAND = [sys.executable, "-m", "reluflow.cli.main", "reproduce", "bf24", "f1", "--quick"]


def start(folder):
    return subprocess.Popen(
        [*COMMAND, "-o", str(folder)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def records(folder):
    found = {}
    for path in sorted((folder / "records").glob("*.json")):
        content = json.loads(path.read_text())
        content.pop("seconds", None)
        found[path.name] = content
    return found


@pytest.mark.slow
def test_killed_at_random_moments(tmp_path):
    whole = start(tmp_path / "whole")
    began = time.monotonic()
    assert whole.wait(timeout=300) == 0, whole.stderr.read()
    duration = time.monotonic() - began
    expected = records(tmp_path / "whole")
    assert len(expected) == 4
    rng = random.Random(5)
    for k in range(3):
        out = tmp_path / f"killed{k}"
        driver = start(out)
        time.sleep(rng.uniform(0.2, 1.0) * duration)
        driver.send_signal(signal.SIGKILL)
        driver.communicate()
        again = start(out)
        assert again.wait(timeout=300) == 0, again.stderr.read()
        again.communicate()
        assert records(out) == expected
        assert not list(out.rglob("*.part"))
    whole.communicate()


@pytest.mark.slow
def test_ctrl_c_ends_at_once_and_keeps_what_is_done(tmp_path):
    out = tmp_path / "out"
    driver = start(out)
    while driver.poll() is None and not list((out / "records").glob("*.json")):
        time.sleep(0.05)
    driver.send_signal(signal.SIGINT)
    driver.communicate(timeout=60)
    assert driver.returncode in (0, 130)
    kept = records(out)
    assert kept
    again = start(out)
    assert again.wait(timeout=300) == 0, again.stderr.read()
    again.communicate()
    assert kept.items() <= records(out).items()
