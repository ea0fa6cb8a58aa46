"""Claims of [TK24]_, by topic."""

from reluflow.papers.tk24.claims import coupling, course, early, four_neurons, late, sphere, xor

__all__ = ["coupling", "course", "early", "four_neurons", "late", "sphere", "xor"]
