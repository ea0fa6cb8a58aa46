"""Neurons over time in the plane: they turn first, then grow where they point (about 5 s)."""

import matplotlib.pyplot as plt

from reluflow import datasets, every, flow, initialize, plot

problem = datasets.three_points()
net = initialize(problem, 60, scale=1e-3, rng=0)
run = flow(problem, net, t_end=30.0, save=every(0.5))

figure = plt.figure(figsize=(8, 9), layout="constrained")
for place, t in enumerate((0.0, 6.0, 12.0), start=1):
    ax = figure.add_subplot(2, 2, place, projection="polar")
    plot.neurons(run.at(t), problem, legend=False, ax=ax).set_title(f"time {t:g}")
ax = figure.add_subplot(2, 2, 4, projection="polar")
plot.neurons(run, ax=ax).set_title("paths to the end")
figure.savefig("neurons_in_the_plane.png")
