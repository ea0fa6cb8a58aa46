r"""The front end's ES modules as one script, without a build step.

A notebook and an offline file cannot fetch modules from one another. So the modules are written
in a plain form (imports ``import { a, b } from "./name.js";`` or ``import a from "./name.js";``
at the top, exports ``export function``, ``export class``, ``export const`` or ``export default``
at the start of a line) and `bundle` puts each into a function of its own, in the order in which
they need each other:

    const m_name = (() => { const { a } = m_other; ...; return { b, c }; })();
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w-]+)\.js";\n', re.MULTILINE)
_IMPORT_DEFAULT = re.compile(r'^import (\w+) from "\./([\w-]+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (async function|function|class|const|let) (\w+)", re.MULTILINE)
_DEFAULT = re.compile(r"^export default ", re.MULTILINE)


@cache
def read_static(name: str) -> str:
    """A file of the front end."""
    return (files("reluflow.playback") / "static" / name).read_text(encoding="utf-8")


def static_names() -> list[str]:
    """Names of all files of the front end."""
    return sorted(p.name for p in (files("reluflow.playback") / "static").iterdir())


@cache
def bundle(entry: str) -> str:
    """A module and all it imports, as one script that ends with ``export default``.

    Parameters
    ----------
    entry : str
        Name of the module without its ending; it has a default export.
    """
    done: dict[str, str] = {}
    _add(entry, done, ())
    return "\n".join([*done.values(), f"export default {_variable(entry)}.default;", ""])


def _variable(name: str) -> str:
    return "m_" + name.replace("-", "_")


def _add(name: str, done: dict[str, str], above: tuple[str, ...]) -> None:
    if name in above:
        raise ValueError(f"modules import each other: {' -> '.join([*above, name])}")
    if name in done:
        return
    text = read_static(f"{name}.js")
    for needed in (_IMPORT, _IMPORT_DEFAULT):
        for match in needed.finditer(text):
            _add(match[2], done, (*above, name))
    body = _IMPORT.sub(lambda m: f"const {{{_renamed(m[1])}}} = {_variable(m[2])};\n", text)
    body = _IMPORT_DEFAULT.sub(lambda m: f"const {m[1]} = {_variable(m[2])}.default;\n", body)
    names = [match[2] for match in _EXPORT.finditer(body)]
    body = _EXPORT.sub(r"\1 \2", body)
    if _DEFAULT.search(body):
        body = _DEFAULT.sub("const exported = ", body)
        names.append("default: exported")
    if re.search(r"^(import|export)\b", body, re.MULTILINE):
        raise ValueError(f"{name}.js has an import or export that is not in the plain form")
    returned = f"return {{ {', '.join(names)} }};"
    done[name] = f"const {_variable(name)} = (() => {{\n{body}{returned}\n}})();"


def _renamed(names: str) -> str:
    """``a as b`` of an import is ``a: b`` of a destructuring."""
    return re.sub(r"(\w+) as (\w+)", r"\1: \2", names)
