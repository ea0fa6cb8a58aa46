"""Docstrings, README and the code they speak of agree."""

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import reluflow

ROOT = Path(__file__).parents[1]
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(reluflow.__path__, "reluflow.")
    if not module.name.startswith("reluflow.kernels")
)
FUNCTIONS = [
    name
    for name in reluflow.__all__
    if callable(getattr(reluflow, name)) and not name.endswith("Error")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    if name.startswith("reluflow.torch."):
        pytest.importorskip("torch")
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_is_documented(name):
    thing = getattr(reluflow, name)
    documentation = inspect.getdoc(thing) or ""
    if "Parameters" not in documentation:
        assert len(documentation) > 20, name
        return
    for parameter in inspect.signature(thing).parameters:
        assert re.search(rf"\b{parameter}\b", documentation), f"{name}: {parameter}"


def python_blocks(path):
    return re.findall(r"```python\n(.*?)```", path.read_text(), flags=re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(len(python_blocks(ROOT / "README.md"))))
def test_readme_runs(block, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(python_blocks(ROOT / "README.md")[block], "README.md", "exec"), {})


def test_readme_points_at_files_that_exist():
    text = (ROOT / "README.md").read_text()
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / target).exists(), target


def test_changelog_and_citation_carry_the_version():
    assert "[Unreleased]" in (ROOT / "CHANGELOG.md").read_text()
    assert f"version: {reluflow.__version__}" in (ROOT / "CITATION.cff").read_text()
