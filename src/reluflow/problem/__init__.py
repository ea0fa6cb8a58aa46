"""Problems: data, losses, datasets."""

from reluflow.problem.problem import Problem

__all__ = ["Problem"]
