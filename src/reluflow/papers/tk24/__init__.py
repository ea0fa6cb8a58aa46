"""Tsoy and Konstantinov: simplicity bias of small starts ([TK24]_).

Importing it registers its claims and figures.
"""

from reluflow.papers.tk24 import claims, figures

__all__ = ["claims", "figures"]
