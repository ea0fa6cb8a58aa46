"""Records of finished work: a job with the same settings and version is not done twice."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reluflow._version import __version__
from reluflow.claims.claim import paper_modules
from reluflow.runtime import write_text

#: Where the sources of a paper are; figures use runs of claims.
ROOMS = ("reluflow.claims", "reluflow.papers")


def key_of(module: str, settings: Mapping[str, Any]) -> str:
    """Hash of the settings, the version and the sources of the paper's claims and figures."""
    paper = module.rpartition(".")[2].split("_")[0]
    sources = [m for room in ROOMS for m in paper_modules(room)]
    same = [m for m in sources if m.rpartition(".")[2].split("_")[0] == paper]
    source = [inspect.getsource(importlib.import_module(m)) for m in same or [module]]
    plain = json.dumps([__version__, dict(settings), source], sort_keys=True, default=str)
    return hashlib.sha256(plain.encode()).hexdigest()


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
    text = json.dumps(record, indent=1, default=plain)
    write_text(path, text)


def plain(value: Any) -> Any:
    """Arrays as lists, anything else as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
