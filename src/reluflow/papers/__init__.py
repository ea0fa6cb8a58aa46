"""Reproductions: one module per paper, one function per figure.

A figure is a function of its settings that returns plain traces, numbers, sentences and what must
be seen as comparisons: :class:`~reluflow.papers.figure.Drawn`. :func:`reproduce` renders them.
"""

from reluflow.papers.figure import Figure, chosen
from reluflow.papers.reproduce import Reproduction, reproduce

__all__ = ["Figure", "Reproduction", "chosen", "reproduce"]
