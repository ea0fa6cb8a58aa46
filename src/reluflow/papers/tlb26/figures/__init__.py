"""Figures of [TLB26]_, by topic."""

from reluflow.papers.tlb26.figures import (
    directions,
    general,
    run,
    schematic,
    six_neurons,
    sizes,
)

__all__ = [
    "directions",
    "general",
    "run",
    "schematic",
    "six_neurons",
    "sizes",
]
