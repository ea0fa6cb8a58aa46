"""Lyu, Li, Wang and Arora: margins that small starts maximise, and those they miss ([LLWA21]_).

Importing it registers its claims and figures.
"""

from reluflow.papers.llwa21 import claims, figures

__all__ = ["claims", "figures"]
