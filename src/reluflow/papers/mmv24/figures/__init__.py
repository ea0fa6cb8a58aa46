"""Figures of [MMV24]_, by topic; importing it registers them."""

from reluflow.papers.mmv24.figures import digits, drift, mnist, pairs, phases

__all__ = ["digits", "drift", "mnist", "pairs", "phases"]
