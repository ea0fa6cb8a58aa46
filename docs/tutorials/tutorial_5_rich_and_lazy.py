"""
Rich and lazy: what the scale does
==================================

The same data and the same directions from four scales. Small weights align first and learn in steps; large
ones hardly turn.
"""

import matplotlib.pyplot as plt
import numpy as np

import reluflow as rf

problem = rf.datasets.golden()
found = rf.extremal_vectors(problem)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
for scale in (1e-6, 1e-3, 1.0, 4.0):
    net = rf.initialize(problem, 40, scale=scale, rng=2)
    run = rf.flow(problem, net, t_end=50.0, save=rf.every(0.2))
    left.plot(run.times, run.loss, label=f"scale {scale:g}")
    start, end = (n.W / np.linalg.norm(n.W, axis=1, keepdims=True) for n in (net, run.final))
    right.plot(np.sort(np.sum(start * end, axis=1)), label=f"scale {scale:g}")
left.set(xlabel="time", ylabel="loss", title="loss")
right.set(xlabel="neuron", ylabel="cosine of start and end", title="how far neurons turned")
left.legend()
