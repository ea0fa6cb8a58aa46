"""flow_step: a step in the frame of its first force, by matrix exponentials."""

import numpy as np
import pytest
from flow_twins import (
    LEAKS,
    force_of,
    matrix_of,
    random_network,
    random_problem,
    slopes_of,
    state_of,
)
from scipy.linalg import expm

from reluflow.gradientflow.present import Present
from reluflow.gradientflow.trial import Trial
from reluflow.kernels import flow_step
from reluflow.kernels.codes import STAY
from reluflow.kernels.flow_types import N_NODES, Corrections


def trial_of(problem, m, scale=0.5, seed=0):
    return Trial(Present(state_of(problem, random_network(problem, m, seed, scale)), 1e-8, STAY))


def expm_rows(state, D, t, rows):
    """exp(M_u t) applied to each column."""
    out = np.empty_like(rows)
    for g in range(len(D)):
        own = slice(state.cones.offset[g], state.cones.offset[g + 1])
        out[own] = rows[own] @ expm(t * matrix_of(D[g]))
    return out


def pull_of(problem, state, C):
    """The pull of the network whose columns are at C, by neurons."""
    Z, ls = state.neurons(C)
    z = Z * np.exp(ls)[:, None]
    slopes = slopes_of(state.U[state.gid], problem.leak)
    f = np.sum(slopes * (z[:, :-1] @ problem.X.T) * z[:, -1:], axis=0)
    return problem.pull_at(f), problem.log_value(f)


@pytest.mark.parametrize("leak", LEAKS)
@pytest.mark.parametrize("m", [5, 60])
@pytest.mark.parametrize("loss", ["half_square", "logistic"])
def test_stages_error_and_inside(leak, m, loss):
    problem = random_problem(m, leak=leak, loss=loss)
    trial = trial_of(problem, m)
    state, table, h = trial.now.state, trial.method, 0.4
    error = trial.attempt(h)
    new = trial.new.copy()
    trial.dense()
    D0 = np.array([force_of(state.data, u, trial.now.c) for u in state.U])
    K = np.zeros_like(trial.K)
    for s in range(1, 16):
        v = state.C + h * np.tensordot(table.A[s, :s], K[:s], 1)
        y = expm_rows(state, D0, table.c[s] * h, v)
        c, _ = pull_of(problem, state, y)
        D = np.array([force_of(state.data, u, c) for u in state.U]) - D0
        for g in range(len(D)):
            own = slice(state.cones.offset[g], state.cones.offset[g + 1])
            K[s, own] = y[own] @ matrix_of(D[g])
        K[s] = expm_rows(state, D0, -table.c[s] * h, K[s])
        if s == 12:
            end, there = v, y
    np.testing.assert_allclose(trial.K, K, atol=1e-13)
    np.testing.assert_allclose(trial.v, end, atol=1e-13)
    np.testing.assert_allclose(new, there, atol=1e-13)

    # the estimate of [HNW93] II.10, column by column, or of a whole propagator
    e5, e3 = (expm_rows(state, D0, h, np.tensordot(E, K[:13], 1)) for E in (table.E5, table.E3))
    worst = 0.0
    for g in range(len(D0)):
        own = slice(state.cones.offset[g], state.cones.offset[g + 1])
        blocks = [own] if state.cones.lumped[g] else range(own.start, own.stop)
        for rows in blocks:
            q5, q3 = np.sum(e5[rows] ** 2), np.sum(e3[rows] ** 2)
            size = h * q5 / np.sqrt(q5 + 0.01 * q3) if q5 > 0 else 0.0
            if state.cones.lumped[g]:
                size *= np.exp(h * np.linalg.norm(D0[g]))
            elif q5 > 0:
                size /= np.linalg.norm(there[rows])
            worst = max(worst, size)
    assert error == pytest.approx(worst / (0.02 * 1e-8), rel=1e-3)

    # the pull between: at theta, from columns at theta
    trial.sample()
    logs = np.polynomial.chebyshev.chebval(2 * 0.3 - 1, trial.logs)
    C = trial.columns_at(0.3)
    c, log_loss = pull_of(problem, state, C)
    np.testing.assert_allclose(np.polynomial.chebyshev.chebval(2 * 0.3 - 1, trial.cn), c, atol=1e-9)
    assert problem.loss.margin is False or logs == pytest.approx(float(log_loss), abs=1e-9)
    assert trial.logs.size == N_NODES


def test_columns_inside_a_step():
    problem = random_problem(3)
    trial = trial_of(problem, 40)
    trial.attempt(0.1)
    new = trial.new.copy()
    trial.dense()
    np.testing.assert_allclose(trial.columns_at(0.0), trial.now.state.C, atol=1e-15)
    np.testing.assert_allclose(trial.columns_at(1.0), new, atol=1e-14)
    half = trial.columns_at(0.5)
    trial.attempt(0.05)  # a step of half the length ends there
    np.testing.assert_allclose(half, trial.new, atol=1e-10)


def test_growth_under_a_constant_pull_is_exact():
    """Neurons too small to be felt: the pull stands still, and a step of any length is exact."""
    problem = random_problem(4)
    trial = trial_of(problem, 30, scale=1e-80)
    state = trial.now.state
    h = 3.0 / trial.now.fastest
    assert trial.attempt(h) < 1e-3
    D = np.array([force_of(state.data, u, problem.pull) for u in state.U])
    exact = expm_rows(state, D, h, state.C)
    np.testing.assert_allclose(trial.new, exact, rtol=0, atol=1e-13 * np.exp(3.0))


def test_what_others_add_to_the_outputs_is_felt():
    problem = random_problem(5)
    trial = trial_of(problem, 30)
    trial.attempt(0.2)
    plain = trial.new.copy()
    trial.extra[:] = 0.1
    trial.attempt(0.2)
    shifted = trial.new.copy()
    assert np.abs(shifted - plain).max() > 1e-4
    y = problem.y - 0.1  # the residual of a network whose outputs are larger by 0.1
    trial.extra[:] = 0.0
    data, state = trial.now.state.data._replace(y=_frozen(y)), trial.now.state
    unchanged = Corrections(trial.extra, np.empty(0))
    step = data, state.cones, trial.method, trial.frame, unchanged
    flow_step.stages(*step, 1, 13, state.C, trial.K, trial.field, trial.v, trial.new)
    np.testing.assert_allclose(trial.new, shifted, atol=1e-14)


def _frozen(y):
    y = np.ascontiguousarray(y)
    y.flags.writeable = False
    return y
