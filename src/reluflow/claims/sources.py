"""Who registers checks: the frame of claims stands below the papers and does not import them."""

from __future__ import annotations

from collections.abc import Callable

#: Called before the registry is read; the package's own ``__init__`` adds the papers.
SOURCES: list[Callable[[], None]] = []
