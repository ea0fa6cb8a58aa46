"""Orthonormal inputs, where the process of small starts has a closed form ([TLB26]_)."""

from reluflow.prediction.orthogonal.algorithm import algorithm1
from reluflow.prediction.orthogonal.process import OrthogonalProcess

__all__ = ["OrthogonalProcess", "algorithm1"]
