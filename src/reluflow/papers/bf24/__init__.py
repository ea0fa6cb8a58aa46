"""Boursier and Flammarion: early alignment, and the line that three points end at ([BF24]_).

Importing it registers its claims and figures.
"""

from reluflow.papers.bf24 import claims, figures

__all__ = ["claims", "figures"]
