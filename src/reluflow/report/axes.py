"""What the pictures share: axes without global state, and colours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reluflow.errors import ReluflowError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POSITIVE, NEGATIVE, NEUTRAL, DATA = "darkviolet", "firebrick", "black", "seagreen"
HYPERPLANES = 60  # beyond it, hyperplanes hide the picture and are left out


def new_axes(
    ax: Axes | None, projection: str | None = None, size: tuple[float, float] = (6, 4)
) -> Any:
    """``ax``, or the axes of a new figure that no global state knows of."""
    if ax is None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=size, layout="constrained")
        return figure.add_subplot(projection=projection)
    if projection is not None and ax.name != projection:
        raise ReluflowError(
            f"ax has the projection {ax.name!r}, expected {projection!r}: "
            f"make it with fig.add_subplot(projection={projection!r}) or leave ax out"
        )
    return ax
