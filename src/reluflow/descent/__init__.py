"""Gradient descent as people run it, exact at any width."""

from reluflow.descent.descend import descend

__all__ = ["descend"]
