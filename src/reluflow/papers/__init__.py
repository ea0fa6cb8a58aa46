"""Reproductions: one module per paper, one function per figure.

A figure is a function of (out, quick) that writes its pictures into the folder ``out`` and
returns a :class:`~reluflow.papers.figure.Figure`: the files, the numbers and a summary in words.
"""

from reluflow.papers.figure import FIGURES, Figure, chosen, reproduce

__all__ = ["FIGURES", "Figure", "chosen", "reproduce"]
