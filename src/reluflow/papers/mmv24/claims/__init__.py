"""Claims of [MMV24]_, by topic."""

from reluflow.papers.mmv24.claims import (
    alignment,
    constants,
    drift,
    early,
    examples,
    geometry,
    growth,
    late,
    numbers,
    paths,
    solutions,
    states,
    traps,
    walk,
)

__all__ = [
    "alignment",
    "constants",
    "drift",
    "early",
    "examples",
    "geometry",
    "growth",
    "late",
    "numbers",
    "paths",
    "solutions",
    "states",
    "traps",
    "walk",
]
