"""What `stationarity` returns."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.network import Network
from reluflow.optimum.second_order import Descent

_PLACES = {
    "minimum": " (a local minimum)",
    "saddle": " (a saddle)",
    "undecided": " (local minimum or saddle undecided)",
}


@dataclass(frozen=True, eq=False)
class Stationarity:
    """How far a network is from critical, and what kind of point it is.

    Attributes
    ----------
    kind : str
        "global minimum" (of the loss over networks of every width), "stationary, not global"
        (some network, perhaps a wider one, has a smaller loss) or "not stationary".
    local : str
        For a stationary network "minimum", "saddle" or "undecided" (a bound was too loose), among
        networks of its own width; "none" otherwise.
    loss : float
        The loss; 0 where it underflows.
    residual : float
        Distance of 0 to the subdifferential of the loss in (W, a).
    relative : float
        The share of its own size by which some sample's pull would have to change for the neuron
        that is worst off to rest, neurons without effect left out. The size of a pull is that of
        |y_k| + |f_k| for square losses, of the pull for margin losses. "Stationary" means at most
        ``tol``; neither the other samples' sizes nor those of other neurons play a part.
    per_neuron : array, shape (m,)
        Each neuron's part; residual is their root of squares.
    escape, escape_bound : float
        max |G_c| on the sphere at the network's pull c, found and bounded from above: the rate at
        which a small new neuron would grow.
    vector, sign : array (d,), int
        Direction and output sign of a neuron worth adding: the direction that reaches `escape` or
        its opposite, whichever gains more.
    size, gain : float
        That neuron with |a||w| = size lowers the loss by gain: the exact minimum along this line
        for square losses, a decrease reached for margin losses. 0 at a global minimum.
    excess : float or None
        Square losses: the loss minus its minimum over networks of every width. None otherwise.
    descent : Descent or None
        For a saddle, a neuron and how it lowers the loss.
    states : array, shape (m,)
        What each neuron has: 0 both weights, 1 only w, 2 only a, 3 none (to the thresholds).
    clarke : bool
        Whether the subdifferential used is Clarke's; where dependent kinks of mixed sign meet it
        is the larger set of the chain rule, and `residual` a lower bound.
    network : Network
    """

    kind: str
    local: str
    loss: float
    residual: float
    relative: float
    per_neuron: Array = field(repr=False)
    escape: float
    escape_bound: float
    vector: Array = field(repr=False)
    sign: int
    size: float
    gain: float
    excess: float | None
    descent: Descent | None = field(repr=False)
    states: NDArray[np.intp] = field(repr=False)
    clarke: bool
    network: Network = field(repr=False)
    _slopes: Array = field(repr=False)  # of the distinct patterns
    _kinked: NDArray[np.bool_] = field(repr=False)
    _index: NDArray[np.intp] = field(repr=False)

    @property
    def slopes(self) -> Array:
        """Slope phi' of neuron j at sample k that gives the residual, shape (m, n)."""
        return self._slopes[self._index]

    @property
    def kinked(self) -> NDArray[np.bool_]:
        """Whether neuron j lies on the hyperplane of sample k, shape (m, n)."""
        return self._kinked[self._index]

    @property
    def decided(self) -> bool:
        """Whether both kind and local are known."""
        return self.local != "undecided"

    def widened(self) -> Network:
        """The network with the neuron that gives `gain` added."""
        root = np.sqrt(self.size)
        net = self.network
        scale = None if net.log_scale is None else np.append(net.log_scale, 0.0)
        return Network(
            np.vstack([net.W, root * self.vector]),
            np.append(net.a, self.sign * root),
            scale,
            net.leak,
            net.bias,
        )

    def __str__(self) -> str:
        place = _PLACES[self.local] if self.kind == "stationary, not global" else ""
        more = "" if self.gain <= 0.0 else f"; one more neuron lowers the loss by {self.gain:.6g}"
        return (
            f"{self.kind}{place}: loss {self.loss:.6g}, distance of 0 to the subdifferential "
            f"{self.residual:.3g}{more}"
        )
