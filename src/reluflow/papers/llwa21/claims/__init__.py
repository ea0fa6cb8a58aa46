"""Claims of [LLWA21]_, by topic."""

from reluflow.papers.llwa21.claims import (
    assumptions,
    bounds,
    cones,
    directions,
    general,
    hints,
    kinks,
    limit,
    local,
    near_zero,
    one_neuron,
    orthogonal,
    phase2,
    support,
    symmetric,
)

__all__ = [
    "assumptions",
    "bounds",
    "cones",
    "directions",
    "general",
    "hints",
    "kinks",
    "limit",
    "local",
    "near_zero",
    "one_neuron",
    "orthogonal",
    "phase2",
    "support",
    "symmetric",
]
