"""The five papers: importing this module registers their claims and figures."""

from __future__ import annotations

from reluflow.errors import ReluflowError
from reluflow.papers import bf24, llwa21, mmv24, tk24, tlb26
from reluflow.papers.figure import FIGURES, Spec

PAPERS = (bf24, tlb26, mmv24, llwa21, tk24)


def all_figures() -> dict[tuple[str, str], Spec]:
    """Every figure, by paper and number."""
    return dict(sorted(FIGURES.items(), key=lambda item: (item[0][0], _order(item[0][1]))))


def _order(name: str) -> tuple[int, str]:
    digits = "".join(c for c in name if c.isdigit())
    return (int(digits) if digits else 0, name)


def chosen(paper: str | None = None, name: str | None = None) -> list[Spec]:
    """All figures, those of one paper, or one with its parts: "F1" is also F1L, F1M and F1R."""
    known = all_figures()
    papers = sorted({of for of, _ in known})
    if paper is not None and paper.upper() not in papers:
        raise ReluflowError(f"unknown paper {paper!r}: expected one of {', '.join(papers)}")
    mine = [spec for (of, _), spec in known.items() if paper is None or of == paper.upper()]
    found = [spec for spec in mine if name is None or _names(name.upper(), spec.name.upper())]
    if not found:
        asked = " ".join(part for part in (paper, name) if part)
        listed = ", ".join(spec.name if paper else f"{spec.paper} {spec.name}" for spec in mine)
        raise ReluflowError(f"no figure {asked!r}: expected one of {listed}")
    return found


def _names(asked: str, name: str) -> bool:
    """Whether ``name`` is what was asked for, or a part of it: letters after a number."""
    rest = name.removeprefix(asked)
    return name == asked or (asked[-1:].isdigit() and rest != name and rest.isalpha())
