"""Packages whose public names are imported on first use."""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any


class LazyPackage(ModuleType):
    """A package that looks its public names up in ``_homes``: name to module that holds it.

    Where a submodule has the name of a public function (``reluflow.landscape.align``), the name
    stays the function's, whatever is imported first.
    """

    _homes: Mapping[str, str]
    _hints: Mapping[str, str]

    def __getattr__(self, name: str) -> Any:
        if name not in self._homes:
            raise AttributeError(
                f"module {self.__name__!r} has no attribute {name!r}{self._hint(name)}"
            )
        module = importlib.import_module(self._homes[name])
        value = getattr(module, name, module)
        self.__dict__[name] = value
        return value

    def _hint(self, name: str) -> str:
        """What may have been meant; nothing for names that only machinery looks for."""
        if name.startswith("_"):
            return ""
        if name in self._hints:
            return f": {self._hints[name]}"
        close = difflib.get_close_matches(name, list(self._homes), n=1, cutoff=0.75)
        return f": did you mean {close[0]!r}?" if close else ""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and name in self._homes):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *self._homes})


def make_lazy(
    package: str, homes: Mapping[str, str], hints: Mapping[str, str] | None = None
) -> None:
    """Turn an imported package into a :class:`LazyPackage`; ``hints`` are names that people try,
    and what to use."""
    module = sys.modules[package]
    module.__dict__["_homes"] = homes
    module.__dict__["_hints"] = hints or {}
    module.__class__ = LazyPackage
