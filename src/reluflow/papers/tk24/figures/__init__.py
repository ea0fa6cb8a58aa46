"""Figures of [TK24]_, by topic."""

from reluflow.papers.tk24.figures import dominoes, dominoes_run, dominoes_view, xor

__all__ = ["dominoes", "dominoes_run", "dominoes_view", "xor"]
