"""Commands in processes of their own: they may be killed, starved or locked out."""

import os
import resource
import subprocess
import sys
from dataclasses import dataclass

import pytest

COMMAND = [sys.executable, "-m", "reluflow"]


@dataclass
class Done:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def refused(self):
        """Whether it ended with one sentence, exit code 2 and no traceback."""
        sentence = self.err.strip()
        return self.code == 2 and sentence.startswith("reluflow: ") and "\n" not in sentence


@pytest.fixture(name="reluflow")
def _reluflow(tmp_path):
    """Run a command to its end in an empty folder: ``reluflow("explain", "toy6").code``."""

    def run(*arguments, file_bytes=None, memory=None, **environment):
        def limit():
            if file_bytes is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
            if memory is not None:
                resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

        around = {**os.environ, **environment}
        if file_bytes is not None:  # files that measure the tests are not to be small, too
            around = {k: v for k, v in around.items() if not k.startswith("COVERAGE_PROCESS")}
        done = subprocess.run(
            [*COMMAND, *map(str, arguments)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=600,
            preexec_fn=limit,
            env=around,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(name="small_disk")
def _small_disk(tmp_path):
    """A folder that is a disk of 40 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=40k", "tmpfs", str(place)], capture_output=True
    )
    if made.returncode:
        pytest.skip("this user may not mount a small disk")
    yield place
    subprocess.run(["umount", str(place)], check=True)
