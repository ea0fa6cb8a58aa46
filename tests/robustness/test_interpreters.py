"""`make test PYTHON=...`: every interpreter has an environment of its own."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not on this machine")
@pytest.mark.parametrize(
    ("python", "folder"),
    [
        ("python3", ".venv"),
        ("python3.12", ".venv-python3.12"),
        ("/opt/somewhere/python3.13", ".venv-python3.13"),
    ],
)
def test_tests_run_on_the_interpreter_that_was_asked_for(tmp_path, python, folder):
    """Beside an environment that is there already, of whatever interpreter."""
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    for name in ("bin/python", ".dev"):
        (tmp_path / ".venv" / name).touch()
    said = subprocess.run(
        ["make", "-n", "test", f"PYTHON={python}"], cwd=tmp_path, capture_output=True, text=True
    )
    lines = said.stdout.splitlines()
    made = [line for line in lines if " -m venv " in line]
    assert made == ([] if folder == ".venv" else [f"{python} -m venv {folder}"])
    (tests,) = [line for line in lines if " -m pytest " in line]
    assert tests.startswith(f"{folder}/bin/python -m pytest ")
