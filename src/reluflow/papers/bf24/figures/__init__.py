"""Figures of [BF24]_, by topic; importing it registers them."""

from reluflow.papers.bf24.figures import teacher, three_points

__all__ = ["teacher", "three_points"]
