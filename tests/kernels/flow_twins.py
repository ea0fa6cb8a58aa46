"""Slow twins of the flow's kernels, written from the formulas: z' = M_u(c) z, D_u on faces."""

import numpy as np
from scipy.integrate import solve_ivp

from reluflow import Network, Problem
from reluflow.gradientflow.cones import begin
from reluflow.gradientflow.terms import data_of
from reluflow.kernels.codes import CROSS, EXIT, SLIDE, STAY
from reluflow.network import initialize

LEAKS = (0.0, 0.3)


def random_problem(seed, *, n=6, d=3, leak=0.0, loss="half_square"):
    """Random samples; labels are signs for losses of margins."""
    rng = np.random.default_rng([71, seed])
    y = rng.normal(size=n)
    return Problem(rng.normal(size=(n, d)), y if "square" in loss else np.sign(y), loss, leak)


def random_network(problem, m, seed=0, scale=0.5):
    """Neurons of both signs, among them one that is zero and two that are equal."""
    net = initialize(problem, m, scale=scale, rng=seed)
    W, a = np.array(net.W), np.array(net.a)
    W[0], a[0] = 0.0, 0.0
    W[2], a[2] = W[1], a[1]
    return Network(W, a, net.log_factors, leak=problem.leak)


def state_of(problem, net, clock="time"):
    """Cones, columns and neurons of a network, as a flow starts with them."""
    return begin(problem, net, data_of(problem, clock), STAY)[0]


def neurons_of(state):
    """z_j (m, d + 1) with their sizes."""
    Z, ls = state.neurons()
    return Z * np.exp(ls)[:, None]


def slopes_of(u, leak):
    """1 on the active side, leak on the other, 0 on faces."""
    return np.where(u > 0, 1.0, np.where(u < 0, leak, 0.0))


def force_of(data, u, c):
    """D = sum of slope c x over samples off the faces, projected off the span of the others."""
    D = (slopes_of(u, data.leak) * c) @ data.X
    face = data.X[u == 0]
    if len(face):
        _, s, vt = np.linalg.svd(face, full_matrices=False)
        q = vt[s > 1e-10 * max(s[0], 1e-300)]
        D = D - q.T @ (q @ D)
    return D


def matrix_of(D):
    """M = [[0, D], [D^T, 0]]."""
    M = np.zeros((D.size + 1, D.size + 1))
    M[:-1, -1] = M[-1, :-1] = D
    return M


def face_multipliers(data, u):
    """T with tau = T c: what holds a sliding neuron on its faces (independent samples)."""
    face = data.X[u == 0]
    return -np.linalg.pinv(face.T) @ (data.X.T * slopes_of(u, data.leak))


def face_slopes(data, u, c):
    """The faces and their slopes s_k = tau_k / c_k."""
    face = np.flatnonzero(u == 0)
    return face, face_multipliers(data, u) @ c / c[face]


def side_after(data, u, z, c, k):
    """Sign of sample k with which a neuron that arrives at its kink alone goes on: -u_k or 0."""
    others = u.copy()
    others[k] = -1  # leak c_k x_k added back by hand: velocities for both slopes
    base = force_of(data, others, np.where(np.arange(c.size) == k, 0.0, c))
    speeds = [z[-1] * (base + s * c[k] * data.X[k]) @ data.X[k] for s in (data.leak, 1.0)]
    return -u[k] if all(u[k] * v < 0 for v in speeds) else 0


def follow(data, z, u, pull, t_end):
    """One neuron by a library's integrator, stopped at every kink: z, u and events (k, t, kind).

    ``pull(t)`` is given. Kinks are crossed or slid on; samples are met one at a time.
    """
    z, u, t, events = np.array(z, float), np.array(u), 0.0, []
    for _ in range(50):

        def velocity(t, z, u=u):
            return matrix_of(force_of(data, u, pull(t))) @ z

        meets = []
        for k in np.flatnonzero(u):
            meets.append((k, lambda t, z, k=k, u=u: u[k] * (z[:-1] @ data.X[k])))
        for i, k in enumerate(np.flatnonzero(u == 0)):
            meets.append(
                (k, lambda t, z, i=i, u=u: face_slopes(data, u, pull(t))[1][i] - data.leak)
            )
            meets.append((k, lambda t, z, i=i, u=u: 1.0 - face_slopes(data, u, pull(t))[1][i]))
        for _, event in meets:
            event.terminal, event.direction = True, -1.0
        run = solve_ivp(
            velocity, (t, t_end), z, "DOP853", events=[e for _, e in meets], rtol=1e-12, atol=1e-14
        )
        t, z = run.t[-1], run.y[:, -1]
        hit = [k for (k, _), when in zip(meets, run.t_events, strict=True) if len(when)]
        if run.status != 1:
            return z, u, events
        k, u = hit[0], u.copy()
        if u[k] == 0:
            slope = dict(zip(*face_slopes(data, u, pull(t)), strict=True))[k]
            u[k] = 1 if slope > 0.5 * (1.0 + data.leak) else -1
            events.append((k, t, EXIT))
        else:
            u[k] = side_after(data, u, z, pull(t), k)
            events.append((k, t, CROSS if u[k] else SLIDE))
    raise AssertionError("fifty kinks are too many for a test")
