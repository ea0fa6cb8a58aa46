"""Figures of the five papers: importing this module registers them.

Some figures are drawings without data: there is nothing to compute, and they are named as left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from reluflow.errors import ReluflowError
from reluflow.papers.bf24 import figures as bf24
from reluflow.papers.figure import FIGURES, Spec
from reluflow.papers.llwa21 import figures as llwa21
from reluflow.papers.mmv24 import figures as mmv24
from reluflow.papers.tk24 import figures as tk24
from reluflow.papers.tlb26 import figures as tlb26

FIGURES_OF = (bf24, tlb26, mmv24, llwa21, tk24)
WHY = "a sketch without data"


def all_figures() -> dict[tuple[str, str], Spec]:
    """Every figure, by paper and number."""
    return dict(sorted(FIGURES.items(), key=lambda item: (item[0][0], _order(item[0][1]))))


def _order(name: str) -> tuple[int, str]:
    digits = "".join(c for c in name if c.isdigit())
    return (int(digits) if digits else 0, name)


def select_figures(paper: str | None = None, name: str | None = None) -> list[Spec]:
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


@dataclass(frozen=True)
class Sketch:
    """A drawing of a paper, what it shows, and the claims whose checks say the same in numbers."""

    paper: str
    name: str
    shows: str
    claims: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """Why it is left out, what it shows and where that is checked."""
        ids = ", ".join(self.claims)
        seen = f"; checked as {ids}" if ids else ""
        return f"{self.paper} {self.name} is left out, {WHY}: {self.shows}{seen}."


SKETCHES = (
    Sketch("MMV24", "F2", "ways of a positive neuron to S_+ or S_dead", ("MMV24-PATH",)),
    Sketch("MMV24", "F3", "the push at a hyperplane under Assumption 1", ("MMV24-P7",)),
    Sketch("MMV24", "F4", "activation patterns of a neuron over time", ("MMV24-DT", "MMV24-T1.1")),
    Sketch("MMV24", "F14", "a path of activation counts of length 10", ("MMV24-PATH",)),
    Sketch("MMV24", "F15", "a path and the maximal path", ("MMV24-PATH",)),
    Sketch("MMV24", "F16", "edges of a path and of the maximal path, first part", ("MMV24-PATH",)),
    Sketch("MMV24", "F17", "edges of a path and of the maximal path, second part", ("MMV24-PATH",)),
    Sketch("MMV24", "F18", "a flow without a Caratheodory solution at a hyperplane", ("MMV24-E2",)),
    Sketch("MMV24", "F19", "a flow that crosses its hyperplane", ("MMV24-E2",)),
    Sketch("MMV24", "F20", "no solution with a fixed subgradient a > 0 at zero", ("MMV24-E3",)),
    Sketch("MMV24", "F21", "two solutions from the edge of S_dead", ("MMV24-E4",)),
)


def sketches_of(paper: str | None = None, name: str | None = None) -> tuple[Sketch, ...]:
    """Those of all papers, of one, or the one of that name; case does not matter."""
    return tuple(
        sketch
        for sketch in SKETCHES
        if paper in (None, sketch.paper) or paper.upper() == sketch.paper
        if name is None or name.upper() == sketch.name
    )
