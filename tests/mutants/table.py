"""The table of deliberate defects: reading it, finding its places, applying one to a copy."""

from __future__ import annotations

import ast
import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SOURCE = ROOT / "src"
KERNELS = "reluflow/kernels"


@dataclass(frozen=True)
class Mutant:
    """One defect and what must notice it.

    ``file`` is a path below src; ``old`` occurs in it exactly once and is replaced by ``new``.
    ``tests`` are node ids of pytest, ``claims`` names of checks of the ledger, run at ``size`` and
    ``seed``; each of them must notice.
    """

    name: str
    breaks: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    claims: tuple[str, ...] = ()
    size: str = "quick"
    seed: int = 0


def load(path: Path = HERE / "mutants.toml") -> list[Mutant]:
    """All mutants, in the order of the file."""
    rows = tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
    made = [
        Mutant(
            **{
                key: tuple(value) if isinstance(value, list) else _stripped(value)
                for key, value in row.items()
            }
        )
        for row in rows
    ]
    names = [mutant.name for mutant in made]
    if len(set(names)) < len(names):
        raise ValueError(f"mutants.toml gives a name twice: {', '.join(names)}")
    return made


def _stripped(value: str | int) -> str | int:
    """A text of several lines without the line break before its closing quotes."""
    return value.rstrip("\n") if isinstance(value, str) else value


def rotten(mutant: Mutant, source: Path = SOURCE) -> str:
    """Why a mutant cannot be applied any more, in a sentence; empty if it can."""
    path = source / mutant.file
    if not path.is_file():
        return f"{mutant.name}: {mutant.file} does not exist any more; name the file it moved to."
    count = path.read_text(encoding="utf-8").count(mutant.old)
    if count == 1:
        return ""
    found = "does not occur any more" if count == 0 else f"occurs {count} times"
    return (
        f"{mutant.name}: the old text {found} in {mutant.file}, expected once; "
        f"write the text of today into mutants.toml: {mutant.old.strip()!r}"
    )


def copy_source(folder: Path) -> Path:
    """A copy of src with its compiled kernels; returns the folder for PYTHONPATH.

    Times of change are kept: Numba takes a compiled kernel for that of a file by time and size.
    """
    target = folder / "src"
    shutil.copytree(SOURCE, target, ignore=shutil.ignore_patterns("*.pyc"))
    return target


def apply(mutant: Mutant, source: Path) -> None:
    """Put the defect into a copy of src, and drop the compiled kernels that it can reach."""
    reason = rotten(mutant, source)
    if reason:
        raise ValueError(reason)
    path = source / mutant.file
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    if mutant.file.startswith(KERNELS):
        for module in callers(source / KERNELS, path.stem):
            for compiled in (source / KERNELS / "__pycache__").glob(f"{module}.*.nb[ic]"):
                compiled.unlink()


def callers(folder: Path, module: str) -> set[str]:
    """The kernel files that import ``module``, directly or through others, and itself.

    A compiled kernel contains the kernels that it calls, and Numba looks at its own file alone.
    """
    imports = {path.stem: _imported(path) for path in folder.glob("*.py")}
    reached = {module}
    while True:
        more = {name for name, used in imports.items() if used & reached} - reached
        if not more:
            return reached
        reached |= more


def _imported(path: Path) -> set[str]:
    """Kernel modules that a file imports."""
    package, names = KERNELS.replace("/", "."), set[str]()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            whole = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            whole = [alias.name for alias in node.names]
        else:
            continue
        names |= {name.split(".")[2] for name in whole if name.startswith(package + ".")}
    return names
