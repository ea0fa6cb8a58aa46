"""The PyTorch side as a user meets it: models that take the data at hand, monitors that speak."""

import numpy as np
import pytest

pytest.importorskip("torch.nn", reason="needs torch: pip install 'reluflow[torch]'")
import torch
from torch import nn

from reluflow import ReluflowError, datasets, descend, initialize
from reluflow.torch import Monitor, from_torch, to_torch

LINE = datasets.three_points()


def test_a_model_takes_features_with_and_without_the_constant():
    net = initialize(LINE, 7, scale=1.0, rng=0)
    model = to_torch(net)
    expected = net(LINE.X)
    for given in (LINE.X, LINE.X[:, :1], torch.from_numpy(np.array(LINE.X))):
        assert np.allclose(model(given).detach().numpy()[:, 0], expected, rtol=1e-13)
    with pytest.raises(ReluflowError, match="the last is not the constant 1"):
        model(np.array([[1.0, 2.0]]))
    with pytest.raises(ReluflowError, match="x has 3 columns: expected 1 features, or 2 with"):
        model(np.ones((2, 3)))
    with pytest.raises(ReluflowError, match="net must be a Network"):
        to_torch(model)


def test_training_it_is_our_descent():
    net = initialize(LINE, 5, scale=0.5, rng=0)
    model = to_torch(net)
    x, y = (torch.from_numpy(np.array(part)) for part in (LINE.X, LINE.y))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(20):
        optimizer.zero_grad()
        (0.5 * (model(x)[:, 0] - y).square().mean()).backward()
        optimizer.step()
    ours = descend(LINE, net, lr=0.05, steps=20).final
    assert np.allclose(from_torch(model).W, ours.weights()[0], rtol=1e-10)


def data(n=64, d=6):
    torch.manual_seed(0)
    x = torch.randn(n, d)
    return x, (x[:, 0] > 0).long()


def train(model, monitor, optimizer, steps=60):
    x, y = data()
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        monitor.step(loss)


def small_model(scale=1e-2):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(scale)
    return model


OPTIMISERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.5),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "Adam": lambda p: torch.optim.Adam(p, lr=1e-2),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=1e-2),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=1e-3),
}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_a_monitor_speaks_whatever_the_optimiser(name):
    model = small_model()
    monitor = Monitor(model, data=data(), every=5)
    train(model, monitor, OPTIMISERS[name](model.parameters()))
    said = monitor.summary()
    first, last = monitor["loss"][[0, -1]]
    assert last < first
    assert f"from {first:.4g} to {last:.4g}" in said
    assert "0, Linear 6 to 16: median norm from" in said
    assert "Records took" in said
    assert " directions left at the end." in said or "one direction left" in said
    assert repr(monitor).startswith("Monitor(13 records up to step 60, loss ")
    assert "overhead" in repr(monitor)


def test_panels_go_by_path_kind_and_width_and_show_the_loss():
    model = nn.Sequential()
    model.add_module("body", nn.Sequential(nn.Linear(6, 8), nn.ReLU()))
    model.add_module("head", nn.Linear(8, 2))
    monitor = Monitor(model, data=data(), every=10)
    train(model, monitor, torch.optim.SGD(model.parameters(), lr=0.1), steps=30)
    titles = [panel.title for panel in monitor.view.picture().panels]
    assert "body.0, Linear 6 to 8: norms of neurons" in titles
    assert "head, Linear 8 to 2: alignment" in titles
    assert titles[-2:] == ["loss", "margins on the data"]
    loss = monitor.view.picture().panels[-2].traces
    assert np.array_equal(loss[0].y, monitor["loss"])
    assert [trace.label for trace in loss] == ["monitor's data", "loop's batches"]
    assert len(monitor.plot().axes) == 10


def test_small_weights_align_before_they_grow():
    model = small_model(1e-3)
    monitor = Monitor(model, data=data(), every=2)
    train(model, monitor, torch.optim.SGD(model.parameters(), lr=0.5), steps=200)
    assert "alignment came before growth" in monitor.view.sentences()[2]


def test_a_compiled_model_is_watched_as_the_one_it_was_made_of():
    plain, other = small_model(), small_model()
    compiled = torch.compile(other, backend="aot_eager")
    watched = {}
    for name, model in (("plain", plain), ("compiled", compiled)):
        watched[name] = Monitor(model, data=data(), every=10)
        train(model, watched[name], torch.optim.SGD(model.parameters(), lr=0.5), steps=30)
    one, two = watched["plain"], watched["compiled"]
    assert two.view.layers == ["0", "2"]
    assert np.allclose(one["loss"], two["loss"], rtol=1e-5)
    assert np.allclose(one[0, "alignment"], two[0, "alignment"], atol=1e-4)


def test_what_is_no_model_is_refused():
    with pytest.raises(ReluflowError, match=r"model must be a torch\.nn\.Module, got int"):
        Monitor(3)
