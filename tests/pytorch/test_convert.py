"""Two-layer models go both ways, and their gradients are ours."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch.nn", reason="needs torch: pip install 'reluflow[torch]'")
import torch
from torch import nn

from reluflow import Network, Problem, ReluflowError, descend
from reluflow.torch import from_torch, to_torch


@given(
    st.integers(1, 6),
    st.integers(1, 5),
    st.sampled_from([0.0, 0.1, 0.5]),
    st.sampled_from([None, 1.0, 2.0]),
    st.integers(0, 99),
)
def test_round_trip_is_exact(m, d, leak, bias, seed):
    rng = np.random.default_rng(seed)
    wide = d + (bias is not None)
    net = Network(rng.normal(size=(m, wide)), rng.normal(size=m), leak=leak, bias=bias)
    model = to_torch(net)
    back = from_torch(model, bias=bias or 1.0)
    assert np.array_equal(back.W, net.W)
    assert np.array_equal(back.a, net.a)
    assert (back.leak, back.bias) == (leak, bias)
    X = rng.normal(size=(7, d))
    outputs = model(torch.from_numpy(X)).detach().numpy()[:, 0]
    assert np.allclose(outputs, net(X), rtol=1e-12, atol=1e-12)


def test_model_to_network_and_back_in_float32():
    model = nn.Sequential(nn.Flatten(), nn.Linear(12, 5), nn.LeakyReLU(0.2), nn.Linear(5, 1, False))
    again = to_torch(from_torch(model), dtype=torch.float32)
    for name, value in model.state_dict().items():
        number, part = name.split(".")
        assert torch.equal(value, again.state_dict()[f"{int(number) - 1}.{part}"])


@pytest.mark.parametrize("loss", ["half_square", "logistic", "exponential"])
@pytest.mark.parametrize("leak", [0.0, 0.3])
def test_gradients_are_ours(loss, leak):
    rng = np.random.default_rng(3)
    problem = Problem(rng.normal(size=(9, 3)), np.sign(rng.normal(size=9)), loss=loss, leak=leak)
    net = Network(rng.normal(size=(4, 3)), rng.normal(size=4), leak=leak)
    model = to_torch(net)
    f = model(torch.from_numpy(np.array(problem.X)))[:, 0]
    y = torch.from_numpy(np.array(problem.y))
    value = {
        "half_square": lambda: 0.5 * (f - y).square().mean(),
        "logistic": lambda: nn.functional.softplus(-y * f).mean(),
        "exponential": lambda: torch.exp(-y * f).mean(),
    }[loss]()
    value.backward()
    assert value.item() == pytest.approx(problem.value(net(problem.X)), rel=1e-12)
    step = descend(problem, net, lr=1.0, steps=1, backend="dense").final
    W, a = step.weights()
    assert np.allclose(model[0].weight.grad.numpy(), net.W - W, rtol=0, atol=1e-12)
    assert np.allclose(model[2].weight.grad.numpy()[0], net.a - a, rtol=0, atol=1e-12)


def test_one_of_several_outputs():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2, bias=False)).double()
    X = np.random.default_rng(0).normal(size=(5, 3))
    net = from_torch(model, output=1)
    assert np.allclose(net(X), model(torch.from_numpy(X)).detach().numpy()[:, 1], atol=1e-14)
    with pytest.raises(ReluflowError, match="choose one with output="):
        from_torch(model)
    with pytest.raises(ReluflowError, match="output 5 does not exist"):
        from_torch(model, output=5)


class Functional(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(3, 4, bias=False), nn.Linear(4, 1, bias=False)

    def forward(self, x):
        return self.outer(torch.relu(self.inner(x)))


def test_activation_as_a_function():
    model = Functional().double()
    X = np.random.default_rng(0).normal(size=(5, 3))
    assert np.allclose(
        from_torch(model, leak=0.0)(X), model(torch.from_numpy(X)).detach().numpy()[:, 0]
    )
    with pytest.raises(ReluflowError, match="give leak="):
        from_torch(model)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (nn.Linear(3, 1), "not a two-layer network"),
        (nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1, bias=False)), "Tanh"),
        (
            nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.BatchNorm1d(4), nn.Linear(4, 1)),
            "BatchNorm",
        ),
        (nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)), "bias of"),
    ],
)
def test_other_models_are_refused(model, message):
    with pytest.raises(ReluflowError, match=message):
        from_torch(model)


def test_weights_that_floats_cannot_hold():
    net = Network(np.ones((1, 2)), np.ones(1), log_scale=-1000.0)
    with pytest.raises(ReluflowError, match="do not fit"):
        to_torch(net)
