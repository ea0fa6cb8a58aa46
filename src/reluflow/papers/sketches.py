"""Figures of the papers that are drawings without data: nothing to compute, named as left out."""

from __future__ import annotations

from dataclasses import dataclass

WHY = "a sketch without data"


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
