"""
Watching training in PyTorch
============================

The monitor looks at any layer of a module during an ordinary training loop: do neurons align before they
grow? (Needs PyTorch.)
"""

import torch

import reluflow as rf
from reluflow.torch import Monitor

problem = rf.datasets.symmetric_xor(rng=0)
x = torch.tensor(problem.X, dtype=torch.float32)
y = torch.tensor(problem.y, dtype=torch.float32)
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(2, 60, bias=False), torch.nn.ReLU(), torch.nn.Linear(60, 1, bias=False)
)
with torch.no_grad():
    for weight in model.parameters():
        weight *= 0.01

# %%
# Five lines around the usual loop.

monitor = Monitor(model, data=(x, y), every=20)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for _ in range(2000):
    loss = torch.nn.functional.softplus(-y * model(x).squeeze(1)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    monitor.step()
print(f"loss {loss.item():.4f}")  # loss 0.0003
print(monitor)  # 101 records up to step 2000
