"""Sweeps: many runs, on one machine or on a cluster, one row each."""

from reluflow.sweeps.sweep import sweep
from reluflow.sweeps.table import Table, read_table

__all__ = ["Table", "read_table", "sweep"]
