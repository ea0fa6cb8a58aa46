"""Jumps predicted without training, over a simulated loss (about 5 s)."""

import matplotlib.pyplot as plt

from reluflow import datasets, every, flow, initialize, limit, plot

problem = datasets.golden()  # four orthonormal points with labels 4, 3, 2, 1
net = initialize(problem, 6, log_scale=-40.0, kind="sphere", signs=1, rng=4)
process = limit(problem, net)
run = flow(problem, net, save=every(0.5))
print(process)

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
plot.loss(run, process, ax=left)
plot.exponents(process, run, ax=right)
figure.savefig("predicted_jumps.png")
