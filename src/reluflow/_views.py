"""Objects that show themselves: their pictures and tables are made by packages above them.

A package imports downwards only, so ``run.plot()`` cannot import the pictures it draws:
``reluflow/__init__.py`` enters the function that draws and the one that writes HTML here.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

#: "plot" and "html" -> loads the function of one object that does it
MAKERS: dict[str, Callable[[], Callable[..., Any]]] = {}


class Shown:
    """An object with a usual picture, a table for notebooks, and hints for names it lacks."""

    _hints: ClassVar[Mapping[str, str]] = {}  # name people try -> what to use

    def plot(self, *args: Any, **options: Any) -> Any:
        """Draw the usual picture of this object, see :mod:`reluflow.plot`; returns the axes."""
        return MAKERS["plot"]()(self, *args, **options)

    def _repr_html_(self) -> str:
        return str(MAKERS["html"]()(self))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # what copy, pickle and notebooks look for
            raise AttributeError(name)
        kind = type(self)
        hint = kind._hints.get(name)
        if hint is None:
            close = difflib.get_close_matches(name, [n for n in dir(kind) if n[:1] != "_"], n=1)
            hint = f"did you mean .{close[0]}?" if close else ""
        raise AttributeError(
            f"{kind.__name__} has no attribute {name!r}" + (f": {hint}" if hint else "")
        )
