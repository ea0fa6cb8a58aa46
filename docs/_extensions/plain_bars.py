"""Docstrings write |w| for a norm; reStructuredText would read that as a substitution."""

import re

from sphinx.application import Sphinx

LITERAL = re.compile(r"(``.*?``|:math:`.*?`|`.*?`)")


def escape_bars(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]):
    """Write bars outside of literals and formulas with the sign of the same width for them."""
    formula = False
    for i, line in enumerate(lines):
        if line.strip().startswith(".. math::"):
            formula, indent = True, len(line) - len(line.lstrip())
            continue
        if formula and (not line.strip() or len(line) - len(line.lstrip()) > indent):
            continue
        formula = False
        parts = LITERAL.split(line)
        lines[i] = "".join(p if k % 2 else p.replace("|", "\u2223") for k, p in enumerate(parts))


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect before numpydoc reads the sections, and after it has added those of properties."""
    app.connect("autodoc-process-docstring", escape_bars, priority=400)
    app.connect("autodoc-process-docstring", escape_bars, priority=600)
    return {"parallel_read_safe": True}
