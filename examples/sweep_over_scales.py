"""Smaller weights, fewer directions: the three points from seven scales (about 10 s)."""

import matplotlib.pyplot as plt

from reluflow import datasets, flow, geometric, initialize, phases, plot

problem = datasets.three_points()
scales = [1.0, 0.3, 0.1, 1e-2, 1e-3, 1e-5, 1e-8]
figure, axes = plt.subplots(2, 4, figsize=(14, 6), layout="constrained")
for ax, scale in zip(axes.flat, scales, strict=False):
    net = initialize(problem, 100, scale=scale, rng=0)
    run = flow(problem, net, t_end=200.0, save=geometric(1.2, first=0.1))
    plot.function(run, ax=ax).set_title(f"scale {scale:g}, loss {run.loss[-1]:.4f}")
    print(f"{scale:g}: loss {run.loss[-1]:.6f}, {len(phases(run).jumps)} jumps")
axes.flat[-1].set_axis_off()
figure.savefig("sweep_over_scales.png")
