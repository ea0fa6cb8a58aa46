"""The landscape of G: where small neurons turn, how fast they grow, and bounds on both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reluflow._lazy import make_lazy

if TYPE_CHECKING:
    from reluflow.landscape.align import Alignment
    from reluflow.landscape.alignment import D, G, pattern, regular
    from reluflow.landscape.bound import MaxG, max_G
    from reluflow.landscape.constants import Constants, constants
    from reluflow.landscape.dispatch import align, extremal_vectors
    from reluflow.landscape.early import early
    from reluflow.landscape.extremal import ExtremalVectors

_HOMES = {
    "D": "reluflow.landscape.alignment",
    "G": "reluflow.landscape.alignment",
    "pattern": "reluflow.landscape.alignment",
    "regular": "reluflow.landscape.alignment",
    "Constants": "reluflow.landscape.constants",
    "constants": "reluflow.landscape.constants",
    "ExtremalVectors": "reluflow.landscape.extremal",
    "extremal_vectors": "reluflow.landscape.dispatch",
    "MaxG": "reluflow.landscape.bound",
    "max_G": "reluflow.landscape.bound",
    "Alignment": "reluflow.landscape.align",
    "align": "reluflow.landscape.dispatch",
    "early": "reluflow.landscape.early",
}

__all__ = [
    "Alignment",
    "Constants",
    "D",
    "ExtremalVectors",
    "G",
    "MaxG",
    "align",
    "constants",
    "early",
    "extremal_vectors",
    "max_G",
    "pattern",
    "regular",
]


make_lazy(__name__, _HOMES)
