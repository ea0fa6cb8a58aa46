"""Files that are there whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def beside(target: Path) -> Iterator[Path]:
    """A path to write to, which takes the place of ``target`` at the end and is gone on failure."""
    part = target.with_name(target.name + ".part")
    try:
        yield part
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def write_text(target: Path, text: str) -> Path:
    """Write a text file beside and rename."""
    with beside(target) as part:
        part.write_text(text, encoding="utf-8")
    return target
