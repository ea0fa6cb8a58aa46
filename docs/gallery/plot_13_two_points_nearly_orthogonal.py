"""
Two points, at a right angle less a small one
=============================================

Points that are closer to each other pull together: the loss falls earlier, and further.
"""

import matplotlib.pyplot as plt

import reluflow as rf

figure, ax = plt.subplots(layout="constrained")
for angle in (0.5, 0.1, 0.02):
    problem = rf.datasets.two_points(angle)
    net = rf.initialize(problem, 20, scale=1e-6, rng=0)
    run = rf.flow(problem, net, t_end=60.0, save=rf.every(0.2))
    ax.plot(run.times, run.loss, label=f"angle {angle:g}")
ax.set(xlabel="time", ylabel="loss", yscale="log")
ax.legend()
