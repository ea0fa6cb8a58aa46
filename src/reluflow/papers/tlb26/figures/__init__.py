"""Figures of [TLB26]_, by topic; importing it registers them."""

from reluflow.papers.tlb26.figures import general, one_jump, six_neurons, sizes

__all__ = ["general", "one_jump", "six_neurons", "sizes"]
