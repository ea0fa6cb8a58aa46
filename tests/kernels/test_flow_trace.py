"""flow_trace: neurons carried past kinks against an integrator that stops at each."""

import numpy as np
import pytest
from flow_twins import LEAKS, follow, random_network, random_problem, slopes_of, state_of

from reluflow.gradientflow.present import Present
from reluflow.gradientflow.trial import Trial
from reluflow.kernels import flow_trace
from reluflow.kernels.codes import STAY
from reluflow.kernels.flow_types import Dense, Meetings, Rules, Traced


def trial_of(problem, m, seed):
    """The longest of some steps that is accepted."""
    trial = Trial(Present(state_of(problem, random_network(problem, m, seed)), 1e-8, STAY))
    h = 0.8
    while trial.attempt(h) > 1.0:
        h *= 0.7
    trial.dense()
    trial.sample()
    return trial


def trace(trial, which, hi, record=False, out=None):
    state = trial.now.state
    if out is None:
        V, events = np.empty((which.size, state.U.shape[1]), np.int8), np.zeros((500, 4))
        past = np.full(which.size, -1.0)
        out = Traced(np.empty((which.size, state.d + 1)), np.empty(which.size), V, events, past)
    rules = Rules(1e-12, 1e-12, 1e-15, STAY)
    step = state.cones, trial.frame, Dense(trial.F, trial.cn), state.members
    met = Meetings(trial.theta, trial.kink)
    extra = trial.extra if record else trial.extra[:0]
    flow_trace.trace_some(state.data, trial.method, *step, met, which, hi, rules, out, extra)
    return out


def starts(trial, which):
    Z, ls = trial.now.state.neurons()
    return (Z * np.exp(ls)[:, None])[which]


@pytest.mark.parametrize("leak", LEAKS)
@pytest.mark.parametrize("m", [6, 60])
def test_traced_neurons(leak, m):
    met = 0
    for seed in range(4):
        problem = random_problem(seed, leak=leak)
        trial = trial_of(problem, m, seed)
        state, which, h = trial.now.state, trial.scan(), trial.frame.h
        which = which[which > 2][:6]  # the first is zero, the next two are equal
        out = trace(trial, which, 1.0)
        events = out.events[1 : 1 + int(out.events[0, 0])]

        def pull(t, trial=trial, h=h):
            return np.polynomial.chebyshev.chebval(2.0 * t / h - 1.0, trial.cn)

        for i, (j, start) in enumerate(zip(which, starts(trial, which), strict=True)):
            z, u, kinks = follow(state.data, start, state.U[state.gid[j]], pull, h)
            found = out.Z[i] * np.exp(out.ls[i])
            np.testing.assert_allclose(found, z, rtol=0, atol=1e-8 * np.linalg.norm(z))
            np.testing.assert_array_equal(out.V[i], u)
            mine = events[events[:, 0] == j]
            assert mine[:, 1].astype(int).tolist() == [k for k, _, _ in kinks]
            assert mine[:, 3].astype(int).tolist() == [kind for _, _, kind in kinks]
            np.testing.assert_allclose(mine[:, 2], [t for _, t, _ in kinks], atol=1e-7)
            met += len(kinks)
    assert met > 2


@pytest.mark.parametrize("leak", LEAKS)
def test_neurons_are_carried_on_from_where_they_were_left(leak):
    met = 0
    for seed in range(4):
        trial = trial_of(random_problem(seed, leak=leak), 60, seed)
        which = trial.scan()
        parts = None
        for hi in (0.2, 0.5, 0.9, 1.0):
            parts = trace(trial, which, hi, out=parts)
            whole = trace(trial, which, hi)
            np.testing.assert_array_equal(parts.V, whole.V)
            np.testing.assert_array_equal(parts.past >= 0.0, trial.theta[which] <= hi)
            np.testing.assert_allclose(parts.Z, whole.Z, atol=1e-10)
            np.testing.assert_allclose(parts.ls, whole.ls, atol=1e-10)
            assert parts.events[0, 0] == whole.events[0, 0]
        met += int(whole.events[0, 0])
    assert met > 10


def test_neurons_before_their_kink_are_those_of_the_step():
    problem = random_problem(1)
    trial = trial_of(problem, 60, 1)
    which = trial.scan()
    late = which[trial.theta[which] > 0.3]
    assert late.size
    out = trace(trial, late, 0.3)
    Z, ls = trial.now.state.neurons(trial.columns_at(0.3))
    np.testing.assert_allclose(out.Z, Z[late], atol=1e-13)
    np.testing.assert_allclose(out.ls, ls[late], atol=1e-13)
    assert out.events[0, 0] == 0


@pytest.mark.parametrize("leak", LEAKS)
def test_what_traced_neurons_add_to_the_outputs(leak):
    problem = random_problem(2, leak=leak)
    trial = trial_of(problem, 60, 2)
    state, which = trial.now.state, trial.scan()
    assert which.size
    trial.extra[:] = 0.0
    trace(trial, which, 1.0, record=True)
    x, U = problem.X, state.U[state.gid[which]]
    for s, when in enumerate(trial.method.times):
        Z, ls = state.neurons(trial.columns_at(when))
        assumed = (Z * np.exp(ls)[:, None])[which]
        out = trace(trial, which, when)
        real = out.Z * np.exp(out.ls)[:, None]
        exact = np.zeros(problem.n)
        for z, u, sign in ((real, out.V, 1.0), (assumed, U, -1.0)):
            outputs = slopes_of(u, leak) * (z[:, :-1] @ x.T) * z[:, -1:]
            exact += sign * outputs[trial.theta[which] < when].sum(axis=0)
        np.testing.assert_allclose(trial.extra[s], exact, atol=1e-9)
    assert np.abs(trial.extra).max() > 1e-6
