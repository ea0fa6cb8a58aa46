"""Pictures: every function takes ``ax=``, draws there or on a new figure, and returns the axes.

=============  ====================================================================================
loss           loss of a run, with the jumps and plateaus that are predicted
sizes          log10 |w_j| of every neuron of a run
neurons        inner weights by angle and norm, of a network or along a run
function       f(x) with the samples, for one feature and a bias
boundary       decision boundary in the plane of two features
landscape      G on the circle, the sphere, or at its critical points
jumps          the staircase of the limit process, and a run over it
exponents      exponents of all neurons in the limit process
alignment      cosines with extremal directions along a run, or where early alignment ends
margins        normalised margin along a run, beside the best of networks and of hyperplanes
verdict        the figure of an explanation
animate        neurons and function of a run as a .gif or .mp4 file
=============  ====================================================================================

``run.plot()``, ``process.plot()``, ``explanation.plot()``, ``net.plot()`` and ``problem.plot()``
choose the usual one. A new figure is one of pyplot's where that is imported, so that ``plt.show()``
shows it; otherwise nothing global is touched. Colours are those of :mod:`reluflow.plot.palette`,
text takes the colours of matplotlib's style.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reluflow._lazy import make_lazy

if TYPE_CHECKING:
    from reluflow.plot.animation import animate
    from reluflow.plot.figures import (
        alignment,
        boundary,
        function,
        landscape,
        loss,
        margins,
        neurons,
        sizes,
        verdict,
    )
    from reluflow.plot.process import exponents, jumps

__all__ = [
    "alignment",
    "animate",
    "boundary",
    "exponents",
    "function",
    "jumps",
    "landscape",
    "loss",
    "margins",
    "neurons",
    "sizes",
    "verdict",
]

_ELSEWHERE = {"animate": "animation", "exponents": "process", "jumps": "process"}
make_lazy(__name__, {name: f"reluflow.plot.{_ELSEWHERE.get(name, 'figures')}" for name in __all__})
