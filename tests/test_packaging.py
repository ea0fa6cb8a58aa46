"""What is said of versions and dependencies in several files is the same in all of them."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PYTHONS = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))


def test_the_recipe_asks_for_what_the_package_asks_for():
    text = (ROOT / "recipe" / "recipe.yaml").read_text()
    asked = re.findall(r"^    - ([\w-]+) (>=[\d.]+)$", text.partition("  run:")[2], re.MULTILINE)
    asked = {name.replace("matplotlib-base", "matplotlib"): version for name, version in asked}
    assert asked.pop("python") == PROJECT["requires-python"]
    assert asked == dict(
        re.fullmatch(r"([\w-]+)(>=.+)", each).groups() for each in PROJECT["dependencies"]
    )
    scripts = [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    assert [line for line in scripts if line not in text] == []


def test_every_python_is_tested():
    assert PYTHONS == ["3.11", "3.12", "3.13"]
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"
    matrix = str(PYTHONS).replace("'", '"')
    assert f"python: {matrix}" in (ROOT / ".github" / "workflows" / "test.yml").read_text()
    assert (ROOT / "noxfile.py").read_text().count(f"python={matrix}") == 2  # tests and the wheel
    script = (ROOT / "tests" / "robustness" / "empty_environment.py").read_text()
    assert f"PYTHONS = ({matrix[1:-1]})" in script


@pytest.mark.parametrize("file", ["Makefile", "noxfile.py"])
def test_one_version_of_pytorch_is_tested(file):
    pinned = set(re.findall(r"torch==([\d.]+)", (ROOT / file).read_text()))
    assert len(pinned) == 1
    assert f"torch=={pinned.pop()}" in (ROOT / "Makefile").read_text()


def test_groups_repeat_no_dependency():
    """pip and uv read groups; what is in them stands once, as an extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for listed in project["dependency-groups"].values():
        assert all(each.startswith("reluflow[") for each in listed)


def test_coverage_is_of_all_but_kernels():
    """Whoever leaves files out to reach the number has to say so here."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["coverage"]
    assert tool["run"]["branch"]
    assert tool["run"]["omit"] == ["*/reluflow/kernels/*"]
    assert tool["report"]["fail_under"] >= 90
    recipe = (ROOT / "Makefile").read_text().partition("\ncoverage:")[2].partition("\n\n")[0]
    assert [mark in recipe for mark in ('-m "not slow and not nightly"', "-m slow")] == [True, True]
    assert recipe.rstrip().endswith("coverage report --ignore-errors")
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    assert "- run: make coverage" in workflow
