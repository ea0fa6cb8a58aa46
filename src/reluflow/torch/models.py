"""Networks of the domino experiments: ResNet-18 with a 3 x 3 stem, and a small one for CPUs."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from reluflow.errors import ReluflowError


def _conv(inside: int, outside: int, size: int = 3, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inside, outside, size, stride, padding=size // 2, bias=False)


class _Block(nn.Module):
    """Two convolutions beside a shortcut (He et al. 2016, Figure 5 left)."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = _conv(inside, outside, 3, stride), nn.BatchNorm2d(outside)
        self.conv2, self.bn2 = _conv(outside, outside), nn.BatchNorm2d(outside)
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or inside != outside:
            projection = _conv(inside, outside, 1, stride)
            self.downsample = nn.Sequential(projection, nn.BatchNorm2d(outside))

    def forward(self, x: Tensor) -> Tensor:
        """relu(shortcut + residual)."""
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + self.downsample(x))


class ResNet18(nn.Module):
    """ResNet-18 for small images: the first convolution is 3 x 3 with stride 1, max-pooling stays.

    Names and shapes of parameters are those of torchvision's ``resnet18``, the stem excepted, so
    that weights go from one to the other. The law at the start is its law as well: Gaussian of
    variance 2/fan-out for convolutions; the stem, replaced in the paper's code, and ``fc`` have
    PyTorch's own.

    Parameters
    ----------
    classes : int
        Number of outputs.
    """

    n_features = 512

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.conv1, self.bn1 = _conv(3, 64), nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(_Block(64, 64, 1), _Block(64, 64, 1))
        self.layer2 = nn.Sequential(_Block(64, 128, 2), _Block(128, 128, 1))
        self.layer3 = nn.Sequential(_Block(128, 256, 2), _Block(256, 256, 1))
        self.layer4 = nn.Sequential(_Block(256, 512, 2), _Block(512, 512, 1))
        self.fc = nn.Linear(512, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d) and module is not self.conv1:
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def features(self, x: Tensor) -> Tensor:
        """What the last layer sees: averages over pixels, (n, 512)."""
        x = self.maxpool(torch.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return x.mean(dim=(2, 3))

    def forward(self, x: Tensor) -> Tensor:
        """Scores of the classes."""
        scores: Tensor = self.fc(self.features(x))
        return scores


class SmallCNN(nn.Module):
    """Three 3 x 3 convolutions of stride 2 with batch normalisation, averages, a linear layer.

    A max-pooling after the first convolution, as in ResNet-18, lets the last one see 31 x 31
    pixels, a whole digit.

    Parameters
    ----------
    width : int
        Channels of the first convolution; the others have two and four times as many.
    classes : int
        Number of outputs.
    """

    def __init__(self, width: int = 32, classes: int = 10) -> None:
        super().__init__()
        self.n_features = 4 * width
        self.body = nn.Sequential(
            _conv(3, width, 3, 2),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
            _conv(width, 2 * width, 3, 2),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
            _conv(2 * width, 4 * width, 3, 2),
            nn.BatchNorm2d(4 * width),
            nn.ReLU(),
        )
        self.fc = nn.Linear(self.n_features, classes)

    def features(self, x: Tensor) -> Tensor:
        """What the last layer sees: averages over pixels, (n, n_features)."""
        means: Tensor = self.body(x).mean(dim=(2, 3))
        return means

    def forward(self, x: Tensor) -> Tensor:
        """Scores of the classes."""
        scores: Tensor = self.fc(self.features(x))
        return scores


MODELS = {"resnet18": ResNet18, "small": SmallCNN}


def build(name: str, scale: float = 1.0, seed: int = 0, **options: int) -> nn.Module:
    """A model by name with all parameters times ``scale``; the global generator is left alone."""
    if name not in MODELS:
        raise ReluflowError(f"model must be one of {', '.join(MODELS)}, got {name!r}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = MODELS[name](**options)
    return scale_parameters(model, scale)


def scale_parameters(model: nn.Module, factor: float) -> nn.Module:
    """Multiply every parameter in place, gains and shifts of normalisation layers included.

    Parameters
    ----------
    model : torch.nn.Module
        Any model.
    factor : float
        [TK24]_ takes 2**-5. Under batch normalisation the convolutions' scale is invisible in the
        outputs; gains, shifts and the last layer carry it.

    Returns
    -------
    torch.nn.Module
        The same model.
    """
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(factor)
    return model
