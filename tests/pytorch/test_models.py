"""ResNet-18 parameter by parameter, training that survives a kill."""

import json
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

pytest.importorskip("torch.nn", reason="needs torch: pip install 'reluflow[torch]'")
import torch

from reluflow import ReluflowError
from reluflow.torch import Recipe, ResNet18, SmallCNN, dominoes, train
from reluflow.torch.models import build
from reluflow.torch.training import Batches, device_of, extract


def published_resnet18():
    """Shapes of torchvision's resnet18 with ten classes, its stem being 3 x 3."""
    shapes = {"conv1.weight": (64, 3, 3, 3), "bn1.weight": (64,), "bn1.bias": (64,)}
    inside = 64
    for k, outside in enumerate((64, 128, 256, 512), start=1):
        for b in (0, 1):
            block = f"layer{k}.{b}"
            shapes[f"{block}.conv1.weight"] = (outside, inside, 3, 3)
            shapes[f"{block}.conv2.weight"] = (outside, outside, 3, 3)
            for bn in ("bn1", "bn2"):
                shapes[f"{block}.{bn}.weight"] = shapes[f"{block}.{bn}.bias"] = (outside,)
            if b == 0 and k > 1:
                shapes[f"{block}.downsample.0.weight"] = (outside, inside, 1, 1)
                shapes[f"{block}.downsample.1.weight"] = (outside,)
                shapes[f"{block}.downsample.1.bias"] = (outside,)
            inside = outside
    return {**shapes, "fc.weight": (10, 512), "fc.bias": (10,)}


def test_resnet18_is_the_published_one():
    """11,689,512 parameters with 1000 classes and a 7 x 7 stem; 62 tensors."""
    model = ResNet18()
    found = {name: tuple(p.shape) for name, p in model.named_parameters()}
    assert found == published_resnet18()
    assert len(found) == 62
    count = sum(p.numel() for p in model.parameters())
    assert count + 64 * 3 * (49 - 9) + 990 * 513 == 11_689_512
    strides = [m.stride[0] for m in model.modules() if isinstance(m, torch.nn.Conv2d)]
    assert strides == [1, *[1] * 4, 2, 1, 2, 1, 1, 2, 1, 2, 1, 1, 2, 1, 2, 1, 1]
    with torch.no_grad():
        model.eval()
        x = torch.randn(2, 3, 64, 32)
        assert model.features(x).shape == (2, 512)
        assert torch.allclose(model(x), model.fc(model.features(x)))
        maps = model.layer1(model.maxpool(torch.relu(model.bn1(model.conv1(x)))))
        assert maps.shape == (2, 64, 32, 16)  # only the pooling halves the image before layer2


def test_a_block_adds_its_shortcut():
    model = ResNet18().eval()
    block = model.layer1[1]
    x = torch.randn(1, 64, 8, 8)
    with torch.no_grad():
        block.bn2.weight.zero_()
        assert torch.allclose(block(x), torch.relu(x))


def test_scale_reaches_normalisation_layers_too():
    small, usual = build("small", 2.0**-5, 3, width=4), build("small", 1.0, 3, width=4)
    for p, q in zip(small.parameters(), usual.parameters(), strict=True):
        assert torch.equal(p * 32, q)
    assert torch.equal(small.body[1].weight, torch.full((4,), 2.0**-5))
    before = torch.random.get_rng_state()
    build("small", 1.0, 0, width=4)
    assert torch.equal(torch.random.get_rng_state(), before)
    with pytest.raises(ReluflowError, match="model must be one of"):
        build("resnet50")


def test_rate_warms_up_and_falls_to_zero():
    recipe = Recipe(epochs=10, lr=0.125)
    rates = [recipe.rate(step, 80) for step in range(81)]
    assert rates[0] == 0
    assert rates[10] == pytest.approx(0.125)
    assert max(rates) == pytest.approx(0.125)
    assert rates[80] == 0
    assert rates[45] == pytest.approx(0.0625)


def test_batches_are_the_normalised_images(folder):
    part = dominoes(folder).validation
    data = Batches(part, "objects", device_of("cpu"))
    x = data.normalized(data.images)
    assert np.allclose(x.numpy(), part.normalized(), atol=1e-6)
    rows = torch.arange(len(part))
    generator = torch.Generator().manual_seed(0)
    mirrored = data.draw(rows, Recipe(), generator)
    same = (mirrored == x).all(dim=(1, 2, 3))
    assert 20 < int(same.sum()) < 80
    assert torch.equal(mirrored[~same], x.flip(3)[~same])
    alone = Batches(dominoes(folder, digits=False).validation, "objects", device_of("cpu"))
    x = alone.normalized(alone.images)
    moved = alone.draw(rows, Recipe(flip=False, crop=4), generator)[:, :, 4:-4, 4:-4]
    places = [(r, c) for r in range(9) for c in range(9)]
    for i in range(5):
        parts = (x[i, :, r : r + 24, c : c + 24] for r, c in places)
        assert sum(torch.equal(moved[i], part) for part in parts) == 1
    with pytest.raises(ReluflowError, match="labels must be"):
        Batches(part, "class", device_of("cpu"))
    with pytest.raises(ReluflowError, match="cannot be used here"):
        device_of("warp")


SMALL = Recipe(epochs=6, batch=50, lr=0.1)


def test_training_learns_and_goes_on_where_it_stopped(folder, tmp_path):
    data = dominoes(folder)
    whole = build("small", 1.0, 0, width=4)
    seen = []

    def look(epoch, model):
        seen.append(epoch)
        return {
            "validation": float(
                (extract(model, data.validation)[1].argmax(1) == data.validation.objects).mean()
            )
        }

    records = train(whole, data.train, SMALL, look=look, look_at=(0, 3, 6), device="cpu")
    assert seen == [0, 3, 6]
    assert records[-1]["right"] > 0.5
    assert records[6]["validation"] > 0.5 > records[0]["validation"]
    part = build("small", 1.0, 0, width=4)
    path = tmp_path / "state.npz"
    first = train(
        part,
        data.train,
        SMALL,
        look=look,
        look_at=(0, 3, 6),
        device="cpu",
        checkpoint=path,
        until=4,
    )
    assert len(first) == 5
    fresh = build("small", 1.0, 0, width=4)  # as a new process would
    again = train(
        fresh, data.train, SMALL, look=look, look_at=(0, 3, 6), device="cpu", checkpoint=path
    )
    assert again == records
    for (name, a), b in zip(whole.state_dict().items(), fresh.state_dict().values(), strict=True):
        assert torch.equal(a, b), name
    with pytest.raises(ReluflowError, match="other data, weights or settings"):
        train(build("small", 1.0, 1, width=4), data.train, SMALL, device="cpu", checkpoint=path)


SCRIPT = """
import json, os, signal, sys
import torch
torch.set_num_threads(1)
from reluflow.torch import Recipe, dominoes, train
from reluflow.torch.models import build
folder, state, kill = sys.argv[1], sys.argv[2], int(sys.argv[3])
def look(epoch, model):
    if epoch == kill:
        os.kill(os.getpid(), signal.SIGKILL)
    return {}
model = build("small", 2.0 ** -3, 0, width=4)
records = train(model, dominoes(folder).train, Recipe(epochs=4, batch=50), look=look,
                look_at=range(5), device="cpu", checkpoint=state)
print(json.dumps([records, [float(p.detach().double().sum()) for p in model.parameters()]]))
"""


def test_a_killed_run_ends_with_the_same_numbers(folder, tmp_path):
    def run(state, kill):
        arguments = [
            sys.executable,
            "-c",
            textwrap.dedent(SCRIPT),
            str(folder),
            str(state),
            str(kill),
        ]
        return subprocess.run(arguments, capture_output=True, text=True, check=False)

    assert run(tmp_path / "a.npz", 3).returncode == -signal.SIGKILL
    resumed = run(tmp_path / "a.npz", -1)
    assert resumed.returncode == 0, resumed.stderr
    model = build("small", 2.0**-3, 0, width=4)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as in the script: sums have an order
    records = train(
        model,
        dominoes(folder).train,
        Recipe(epochs=4, batch=50),
        look=lambda *_: {},
        look_at=range(5),
        device="cpu",
    )
    torch.set_num_threads(threads)
    sums = [float(p.detach().double().sum()) for p in model.parameters()]
    assert json.loads(resumed.stdout) == [records, sums]


def test_features_are_what_the_last_layer_sees(folder):
    part = dominoes(folder).validation
    model = SmallCNN(width=4)
    features, scores = extract(model, part)
    assert features.shape == (100, 16)
    assert model.training
    last = features @ model.fc.weight.detach().numpy().T + model.fc.bias.detach().numpy()
    assert np.allclose(last, scores, atol=1e-5)
