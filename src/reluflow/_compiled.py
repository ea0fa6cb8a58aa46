"""Compiling kernels: Numba's ``njit``, with a cache that may be missing, damaged or out of date.

Numba's own cache raises where it finds no folder to write to and where a file of it is cut short,
and it knows only the file of a kernel, not the kernels that this file calls. Here

- a kernel without a place for its machine code is compiled in each process, which is said once;
- what cannot be read is compiled again, what cannot be written is left unwritten;
- machine code belongs to the source of its module and of all kernels that it imports;
- a kernel that is loaded is machine code alone: what Numba keeps beside it to compile other kernels
  from, and reads each time, which takes longer than all the rest, is read when one is compiled.
"""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numba
from numba.core import codegen
from numba.core.caching import FunctionCache, IndexDataCacheFile

llvm: Any = vars(codegen).get("ll")  # the bindings of llvmlite, where Numba has them
_FORMAT = b"2"  # of the files: raised when `Kept` changes
_SAID = "RELUFLOW_WITHOUT_CACHE"  # in the environment, so that worker processes do not repeat it
_IMPORT = re.compile(r"^\s*from reluflow\.kernels\.(\w+) import", re.MULTILINE)


class CacheWarning(UserWarning):
    """Compiled kernels cannot be kept."""


def njit(cache: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """As ``numba.njit`` with options: a decorator that compiles when first called.

    Parameters
    ----------
    cache : bool
        Whether machine code is kept on disk.
    **options
        Those of ``numba.njit``.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        kernel = numba.njit(**options)(function)
        if cache and hasattr(kernel, "_cache"):  # not where NUMBA_DISABLE_JIT is set
            try:
                kernel._cache = _Cache(function)
            except RuntimeError:  # no folder can be written
                _say_once()
        return kernel

    return decorate


def kept_in(kernel: Any) -> str | None:
    """Folder of the machine code of a kernel; None where there is none."""
    return getattr(getattr(kernel, "_cache", None), "cache_path", None)


def is_compiled(kernel: Any) -> bool:
    """Whether the cache has a version of a kernel made from the present source; or has no place."""
    found = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
    return found is None or bool(found._load_index())


def _say_once() -> None:
    if os.environ.get(_SAID):
        return
    os.environ[_SAID] = "1"
    warnings.warn(
        "no folder for compiled kernels can be written, so that each process compiles them anew: "
        "set NUMBA_CACHE_DIR to a folder that can",
        CacheWarning,
        stacklevel=3,
    )


@cache
def source_stamp(path: str) -> str:
    """Hash of the source of a kernel module and of all kernel modules it imports."""
    folder, left, seen = Path(path).parent, {Path(path).stem}, set()
    digest = hashlib.sha256(_FORMAT)
    while left:
        seen |= left
        texts = {name: (folder / f"{name}.py").read_text(encoding="utf-8") for name in sorted(left)}
        for name, text in texts.items():
            digest.update(f"{name}\0{text}\0".encode())
        left = {found for text in texts.values() for found in _IMPORT.findall(text)} - seen
    return digest.hexdigest()


class Kept(NamedTuple):
    """A compiled kernel in its file: what Numba makes of it, and the symbols it defines."""

    reduced: tuple[Any, ...]
    symbols: frozenset[str] | None  # None where they are not known

    @classmethod
    def of(cls, reduced: tuple[Any, ...]) -> Kept:
        """With the symbols read off the kernel's bitcode."""
        _, kind, code = reduced[0]
        if kind != "object" or llvm is None:
            return cls(reduced, None)
        module = llvm.parse_bitcode(code[1])
        values = (*module.functions, *module.global_variables)
        return cls(reduced, frozenset(v.name for v in values if not v.is_declaration))


class _Bitcode:
    """An LLVM module that is read when something of it is asked for."""

    def __init__(self, code: bytes) -> None:
        self._code = code

    def __getattr__(self, name: str) -> Any:
        if name == "_module":
            self._module = llvm.parse_bitcode(self._code)
            return self._module
        return getattr(self._module, name)


def _rebuild(kept: Kept, impl: Any, context: Any) -> Any:
    """The kernel, as Numba rebuilds it from its file, but that its bitcode is not read."""
    name, _, code = kept.reduced[0]
    maker = context.codegen()
    known = kept.symbols is not None and llvm is not None
    if not (known and hasattr(getattr(maker, "_engine", None), "_defined_symbols")):
        return impl.rebuild(context, kept.reduced)
    library = maker.create_library(name)
    library.enable_object_caching()
    library._set_compiled_object(code[0])
    library._shared_module = _Bitcode(code[1])
    library._finalize_final_module()
    maker._engine._defined_symbols |= kept.symbols
    maker.unserialize_library = lambda _: library  # for `rebuild`; callers hold Numba's lock
    try:
        return impl.rebuild(context, kept.reduced)
    finally:
        del maker.unserialize_library


class _CacheFile(IndexDataCacheFile):
    """Numba's cache file of a kernel, for which an unreadable file is an absent one."""

    def _load_index(self) -> dict[Any, Any]:
        try:
            return dict(super()._load_index())
        except Exception:  # cut short, or of a version that pickles otherwise
            return {}

    def _load_data(self, name: str) -> Any:
        try:
            return super()._load_data(name)
        except Exception as error:
            raise OSError(str(error)) from None  # which Numba takes for a file that is gone

    def save(self, key: Any, data: Any) -> None:
        try:
            super().save(key, Kept.of(data))
        except OSError:  # a full disk: compiled again next time
            return


class _Cache(FunctionCache):
    """Numba's cache of a kernel, with files as above and a stamp of all sources involved."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = source_stamp(function.__code__.co_filename)
        self._cache_file = _CacheFile(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            target_context.refresh()
            kept = self._cache_file.load(self._index_key(sig, target_context.codegen()))
            return None if kept is None else _rebuild(kept, self._impl, target_context)
        except Exception:  # whole, but of no use to this version of LLVM
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError:  # the folder went away
            return
