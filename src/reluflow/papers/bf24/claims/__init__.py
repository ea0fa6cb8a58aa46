"""Claims of [BF24]_, by topic."""

from reluflow.papers.bf24.claims import (
    alignment,
    assumptions,
    balance,
    cones,
    data,
    definitions,
    early,
    ends,
    faces,
    growth,
    landscape,
    late,
    least_squares_line,
    numbers,
    stuck,
)

__all__ = [
    "alignment",
    "assumptions",
    "balance",
    "cones",
    "data",
    "definitions",
    "early",
    "ends",
    "faces",
    "growth",
    "landscape",
    "late",
    "least_squares_line",
    "numbers",
    "stuck",
]
