"""Alignment before growth: an MLP and a CNN on MNIST, from small and from usual weights.

Needs PyTorch and the MNIST files: RELUFLOW_DATA=folder python examples/monitor_mnist.py
"""

import matplotlib.pyplot as plt
import torch
from torch import nn

from reluflow.torch import Monitor, mnist_images, scale_parameters

images, labels = (torch.from_numpy(part.copy()).long() for part in mnist_images())
x, y = (images[:8192, None] / 255 - 0.1307) / 0.3081, labels[:8192]
make = {
    "MLP": lambda: nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10)),
    "CNN": lambda: nn.Sequential(nn.Conv2d(1, 32, 5, 2), nn.ReLU(), nn.Flatten(), nn.Linear(4608, 10)),
}  # fmt: skip
figure, axes = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
for row, (name, build) in zip(axes, make.items(), strict=True):
    for ax, scale in zip(row, (1e-3, 1.0), strict=True):
        torch.manual_seed(0)
        model = scale_parameters(build(), scale)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
        monitor = Monitor(model, data=(x, y), every=5, samples=512)
        for step in range(600):
            batch = torch.randint(len(x), (64,))
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
            optimizer.step()
            monitor.step()
        layer = monitor.layers[0].name
        size = monitor[layer, "frobenius"]
        ax.plot(monitor.steps, monitor[layer, "alignment"].mean(1), label="alignment (mean cosine)")
        ax.plot(monitor.steps, monitor[layer, "gradient_cosine"].mean(1), label="cosine with own -gradient")
        ax.plot(monitor.steps, size / size.max(), label="norm of the layer / largest")
        ax.set(title=f"{name}, weights x {scale:g}", xlabel="step", ylim=(-0.1, 1.05))
        print(name, scale, monitor["loss"][[0, -1]], monitor[layer,"alignment"].mean(1)[::12].round(2), (size/size.max())[::12].round(2), len(monitor.view.extremal(layer)), monitor.view.extremal(layer).residuals.max(), monitor.overhead)
axes[0, 0].legend()
figure.savefig("monitor_mnist.png")
