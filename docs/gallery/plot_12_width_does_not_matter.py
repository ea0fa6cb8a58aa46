"""
From ten neurons to a hundred thousand
======================================

Gradient descent by cones costs hardly more for more neurons, and the curves agree.
"""

import matplotlib.pyplot as plt

import reluflow as rf

problem = rf.datasets.three_points(loss="square")
figure, ax = plt.subplots(layout="constrained")
for m in (10, 1000, 100_000):
    net = rf.initialize(problem, m, scale=1e-3, rng=0)
    run = rf.descend(problem, net, lr=1e-3, steps=20_000, save=rf.every(100))
    ax.plot(run.steps, run.loss, label=f"{m:,} neurons")
ax.set(xlabel="step", ylabel="loss", yscale="log")
ax.legend()
