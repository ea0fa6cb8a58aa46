"""Claims of [TLB26]_, by topic; importing it registers them."""

from reluflow.papers.tlb26.claims import jumps, lemmas, norms, orthonormal

__all__ = ["jumps", "lemmas", "norms", "orthonormal"]
