"""Claims of the five papers: importing this module registers their checks."""

from reluflow.papers.bf24 import claims as bf24
from reluflow.papers.llwa21 import claims as llwa21
from reluflow.papers.mmv24 import claims as mmv24
from reluflow.papers.tk24 import claims as tk24
from reluflow.papers.tlb26 import claims as tlb26

__all__ = ["bf24", "llwa21", "mmv24", "tk24", "tlb26"]
