"""Town, Lewis and Boursier: incremental learning on orthonormal inputs ([TLB26]_).

Importing it registers its claims and figures.
"""

from reluflow.papers.tlb26 import claims, figures

__all__ = ["claims", "figures"]
