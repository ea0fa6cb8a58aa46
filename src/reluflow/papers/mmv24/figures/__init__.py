"""Figures of [MMV24]_, by topic; importing it registers them."""

from reluflow.papers.mmv24.figures import digits, mnist, plane

__all__ = ["digits", "mnist", "plane"]
