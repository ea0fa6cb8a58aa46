"""Claims of [BF24]_, by topic; importing it registers them."""

from reluflow.papers.bf24.claims import (
    alignment,
    assumptions,
    early,
    growth,
    landscape,
    late,
    line,
    remarks,
)

__all__ = ["alignment", "assumptions", "early", "growth", "landscape", "late", "line", "remarks"]
