"""Gradient flow in continuous time."""

from reluflow.flow.flow import flow
from reluflow.flow.stops import loss_below, settled, stationary

__all__ = ["flow", "loss_below", "settled", "stationary"]
