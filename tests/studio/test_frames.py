"""Neurons as one small matrix per cone and frame: what a reader makes of it is the run."""

import numpy as np
import pytest

import reluflow as rf
from reluflow.playback.fields import _by_angle, field_of
from reluflow.playback.frames import Packer, View, principal_axes, unpack
from reluflow.playback.messages import from_block, to_block
from reluflow.playback.recording import recording_of


def packed(run, view=None):
    packer = Packer(run.problem, view or View(None))
    for net in run.networks:
        packer.add(net)
    return packer.pack()


def assert_same_places(run, about, arrays, angle=1.1e-3, logs=4.1e-3):
    for net, (u, s) in zip(run.networks, unpack(about, arrays), strict=True):
        Z = np.column_stack([net.W, net.a])
        size = np.linalg.norm(Z, axis=1)
        assert np.abs(u - Z / size[:, None]).max() < angle
        assert np.abs(s - np.log(size) - net.log_factors).max() < logs


@pytest.mark.parametrize(
    ("name", "m", "scale"), [("three-points", 500, -14.0), ("figure1-middle", 300, -1000.0)]
)
def test_unpacked_frames_are_the_networks_of_the_run(name, m, scale):
    problem = rf.datasets.load(name)
    net = rf.initialize(problem, m, log_scale=scale, rng=0)
    rate = rf.extremal_vectors(problem).rates.max()
    end = 1.5 * -scale / rate
    run = rf.flow(problem, net, t_end=end, save=rf.every(end / 120))
    about, arrays = packed(run)
    assert_same_places(run, about, arrays)
    listed = arrays["counts"].reshape(-1, 2)[1:, 1]
    assert listed.mean() < 0.05 * m  # nearly all neurons move by matrices
    plain = len(run) * m * (problem.d + 2) * 4
    assert sum(a.nbytes for a in arrays.values()) < 0.1 * plain


def test_a_neuron_that_jumps_aside_is_listed():
    """A defect of the run, not of a cone: one neuron does something else."""
    problem = rf.datasets.three_points()
    net = rf.initialize(problem, 100, scale=1e-6, rng=0)
    run = rf.flow(problem, net, t_end=5.0, save=rf.every(1.0))
    packer = Packer(problem, View(None))
    for i, each in enumerate(run.networks):
        W = each.W.copy()
        W[17] *= 3.0 if i == 4 else 1.0
        packer.add(rf.Network(W, each.a, each.log_scale))
    about, arrays = packer.pack()
    u, _ = unpack(about, arrays)[4]
    Z = np.append(3.0 * run.networks[4].W[17], run.networks[4].a[17])
    assert u[17] == pytest.approx(Z / np.linalg.norm(Z), abs=1e-5)


def test_more_features_are_drawn_in_two_directions_and_the_rest():
    problem = rf.datasets.orthonormal(n=8)
    net = rf.initialize(problem, 30, scale=1e-3, rng=0)
    run = rf.flow(problem, net, t_end=30.0, save=rf.every(1.0))
    axes = principal_axes(problem, run.final)
    assert axes @ axes.T == pytest.approx(np.eye(2), abs=1e-12)
    about, arrays = packed(run, View(axes))
    for net, (u, s) in zip(run.networks, unpack(about, arrays), strict=True):
        W, _ = net.weights()
        w = np.linalg.norm(u[:, :3], axis=1) * np.exp(s)
        assert w == pytest.approx(np.linalg.norm(W, axis=1), rel=6e-3)
        near = u[:, :2] * np.exp(s)[:, None]
        assert np.abs(near - W @ axes.T).max() < 6e-3 * np.abs(W).max()


def test_axes_of_many_neurons_need_no_more_than_a_small_matrix():
    """A square matrix of 200,000 neurons would not fit into any memory."""
    problem = rf.datasets.three_points()
    axes = principal_axes(problem, rf.initialize(problem, 200_000, scale=1e-6, rng=0))
    assert axes @ axes.T == pytest.approx(np.eye(2), abs=1e-12)


def test_axes_are_those_of_the_output():
    problem = rf.datasets.orthonormal(n=6)
    W = np.zeros((3, 6))
    W[0, 2], W[1, 4], W[2, 5] = 3.0, 2.0, 0.01
    axes = principal_axes(problem, rf.Network(W, np.array([3.0, -2.0, 0.01])))
    assert np.abs(axes) == pytest.approx(np.eye(6)[[2, 4]], abs=1e-3)


@pytest.mark.parametrize("leak", [0.0, 0.2])
def test_f_by_angles_is_f(leak):
    problem = rf.datasets.three_points().replace(leak=leak)
    net = rf.initialize(problem, 3000, scale=1.0, rng=1)
    places = field_of(problem).places
    angles = np.linspace(-np.pi, np.pi, 97)
    places = np.vstack([places, np.column_stack([np.cos(angles), np.sin(angles)])])
    assert _by_angle(net, places) == pytest.approx(net.evaluate(places, leak), abs=1e-12)


def test_the_recording_of_a_run_has_its_losses_and_outputs():
    problem = rf.datasets.toy6()
    net = rf.initialize(problem, 20, scale=1e-3, rng=0)
    run = rf.flow(problem, net, t_end=40.0, save=rf.every(0.5))
    made = recording_of(run, most=40)
    assert made.arrays["loss"][-1] == run.loss[-1]
    outputs = made.arrays["outputs"].reshape(len(made.arrays["times"]), problem.n)
    assert outputs[-1] == pytest.approx(problem.outputs(run.final), rel=1e-6)
    side = made.about["field"]["side"]
    f = made.arrays["field"].reshape(-1, side * side)[-1]
    time = made.arrays["times"][made.arrays["field_at"][-1]]
    last = run.networks[int(np.flatnonzero(run.times == time)[0])]
    assert f == pytest.approx(last.evaluate(field_of(problem).places, 0.0), rel=1e-5, abs=1e-6)


def test_messages_come_back_as_they_were():
    arrays = {
        "a": np.arange(5, dtype=np.uint32),
        "b": np.array([[1.5, np.inf]]),
        "c": np.empty(0, np.float32),
    }
    message, found = from_block(to_block({"type": "x", "n": np.nan, "é": [1]}, arrays))
    assert message == {"type": "x", "n": None, "é": [1]}
    assert [v.tolist() for v in found.values()] == [[0, 1, 2, 3, 4], [1.5, np.inf], []]


@pytest.mark.parametrize(
    "block", [b"", b"abc", b"\xff\xff\xff\xff", b"\x02\0\0\0[]", b"\x02\0\0\0{}"]
)
def test_bytes_that_are_no_message_are_refused(block):
    with pytest.raises(ValueError, match=r"block|header|JSON|Expecting|decode"):
        from_block(block)
