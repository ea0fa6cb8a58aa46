"""Figures of [BF24]_, by topic."""

from reluflow.papers.bf24.figures import (
    boxes,
    teacher,
    three_points,
)

__all__ = [
    "boxes",
    "teacher",
    "three_points",
]
