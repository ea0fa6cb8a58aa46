"""Each module of kernels/ is imported by a test module of this folder, where its twin is."""

import ast
from pathlib import Path

import pytest

import reluflow.kernels

HERE = Path(__file__).parent
MODULES = sorted(
    file.stem for file in Path(reluflow.kernels.__file__).parent.glob("*.py") if file.stem[0] != "_"
)


def imported(file):
    """Names of the kernel modules a test module imports."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "reluflow.kernels":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "reluflow.kernels."
        ):
            yield node.module.rsplit(".", 1)[1]


@pytest.mark.parametrize("module", MODULES)
def test_module_is_named_in_a_test(module):
    named = {name for file in HERE.glob("test_*.py") for name in imported(file)}
    assert module in named, f"kernels/{module}.py has no test in tests/kernels"
