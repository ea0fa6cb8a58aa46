"""Claims of [MMV24]_, by topic; importing it registers them."""

from reluflow.papers.mmv24.claims import early, examples, late, patterns, solutions, traps

__all__ = ["early", "examples", "late", "patterns", "solutions", "traps"]
