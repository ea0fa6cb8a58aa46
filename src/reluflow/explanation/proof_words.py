"""What the verdict says is proved: certificates whose every step is exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reluflow.explanation.explanation import Explanation
    from reluflow.optimum.certificate_file import Certificate

_NAMES = {
    "stationary": "an exact stationary point near the end",
    "spurious-minimum": "an exact local minimum near the end that is not global",
    "not-global": "one more neuron would lower the loss",
    "global-minimum": "no network of any width has a loss lower by more than the bound",
    "kkt-margin": "an exact KKT point of the margin near the end",
    "max-margin-linear": "the largest margin of a hyperplane",
    "max-margin-network": "the largest margin of any network",
    "min-norm": "the least norm of a network that fits",
}


def _name(c: Certificate) -> str:
    """What is stated, with the distance rounded up."""
    near = f" (within {1.05 * c.claim['distance']:.1e})" if "distance" in c.claim else ""
    return _NAMES.get(c.kind, c.kind) + near


def proofs(e: Explanation) -> str:
    """Which statements are proved, and which were checked by numbers alone."""
    parts = []
    for grade, how in (("PROVED", "in exact arithmetic"), ("CHECKED", "numerical only")):
        names = [_name(c) for c in e.certificates if c.grade == grade]
        if names:
            parts.append(f"{grade} ({how}): {'; '.join(names)}.")
    return " ".join(parts)
