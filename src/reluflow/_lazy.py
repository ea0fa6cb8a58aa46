"""Packages whose public names are imported on first use."""

from __future__ import annotations

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

    def __getattr__(self, name: str) -> Any:
        if name not in self._homes:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        module = importlib.import_module(self._homes[name])
        value = getattr(module, name, module)
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and name in self._homes):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *self._homes})


def make_lazy(package: str, homes: Mapping[str, str]) -> None:
    """Turn an imported package into a :class:`LazyPackage`."""
    module = sys.modules[package]
    module.__dict__["_homes"] = homes
    module.__class__ = LazyPackage
