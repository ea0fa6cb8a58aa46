r"""Slow stretches of a fast phase, on which no active neuron meets a kink.

With all patterns constant the active neurons obey the smooth, often stiff equation
:math:`\dot w_j = s_j |w_j| P_j D_j - \lambda w_j`, :math:`D_j = \sum_k \phi'_{jk} c_k x_k`, where
:math:`P_j` projects on the hyperplanes on which neuron j slides and lambda is the weight decay. A
stiff solver takes it to the next kink or to the end of the stretch; the tracers follow under the
pull it found.
"""

from __future__ import annotations

import numpy as np

from reluflow.arrays import Array
from reluflow.prediction.crew import Crew
from reluflow.prediction.stiff import TooRough, pulls, to_next_kink

_SMALL = 1e-6  # a neuron this small beside the largest is not for this solver: its log is needed
_AT = 1e-9  # |<v, x_k>| over |x_k| of a neuron that moves along a hyperplane at its side
_WEAK = 1e-6  # pull, over the first, of a sample that may be crossed unnoticed from so near
_NEAR = 1e-10  # distance, of slopes too, before a kink at which the leg ends
_LOOKS = 3000  # velocities of one leg, and 50 for each unknown: what needs more is rough
_JACOBIAN = 2e8  # work of one Jacobian, n times unknowns squared, beyond which none is made


class _Stretch:
    """The equation of the active neurons on their present patterns."""

    def __init__(self, crew: Crew) -> None:
        self.crew = crew.acting
        problem, U = crew.problem, self.crew.U
        self.X, self.s, self.U = problem.X, self.crew.s, U
        self.slopes = np.where(U > 0, 1.0, np.where(U < 0, problem.leak, 0.0))
        inside = U * (self.crew.V @ self.X.T)
        weak = np.abs(crew.pull()) < _WEAK * np.abs(problem.pull).max()
        beside = weak & (inside <= _AT * problem.norms)
        self.target = np.where(beside, -_NEAR, _NEAR) * problem.norms
        self.looked = 0
        self.sliding = [np.flatnonzero(row == 0) for row in U]
        self.normals = [self.X[on].T for on in self.sliding]
        self.inverses = [np.linalg.pinv(N) if N.size else N.T for N in self.normals]

    def start(self) -> Array:
        return (np.exp(self.crew.log)[:, None] * self.crew.V).ravel()

    def pull(self, x: Array) -> Array:
        w = x.reshape(self.crew.V.shape)
        z = self.slopes * (w @ self.X.T)
        f = (self.s * np.sqrt(np.einsum("ji,ji->j", w, w))) @ z
        return self.crew.problem.pull_at(f)

    def velocity(self, _: float, x: Array) -> Array:
        self.looked += 1
        if self.looked > _LOOKS + 50 * x.size:
            raise TooRough
        w = x.reshape(self.crew.V.shape)
        D = (self.slopes * self.pull(x)) @ self.X
        for j, (N, inverse) in enumerate(zip(self.normals, self.inverses, strict=True)):
            if N.size:
                D[j] -= N @ (inverse @ D[j])
        size = self.s * np.sqrt(np.einsum("ji,ji->j", w, w))
        speed = size[:, None] * D
        if self.crew.decay:
            speed -= self.crew.decay * w
        return np.asarray(speed).ravel()

    def to_kinks(self, x: Array) -> Array:
        """Distances to kinks: of neurons to hyperplanes, and of slopes on those they slide on.

        Negative once a neuron is over a hyperplane or would leave its slide. A diverging neuron
        is pressed against a hyperplane by the pulls of samples at infinity, and may tend to
        another one: distances of 0 up to rounding are ordinary, hence the allowance.
        """
        w = x.reshape(self.crew.V.shape)
        length = np.sqrt(np.einsum("ji,ji->j", w, w))
        inside = (self.U * (w @ self.X.T) / length[:, None] - self.target)[self.U != 0]
        parts = [inside, np.log(length / length.max() / _SMALL)]
        c, leak = self.pull(x), self.crew.problem.leak
        for j, on in enumerate(self.sliding):
            if on.size:
                base = (self.slopes[j] * c) @ self.X
                pressed = -(self.inverses[j] @ base)  # slope_k c_k of the samples it slides on
                above = np.sign(c[on]) * (pressed - leak * c[on])
                below = np.sign(c[on]) * (c[on] - pressed)
                parts += [part + _NEAR * np.abs(c[on]) for part in (above, below)]
        return np.concatenate(parts)

    def at(self, x: Array) -> Crew:
        w = x.reshape(self.crew.V.shape)
        length = np.sqrt(np.einsum("ji,ji->j", w, w))
        return self.crew.at(w / length[:, None], np.log(length))


def smooth_leg(crew: Crew, span: float) -> tuple[list[tuple[float, Crew]], Crew] | None:
    """Follow a crew for a time ``span`` or up to the next kink.

    Returns times and active neurons on the way and the crew at the end, None if a kink is at
    hand or the system is too large for a stiff solver.
    """
    if crew.problem.n * float(crew.n_active * crew.problem.d) ** 2 > _JACOBIAN:
        return None
    stretch = _Stretch(crew)
    x = stretch.start()
    found = to_next_kink(stretch, x, span, 1e-9 * np.abs(x).max())
    if found is None:
        return None
    riding = crew.riding
    if len(riding.s):
        for pull, h in pulls(stretch, found):
            riding = riding.after(pull, h)
    end = crew.with_parts(stretch.at(found.y[:, -1]), riding)
    return [(t, stretch.at(y)) for t, y in zip(found.t[1:], found.y.T[1:], strict=True)], end
