"""Records of finished work: a job with the same settings and version is not done twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import reluflow
from reluflow._version import __version__
from reluflow.runtime import write_text
from reluflow.runtime.plain import to_plain


def key_of(settings: Mapping[str, Any]) -> str:
    """Hash of the settings, the version and the whole source of the package.

    A result depends on every kernel and solver below it, not on the modules of its paper alone.
    """
    plain = json.dumps([__version__, dict(settings), _source()], sort_keys=True, default=str)
    return hashlib.sha256(plain.encode()).hexdigest()


@cache
def _source() -> str:
    """Hash of every module and table of the package."""
    root = Path(reluflow.__file__).parent
    digest = hashlib.sha256()
    for path in sorted([*root.rglob("*.py"), *root.rglob("*.csv")]):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def read(path: Path, key: str) -> dict[str, Any] | None:
    """The record at ``path`` if it belongs to ``key`` and its files are there."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(record, dict) or record.get("key") != key:
        return None
    folder = path.parent.parent
    if any(not (folder / name).is_file() for name in record.get("files", ())):
        return None
    return record


def write(path: Path, key: str, content: Mapping[str, Any]) -> None:
    """Write a record beside and rename; it is the last thing a job writes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {"key": key, "version": __version__, **content}
    text = json.dumps(record, indent=1, default=to_plain)
    write_text(path, text)
