"""The wheel, installed into an empty environment: away from the source, with nothing writable."""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import empty_environment
import pytest


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """An environment with the wheel; what it needs is taken from that of the tests."""
    place = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(place)]
    made = subprocess.run(
        [*build, str(empty_environment.ROOT)], capture_output=True, text=True, timeout=600
    )
    if made.returncode:
        pytest.skip(f"no wheel can be built here: {made.stderr[-200:]}")
    (file,) = place.glob("reluflow-*.whl")
    env = place / "env"
    venv.create(env, with_pip=False)
    pip = [sys.executable, "-m", "pip", "--python", env / "bin" / "python", "install", "--quiet"]
    empty_environment.call(*pip, "--no-deps", "--no-index", file)
    # a folder named in a .pth file is searched, the .pth files in it are not: no source tree
    target = sysconfig.get_path("purelib", vars={"base": str(env)})
    (Path(target) / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return env


@pytest.fixture
def sealed(environment, tmp_path):
    """Run a command of the environment, which nobody can write to, not even root."""
    if not empty_environment.can_seal(environment, tmp_path):
        pytest.skip("root can write anywhere, and may not mount here")
    return lambda *command: empty_environment.sealed(environment, tmp_path, *command)


@pytest.mark.slow
def test_the_wheel_holds_all_it_needs(environment, sealed):
    said = sealed(
        "python", "-c", "import reluflow; print(reluflow.__file__, len(reluflow.ledger()))"
    )
    where, claims = said.stdout.split()
    assert Path(where).is_relative_to(environment)
    assert Path(where).with_name("py.typed").exists()
    assert int(claims) > 200
    for arguments in (("datasets",), ("sweep", "list"), ("claims", "--json")):
        done = sealed("reluflow", *arguments)
        assert done.returncode == 0, done.stderr[-500:]


@pytest.mark.slow
def test_explain_where_nothing_can_be_written_but_the_answer(environment, sealed, tmp_path):
    """Every kernel is compiled, and kept nowhere, which is said once."""
    report = empty_environment.check(environment, tmp_path)
    assert "least-squares line" in report["verdict"][0]["text"]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel as `python -m build` makes it."""
    place = tmp_path_factory.mktemp("built")
    try:
        tools = empty_environment.get_tools(place / "tools")
    except empty_environment.Failed as error:
        pytest.skip(f"no packages can be had here: {error}")
    return empty_environment.build(tools, place)


@pytest.mark.nightly
@pytest.mark.parametrize("version", empty_environment.PYTHONS)
def test_every_python_of_the_machine(built, tmp_path, version):
    """With the newest of all that the wheel asks for, in an environment that had nothing."""
    python = empty_environment.find_python(version)
    if python is None:
        pytest.skip(f"Python {version} is not on this machine")
    env, folder = tmp_path / "env", tmp_path / "elsewhere"
    folder.mkdir()
    empty_environment.install(python, built, env)
    if not empty_environment.can_seal(env, folder):
        pytest.skip("root can write anywhere, and may not mount here")
    report = empty_environment.check(env, folder)
    assert "least-squares line" in report["verdict"][0]["text"]
