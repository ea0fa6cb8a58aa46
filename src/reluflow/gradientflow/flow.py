"""Gradient flow of a two-layer network: the public function."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from reluflow.arrays import decay_rate, whole_number
from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.gradientflow.cones import begin
from reluflow.gradientflow.loop import Loop
from reluflow.gradientflow.mover import Mover
from reluflow.gradientflow.multioutput import (
    FEW,
    LocatedVectors,
    UnlocatedVectors,
    vector_data,
    vector_mover,
)
from reluflow.gradientflow.relocate import Relocate, located_rtol
from reluflow.gradientflow.solver import Solver
from reluflow.gradientflow.stops import as_stops, settled, stationary
from reluflow.gradientflow.terms import data_of
from reluflow.gradientflow.unlocated import Smooth, Unlocated
from reluflow.kernels.codes import LEAVE, STAY
from reluflow.network import Network
from reluflow.problem import Problem
from reluflow.runtime import Checkpoint
from reluflow.runtime.checkpoint import fingerprint
from reluflow.trajectory import Trajectory
from reluflow.trajectory.observables import as_observables
from reluflow.trajectory.recorder import Recorder
from reluflow.trajectory.save import as_save

LARGE = 2_000_000  # neurons times samples beyond which kinks are not located


@check_arguments
def flow(
    problem: Problem,
    net: Network,
    *,
    t_end: float | None = None,
    save: Any = None,
    observe: Any = None,
    states: bool | None = None,
    rtol: float | None = None,
    stop: Any = None,
    clock: str = "time",
    on_branch: str = "stay",
    kinks: bool | None = None,
    bundles: bool = True,
    weight_decay: float = 0.0,
    max_landings: int | None = None,
    max_steps: int = 1_000_000,
    max_seconds: float | None = None,
    progress: bool | str = "auto",
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_seconds: float = 60.0,
) -> Trajectory:
    r"""Gradient flow :math:`w_j' = a_j D_j,\ a_j' = \langle w_j, D_j\rangle`, kinks located.

    D_j is the element of minimal norm of :math:`\{\sum_k s_k c_k x_k\}` over the slopes s_k that
    the activation allows at <w_j, x_k>, c the pull. Neurons of one activation cone move together,
    a constant pull is solved in closed form, sizes live in exponents; so the cost depends on the
    number of cones and of jumps, not on width and scale.

    Parameters
    ----------
    problem : Problem
    net : Network
        Initial weights, of any scale.
    t_end : float, optional
        Where to end, in the units of ``clock``; without it (and without ``stop``) the flow ends
        when it is stationary, or with ``clock="loss"`` when its direction has settled.
    save : list of times or policy
        Where to record; a policy is such as ``every(0.5)``. By default start and end.
    observe : names or functions, optional
        What to record; functions are of (problem, network).
    states : bool, optional
        Whether to keep whole networks; by default only if nothing is observed.
    rtol : float, optional
        Relative error aimed at, of each neuron at its own scale and of f; 1e-8 by default. Where
        kinks are not located it is the error of one step, in the root mean square over neurons,
        and 1e-4 by default (1e-8 for a smoothed activation, which has none).
    stop : condition or list
        :func:`stationary`, :func:`loss_below`, :func:`settled`, a function of
        (problem, network, time), or an object of one's own as in
        :mod:`reluflow.gradientflow.stops`.
    clock : {"time", "loss"}
        "loss" runs in s with ds = L dt, for losses without a minimum: margins of thousands are
        reached without underflow; the observable "log_time" is log t.
    on_branch : {"stay", "leave"}
        On a ridge (<w_j, x_k> = 0 with a_j c_k > 0) solutions are not unique: stay on it while
        possible, or leave to the active side. Each such moment is an event "branch".
    kinks : bool, optional
        True: kinks are located to the end; False: they are not. By default they are, unless many
        neurons meet many samples, until landings on kinks are all that a run is busy with; then
        it goes on without locating them, with an error of sqrt(rtol) in each step. Where neurons
        stand on several kinks at once and no side lasts, any run does. Where neurons slide on
        kinks and hardly meet others, steps that do not locate them only chatter: then they are
        located again, unless many neurons meet many samples. The status says when and why,
        ``settings["handovers"]`` too.
    bundles : bool
        Whether neurons that point the same way meet a kink as one, within rtol; False meets it
        with each of them, which is slower and serves to check.
    weight_decay : float
        lambda of the penalty (lambda/2) (|W|^2 + |a|^2) added to the loss, which adds -lambda w_j
        and -lambda a_j to the velocities; `stationary` is then that of the penalised loss, and
        recorded losses are those of the data alone. Needs ``clock="time"``.
    max_landings : int, optional
        Landings on kinks after which a run goes on without locating them, as above.
    max_steps, max_seconds : number, optional
        Budgets; a run that has spent one ends there and says so.
    progress : bool or "auto"
    checkpoint : path, optional
        Makes the run resumable after a kill, with a bit-identical continuation.
    checkpoint_seconds : float
        How often it is written.

    Returns
    -------
    Trajectory
        ``times`` in the units of ``clock``; ``steps`` counts integrator steps; ``events`` has
        arrays neuron, sample, time and kind (1 cross, 2 slide, 3 exit, 4 branch).

    Notes
    -----
    A kink crossed twice within an eighth of a step may be missed. A sign that is lost by less
    than rtol of the neuron's size counts as kept.

    References
    ----------
    [BF24]_ Section 3, [LLWA21]_ Lemma B.15, [MMV24]_ Appendix E, [HNW93]_ II.6.
    """
    if problem.smoothing:
        if kinks:
            problem.check_kinks("kinks=True")
        kinks = False
    patient = kinks is True
    if kinks is None:
        kinks = net.m * problem.n <= (FEW if problem.several else LARGE)
    if rtol is None:
        rtol = 1e-8 if kinks or problem.smoothing else 1e-4
    _check(rtol, t_end, max_steps, on_branch)
    net.check_fits_problem(problem)
    weight_decay = decay_rate(weight_decay)
    vectors = vector_data(problem, clock, weight_decay) if problem.several else None
    data = None if problem.several else data_of(problem, clock, weight_decay)
    stops = as_stops(stop)
    if t_end is None and not stops:
        stops = (settled(),) if clock == "loss" else (stationary(),)
    end = math.inf if t_end is None else float(t_end)
    observables = as_observables(observe)
    keep = states if states is not None else not observables
    recorder = Recorder(
        problem, as_save(save, end, whole=False), observables, keep, end, whole=False
    )
    settings: dict[str, Any] = {
        "kind": "flow",
        "rtol": rtol,
        "clock": clock,
        "on_branch": on_branch,
        "kinks": kinks,
        "bundles": bundles,
        "weight_decay": weight_decay,
        "t_end": end,
        "max_steps": max_steps,
        "stop": repr(stops),
    }
    arrays = {"X": problem.X, "y": problem.y, "W": net.W, "a": net.a, "ls": net.log_factors}
    if max_landings is not None:
        settings["max_landings"] = whole_number(max_landings, "max_landings", 0, 10**15)
    what = {**settings, "problem": problem.spec, "saved": recorder.describe(), "patient": patient}
    key = fingerprint(arrays, what)
    saved = Checkpoint(checkpoint, key, checkpoint_seconds)
    damped = any(s.at_rest for s in stops)
    policy = STAY if on_branch == "stay" else LEAVE
    most = math.inf if max_landings is None else float(max_landings)
    fine = rtol if kinks else located_rtol(rtol)
    again = None
    if net.m * problem.n <= LARGE:
        again = Relocate(fine, policy, patient, bundles, most, recorder.after)

    def make(kind: str) -> Mover:
        """A mover of the given kind at the start."""
        if vectors is not None:
            return vector_mover(kind, vectors, net, rtol, damped, weight_decay)
        assert data is not None
        if kind == Solver.kind:
            state, events = begin(problem, net, data, policy)
            located = Solver(
                state, fine, policy, damped, patient, events, bundles, weight_decay, most
            )
            located.locate, located.next_record = again, recorder.after
            return located
        neurons = np.column_stack([net.W, net.a]), net.log_factors
        if problem.smoothed is not None:
            return Smooth(data, *neurons, rtol, damped, problem.smoothed, weight_decay)
        mover = Unlocated(data, *neurons, rtol, damped, weight_decay)
        mover.locate = again
        return mover

    packed = saved.read()
    kind = Solver.kind if kinks else Unlocated.kind
    if vectors is not None:
        kind = LocatedVectors.kind if kinks else UnlocatedVectors.kind
    mover = make(kind if packed is None else Loop.kind_of_mover(packed))
    loop = Loop(problem, mover, recorder, stops, end, max_steps, max_seconds, saved)
    if packed is not None:
        loop.unpack(packed)
    return loop.trajectory(loop.run(progress), settings)


def _check(rtol: float, t_end: float | None, max_steps: int, on_branch: str) -> None:
    if not (1e-13 <= rtol <= 1e-2):
        raise ReluflowError(f"rtol must lie between 1e-13 and 1e-2, got {rtol}: try 1e-8")
    if t_end is not None and not (np.isfinite(t_end) and t_end >= 0):
        raise ReluflowError(f"t_end must be a finite time >= 0, got {t_end}")
    if max_steps < 1:
        raise ReluflowError(f"max_steps must be at least 1, got {max_steps}")
    if on_branch not in ("stay", "leave"):
        raise ReluflowError(f"on_branch must be 'stay' or 'leave', got {on_branch!r}")
