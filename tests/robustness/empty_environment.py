"""The wheel in an empty environment, on every Python of the machine, where nothing can be written.

    python tests/robustness/empty_environment.py [--pythons 3.11,3.12,3.13] [--folder PLACE]

`python -m build` makes the wheel. For each interpreter a new environment gets the wheel and what it
asks for, nothing else; then `reluflow explain three-points` runs from another folder, with the
environment read-only and without a home or another place for compiled kernels. Interpreters that
are not on the machine are named and left out. Exit code 1 if any run fails.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = ("3.11", "3.12", "3.13")
SAID = "no folder for compiled kernels can be written"
_SEAL = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
_PLACE = "import reluflow; print(reluflow.__file__)"
_WRITE = "import pathlib, reluflow; pathlib.Path(reluflow.__file__).with_name('x').write_text('')"


class Failed(Exception):
    """The wheel does not do what it should."""


def find_python(version: str) -> str | None:
    """An interpreter of this version that can make environments: on the path, or of pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    found = [shutil.which(f"python{version}"), sys.executable]
    found += [str(path) for path in pyenv.glob(f"versions/{version}.*/bin/python{version}")]
    code = "import sys, ensurepip; print('%d.%d' % sys.version_info[:2])"
    for each in filter(None, found):
        said = subprocess.run([each, "-c", code], capture_output=True, text=True)
        if said.returncode == 0 and said.stdout.strip() == version:
            return each
    return None


def call(*command: str | Path) -> None:
    """Run a command to its end; the last it said where it fails."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=3600)
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command))}: {(done.stderr or done.stdout)[-800:]}")


def get_tools(folder: Path) -> Path:
    """The interpreter of an environment that can build."""
    call(sys.executable, "-m", "venv", folder)
    call(folder / "bin" / "python", "-m", "pip", "install", "--quiet", "build")
    return folder / "bin" / "python"


def build(tools: Path, folder: Path) -> Path:
    """The wheel, as `python -m build` makes it from the source distribution."""
    call(tools, "-m", "build", "--outdir", folder / "dist", ROOT)
    (wheel,) = (folder / "dist").glob("reluflow-*.whl")
    return wheel


def install(python: str, wheel: Path, env: Path) -> None:
    """An empty environment with the wheel and what it asks for."""
    call(python, "-m", "venv", env)
    call(env / "bin" / "python", "-m", "pip", "install", "--quiet", wheel)


def sealed(env: Path, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A command of ``env`` in ``folder``, with ``env`` read-only and without a home.

    Root, who may write to whatever its permissions say, sees the environment through a read-only
    mount that nobody else sees.
    """
    whole = [str(env / "bin" / command[0]), *command[1:]]
    folders = [env, *(path for path in env.rglob("*") if path.is_dir() and not path.is_symlink())]
    if os.geteuid() == 0:
        whole = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _SEAL, env, *whole]
        folders = []
    kept = ("PATH", "LANG", "TMPDIR", "OMP_NUM_THREADS")
    variables = {name: os.environ[name] for name in kept if name in os.environ}
    for path in folders:
        path.chmod(0o555)
    try:
        return subprocess.run(
            list(map(str, whole)),
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=3600,
            env={**variables, "HOME": "/dev/null/nobody"},
        )
    finally:
        for path in folders:
            path.chmod(0o755)


def can_seal(env: Path, folder: Path) -> bool:
    """Whether this user can make the environment one that cannot be written to."""
    return sealed(env, folder, "python", "-c", "pass").returncode == 0


def check(env: Path, folder: Path) -> dict[str, object]:
    """The report of the main job, run from ``folder`` with a sealed environment."""
    where = sealed(env, folder, "python", "-c", _PLACE).stdout.strip()
    if not Path(where).is_relative_to(env):
        raise Failed(f"reluflow is at {where}, not in the environment")
    said = sealed(env, folder, "python", "-c", _WRITE).stderr
    if not any(why in said for why in ("Read-only file system", "Permission denied")):
        raise Failed("the environment can be written to")
    out = folder / "out"
    done = sealed(env, folder, "reluflow", "explain", "three-points", "-o", str(out))
    if done.returncode or "Traceback" in done.stderr or done.stderr.count(SAID) != 1:
        raise Failed(f"explain ended with {done.returncode}: {done.stderr[-800:]}")
    if not (out / "report.html").is_file() or list(Path(where).parent.rglob("*.nb[ic]")):
        raise Failed("no report was written, or compiled kernels were")
    return dict(json.loads((out / "report.json").read_text()))


def main(arguments: list[str] | None = None) -> int:
    """Build once, check on every interpreter; 0 if all is well."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--pythons", default=",".join(PYTHONS))
    options.add_argument("--folder", type=Path)
    given = options.parse_args(arguments)
    bad = 0
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        place = Path(name)
        wheel = build(get_tools(place / "tools"), place)
        print(f"{wheel.name}: {wheel.stat().st_size:,} bytes", flush=True)
        for version in given.pythons.split(","):
            python = find_python(version)
            if python is None:
                print(f"{version}: left out, no such interpreter on this machine", flush=True)
                continue
            env, folder = place / f"env-{version}", place / f"elsewhere-{version}"
            folder.mkdir()
            try:
                install(python, wheel, env)
                report = check(env, folder)
                verdict = report["verdict"][0]["text"]  # type: ignore[index]
                print(f"{version}: {verdict}", flush=True)
            except Failed as error:
                bad += 1
                print(f"{version}: FAILED, {error}", flush=True)
            shutil.rmtree(env, ignore_errors=True)
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
