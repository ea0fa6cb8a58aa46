"""What claims are checked on: a problem with a start, a run or a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from reluflow.arrays import Array
from reluflow.errors import MissingEvidence, ReluflowError
from reluflow.network import Network
from reluflow.problem import Problem
from reluflow.trajectory import Trajectory

if TYPE_CHECKING:
    from reluflow.landscape.extremal import ExtremalVectors


P = ParamSpec("P")
T = TypeVar("T")

# what a claim may ask of its evidence -> sentence when it is missing
NEEDS = {
    "start": "the weights at the start are known",
    "end": "there is a network to look at",
    "path": "networks were recorded along a run (at least two)",
    "flow": "the run is a gradient flow",
    "time": "the run's clock is time",
}


@dataclass(frozen=True, eq=False)
class Evidence:
    """A problem and what happened on it; everything derived is computed once, when asked for.

    Parameters
    ----------
    problem : Problem
    start : Network, optional
        Initial weights; the first record of ``run`` when it is at step or time 0.
    run : Trajectory, optional
    net : Network, optional
        A trained network without the run that led to it.
    """

    problem: Problem
    start: Network | None = None
    run: Trajectory | None = None
    net: Network | None = None
    _known: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @staticmethod
    def of(problem: Problem, run_or_net: Any = None, start: Network | None = None) -> Evidence:
        """Evidence from a run, a network, or a problem alone."""
        if run_or_net is None:
            return Evidence(problem, start)
        if isinstance(run_or_net, Network):
            run_or_net.check_fits(problem.d)
            return Evidence(problem, start, net=run_or_net)
        if not isinstance(run_or_net, Trajectory):
            raise ReluflowError(
                f"expected a Trajectory or a Network, got {type(run_or_net).__name__}: "
                "pass what flow or descend returned"
            )
        run = run_or_net
        run.final.check_fits(problem.d)
        if start is None and run.networks is not None and len(run) and run.times[0] == 0:
            start = run.networks[0]
        return Evidence(problem, start, run)

    @property
    def final(self) -> Network | None:
        """The network at the end."""
        return self.net if self.run is None else self.run.final

    @property
    def recorded(self) -> Sequence[Network]:
        """Recorded networks, in order; empty without any."""
        return () if self.run is None or self.run.networks is None else self.run.networks

    def trajectory(self) -> Trajectory:
        """The run; raises :class:`MissingEvidence` when there is none."""
        if self.run is None:
            raise MissingEvidence("no run was given: pass the Trajectory of flow or descend")
        return self.run

    def first(self) -> Network:
        """The weights at the start; raises :class:`MissingEvidence` when they are not known."""
        if self.start is None:
            raise MissingEvidence(
                "the weights at the start are not known: pass start=, or a run recorded from time 0"
            )
        return self.start

    def end(self) -> Network:
        """The network at the end; raises :class:`MissingEvidence` when there is none."""
        if self.final is None:
            raise MissingEvidence("there is no network to look at: pass a Trajectory or a Network")
        return self.final

    def path(self) -> Sequence[Network]:
        """Recorded networks, in order; raises :class:`MissingEvidence` when there are none."""
        return self.trajectory().path()

    @cached_property
    def times(self) -> Array:
        """Gradient-flow times of ``recorded``, whatever the clock of the run."""
        return self.run.flow_times if self.run is not None and len(self.recorded) else np.empty(0)

    @property
    def states(self) -> Sequence[Network]:
        """Every network there is: the path, or the end alone."""
        if len(self.recorded):
            return self.recorded
        return () if self.final is None else (self.final,)

    @property
    def rtol(self) -> float:
        """Relative error the flow aimed at; rounding level where there is no integrator."""
        return 1e-15 if self.run is None else float(self.run.settings.get("rtol", 1e-15))

    @property
    def coarse_rtol(self) -> float:
        """Largest error of a step after a flow no longer located its kinks; 0 where it did."""
        handovers = () if self.run is None else self.run.settings.get("handovers") or ()
        return max((float(handover["rtol"]) for handover in handovers), default=0.0)

    @property
    def near_kink(self) -> float:
        """Cosine of w and x below which errors of steps, not the flow, give a neuron its side."""
        return max(1e-9, 10.0 * self.rtol)

    @property
    def step_errors(self) -> float:
        """What the errors of a flow's steps may add up to, relative to the sizes of neurons.

        Each is below ``rtol`` while kinks are located, below a coarser one of its own afterwards.
        """
        if self.run is None:
            return 0.0
        return max(self.rtol, self.coarse_rtol) * float(
            self.run.cost.get("steps", 1) + self.run.cost.get("leaps", 0)
        )

    def missing(self, needs: Sequence[str]) -> list[str]:
        """Those of ``needs`` (keys of ``NEEDS``) that this evidence lacks."""
        settings = {} if self.run is None else self.run.settings
        has = {
            "start": self.start is not None,
            "end": self.final is not None,
            "path": len(self.recorded) >= 2,
            "flow": settings.get("kind") == "flow",
            "time": settings.get("clock", "time") == "time",
        }
        return [need for need in needs if not has[need]]

    @cached_property
    def landscape(self) -> ExtremalVectors:
        """Extremal vectors of the silent network's pull."""
        from reluflow.landscape.extremal import extremal_vectors

        return extremal_vectors(self.problem)

    @cached_property
    def certificates(self) -> list[Any]:
        """Certificates of the end: stationarity or KKT, global optimality."""
        from reluflow.optimum.certificate import certificates

        return list(certificates(self.problem, self.final))

    def describe(self) -> dict[str, Any]:
        """Plain settings for a verdict."""
        about: dict[str, Any] = {"problem": repr(self.problem)}
        if self.final is not None:
            about["m"] = self.final.m
        if self.run is not None:
            about["run"] = {
                k: v
                for k, v in self.run.settings.items()
                if isinstance(v, str | int | float | bool)
            }
        return about


def once(
    function: Callable[Concatenate[Evidence, P], T],
) -> Callable[Concatenate[Evidence, P], T]:
    """Let a function of the evidence be computed once for each piece of it, whoever asks.

    Several claims look at the same margins, slopes and velocities along a run. Its other
    arguments must be hashable, and nobody may change what it returns.
    """

    @wraps(function)
    def remembered(evidence: Evidence, /, *args: P.args, **options: P.kwargs) -> T:
        key = (function, args, tuple(sorted(options.items())))
        if key not in evidence._known:
            evidence._known[key] = function(evidence, *args, **options)
        found: T = evidence._known[key]
        return found

    return remembered
