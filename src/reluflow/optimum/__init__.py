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
    from reluflow.optimum.embedding import (
        Embedding,
        collapse,
        commuting_error,
        log_m_norm,
        m_norm,
        neuron_groups,
        pi_b,
    )
    from reluflow.optimum.kkt import KKT, kkt
    from reluflow.optimum.linear import LinearMargin
    from reluflow.optimum.max_margin import NetworkMargin, margin_bound, max_margin
    from reluflow.optimum.min_norm import MinNorm, min_norm, norm_bound
    from reluflow.optimum.stationarity import stationarity
    from reluflow.optimum.stationarity_result import Stationarity

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
    "kkt": "reluflow.optimum.kkt",
    "LinearMargin": "reluflow.optimum.linear",
    "NetworkMargin": "reluflow.optimum.max_margin",
    "margin_bound": "reluflow.optimum.max_margin",
    "max_margin": "reluflow.optimum.max_margin",
    "MinNorm": "reluflow.optimum.min_norm",
    "min_norm": "reluflow.optimum.min_norm",
    "norm_bound": "reluflow.optimum.min_norm",
    "Stationarity": "reluflow.optimum.stationarity_result",
    "stationarity": "reluflow.optimum.stationarity",
}

__all__ = [
    "KKT",
    "Certificate",
    "Check",
    "Embedding",
    "LinearMargin",
    "MinNorm",
    "NetworkMargin",
    "Report",
    "Stationarity",
    "certificates",
    "check_certificate",
    "collapse",
    "commuting_error",
    "kkt",
    "log_m_norm",
    "m_norm",
    "margin_bound",
    "max_margin",
    "min_norm",
    "neuron_groups",
    "norm_bound",
    "pi_b",
    "read_certificate",
    "stationarity",
    "write_certificate",
]


make_lazy(__name__, _HOMES)
