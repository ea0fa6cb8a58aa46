"""Until when a run that does not locate its kinks can be relied on: two tolerances tell."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from reluflow.trajectory import Trajectory

CLOSE = 0.01  # share of the first loss within which two losses agree


@dataclass(frozen=True)
class Horizon:
    """Until when two runs whose steps differ in tolerance agree in the loss.

    Steps that pass over kinks leave errors that act like small offsets between neurons: a bundle
    of neurons that becomes unstable splits at a time which these decide. Beyond the horizon the
    course of the run is one that gradient flow may take, not the one it takes.

    Attributes
    ----------
    time : float
        Gradient-flow time until which the losses differ by at most ``close`` of the first one.
    whole : bool
        Whether they do so as far as both runs go.
    since : float
        Time from which kinks were not located, 0 for the start.
    tolerances : (float, float)
        Errors of one step of the run and of the one it was compared with.
    close : float
        Share of the first loss that counts as agreement.
    """

    time: float
    whole: bool
    since: float
    tolerances: tuple[float, float]
    close: float = CLOSE

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON and the settings of a run."""
        return {**asdict(self), "tolerances": list(self.tolerances)}

    @classmethod
    def of_run(cls, run: Trajectory) -> Horizon | None:
        """The horizon kept among the settings of a run."""
        kept = run.settings.get("horizon")
        if kept is None:
            return None
        return cls(**{**kept, "tolerances": tuple(kept["tolerances"])})


def step_tolerance(run: Trajectory) -> float | None:
    """Error of a step that passes over kinks; None for a run that located all of them."""
    passing = [h for h in run.settings.get("handovers", ()) if h["to"] != "located"]
    if passing:
        return float(passing[-1]["rtol"])
    if run.settings.get("kind", "flow") == "flow" and run.settings.get("kinks") is False:
        return float(run.settings["rtol"])
    return None


def last_located(run: Trajectory) -> int:
    """The last record before kinks were no longer located; the first where they never were."""
    handovers = run.settings.get("handovers")
    if not handovers or run.networks is None:
        return 0
    before = np.flatnonzero(run.times <= handovers[0]["position"])
    return int(before[-1]) if before.size else 0


def unlocated_since(run: Trajectory) -> float:
    """Gradient-flow time from which on kinks were not located."""
    handovers = run.settings.get("handovers")
    if not handovers:
        return 0.0
    return float(np.interp(handovers[0]["position"], run.times, run.flow_times))


def compare_tolerances(run: Trajectory, other: Trajectory, began: float = 0.0) -> Horizon:
    """Until when a run and one at another tolerance, which left it at time ``began``, agree.

    Losses are compared at the records of ``run``, those of ``other`` interpolated, as far as both
    go; the horizon is the last record before the first disagreement.
    """
    times, there = run.flow_times, began + other.flow_times
    both = times <= there[-1]
    gap = np.abs(np.interp(times[both], there, other.loss) - run.loss[both])
    gap[times[both] < began] = 0.0
    apart = np.flatnonzero(gap > CLOSE * run.loss[0])
    whole = not apart.size
    last = len(gap) - 1 if whole else max(int(apart[0]) - 1, 0)
    tolerances = tuple(
        step_tolerance(each) or float(each.settings["rtol"]) for each in (run, other)
    )
    return Horizon(float(times[last]), whole, unlocated_since(run), (tolerances[0], tolerances[1]))
