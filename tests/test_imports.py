"""Imports go one way, in every module and inside every function, and importing stays light."""

import ast
import graphlib
import inspect
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

import reluflow

SOURCE = Path(reluflow.__file__).parent

# package -> packages it may import; itself and the modules beside the packages are always allowed
TOOLS = {"problem", "network", "runtime"}
PREDICTION = TOOLS | {"kernels", "landscape", "optimum", "prediction"}
SIMULATION = TOOLS | {"kernels", "trajectory", "descent", "gradientflow"}
ALLOWED = {
    "runtime": set(),
    "kernels": set(),
    "problem": {"runtime", "network", "kernels"},
    "network": {"problem"},
    "landscape": TOOLS | {"kernels"},
    "optimum": TOOLS | {"kernels", "landscape"},
    "prediction": TOOLS | {"kernels", "landscape", "optimum"},
    "trajectory": TOOLS | {"kernels"},
    "descent": TOOLS | {"kernels", "trajectory"},
    "gradientflow": TOOLS | {"kernels", "trajectory"},
    "claims": PREDICTION | SIMULATION,
    "sweeps": PREDICTION | SIMULATION | {"claims"},
    "plot": TOOLS | {"trajectory", "landscape", "prediction"},
    "report": TOOLS | {"trajectory", "landscape", "prediction", "claims", "plot"},
    "playback": TOOLS | {"trajectory"},
    "torch": TOOLS | {"landscape", "plot", "report"},
    "explanation": PREDICTION | SIMULATION | {"claims", "plot", "report", "playback"},
    "studio": PREDICTION | SIMULATION | {"claims", "plot", "report", "playback", "explanation"},
    "estimators": PREDICTION | SIMULATION | {"explanation"},
    "papers": PREDICTION | SIMULATION | {"claims", "sweeps", "plot", "report", "torch"},
}
# modules that every package may import
BESIDE = {"errors", "arrays", "checks", "_lazy", "_version", "_views", "_compiled"}
PLAIN = {"__future__", "enum", "math", "typing", "numpy", "numba", "reluflow"}  # kernels' imports


@cache
def modules():
    """Dotted name of every module of the library, and its syntax tree."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text())
    return found


def for_types_only(tree):
    """The nodes inside ``if TYPE_CHECKING``, which no run executes."""
    guards = (n for n in ast.walk(tree) if isinstance(n, ast.If) and is_type_guard(n.test))
    return {id(inner) for guard in guards for part in guard.body for inner in ast.walk(part)}


def is_type_guard(test):
    return getattr(test, "id", getattr(test, "attr", "")) == "TYPE_CHECKING"


def imports_of(tree, types=False):
    """(line, dotted name) of every import, lazy ones too; those for types only if asked for."""
    skip = set() if types else for_types_only(tree)
    for node in ast.walk(tree):
        if id(node) in skip:
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute here"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


@cache
def arrows():
    """Module -> modules of the library it imports, anywhere in it."""
    known = modules()
    graph = {}
    for module, tree in known.items():
        reached = set()
        for _, name in imports_of(tree):
            home = name if name in known else name.rpartition(".")[0]
            if home in known and home not in (module, "reluflow"):
                reached.add(home)
        graph[module] = reached
    return graph


def members(package):
    return {m: t for m, t in modules().items() if m.split(".")[1:2] == [package]}


@pytest.mark.parametrize("package", ALLOWED)
def test_packages_import_only_downwards(package):
    allowed = ALLOWED[package] | BESIDE | {package}
    for module, tree in members(package).items():
        for line, name in imports_of(tree):
            top, _, rest = name.partition(".")
            other = rest.split(".")[0]
            if top == "reluflow" and rest:
                assert other in allowed, f"{module}:{line} imports {other}"


def test_modules_beside_the_packages_import_words_alone():
    for name in BESIDE:
        assert arrows()[f"reluflow.{name}"] <= {"reluflow.errors", "reluflow.runtime.words"}


def test_no_cycle_among_modules():
    try:
        tuple(graphlib.TopologicalSorter(arrows()).static_order())
    except graphlib.CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_problem_needs_network_for_types_only():
    for module, tree in members("problem").items():
        assert not [line for line, name in imports_of(tree) if ".network" in name], module


def test_kernels_import_numpy_and_numba_alone():
    for module, tree in members("kernels").items():
        for line, name in imports_of(tree, types=True):
            assert name.split(".")[0] in PLAIN, f"{module}:{line} imports {name}"


def test_every_package_is_listed():
    found = {p.name for p in SOURCE.iterdir() if p.is_dir() and (p / "__init__.py").exists()}
    assert found - {"cli"} <= set(ALLOWED), "a new package needs its import directions written down"


def test_what_is_imported_is_declared():
    """Every package that the source imports is a dependency, or one of an extra."""
    project = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *(name for extra in extras.values() for name in extra)]
    declared = {re.split(r"[<>=\[]", name)[0] for name in asked}
    named = {"sklearn": "scikit-learn", "PIL": "pillow", "flint": "python-flint"}
    for module, tree in modules().items():
        for line, name in imports_of(tree, types=True):
            top = name.split(".")[0]
            if top != "reluflow" and top not in sys.stdlib_module_names:
                assert named.get(top, top) in declared, f"{module}:{line}: {top}"


def loaded_after(code, names):
    """Which of these modules a new interpreter has loaded after running the code."""
    code = f"import sys; {code}; print(*sorted({set(names)!r} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.split()


def test_importing_loads_neither_compiler_nor_plots():
    code = "import reluflow; reluflow.Problem; reluflow.initialize; reluflow.datasets"
    heavy = {"numba", "matplotlib", "pandas", "xarray", "sklearn", "torch", "typer", "rich"}
    assert loaded_after(code, heavy) == []


def test_explain_needs_nothing_of_the_command_line():
    parts = {"typer", "click", "rich.console", "rich.progress", "rich.prompt", "reluflow.cli"}
    assert loaded_after("import reluflow; reluflow.explain", parts) == []
    reached, waiting = set(), ["reluflow.explanation.explain"]
    while waiting:
        module = waiting.pop()
        if module not in reached:
            reached.add(module)
            waiting += arrows()[module]
    for module in reached:
        assert not module.startswith("reluflow.cli"), f"explain reaches {module}"
        tops = {name.split(".")[0] for _, name in imports_of(modules()[module])}
        assert "typer" not in tops, module


def test_public_names_resolve_and_are_documented():
    for name in reluflow.__all__:
        value = getattr(reluflow, name)
        assert name == "__version__" or value.__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        reluflow.nothing  # noqa: B018


def classes_named_in(annotation):
    """Identifiers of an annotation such as ``list[Verdict] | None``."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


def test_what_public_functions_return_is_public():
    """Result types can be imported from ``reluflow`` for type hints, and are those returned."""
    ours = {n.name for tree in modules().values() for n in ast.walk(tree) if is_class(n)}
    functions = [getattr(reluflow, name) for name in reluflow.__all__]
    functions = [value for value in functions if inspect.isfunction(value)]
    assert len(functions) > 20
    for function in functions:
        returned = classes_named_in(inspect.signature(function).return_annotation)
        for name in returned & ours:
            assert name in reluflow.__all__, f"{function.__name__} returns {name}"
            held = function.__globals__.get(name, getattr(reluflow, name))
            assert held is getattr(reluflow, name), f"{function.__name__} returns another {name}"


def is_class(node):
    return isinstance(node, ast.ClassDef)


def test_the_types_a_result_is_made_of_are_public():
    for name in ("Alignment", "ExtremalVectors", "Explanation", "Verdict", "NetworkMargin"):
        assert name in reluflow.__all__
    run = reluflow.Trajectory
    assert run.__annotations__["status"] == "Status"
    assert sys.modules[run.__module__].Status is reluflow.Status


def test_no_package_has_the_name_of_a_public_function():
    packages = {p.name for p in SOURCE.iterdir() if (p / "__init__.py").exists()}
    for name in packages & set(reluflow.__all__):
        assert inspect.ismodule(getattr(reluflow, name)), name


def test_modules_are_reached_by_their_names():
    names = "gradientflow.stops", "landscape.bound", "sweeps.grid", "explanation.settings"
    code = "; ".join(f"import reluflow.{n}; reluflow.{n}.__name__" for n in names)
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("first", ["reluflow.gradientflow.stops", "reluflow.landscape.early"])
def test_functions_named_like_their_module_stay_functions(first):
    code = (
        f"import importlib, reluflow; importlib.import_module({first!r}); "
        "from reluflow import align, early, flow, landscape; "
        "assert callable(flow) and callable(reluflow.flow) and callable(landscape.early); "
        "assert reluflow.landscape.align is align and reluflow.early is early"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
