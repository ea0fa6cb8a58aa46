"""Reproductions: one package per paper, one function per figure, one check per claim.

A figure is a function of its settings that returns plain traces, numbers, sentences and what must
be seen as comparisons: :class:`~reluflow.papers.figure.Drawn`. :func:`reproduce` renders them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reluflow._lazy import make_lazy

if TYPE_CHECKING:
    from reluflow.papers.catalogue import select_figures
    from reluflow.papers.figure import Figure
    from reluflow.papers.reproduce import Reproduction, reproduce

_HOMES = {
    "Figure": "reluflow.papers.figure",
    "select_figures": "reluflow.papers.catalogue",
    "Reproduction": "reluflow.papers.reproduce",
    "reproduce": "reluflow.papers.reproduce",
}

__all__ = ["Figure", "Reproduction", "reproduce", "select_figures"]

make_lazy(__name__, _HOMES)
