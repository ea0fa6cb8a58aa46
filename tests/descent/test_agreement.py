"""Lumped, dense and a plain NumPy loop take the same steps (to rounding, over 20,000 of them)."""

import numpy as np
import pytest

from reluflow import Problem, datasets, descend, initialize, losses
from reluflow.descent.schedules import Batches

STEPS = 20_000
BACKENDS = ("lumped", "dense")


def random_problem(loss, leak):
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(12, 5)), rng.choice([-1.0, 1.0], 12)
    return Problem(X, y, loss=loss, leak=leak)


CASES = {
    "three points": (lambda: datasets.three_points(loss="square"), 40, 1e-2, "balanced"),
    "stewart": (lambda: datasets.stewart(), 30, 2e-2, "gaussian"),
    "skewed xor": (lambda: datasets.skewed_xor(np.pi / 3, draws=24), 48, 2**-4, "pytorch"),
    "xor": (lambda: datasets.symmetric_xor(draws=4), 24, 2**-4, "balanced"),
}
for loss in (name for name, kind in losses.LOSSES.items() if not kind().classes):
    for leak in (0.0, 0.3):
        CASES[f"random {loss} leak {leak}"] = (
            lambda loss=loss, leak=leak: random_problem(loss, leak),
            16,
            1e-2,
            "balanced",
        )


def relative(found, expected):
    return np.max(np.abs(found - expected)) / np.max(np.abs(expected))


@pytest.mark.parametrize("case", CASES)
def test_full_batch(case, plain_descent):
    make, m, lr, kind = CASES[case]
    problem = make()
    net = initialize(problem, m, scale=0.03, kind=kind, rng=3)
    W, a = plain_descent(problem, net, np.full(STEPS, lr))
    for backend in BACKENDS:
        run = descend(problem, net, lr=lr, steps=STEPS, backend=backend)
        assert run.cost["backend"] == backend
        assert relative(run.final.W, W) < 1e-10
        assert relative(run.final.a, a) < 1e-10
        assert np.allclose(run.final(problem.X), problem.outputs(run.final), atol=0)


@pytest.mark.parametrize("case", ["three points", "random logistic leak 0.3"])
def test_first_layer_only(case, plain_descent):
    make, m, lr, kind = CASES[case]
    problem = make()
    net = initialize(problem, m, scale=0.3, kind=kind, rng=3)
    W, a = plain_descent(problem, net, np.full(STEPS, lr), both=False)
    for backend in BACKENDS:
        run = descend(problem, net, lr=lr, steps=STEPS, backend=backend, train="first")
        assert relative(run.final.W, W) < 1e-10
        assert np.array_equal(run.final.a, a)


@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("case", ["stewart", "random half_square leak 0.0"])
def test_stochastic(case, replacement, plain_descent):
    make, m, lr, kind = CASES[case]
    problem = make()
    net = initialize(problem, m, scale=0.03, kind=kind, rng=3)
    draws = Batches(problem.n, 5, replacement, np.random.default_rng(11)).take(5000)
    W, _ = plain_descent(problem, net, np.full(5000, lr), batches=draws)
    for backend in BACKENDS:
        run = descend(
            problem,
            net,
            lr=lr,
            steps=5000,
            backend=backend,
            batch_size=5,
            replacement=replacement,
            rng=11,
        )
        assert relative(run.final.W, W) < 1e-10


@pytest.mark.parametrize("stochastic", [False, True])
def test_matrix_products(stochastic, plain_descent):
    """Wide data go through BLAS; float32 follows at its own precision."""
    rng = np.random.default_rng(0)
    problem = Problem(rng.normal(size=(60, 80)), rng.choice([-1.0, 1.0], 60), loss="exponential")
    net = initialize(problem, 40, scale=0.1, rng=1)
    options, draws = {}, None
    if stochastic:
        options = {"batch_size": 25, "rng": 5}
        draws = Batches(60, 25, False, np.random.default_rng(5)).take(300)
    W, a = plain_descent(problem, net, np.full(300, 0.02), batches=draws)
    run = descend(problem, net, lr=0.02, steps=300, backend="dense", **options)
    assert run.cost["kernel"] == "blas float64"
    assert relative(run.final.W, W) < 1e-12
    assert relative(run.final.a, a) < 1e-12
    single = descend(problem, net, lr=0.02, steps=300, backend="dense", dtype="float32", **options)
    assert single.cost["kernel"] == "blas float32"
    assert 1e-9 < relative(single.final.W, W) < 1e-3


def test_sum_reduction_is_mean_with_larger_steps(plain_descent):
    problem = datasets.three_points(reduction="sum")
    net = initialize(problem, 20, scale=0.1, rng=0)
    mean = descend(problem.replace(reduction="mean"), net, lr=0.03, steps=1000)
    total = descend(problem, net, lr=0.01, steps=1000)
    assert relative(total.final.W, mean.final.W) < 1e-12


def test_schedules_agree(plain_descent):
    problem = datasets.three_points()
    net = initialize(problem, 20, scale=0.1, rng=0)
    rates = 0.02 / (1 + np.arange(2000) / 500)
    W, _ = plain_descent(problem, net, rates)
    for lr in (rates, lambda step: 0.02 / (1 + step / 500)):
        run = descend(problem, net, lr=lr, steps=2000)
        assert relative(run.final.W, W) < 1e-12
        assert run.times[-1] == pytest.approx(rates.sum(), rel=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_scales_outside_floats(backend):
    """Weights of e^-1000 take exactly the steps of ordinary ones while f is negligible."""
    problem = datasets.stewart()
    small = initialize(problem, 50, scale=1e-90, rng=0)
    tiny = small.scaled(-1000.0)
    a = descend(problem, small, lr=0.01, steps=3000, backend=backend)
    b = descend(problem, tiny, lr=0.01, steps=3000, backend=backend)
    gap = b.final.log_norms - a.final.log_norms + 1000.0
    assert np.max(np.abs(gap)) < 1e-9
    assert np.max(np.abs(b.final.directions - a.final.directions)) < 1e-10


@pytest.mark.parametrize("backend", BACKENDS)
def test_growth_from_below_floats(backend):
    """A run from e^-500 reaches the same end as one from e^-10: nothing is lost on the way up."""
    problem = datasets.golden()
    net = initialize(problem, 6, log_scale=-500.0, kind="sphere", signs=1, rng=4)
    run = descend(problem, net, lr=0.2, steps=40_000, backend=backend)
    active = (net.W > 0).any(axis=0)
    assert np.allclose(run.final(problem.X), np.where(active, problem.y, 0.0), atol=1e-8)
