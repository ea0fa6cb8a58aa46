r"""Slow stretches of a fast phase, on which no active neuron meets a kink.

With all sides constant the active neurons follow minus the gradient of the loss on their faces, a
smooth equation that is stiff wherever some modes have relaxed while others still drift (along a
kink, or outwards for losses without a minimum). A stiff solver with the Hessian as its Jacobian
takes it to the next kink or to the end of the stretch; the riders follow under the pull it found.
"""

from __future__ import annotations

import numpy as np

from reluflow.arrays import Array
from reluflow.landscape.multioutput import cone_matrix
from reluflow.prediction.multioutput.face import face_basis, face_outputs, newton_terms
from reluflow.prediction.multioutput.phase import Phase
from reluflow.prediction.stiff import TooRough, pulls, to_next_kink

NEAR = 1e-10  # distance, of slopes too, before a kink at which a leg ends
SMALL = 1e-12  # a neuron this small beside the largest is not for this solver: its log is needed
LOOKS = 3000  # velocities of one leg; what needs more is rough


class _Stretch:
    """The equation of the active neurons on their present faces."""

    def __init__(self, phase: Phase) -> None:
        self.phase = phase.part(slice(phase.n_active), phase.n_active)
        problem, self.U = phase.problem, self.phase.U
        self.problem, self.looked = problem, 0
        self.bases = [face_basis(problem, u) for u in self.U]
        self.sliding = [np.flatnonzero(u == 0) for u in self.U]
        self.inverses = [np.linalg.pinv(problem.X[on].T) for on in self.sliding]

    def start(self) -> Array:
        size = np.exp(self.phase.log)[:, None]
        W, A = size * self.phase.V, size * self.phase.B
        return np.concatenate(
            [part for w, a, N in zip(W, A, self.bases, strict=True) for part in (N.T @ w, a)]
        )

    def sizes(self) -> Array:
        """Norm of its neuron, for every coordinate of a state."""
        return np.repeat(np.exp(self.phase.log), [N.shape[1] + self.problem.K for N in self.bases])

    def weights(self, x: Array) -> tuple[Array, Array]:
        """W and A of a state."""
        W, A, at = np.empty_like(self.phase.V), np.empty_like(self.phase.B), 0
        for j, N in enumerate(self.bases):
            W[j] = N @ x[at : at + N.shape[1]]
            at += N.shape[1]
            A[j] = x[at : at + A.shape[1]]
            at += A.shape[1]
        return W, A

    def velocity(self, _: float, x: Array) -> Array:
        self.looked += 1
        if self.looked > LOOKS:
            raise TooRough
        return self._terms(x)[0]

    def jacobian(self, _: float, x: Array) -> Array:
        return -self._terms(x)[1]

    def _terms(self, x: Array) -> tuple[Array, Array]:
        return newton_terms(self.problem, *self.weights(x), self.U, self.bases)

    def pull(self, x: Array) -> Array:
        return self.problem.pull_at(face_outputs(self.problem, *self.weights(x), self.U))

    def to_kinks(self, x: Array) -> Array:
        """Distances to kinks: of neurons to hyperplanes, and of slopes on those they slide on.

        Negative once a neuron is over a hyperplane or would leave its slide.
        """
        problem, (W, A) = self.problem, self.weights(x)
        length = np.linalg.norm(W, axis=1)
        inside = self.U * (W @ problem.X.T) / (length[:, None] * problem.norms) + NEAR
        parts = [inside[self.U != 0], np.log(length / length.max() / SMALL)]
        C = self.pull(x)
        for u, a, on, inverse in zip(self.U, A, self.sliding, self.inverses, strict=True):
            if on.size:
                drive = C[on] @ a
                held = -(inverse @ (cone_matrix(problem, C, u) @ a))  # slope_k <c_k, a>
                slack = NEAR * np.abs(drive)
                parts += [problem.leak * drive - held + slack, held - drive + slack]
        return np.concatenate(parts)

    def at(self, x: Array) -> Phase:
        W, A = self.weights(x)
        w, a = np.linalg.norm(W, axis=1), np.linalg.norm(A, axis=1)
        size = np.sqrt(0.5 * (w**2 + a**2))[:, None]
        return self.phase._replace(V=W / size, B=A / size, log=np.log(size[:, 0]))


def smooth_leg(phase: Phase, span: float) -> tuple[list[tuple[float, float]], Phase] | None:
    """Follow a phase for a time ``span`` or up to the next kink of an active neuron.

    Returns times and losses on the way and the phase at the end, None if a kink is at hand or the
    solver does not get through.
    """
    stretch = _Stretch(phase)
    x = stretch.start()
    found = to_next_kink(stretch, x, span, 1e-9 * stretch.sizes(), stretch.jacobian)
    if found is None:
        return None
    riders = phase.part(slice(phase.n_active, None), 0)
    if len(riders.log):
        for pull, h in pulls(stretch, found):
            riders = riders.move(pull, h)
    end = stretch.at(found.y[:, -1])
    together = phase._replace(
        V=np.vstack([end.V, riders.V]),
        B=np.vstack([end.B, riders.B]),
        U=np.vstack([end.U, riders.U]),
        log=np.concatenate([end.log, riders.log]),
    )
    values = [
        float(stretch.problem.value(face_outputs(stretch.problem, *stretch.weights(y), end.U)))
        for y in found.y.T[1:]
    ]
    return list(zip(found.t[1:].tolist(), values, strict=True)), together
