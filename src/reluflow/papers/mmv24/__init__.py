"""Min, Mallada and Vidal: positively correlated data ([MMV24]_).

Importing it registers its claims and figures.
"""

from reluflow.papers.mmv24 import claims, figures

__all__ = ["claims", "figures"]
