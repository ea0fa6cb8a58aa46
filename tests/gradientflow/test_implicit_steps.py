"""Implicit steps of late phases: their linear algebra, and agreement with explicit ones."""

import numpy as np
import pytest

import reluflow as rf
from reluflow.gradientflow import solver
from reluflow.gradientflow.cones import begin
from reluflow.gradientflow.implicit import ImplicitTrial
from reluflow.gradientflow.linearised import Coupling, Linearised, bends
from reluflow.gradientflow.present import Present
from reluflow.gradientflow.stops import loss_below, settled
from reluflow.gradientflow.tableaux import Collocation, radau
from reluflow.gradientflow.terms import data_of
from reluflow.gradientflow.trial import Trial
from reluflow.kernels.codes import STAY
from reluflow.kernels.flow_field import field


def separable(seed: int = 0, n: int = 24, d: int = 3) -> rf.Problem:
    """Two classes a line apart."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.where(X[:, 0] + 0.3 * np.abs(X[:, 1]) > 0.0, 1.0, -1.0)
    X[:, 0] += 0.4 * y
    return rf.Problem(X, y, loss="logistic", bias=1.0)


def present(problem: rf.Problem, net: rf.Network, clock: str, rtol: float = 1e-8) -> Present:
    state, _ = begin(problem, net, data_of(problem, clock), STAY)
    return Present(state, rtol, STAY)


# ---------------------------------------------------------------------- the method
def stability(table: Collocation, z: complex) -> complex:
    """R(z): the step of y' = z y from y = 1."""
    s = table.nodes.size
    return 1.0 + z * table.A[-1] @ np.linalg.solve(np.eye(s) - z * table.A, np.ones(s))


def test_nodes_are_real_numbers_whatever_roots_come_as(monkeypatch):
    """NumPy gives them in a complex array from 2.5 on."""
    legendre = np.polynomial.legendre
    roots = legendre.legroots
    monkeypatch.setattr(legendre, "legroots", lambda c: roots(c).astype(complex))
    found, usual = vars(radau.__wrapped__(3)), vars(radau(3))
    for name, array in usual.items():
        assert found[name].dtype == array.dtype, name
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize(("stages", "step"), [(3, 0.2), (5, 1.0)])
def test_radau_has_its_order_and_damps_completely(stages, step):
    table = radau(stages)
    errors = [  # the terms of odd order cancel
        abs(stability(table, z) - np.exp(z)) * abs(stability(table, -z) - np.exp(-z))
        for z in (step, 0.5 * step)
    ]
    assert 0.5 * np.log2(errors[0] / errors[1]) == pytest.approx(2 * stages, abs=0.3)
    assert abs(stability(table, -1e8)) < 1e-7
    for y in (0.5, 3.0, 40.0):
        assert abs(stability(table, 1j * y)) <= 1.0 + 1e-12


def test_the_error_estimate_has_order_five():
    """On y' = y the estimate falls with the sixth power of the step."""
    table = radau()

    def estimate(h):
        s = table.nodes.size
        Y = np.linalg.solve(np.eye(s) - h * table.A, np.ones(s))
        raw = h / table.real + table.E @ (Y - 1.0)
        return abs(raw / (1.0 - h / table.real))

    assert estimate(0.2) / estimate(0.1) == pytest.approx(2.0**6, rel=0.2)


# ---------------------------------------------------------------------- linear algebra
def velocity(now: Present, coupling: Coupling, C):
    s = now.state
    f, c, D = np.empty_like(now.f), np.empty_like(now.c), np.empty_like(now.D)
    field(s.data, s.cones, np.ascontiguousarray(C), f, c, D)
    return coupling.move(C, D)


CASES = [
    ("logistic", "loss", 0.0, 40),
    ("exponential", "loss", 0.2, 5),
    ("logistic", "time", 0.1, 5),
    ("half_square", "time", 0.0, 40),
]


@pytest.mark.parametrize(("loss", "clock", "leak", "m"), CASES)
@pytest.mark.parametrize("value", [3.0, 2.0 + 1.5j])
def test_resolvent_against_differences_of_the_velocity(loss, clock, leak, m, value):
    problem = separable().replace(loss=loss, leak=leak)
    net = rf.initialize(problem, m, scale=0.7, rng=1)
    W = net.W.copy()
    W[0] -= (W[0] @ problem.X[3]) / (problem.X[3] @ problem.X[3]) * problem.X[3]  # on a face
    now = present(problem, rf.Network(W, net.a, net.log_factors, bias=problem.bias), clock)
    s, coupling = now.state, Coupling(now.state)
    J = Linearised(coupling, s.C, now.c, bends(s.data, now.f))
    np.testing.assert_allclose(J.D, now.D, atol=1e-12)
    rng = np.random.default_rng(2)
    r = rng.standard_normal(s.C.shape)
    for g in np.flatnonzero(s.faces):  # what moves on a face stays on it
        N = s.cones.N[s.cones.n_offset[g] : s.cones.n_offset[g + 1]]
        part = slice(s.cones.offset[g], s.cones.offset[g + 1])
        r[part, :-1] -= (r[part, :-1] @ N.T) @ N
    delta, df = J.resolvent(value)(r.astype(complex))
    step = 1e-5
    parts = []
    for part in (delta.real, delta.imag):
        ahead = velocity(now, coupling, s.C + step * part)
        parts.append((ahead - velocity(now, coupling, s.C - step * part)) / (2.0 * step))
    left = value * delta - (parts[0] + 1j * parts[1])
    np.testing.assert_allclose(left, r, atol=1e-6)
    f = np.empty((2, now.f.size))
    for side, out in zip((-1.0, 1.0), f, strict=True):
        field(s.data, s.cones, s.C + side * step * delta.real, out, now.c.copy(), now.D.copy())
    np.testing.assert_allclose((f[1] - f[0]) / (2.0 * step), df.real, atol=1e-6)


# ---------------------------------------------------------------------- steps
@pytest.mark.parametrize(("loss", "clock"), [("logistic", "loss"), ("half_square", "time")])
def test_a_step_agrees_with_the_explicit_one(loss, clock):
    problem = separable().replace(loss=loss)
    now = present(problem, rf.initialize(problem, 30, scale=0.8, rng=3), clock)
    explicit, implicit = Trial(now), ImplicitTrial(now)
    for h in (0.02, 0.01):
        assert explicit.attempt(h) < 1.0
        assert implicit.attempt(h) < 50.0
        np.testing.assert_allclose(implicit.new, explicit.new, atol=1e-9)
    for trial in (explicit, implicit):
        trial.dense()
        trial.sample()
    for theta in (0.0, 0.3, 0.77, 1.0):
        np.testing.assert_allclose(
            implicit.columns_at(theta), explicit.columns_at(theta), atol=1e-9
        )
    if clock == "loss":
        assert implicit.log_loss_at(0.4) == pytest.approx(explicit.log_loss_at(0.4), abs=1e-8)
    rows = implicit.cn.shape[0]
    np.testing.assert_allclose(implicit.cn[:3], explicit.cn[:3], atol=1e-8)
    assert rows <= 15


def late_run(problem, net, until, **given):
    return rf.flow(
        problem, net, clock="loss", stop=loss_below(log=-until), kinks=True, progress=False, **given
    )


@pytest.mark.parametrize("seed", range(3))
def test_late_phase_against_explicit_steps(seed, monkeypatch):
    """Direction and log-norms at a margin of 400, where explicit steps can still be afforded."""
    problem = separable(seed)
    net = rf.initialize(problem, 20, scale=1e-3, rng=seed)
    monkeypatch.setattr(solver, "STIFF", 1.0)  # as soon as can be
    monkeypatch.setattr(solver, "PAYS", 0.0)  # and for good
    implicit = late_run(problem, net, 400.0)
    monkeypatch.setattr(solver, "STIFF", np.inf)
    explicit = late_run(problem, net, 400.0)
    assert implicit.cost["implicit"] > 10
    assert "implicit" not in explicit.cost
    assert implicit.cost["steps"] < 0.5 * explicit.cost["steps"]
    one, two = implicit.final, explicit.final
    np.testing.assert_allclose(one.directions, two.directions, atol=1e-6)
    np.testing.assert_allclose(one.log_norms, two.log_norms, atol=1e-6)
    assert implicit["log_time"][-1] == pytest.approx(explicit["log_time"][-1], abs=1e-5)


def test_error_falls_with_the_tolerance(monkeypatch):
    """With steps that are limited by nothing but their error estimate."""
    problem = separable(4)
    start = late_run(problem, rf.initialize(problem, 20, scale=1e-3, rng=4), 100.0, rtol=1e-10)
    monkeypatch.setattr(solver, "STIFF", 0.1)
    monkeypatch.setattr(solver, "PAYS", 0.0)
    finals = {r: late_run(problem, start.final, 3e3, rtol=r).final for r in (1e-5, 1e-7, 1e-9)}
    best = finals[1e-9].directions
    assert np.abs(finals[1e-5].directions - best).max() <= 1e-5
    assert np.abs(finals[1e-7].directions - best).max() <= 1e-7


def test_margins_of_millions_cost_few_steps():
    """Explicit steps would have to be as many as the margin is large."""
    problem = separable(1)
    net = rf.initialize(problem, 20, scale=1e-3, rng=1)
    run = rf.flow(
        problem,
        net,
        clock="loss",
        stop=[loss_below(log=-1e6), settled(1e-6)],
        observe=["normalized_margin"],
        progress=False,
    )
    assert run.status.code in ("loss", "settled")
    assert run.cost["steps"] < 2000
    assert np.diff(run["normalized_margin"])[-1] > 0.0


def test_a_run_that_is_resumed_among_implicit_steps_goes_on_identically(tmp_path, monkeypatch):
    problem = separable(2)
    net = rf.initialize(problem, 12, scale=1e-2, rng=2)
    monkeypatch.setattr(solver, "STIFF", 0.5)
    monkeypatch.setattr(solver, "PAYS", 0.0)
    whole = late_run(problem, net, 300.0)
    assert whole.cost["implicit"] > 5

    class Enough(Exception):
        pass

    file, wanted = tmp_path / "run", int(whole.cost["steps"]) - 4

    class Break:
        def __repr__(self):
            return "loss"

        def met(self, mover, problem):
            if active and mover.cost["steps"] >= wanted:
                raise Enough
            return None

    active = True
    stop = [loss_below(log=-300.0), Break()]
    given = {
        "clock": "loss",
        "stop": stop,
        "kinks": True,
        "progress": False,
        "checkpoint": file,
        "checkpoint_seconds": 0.0,
    }
    with pytest.raises(Enough):
        rf.flow(problem, net, **given)
    active = False
    resumed = rf.flow(problem, net, **given)
    np.testing.assert_array_equal(resumed.final.W, whole.final.W)
    assert resumed.cost["steps"] == whole.cost["steps"]


def test_two_points_settle_in_few_steps():
    """Explicit steps did not come to an end here."""
    problem = rf.datasets.two_points()
    net = rf.initialize(problem, 8, scale=0.1, rng=0)
    run = rf.flow(problem, net, clock="loss", max_steps=500, progress=False)
    assert run.status.code == "settled"


def test_square_losses_of_tables_with_columns_of_very_different_size(monkeypatch):
    """Explicit steps stay as short as the largest column demands; implicit ones need not."""
    rng = np.random.default_rng(6)
    X = rng.standard_normal((20, 4)) * np.array([20.0, 2.0, 0.3, 0.05])
    problem = rf.Problem(X, X @ np.ones(4) + 0.1 * rng.standard_normal(20), bias=1.0)
    net = rf.initialize(problem, 10, scale=1e-3, rng=0)
    run = rf.flow(problem, net, t_end=200.0, rtol=1e-8)
    monkeypatch.setattr(solver.Solver, "_choose_method", lambda self: None)
    explicit = rf.flow(problem, net, t_end=200.0, rtol=1e-8)
    assert run.cost["implicit"] > 0
    assert 4 * run.cost["steps"] < explicit.cost["steps"]
    f, g = problem.outputs(run.final), problem.outputs(explicit.final)
    assert np.abs(f - g).max() < 1e-6 * np.abs(g).max()


@pytest.mark.parametrize("loss", ["half_square", "logistic"])
def test_weight_decay_takes_no_implicit_steps(loss):
    """They leave out that outputs fade within a step: |theta|^2 was off by 2e-4."""
    problem = separable()
    problem = rf.Problem(problem.X[:, :-1], problem.y, loss=loss, bias=1.0)
    net = rf.initialize(problem, 8, scale=0.5, rng=0)
    run = rf.flow(problem, net, t_end=300.0, weight_decay=1e-3)
    assert not run.cost.get("implicit")
