"""The house keeps its import directions, and importing it stays light."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import reluflow

SOURCE = Path(reluflow.__file__).parent

# package -> packages it may import (itself is always allowed; errors and _version are everyone's)
TOOLS = {"problem", "network", "runtime"}
PREDICTION = TOOLS | {"kernels", "landscape", "optimum", "prediction"}
SIMULATION = TOOLS | {"kernels", "trajectory", "descent", "gradientflow"}
ALLOWED = {
    "runtime": set(),
    "kernels": set(),
    "problem": {"network", "kernels"},  # kernels.codes: the numbers of losses
    "network": {"problem"},
    "landscape": TOOLS | {"kernels"},
    "optimum": TOOLS | {"kernels", "landscape"},
    "prediction": TOOLS | {"kernels", "landscape", "optimum"},
    "trajectory": TOOLS | {"kernels"},  # kernels.codes: the kinds of events
    "descent": TOOLS | {"kernels", "trajectory"},
    "gradientflow": TOOLS | {"kernels", "trajectory"},
    "claims": PREDICTION | SIMULATION,
    "sweeps": PREDICTION | SIMULATION | {"claims"},
    "report": TOOLS | {"trajectory", "landscape", "prediction", "claims"},
    "torch": TOOLS | {"landscape", "report"},
    "explanation": PREDICTION | SIMULATION | {"claims", "report"},
    "papers": PREDICTION | SIMULATION | {"claims", "sweeps", "report", "torch"},
}
EVERYONES = {"arrays", "errors", "_lazy", "_version"}
# what kernels import
PLAIN = {"__future__", "enum", "math", "typing", "numpy", "numba", "reluflow"}


def imported_rooms(path):
    """(line, room) of every import of the library below ``path``, lazy and type-only ones too."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute here"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "reluflow" and len(parts) > 1:
                yield node.lineno, parts[1]


def type_only(path):
    """Lines inside ``if TYPE_CHECKING``."""
    lines = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            lines.update(range(node.lineno, node.end_lineno + 1))
    return lines


@pytest.mark.parametrize("room", ALLOWED)
def test_rooms_import_only_downwards(room):
    for path in sorted((SOURCE / room).rglob("*.py")):
        skip = type_only(path)
        for line, other in imported_rooms(path):
            fine = other == room or other in EVERYONES or other in ALLOWED[room]
            assert fine or line in skip, f"{path.name}:{line} imports {other} from {room}"


def test_problem_needs_network_for_types_only():
    for path in sorted((SOURCE / "problem").rglob("*.py")):
        skip = type_only(path)
        uses = [line for line, other in imported_rooms(path) if other == "network"]
        assert all(line in skip for line in uses), path


def test_kernels_import_numpy_and_numba_alone():
    for path in sorted((SOURCE / "kernels").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                modules = [node.module or ""]
            for module in modules:
                top = module.split(".")[0]
                assert top in PLAIN, (path, module)


def test_every_room_is_listed():
    rooms = {p.name for p in SOURCE.iterdir() if p.is_dir() and (p / "__init__.py").exists()}
    assert rooms - {"cli"} <= set(ALLOWED), "a new room needs its import directions written down"


def test_what_is_imported_is_declared():
    """Every package that the source imports is a dependency, or one of an extra."""
    project = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *(name for extra in extras.values() for name in extra)]
    declared = {re.split(r"[<>=\[]", name)[0] for name in asked}
    named = {"sklearn": "scikit-learn", "PIL": "pillow", "flint": "python-flint"}
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                modules = [node.module]
            for top in (module.split(".")[0] for module in modules):
                if top != "reluflow" and top not in sys.stdlib_module_names:
                    assert named.get(top, top) in declared, f"{path.name}:{node.lineno}: {top}"


def test_importing_loads_neither_compiler_nor_plots():
    code = (
        "import sys, reluflow; reluflow.Problem; reluflow.initialize; reluflow.datasets; "
        "heavy = {'numba', 'matplotlib', 'xarray', 'sklearn', 'torch', 'typer', 'rich'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_public_names_resolve_and_are_documented():
    for name in reluflow.__all__:
        value = getattr(reluflow, name)
        assert name == "__version__" or value.__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        reluflow.nothing  # noqa: B018


@pytest.mark.parametrize("first", ["reluflow.gradientflow.stops", "reluflow.landscape.early"])
def test_functions_named_like_their_module_stay_functions(first):
    code = (
        f"import importlib, reluflow; importlib.import_module({first!r}); "
        "from reluflow import align, early, flow, landscape; "
        "assert callable(flow) and callable(reluflow.flow) and callable(landscape.early); "
        "assert reluflow.landscape.align is align and reluflow.early is early"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
