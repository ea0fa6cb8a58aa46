"""Claims of [TLB26]_, by topic."""

from reluflow.papers.tlb26.claims import (
    counting,
    jumps,
    lemmas,
    norms,
    numbers,
    orthonormal,
)

__all__ = [
    "counting",
    "jumps",
    "lemmas",
    "norms",
    "numbers",
    "orthonormal",
]
