"""reluflow explain on the command line, killed and resumed."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

COMMAND = [sys.executable, "-m", "reluflow.cli.main", "explain"]


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


def test_a_report_on_other_data_is_not_replaced_in_silence(cli, tmp_path):
    (tmp_path / "first.csv").write_text("1,2,0\n")
    (tmp_path / "second.csv").write_text("1,3,0\n")

    def last_line(name):
        return cli("explain", name, "--m", 5).out.splitlines()[-1]

    assert last_line("first.csv") == f"wrote {Path('out') / 'report.html'}"
    assert last_line("first.csv") == f"wrote {Path('out') / 'report.html'}"
    assert last_line("second.csv") == "replaced the report on first"
    (tmp_path / "out" / "report.json").write_text("[]")
    assert last_line("second.csv") == "replaced the report on something else"


# The command, with checkpoints so close together that some fall into the flow.
OFTEN = """
import sys
import reluflow.explanation.simulate as run
from reluflow.cli.main import main
run._WRITE_SECONDS = 0.01
sys.argv = ["reluflow", "explain", "three-points", "-o", sys.argv[1]]
main()
"""


def start(folder):
    return subprocess.Popen(
        [sys.executable, "-c", OFTEN, str(folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def until(condition):
    """Wait, at most ten minutes, for something the child does."""
    for _ in range(60_000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never happened")


def checkpoints(folder):
    """Of the simulation."""
    return list((folder / ".explain").glob("*.npz"))


def results(folder):
    """Every file of the folder; of the run its arrays, since HDF5 files hold times of the clock."""
    found = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = str(path.relative_to(folder))
        found[name] = arrays(path) if path.suffix == ".nc" else path.read_bytes()
    return found


def arrays(path):
    found = {}

    def take(name, item):
        if isinstance(item, h5py.Dataset):
            found[name] = item[()].tobytes() if hasattr(item[()], "tobytes") else item[()]

    with h5py.File(path) as file:
        file.visititems(take)
    return found


@pytest.mark.slow
def test_killed_at_random_moments_it_ends_the_same(tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    began = time.monotonic()
    assert start(whole).wait() == 0
    length = time.monotonic() - began
    draw = random.Random(1)
    for _ in range(3):
        child = start(broken)
        time.sleep(draw.uniform(0.2, 1.0) * length)
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert not list(broken.glob("*.part"))
    assert start(broken).wait() == 0
    assert results(broken) == results(whole)
    assert not (broken / ".explain").exists()


@pytest.mark.slow
def test_killed_in_the_flow_it_goes_on_from_the_checkpoint(tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert start(whole).wait() == 0
    child = start(broken)
    until(lambda: checkpoints(broken))
    child.send_signal(signal.SIGKILL)
    child.wait()
    (left,) = checkpoints(broken)
    with np.load(left) as state:
        assert state["mover.numbers"][0] > 0.0  # the time reached
    assert start(broken).wait() == 0
    assert results(broken) == results(whole)


@pytest.mark.slow
def test_ctrl_c_ends_with_a_sentence_and_leaves_a_checkpoint(tmp_path):
    out = tmp_path / "out"
    child = start(out)
    until(lambda: checkpoints(out))
    child.send_signal(signal.SIGINT)
    said = child.communicate()[1]
    assert child.returncode == 130
    assert said.strip() == f"reluflow: interrupted: the same command goes on from what is in {out}"
    assert checkpoints(out)
    assert start(out).wait() == 0
    assert (out / "report.json").is_file()
