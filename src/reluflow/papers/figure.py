"""What a reproduced figure is, and which ones there are."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reluflow.errors import ReluflowError

# (paper, figure) -> module:function
FIGURES = {
    ("BF24", "F2"): "reluflow.papers.bf24:figure2",
    ("TK24", "F1"): "reluflow.papers.tk24:figure1",
    ("TK24", "F2"): "reluflow.papers.tk24:figure2",
}


@dataclass(frozen=True)
class Figure:
    """A reproduced figure: files written, numbers measured, what they say."""

    paper: str
    name: str
    title: str
    files: tuple[Path, ...]
    numbers: Mapping[str, Any]
    summary: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)


def chosen(paper: str | None = None, figure: str | None = None) -> list[tuple[str, str]]:
    """Keys of all figures, of those of one paper, or of one."""
    keys = [
        key
        for key in FIGURES
        if (paper is None or key[0] == paper.upper())
        and (figure is None or key[1] == figure.upper())
    ]
    if not keys:
        known = ", ".join(" ".join(key) for key in FIGURES)
        name = " ".join(part for part in (paper, figure) if part)
        raise ReluflowError(f"no figure {name!r} here yet: expected one of {known}")
    return keys


def reproduce(paper: str, figure: str, out: str | Path, quick: bool = False) -> Figure:
    """Make one figure of one paper in the folder ``out``.

    Parameters
    ----------
    paper, figure : str
        Keys such as "BF24" and "F2"; see ``FIGURES``.
    out : path
        Folder for the pictures, made if needed.
    quick : bool
        A smaller version in seconds, marked as such.
    """
    (key,) = chosen(paper, figure)
    module, function = FIGURES[key].split(":")
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReluflowError(f"cannot write into {folder}: {error.strerror}") from None
    return getattr(importlib.import_module(module), function)(folder, quick)


def write_picture(figure: Any, path: Path, dpi: int = 150) -> Path:
    """Save a matplotlib figure beside and rename, so that no half-written file is left."""
    beside = path.with_name(path.name + ".part")
    figure.savefig(beside, dpi=dpi, format=path.suffix[1:])
    beside.replace(path)
    return path
