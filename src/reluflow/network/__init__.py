"""Networks and the laws they start from."""

from reluflow.network.init import axis_start, initialize
from reluflow.network.network import Network

__all__ = ["Network", "axis_start", "initialize"]
