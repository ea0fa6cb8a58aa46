"""Claims of [MMV24]_, by topic; importing it registers them."""

from reluflow.papers.mmv24.claims import early, examples, geometry, late, patterns, solutions, traps

__all__ = ["early", "examples", "geometry", "late", "patterns", "solutions", "traps"]
