"""What a two-layer ReLU network learns when training starts from small weights.

Public names are imported on first use, so that ``import reluflow`` stays quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reluflow._lazy import make_lazy
from reluflow._version import __version__
from reluflow.claims import SOURCES
from reluflow.errors import ReluflowError

if TYPE_CHECKING:
    from reluflow import claims, landscape, optimum, papers, prediction, report, torch
    from reluflow.claims.certify import certify
    from reluflow.claims.ledger import ledger
    from reluflow.descent.descend import descend
    from reluflow.explanation.explain import explain
    from reluflow.gradientflow.flow import flow
    from reluflow.gradientflow.stops import loss_below, settled, stationary
    from reluflow.landscape.align import align
    from reluflow.landscape.bound import max_G
    from reluflow.landscape.early import early
    from reluflow.landscape.extremal import extremal_vectors
    from reluflow.network import Network, axis_start, initialize
    from reluflow.optimum import (
        certificates,
        check_certificate,
        kkt,
        max_margin,
        min_norm,
        stationarity,
        write_certificate,
    )
    from reluflow.papers.reproduce import reproduce
    from reluflow.prediction.limit import limit
    from reluflow.prediction.orthogonal import algorithm1
    from reluflow.prediction.process import JumpProcess
    from reluflow.problem import Problem, datasets, losses
    from reluflow.sweeps.sweep import sweep
    from reluflow.sweeps.table import read_table
    from reluflow.trajectory import Trajectory, cosines, every, geometric, when
    from reluflow.trajectory.phases import phases

# name -> module that holds it
_HOMES = {
    "Problem": "reluflow.problem",
    "losses": "reluflow.problem.losses",
    "datasets": "reluflow.problem.datasets",
    "Network": "reluflow.network",
    "initialize": "reluflow.network",
    "axis_start": "reluflow.network",
    "descend": "reluflow.descent.descend",
    "flow": "reluflow.gradientflow.flow",
    "loss_below": "reluflow.gradientflow.stops",
    "settled": "reluflow.gradientflow.stops",
    "stationary": "reluflow.gradientflow.stops",
    "phases": "reluflow.trajectory.phases",
    "Trajectory": "reluflow.trajectory",
    "cosines": "reluflow.trajectory",
    "every": "reluflow.trajectory",
    "geometric": "reluflow.trajectory",
    "when": "reluflow.trajectory",
    "landscape": "reluflow.landscape",
    "extremal_vectors": "reluflow.landscape.extremal",
    "max_G": "reluflow.landscape.bound",
    "align": "reluflow.landscape.align",
    "early": "reluflow.landscape.early",
    "limit": "reluflow.prediction.limit",
    "algorithm1": "reluflow.prediction.orthogonal",
    "JumpProcess": "reluflow.prediction.process",
    "max_margin": "reluflow.optimum",
    "min_norm": "reluflow.optimum",
    "kkt": "reluflow.optimum",
    "stationarity": "reluflow.optimum",
    "certificates": "reluflow.optimum",
    "write_certificate": "reluflow.optimum",
    "check_certificate": "reluflow.optimum",
    "certify": "reluflow.claims.certify",
    "prediction": "reluflow.prediction",
    "claims": "reluflow.claims",
    "papers": "reluflow.papers",
    "report": "reluflow.report",
    "torch": "reluflow.torch",
    "optimum": "reluflow.optimum",
    "sweep": "reluflow.sweeps.sweep",
    "read_table": "reluflow.sweeps.table",
    "reproduce": "reluflow.papers.reproduce",
    "ledger": "reluflow.claims.ledger",
    "explain": "reluflow.explanation.explain",
}

__all__ = [
    "JumpProcess",
    "Network",
    "Problem",
    "ReluflowError",
    "Trajectory",
    "__version__",
    "algorithm1",
    "align",
    "axis_start",
    "certificates",
    "certify",
    "check_certificate",
    "claims",
    "cosines",
    "datasets",
    "descend",
    "early",
    "every",
    "explain",
    "extremal_vectors",
    "flow",
    "geometric",
    "initialize",
    "kkt",
    "landscape",
    "ledger",
    "limit",
    "loss_below",
    "losses",
    "max_G",
    "max_margin",
    "min_norm",
    "optimum",
    "papers",
    "phases",
    "prediction",
    "read_table",
    "report",
    "reproduce",
    "settled",
    "stationarity",
    "stationary",
    "sweep",
    "torch",
    "when",
    "write_certificate",
]

make_lazy(__name__, _HOMES)


def _load_checks() -> None:
    """Register what the frame of claims checks: invariants of any run, and the five papers."""
    from reluflow.claims import invariants  # noqa: F401
    from reluflow.papers import catalogue  # noqa: F401


SOURCES.append(_load_checks)
