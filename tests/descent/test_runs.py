"""How runs end and go on: divergence, Ctrl-C, checkpoints, handovers, bad input."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from reluflow import (
    Network,
    Problem,
    ReluflowError,
    Trajectory,
    datasets,
    descend,
    initialize,
    when,
)

PROBLEM = datasets.three_points()
LEAKY = PROBLEM.replace(leak=0.5)  # no neuron can die and end an explosion
NET = initialize(PROBLEM, 12, scale=0.1, rng=0)


@pytest.mark.parametrize("backend", ["lumped", "dense"])
def test_divergence_stops_at_once_and_keeps_the_records(backend):
    run = descend(LEAKY, NET, lr=50.0, steps=10_000, save=[0, 1, 2], backend=backend)
    assert run.status.code == "diverged"
    assert not run.status.ok
    assert "Diverged at step" in run.status
    assert "smaller lr, it was 50" in run.status
    assert run.steps.tolist() == [0, 1, 2][: len(run)]
    assert len(run) >= 1
    assert np.isfinite(run.final.W).all()


def test_divergence_names_the_same_step_in_every_backend():
    sentences = {
        str(descend(LEAKY, NET, lr=50.0, steps=10_000, backend=b).status)
        for b in ("lumped", "dense")
    }
    assert len(sentences) == 1


def press_ctrl_c_at(step):
    """A policy that records every 1000 steps and interrupts the process at one of them."""

    def predicate(problem, net, position):
        if position == step:
            os.kill(os.getpid(), signal.SIGINT)
        return True

    return when(predicate, check=1000)


def test_ctrl_c_returns_what_there_is():
    before = signal.getsignal(signal.SIGINT)  # may be ignored, in a background job
    run = descend(PROBLEM, NET, lr=1e-4, steps=10**10, save=press_ctrl_c_at(3000))
    assert run.status.code == "interrupted"
    assert "Stopped by Ctrl-C after" in run.status
    assert run.steps.tolist() == [0, 1000, 2000, 3000]
    assert signal.getsignal(signal.SIGINT) is before


SCRIPT = textwrap.dedent(
    """
    import sys
    import numpy as np
    from reluflow import datasets, descend, initialize, every
    kind, path, out = sys.argv[1:]
    problem = datasets.skewed_xor(draws=32)
    net = initialize(problem, 64, scale=0.1, kind="pytorch", rng=0)
    options = dict(backend=kind) if kind != "sgd" else dict(batch_size=7, rng=3)
    run = descend(problem, net, lr=0.05, steps=60_000, save=every(10_000), checkpoint=path,
                  checkpoint_seconds=0.05, **options)
    np.savez(out, W=run.final.W, a=run.final.a, loss=run.loss, times=run.times,
             resumed=run.cost.get("resumed", 0))
    """
)


@pytest.mark.parametrize("kind", ["lumped", "dense", "sgd"])
def test_killed_runs_resume_bit_for_bit(kind, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)

    def start(checkpoint, out):
        return subprocess.Popen([sys.executable, script, kind, checkpoint, out])

    assert start(tmp_path / "whole.ckpt", tmp_path / "whole.npz").wait() == 0
    whole = np.load(tmp_path / "whole.npz")
    checkpoint, out = tmp_path / "cut.ckpt", tmp_path / "cut.npz"
    kills = 0
    while not out.exists():
        process = start(checkpoint, out)
        if kills < 3:
            seen = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
            while process.poll() is None:
                if checkpoint.exists() and checkpoint.stat().st_mtime_ns > seen:
                    process.send_signal(signal.SIGKILL)
                    kills += 1
                    break
                time.sleep(0.002)
        process.wait()
    cut = np.load(out)
    assert kills > 0
    assert cut["resumed"] > 0
    for name in ("W", "a", "loss", "times"):
        assert np.array_equal(whole[name], cut[name]), name
    assert not checkpoint.exists(), "a finished run leaves no checkpoint"


def test_checkpoint_of_another_run_is_refused(tmp_path):
    path = tmp_path / "run.ckpt"
    policy = press_ctrl_c_at(1000)
    descend(PROBLEM, NET, lr=1e-4, steps=10**10, save=policy, checkpoint=path)
    assert path.exists()
    with pytest.raises(ReluflowError, match="belongs to a run with other data"):
        descend(PROBLEM, NET, lr=2e-4, steps=10**10, save=policy, checkpoint=path)
    path.write_bytes(b"garbage")
    with pytest.raises(ReluflowError, match="is not a checkpoint"):
        descend(PROBLEM, NET, lr=1e-4, steps=10**10, save=policy, checkpoint=path)
    with pytest.raises(ReluflowError, match="does not exist: create it first"):
        descend(PROBLEM, NET, lr=1e-4, steps=10, checkpoint=tmp_path / "no" / "run.ckpt")


def test_auto_hands_over_when_cones_do_not_pay_and_says_so(plain_descent):
    """Neurons bouncing about a valley change cone at every step: dense is cheaper."""
    rng = np.random.default_rng(3)
    problem = Problem(rng.normal(size=(14, 5)), rng.choice([-1.0, 1.0], 14), loss="logistic")
    spread = initialize(problem, 4, scale=1.0, rng=0)
    W = np.repeat(spread.W, 600, axis=0) * (1 + 1e-3 * rng.normal(size=(2400, 1)))
    net = Network(W, np.repeat(spread.a, 600) / 600)
    run = descend(problem, net, lr=0.05, steps=6000, backend="auto")
    same = descend(problem, net, lr=0.05, steps=6000, backend="dense")
    assert np.max(np.abs(run.final.W - same.final.W)) < 1e-10 * np.max(np.abs(same.final.W))
    changes = run.cost.get("handover", [])
    assert run.cost["backend"] == (changes[-1][1] if changes else "lumped")


def test_zero_steps_give_the_start_back():
    run = descend(PROBLEM, NET, lr=0.1, steps=0)
    assert run.steps.tolist() == [0]
    assert np.array_equal(run.final.W, NET.W)


@pytest.mark.parametrize("backend", ["lumped", "dense"])
@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[2.0]], [1.0]),
        ([[1.0], [-1.0], [2.0]], [1.0, 0.5, -1.0]),
        ([[1.0, 0.0], [0.0, 0.0], [0.5, 1.0]], [1.0, 2.0, 0.0]),
    ],
    ids=["n=1 d=1", "d=1", "a zero sample"],
)
def test_small_and_odd_data(X, y, backend, plain_descent):
    problem = Problem(X, y)
    net = initialize(problem, 5, scale=0.3, rng=1)
    W, a = plain_descent(problem, net, np.full(500, 0.05))
    run = descend(problem, net, lr=0.05, steps=500, backend=backend)
    assert np.allclose(run.final.W, W, rtol=1e-11, atol=1e-13)
    assert np.allclose(run.final.a, a, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr": -1.0}, "lr at step 0 is -1.0: expected a finite number >= 0"),
        ({"lr": np.nan}, "lr at step 0 is nan"),
        ({"lr": [0.1, 0.2]}, r"lr has shape \(2,\): expected a number, a function of the step"),
        ({"lr": lambda step: 0.1 if step < 3 else -0.1}, "lr at step 3 is -0.1"),
        ({"steps": -1}, "steps must be a whole number >= 0, got -1"),
        ({"steps": 1.5}, "steps must be a whole number, got 1.5"),
        ({"train": "second"}, "train must be 'both' or 'first'"),
        ({"backend": "gpu"}, "backend must be one of auto, lumped, dense, got 'gpu'"),
        ({"dtype": "float16"}, "dtype must be 'float64' or 'float32'"),
        ({"dtype": "float32"}, "give backend='dense' with it"),
        ({"batch_size": 0}, "batch_size must lie between 1 and the 3 samples, got 0"),
        ({"batch_size": 4}, "batch_size must lie between 1 and the 3 samples, got 4"),
        ({"save": "often"}, "save must be a list of steps or a policy"),
        ({"save": [5, 11]}, r"save holds a step outside 0 \.\. 10"),
        ({"save": [1.5]}, "save holds a step that is not a whole number"),
        ({"save": ["x"]}, "save holds entries that are not numbers"),
        ({"observe": "weight"}, "unknown observable 'weight': expected one of outputs, norms"),
        ({"observe": ["norms", "norms"]}, "two recorded quantities are called 'norms'"),
        ({"rng": "seed"}, "rng must be a seed >= 0"),
    ],
)
def test_bad_options_are_refused_in_one_sentence(options, message):
    with pytest.raises(ReluflowError, match=message) as caught:
        descend(PROBLEM, NET, **{"lr": 0.1, "steps": 10, **options})
    assert "\n" not in str(caught.value)


def test_network_of_another_shape_is_refused():
    with pytest.raises(ReluflowError, match="W has 3 columns but X has 2 features"):
        descend(PROBLEM, Network(np.ones((2, 3)), np.ones(2)), lr=0.1, steps=1)


def test_stored_runs_come_back_whole(tmp_path):
    run = descend(
        PROBLEM,
        NET,
        lr=0.05,
        steps=500,
        save=[0, 100, 500],
        observe=["norms", "cones"],
        states=True,
    )
    run.save(tmp_path / "run.nc")
    back = Trajectory.load(tmp_path / "run.nc")
    assert np.array_equal(back.steps, run.steps)
    assert np.array_equal(back.networks[1].W, run.networks[1].W)
    assert np.array_equal(back["norms"], run["norms"])
    assert str(back.status) == str(run.status)
    assert back.settings["lr"] == "0.05"
    assert np.array_equal(back.final(PROBLEM.X), run.final(PROBLEM.X))
