"""Figures of [LLWA21]_, by topic."""

from reluflow.papers.llwa21.figures import (
    boundaries,
    edges,
    planes,
    runs,
    teacher,
    trained,
)

__all__ = [
    "boundaries",
    "edges",
    "planes",
    "runs",
    "teacher",
    "trained",
]
