"""The monitor measures what it says, and leaves the training alone."""

import numpy as np
import pytest

pytest.importorskip("torch.nn", reason="needs torch: pip install 'reluflow[torch]'")
import torch
from torch import nn

from reluflow import Network, Problem, ReluflowError, extremal_vectors
from reluflow.landscape.alignment import D
from reluflow.torch import Monitor, to_torch
from reluflow.torch.extremal import extremal_directions
from reluflow.torch.view import clusters, condensation


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 6, 3, 2),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.Conv2d(6, 5, 3),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Flatten(),
        nn.Linear(5 * 9, 3),
    )


def images(n=40):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(n, 1, 12, 12, generator=generator), torch.arange(n) % 3


def train(model, data, monitor=None, steps=12):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for k in range(steps):
        rows = slice(10 * (k % 4), 10 * (k % 4) + 10)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(data[0][rows]), data[1][rows])
        loss.backward()
        optimizer.step()
        if monitor:
            monitor.step(loss.detach())
    return model.state_dict()


def test_training_is_the_same_with_a_monitor():
    data = images()
    torch.manual_seed(0)
    bare = train(cnn(), data)
    torch.manual_seed(0)
    model = cnn()
    monitor = Monitor(model, data, every=1)
    watched = train(model, data, monitor)
    assert len(monitor.records) == 13
    for name, value in bare.items():
        assert torch.equal(value, watched[name]), name
    assert model.training
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_what_is_recorded_of_a_network_of_convolutions():
    torch.manual_seed(0)
    model, data = cnn(), images()
    monitor = Monitor(model, data, every=3)
    train(model, data, monitor)
    assert list(monitor.steps) == [0, 3, 6, 9, 12]
    assert [layer.name for layer in monitor.layers] == ["0", "3", "7"]
    assert np.array_equal(monitor[1, "norms"], monitor["3", "norms"])
    with pytest.raises(ReluflowError, match="no layer 3: watched are 0, 3, 7"):
        monitor[3, "norms"]
    weight, bias = model[0].weight.detach(), model[0].bias.detach()
    neurons = torch.cat([weight.flatten(1), bias[:, None]], 1)
    assert np.allclose(monitor["0", "norms"][-1], neurons.norm(dim=1))
    assert np.allclose(
        monitor["0", "directions"][-1], neurons / neurons.norm(dim=1, keepdim=True), atol=1e-6
    )
    leaving = model[3].weight.detach().square().sum(dim=(0, 2, 3))
    inside = neurons.square().sum(1)
    assert np.allclose(
        monitor["0", "balance"][-1], (inside - leaving) / (inside + leaving), atol=1e-5
    )
    blocks = model[7].weight.detach().reshape(3, 5, 9).square().sum(dim=(0, 2))
    inside = model[3].weight.detach().flatten(1).square().sum(1) + model[3].bias.detach() ** 2
    assert np.allclose(
        monitor["3", "balance"][-1], (inside - blocks) / (inside + blocks), atol=1e-5
    )
    with pytest.raises(ReluflowError, match="not recorded of 7"):
        monitor["7", "balance"]
    exact = weight.flatten(1).square().sum() / torch.linalg.matrix_norm(weight.flatten(1), 2) ** 2
    assert monitor["0", "stable_rank"][-1] == pytest.approx(float(exact), rel=0.1)
    assert monitor["0", "stable_rank"][-1] >= float(exact) * (1 - 1e-5)
    model.eval()
    with torch.no_grad():
        scores = model(data[0])
    right = scores[torch.arange(40), data[1]]
    other = scores.scatter(1, data[1][:, None], -torch.inf).amax(1)
    assert monitor["margin"][-1] == pytest.approx(float((right - other).min()), abs=1e-5)
    assert monitor["loss"][-1] == pytest.approx(
        float(nn.functional.cross_entropy(scores, data[1])), rel=1e-4
    )
    assert np.isfinite(monitor["batch_loss"][1:]).all()
    assert monitor["0", "alignment"].shape == (5, 6)
    assert (np.abs(monitor["3", "alignment"]) <= 1 + 1e-6).all()
    with pytest.raises(ReluflowError, match="the last layer"):
        monitor["7", "alignment"]


@pytest.fixture(name="two_layer")
def _two_layer():
    rng = np.random.default_rng(5)
    problem = Problem(rng.normal(size=(12, 2)), np.sign(rng.normal(size=12)), loss="logistic")
    data = (torch.from_numpy(np.array(problem.X)), torch.from_numpy(np.array(problem.y)))
    return problem, data


def test_cosine_with_the_gradient_is_one_exactly_at_extremal_vectors(two_layer):
    """The gradient of a small neuron is a_j D(w_j): parallel to w where w is extremal."""
    problem, data = two_layer
    found = extremal_vectors(problem)
    keep = [i for i, k in enumerate(found.kinds) if k in ("max", "min") and not found.faces[i]]
    assert keep
    W = np.vstack([found.vectors[keep], [[0.6, 0.8]]])
    a = np.append(np.sign(found.values[keep]), 1.0)
    net = Network(1e-6 * W, 1e-6 * a)
    monitor = Monitor(to_torch(net), data)
    cosine = monitor["0", "gradient_cosine"][0]
    assert np.allclose(cosine[:-1], 1.0, atol=1e-5)
    gradient = D(problem, W[-1])
    assert cosine[-1] == pytest.approx(W[-1] @ gradient / np.linalg.norm(gradient), abs=1e-5)
    assert np.allclose(monitor["0", "alignment"][0, :-1], 1.0, atol=1e-6)
    assert monitor["loss"][0] == pytest.approx(np.log(2), abs=1e-6)


def test_one_output_asks_the_landscape(two_layer):
    problem, _ = two_layer
    found = extremal_directions(problem.X, problem.pull[:, None])
    known = extremal_vectors(problem)
    strict = [i for i, k in enumerate(known.kinds) if k in ("max", "min") and known.values[i] != 0]
    strict = [i for i in strict if (known.kinds[i] == "max") == (known.values[i] > 0)]
    assert found.exact
    assert len(found) == len(strict)
    assert np.allclose(np.sort(found.rates), np.sort(np.abs(known.values[strict])))
    assert np.max(found.residuals) < 1e-6


def test_several_outputs_reduce_to_one_and_are_critical():
    """Pulls (c, 0) and (c, -c) lead to the directions of c; found ends are critical points."""
    rng = np.random.default_rng(2)
    X, c = rng.normal(size=(30, 3)), rng.normal(size=30)
    single = extremal_directions(X, c[:, None])
    for P, factor in ((np.stack([c, 0 * c], 1), 1.0), (np.stack([c, -c], 1), np.sqrt(2))):
        found = extremal_directions(X, P, iterations=2000)
        assert found.rates[0] == pytest.approx(factor * single.rates[0], rel=1e-3)
        assert single.nearest(found.vectors[:1])[0] > 0.999
    P = rng.normal(size=(30, 4))
    found = extremal_directions(X, P, iterations=2000)
    assert len(found) >= 1
    drawn = rng.normal(size=(5000, 3))
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    rates = np.linalg.norm(np.maximum(drawn @ X.T, 0) @ P, axis=1)
    assert found.rates[0] >= rates.max() * (1 - 1e-4)
    with pytest.raises(ReluflowError, match=r"expected \(n, d\) and \(n, C\)"):
        extremal_directions(X, c)


def test_small_weights_align_before_they_grow():
    """Two classes in the plane: a small start aligns while its norms are still small."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) + 1.5 * np.repeat([[1, 0], [-1, 0.5], [0, -1]], 20, axis=0)
    data = (torch.from_numpy(X).float(), torch.arange(60) // 20)
    share = {}
    for scale in (1e-3, 1.0):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(2, 30, bias=False), nn.ReLU(), nn.Linear(30, 3, bias=False))
        with torch.no_grad():
            for p in model.parameters():
                p.mul_(scale)
        monitor = Monitor(model, data, every=5)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
        for _ in range(150):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(data[0]), data[1]).backward()
            optimizer.step()
            monitor.step()
        size = monitor["0", "frobenius"]
        early = size < 0.1 * size[-1]
        aligned = (monitor["0", "alignment"] > 0.98).mean(axis=1)
        share[scale] = aligned[early].max() if early.any() else 0.0
    assert share[1e-3] > 0.7
    assert share[1.0] < 0.3


def test_defaults_record_early_and_within_their_budget():
    model, data = cnn(), images()
    monitor = Monitor(model, data)
    train(model, data, monitor, steps=60)
    assert monitor.steps[0] == 0
    assert len(monitor.records) < 40
    assert (np.diff(monitor.steps) > 0).all()


def test_without_data_the_gradients_of_the_loop_are_used():
    model, data = cnn(), images()
    monitor = Monitor(model, every=4)
    train(model, data, monitor)
    assert np.isnan(monitor["0", "gradient_cosine"][0]).all()
    assert np.isfinite(monitor["0", "gradient_cosine"][1:]).all()
    with pytest.raises(ReluflowError, match="data="):
        monitor["0", "alignment"]
    with pytest.raises(ReluflowError, match="nothing called 'margin'"):
        monitor["margin"]


class Scalars:
    def __init__(self):
        self.seen = {}

    def add_scalar(self, name, value, step):
        self.seen[name, step] = value


def test_files_and_writers(tmp_path):
    model, data, writer = cnn(), images(), Scalars()
    monitor = Monitor(model, data, every=6, writer=writer)
    train(model, data, monitor)
    assert writer.seen["model/margin", 12] == pytest.approx(monitor["margin"][-1])
    assert writer.seen["0/norms", 6] == pytest.approx(monitor["0", "norms"][1].mean())
    with np.load(monitor.save(tmp_path / "m.npz"), allow_pickle=False) as stored:
        assert np.array_equal(stored["3/norms"], monitor["3", "norms"])
        assert list(stored["step"]) == [0, 6, 12]
    assert monitor.plot(tmp_path / "m.png").stat().st_size > 20_000
    with pytest.raises(ReluflowError, match=r"expected a \.png"):
        monitor.plot(tmp_path / "m.txt")


def test_tensorboard_is_asked_for_only_if_wanted(tmp_path):
    try:
        import tensorboard  # noqa: F401
    except ImportError:
        with pytest.raises(ReluflowError, match="pip install tensorboard"):
            Monitor(cnn(), writer=tmp_path / "runs")
    else:
        Monitor(cnn(), writer=tmp_path / "runs")
        assert list((tmp_path / "runs").iterdir())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layers": ["9"]}, "no layer '9'"),
        ({"every": 0}, "every must be"),
        ({"budget": 0.0}, "budget is a share"),
        ({"data": (torch.ones(3, 2), torch.ones(4))}, "3 inputs and 4 labels"),
        ({"data": (torch.ones(3, 5), torch.ones(3).long())}, "does not take"),
    ],
)
def test_bad_input(change, message):
    with pytest.raises(ReluflowError, match=message):
        Monitor(cnn(), **change)


def test_condensation_and_clusters():
    line = np.array([[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0]])
    assert condensation(line, np.ones(3)) == pytest.approx(1.0)
    assert clusters(line, np.ones(3)) == 2
    assert condensation(np.eye(4), np.ones(4)) == pytest.approx(0.25)
    assert clusters(np.eye(4), np.array([1.0, 1.0, 1.0, 1e-3])) == 3
    assert np.isnan(condensation(np.eye(2), np.zeros(2)))
