"""The wheel, installed into an empty environment: away from the source, with nothing writable."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """An environment with the wheel; what it needs is taken from that of the tests."""
    place = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(place)]
    made = subprocess.run([*build, str(ROOT)], capture_output=True, text=True, timeout=600)
    if made.returncode:
        pytest.skip(f"no wheel can be built here: {made.stderr[-200:]}")
    (wheel,) = place.glob("reluflow-*.whl")
    venv.create(place / "env", with_pip=False)
    python = place / "env" / "bin" / "python"
    target = sysconfig.get_path("purelib", vars={"base": str(place / "env")})
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run(
        [*install, "--prefix", str(place / "env"), "--ignore-installed", str(wheel)],
        check=True,
        capture_output=True,
        timeout=600,
    )
    # a folder named in a .pth file is searched, the .pth files in it are not: no source tree
    (Path(target) / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python, Path(target) / "reluflow"


def run(python, folder, *arguments, **environment):
    """The command of the wheel, with neither the source tree nor a home."""
    kept = {
        name: os.environ[name] for name in ("PATH", "LANG", "OMP_NUM_THREADS") if name in os.environ
    }
    return subprocess.run(
        [str(python), "-m", "reluflow", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=1800,
        env={**kept, "HOME": "/proc/nobody", **environment},
    )


@pytest.fixture
def read_only(environment):
    """The folder of the package, which nobody can write to, not even root."""
    _, package = environment
    bound = subprocess.run(["mount", "--bind", package, package], capture_output=True)
    if bound.returncode == 0:
        subprocess.run(["mount", "-o", "remount,ro,bind", package], check=True)
        yield package
        subprocess.run(["umount", package], check=True)
        return
    if os.geteuid() == 0:
        pytest.skip("root can write anywhere, and may not mount here")
    folders = [package, *(path for path in package.rglob("*") if path.is_dir())]
    for path in folders:
        path.chmod(0o555)
    yield package
    for path in folders:
        path.chmod(0o755)


@pytest.mark.slow
def test_the_wheel_holds_all_it_needs(environment, tmp_path):
    python, package = environment
    code = "import reluflow; print(reluflow.__file__); print(len(reluflow.ledger()))"
    said = subprocess.run(
        [str(python), "-c", code], cwd=tmp_path, capture_output=True, text=True, env={}
    )
    where, claims = said.stdout.split()
    assert where == str(package / "__init__.py")
    assert int(claims) > 200
    assert (package / "py.typed").exists()
    for arguments in (("datasets",), ("sweep", "list"), ("claims", "--json")):
        done = run(python, tmp_path, *arguments)
        assert done.returncode == 0, done.stderr[-500:]


@pytest.mark.nightly  # every kernel is compiled, and kept nowhere
def test_explain_where_nothing_can_be_written_but_the_answer(environment, read_only, tmp_path):
    """Without a place for compiled kernels, from any folder; one sentence says so."""
    python, _ = environment
    out = tmp_path / "out"
    done = run(python, "/", "explain", "three-points", "--m", "20", "-o", str(out))
    assert done.returncode == 0, done.stderr[-800:]
    assert (out / "report.html").is_file()
    assert done.stderr.count("no folder for compiled kernels can be written") == 1
    assert "Traceback" not in done.stderr
