"""
Small against usual weights
===========================

The same data and directions from two scales: plateaus and jumps, or a smooth fall.
"""

import matplotlib.pyplot as plt

import reluflow as rf

problem = rf.datasets.golden()
figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
for ax, scale in zip(axes, (1e-8, 1.0), strict=True):
    net = rf.initialize(problem, 30, scale=scale, rng=1)
    run = rf.flow(problem, net, t_end=60.0, save=rf.every(0.2))
    rf.plot.loss(run, ax=ax)
    ax.set_title(f"scale {scale:g}")
