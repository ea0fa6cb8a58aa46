"""Figures of [LLWA21]_, by topic."""

from reluflow.papers.llwa21.figures import boundaries, edges, teacher, trained

__all__ = ["boundaries", "edges", "teacher", "trained"]
