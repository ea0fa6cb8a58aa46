"""Sweeps: many runs, on one machine or on a cluster, one row each."""

from reluflow.sweep.sweep import sweep
from reluflow.sweep.table import Table, read_table

__all__ = ["Table", "read_table", "sweep"]
