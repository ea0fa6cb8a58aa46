"""Optima and how far a network is from them: margins, norms, KKT conditions, bounds that meet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reluflow._lazy import make_lazy

if TYPE_CHECKING:
    from reluflow.optimum.certificate import certificates
    from reluflow.optimum.certificate_file import (
        Certificate,
        Check,
        Report,
        read_certificate,
        write_certificate,
    )
    from reluflow.optimum.checker import check_certificate
    from reluflow.optimum.dispatch import kkt, max_margin, min_norm, stationarity
    from reluflow.optimum.embedding import (
        Embedding,
        collapse,
        commuting_error,
        log_m_norm,
        m_norm,
        neuron_groups,
        pi_b,
    )
    from reluflow.optimum.kkt import KKT
    from reluflow.optimum.linear import LinearMargin
    from reluflow.optimum.max_margin import NetworkMargin, margin_bound
    from reluflow.optimum.min_norm import MinNorm, norm_bound
    from reluflow.optimum.penalised_stationarity import (
        PenalisedStationarity,
        penalised_stationarity,
    )
    from reluflow.optimum.ridge import Ridge, largest_decay, ridge
    from reluflow.optimum.ridge_path import Kink, RidgePath, ridge_path
    from reluflow.optimum.stationarity import Stationarity

_HOMES = {
    "certificates": "reluflow.optimum.certificate",
    "Certificate": "reluflow.optimum.certificate_file",
    "Check": "reluflow.optimum.certificate_file",
    "Report": "reluflow.optimum.certificate_file",
    "read_certificate": "reluflow.optimum.certificate_file",
    "write_certificate": "reluflow.optimum.certificate_file",
    "check_certificate": "reluflow.optimum.checker",
    "Embedding": "reluflow.optimum.embedding",
    "collapse": "reluflow.optimum.embedding",
    "commuting_error": "reluflow.optimum.embedding",
    "log_m_norm": "reluflow.optimum.embedding",
    "m_norm": "reluflow.optimum.embedding",
    "neuron_groups": "reluflow.optimum.embedding",
    "pi_b": "reluflow.optimum.embedding",
    "KKT": "reluflow.optimum.kkt",
    "kkt": "reluflow.optimum.dispatch",
    "LinearMargin": "reluflow.optimum.linear",
    "NetworkMargin": "reluflow.optimum.max_margin",
    "margin_bound": "reluflow.optimum.max_margin",
    "max_margin": "reluflow.optimum.dispatch",
    "MinNorm": "reluflow.optimum.min_norm",
    "min_norm": "reluflow.optimum.dispatch",
    "norm_bound": "reluflow.optimum.min_norm",
    "PenalisedStationarity": "reluflow.optimum.penalised_stationarity",
    "penalised_stationarity": "reluflow.optimum.penalised_stationarity",
    "Ridge": "reluflow.optimum.ridge",
    "largest_decay": "reluflow.optimum.ridge",
    "ridge": "reluflow.optimum.ridge",
    "Kink": "reluflow.optimum.ridge_path",
    "RidgePath": "reluflow.optimum.ridge_path",
    "ridge_path": "reluflow.optimum.ridge_path",
    "Stationarity": "reluflow.optimum.stationarity",
    "stationarity": "reluflow.optimum.dispatch",
}

__all__ = [
    "KKT",
    "Certificate",
    "Check",
    "Embedding",
    "Kink",
    "LinearMargin",
    "MinNorm",
    "NetworkMargin",
    "PenalisedStationarity",
    "Report",
    "Ridge",
    "RidgePath",
    "Stationarity",
    "certificates",
    "check_certificate",
    "collapse",
    "commuting_error",
    "kkt",
    "largest_decay",
    "log_m_norm",
    "m_norm",
    "margin_bound",
    "max_margin",
    "min_norm",
    "neuron_groups",
    "norm_bound",
    "penalised_stationarity",
    "pi_b",
    "read_certificate",
    "ridge",
    "ridge_path",
    "stationarity",
    "write_certificate",
]


make_lazy(__name__, _HOMES)
