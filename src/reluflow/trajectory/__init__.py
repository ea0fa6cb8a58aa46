"""Records of runs: when to record, what to record, and the file they go to."""

from reluflow.trajectory.observables import Observable, cosines
from reluflow.trajectory.save import every, geometric, when
from reluflow.trajectory.status import Status
from reluflow.trajectory.trajectory import Trajectory

__all__ = ["Observable", "Status", "Trajectory", "cosines", "every", "geometric", "when"]
