"""Alignment before growth: an MLP and a CNN on MNIST, from small and from usual weights.

Needs PyTorch and MNIST: RELUFLOW_DATA=folder python examples/monitor_mnist.py (about a minute).
"""

import matplotlib.pyplot as plt
import torch
from torch import nn

from reluflow.torch import Monitor, mnist_images, scale_parameters

images, y = (torch.from_numpy(part[:8192].copy()).long() for part in mnist_images())
x = (images[:, None] / 255 - 0.1307) / 0.3081
layers = {
    "MLP": lambda: [nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10)],
    "CNN": lambda: [nn.Conv2d(1, 32, 5, 2), nn.ReLU(), nn.Flatten(), nn.Linear(4608, 10)],
}
figure, axes = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
for ax, (name, scale) in zip(axes.flat, [(n, s) for n in layers for s in (1e-5, 1.0)], strict=True):
    torch.manual_seed(0)
    model = scale_parameters(nn.Sequential(*layers[name]()), scale)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    monitor = Monitor(model, data=(x, y), every=10, samples=1024)
    for rows in torch.randint(len(x), (500, 64)):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
        monitor.step()
    ax.plot(monitor.steps, monitor[0, "alignment"].mean(axis=1), label="alignment")
    norm = monitor[0, "frobenius"] / monitor[0, "frobenius"].max()
    ax.plot(monitor.steps, norm, "--", label="norm of the layer, over its largest")
    ax.set(title=f"{name}, weights times {scale:g}", xlabel="step", ylim=(0, 1.05))
axes[0, 1].legend(loc="center")
figure.savefig("monitor_mnist.png")
