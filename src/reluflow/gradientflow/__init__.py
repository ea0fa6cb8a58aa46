"""Gradient flow in continuous time."""

from reluflow.gradientflow.flow import flow
from reluflow.gradientflow.stops import loss_below, settled, stationary

__all__ = ["flow", "loss_below", "settled", "stationary"]
