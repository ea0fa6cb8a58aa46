"""Gradient flow beside a training loop in PyTorch from the same weights (about 5 s)."""

import numpy as np
import torch

from reluflow import datasets, every, flow, initialize, plot
from reluflow.torch import to_torch

problem = datasets.three_points()
net = initialize(problem, 50, scale=1e-2, rng=0)
run = flow(problem, net, t_end=20.0, save=every(0.1))

model, lr, losses = to_torch(net), 0.05, []
x, y = torch.tensor(problem.X), torch.tensor(problem.y)
optimizer = torch.optim.SGD(model.parameters(), lr=lr)
for _ in range(400):  # one step of size lr is time lr
    optimizer.zero_grad()
    loss = 0.5 * (model(x)[:, 0] - y).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
ax = plot.loss(run)
ax.plot(lr * np.arange(400), losses, "--", color="gray", label="PyTorch, step size 0.05")
ax.legend()
ax.figure.savefig("flow_beside_pytorch.png")
