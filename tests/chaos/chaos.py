"""Commands killed at random moments: the same command, given again, ends with the same numbers.

    python tests/chaos/chaos.py [--kills 20] [--seed 0] [--only explain,sweep] [--log chaos.log]

For each command a whole run says what its numbers are and how long it takes. Then it is started
again and again in a folder and killed (SIGKILL) at a random moment of that time, until enough of
the kills have met a running process; whenever it comes to its end, its numbers are compared and it
begins in a new folder. Every moment is logged. Exit code 1 if any numbers differ.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RELUFLOW = [sys.executable, "-m", "reluflow"]
SWEEP = """
task = "flow"
seeds = 6
[problem]
name = "three-points"
[init]
m = [4, 8]
scale = 1e-3
[clock]
t_end = [10.0, 20.0]
"""


@dataclass(frozen=True)
class Command:
    """What is run in a folder, and what its numbers are when it has ended."""

    arguments: tuple[str, ...]
    numbers: Callable[[Path], Any]


def of_explanation(folder: Path) -> Any:
    """The report without what a run cost, and the arrays of the run."""
    report = json.loads((folder / "out" / "report.json").read_text())
    report["run"].pop("cost", None)
    return report, of_run(folder / "out")


def of_run(folder: Path) -> Any:
    """Records, last network and status of run.nc."""
    from reluflow import Trajectory

    run = Trajectory.load(folder / "run.nc")
    arrays = (run.times, run.steps, run.loss, run.final.W, run.final.a)
    return [array.tobytes().hex() for array in arrays], str(run.status)


def of_sweep(folder: Path) -> Any:
    """All rows but their durations."""
    lines = (folder / "table.jsonl").read_text().splitlines()[1:]
    rows = [json.loads(line) for line in lines]
    return sorted(
        json.dumps({k: v for k, v in row.items() if k != "seconds"}, sort_keys=True) for row in rows
    )


def of_reproduction(folder: Path) -> Any:
    """All records but their durations."""
    found = {}
    for path in sorted((folder / "out" / "records").glob("*.json")):
        found[path.name] = json.loads(path.read_text())
        found[path.name].pop("seconds", None)
    return found


_FLOW = ("--m", "60", "--t-end", "200", "--rtol", "1e-12", "--checkpoint-seconds", "0.1")
_DESCENT = ("--m", "60", "--lr", "1e-4", "--steps", "400000", "--checkpoint-seconds", "0.1")
COMMANDS = {
    "explain": Command(("explain", "three-points", "--m", "30", "-o", "out"), of_explanation),
    "simulate (flow)": Command(
        ("simulate", "three-points", "-o", "run.nc", "--every", "2", *_FLOW), of_run
    ),
    "simulate (descent)": Command(("simulate", "three-points", "-o", "run.nc", *_DESCENT), of_run),
    "sweep": Command(("sweep", "sweep.toml", "-o", "table.jsonl", "--workers", "2"), of_sweep),
    "reproduce": Command(
        ("reproduce", "bf24", "f1", "--quick", "--workers", "1", "-o", "out"), of_reproduction
    ),
}


def start(command: Command, folder: Path) -> subprocess.Popen[bytes]:
    """Begin, or go on, in a folder."""
    folder.mkdir(exist_ok=True)
    (folder / "sweep.toml").write_text(SWEEP)
    return subprocess.Popen(
        [*RELUFLOW, *command.arguments],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=open(folder / "stderr", "wb"),
    )


def finish(command: Command, folder: Path) -> Any:
    """Let a command come to its end; its numbers."""
    child = start(command, folder)
    if child.wait() != 0:
        said = (folder / "stderr").read_text()[-500:]
        raise SystemExit(f"{' '.join(command.arguments)} ended with {child.returncode}: {said}")
    return command.numbers(folder)


def torment(
    name: str, kills: int, rng: random.Random, place: Path, say: Callable[[str], None]
) -> tuple[int, int]:
    """(kills that met a running process, ends with other numbers) of one command."""
    command = COMMANDS[name]
    finish(command, place / "first")  # kernels are compiled now
    began = time.monotonic()
    expected = finish(command, place / "whole")
    duration = time.monotonic() - began
    say(f"{name}: a whole run takes {duration:.1f} s")
    hits, differ, number = 0, 0, 0
    folder, fresh = place / "0", "0"  # the folder in which nothing has been killed
    while hits < kills:
        child = start(command, folder)
        moment, began = rng.uniform(0.1, 1.0) * duration, time.monotonic()
        try:
            child.wait(moment)
            if folder.name == fresh:  # the machine has become faster
                duration = min(duration, time.monotonic() - began)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            child.wait()
            hits += 1
            fresh = ""
            say(f"{name}: kill {hits} at {moment:.3f} s")
            if hits < kills:
                continue
        same = finish(command, folder) == expected
        differ += not same
        say(
            f"{name}: came to its end after {hits} kills, {'the same' if same else 'OTHER'} numbers"
        )
        left = [path.name for path in folder.rglob("*.part")]
        if left:
            differ += 1
            say(f"{name}: left {', '.join(left)}")
        shutil.rmtree(folder)
        number += 1
        fresh = str(number)
        folder = place / fresh
    return hits, differ


def main(arguments: list[str] | None = None) -> int:
    """Torment every command; 0 if all numbers are the same."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--kills", type=int, default=20)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--only", default=",".join(COMMANDS))
    options.add_argument("--log", type=Path, default=Path("chaos.log"))
    given = options.parse_args(arguments)
    rng, bad, lines = random.Random(given.seed), 0, []
    with open(given.log, "w") as log:

        def say(text: str) -> None:
            print(text, flush=True)
            print(text, file=log, flush=True)

        for name in given.only.split(","):
            with tempfile.TemporaryDirectory() as place:
                hits, differ = torment(name.strip(), given.kills, rng, Path(place), say)
            lines.append(f"{name}: {hits} kills met a running process, {differ} differences")
            bad += differ
        for line in lines:
            say(line)
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
