"""Does training find the largest margin? A run beside the best network and the SVM (5 s)."""

import matplotlib.pyplot as plt

from reluflow import Problem, flow, geometric, initialize, max_margin, plot

X = [[1.0, 0.4], [0.8, -0.6], [-1.0, 0.3], [-0.5, -0.9], [0.3, 1.0]]
problem = Problem(X, [1, 1, -1, -1, 1], loss="logistic", name="five points")
net = initialize(problem, 30, scale=1e-3, rng=0)
run = flow(problem, net, clock="loss", save=geometric(1.1, first=0.1))

network, svm = max_margin(problem), max_margin(problem, model="linear")
print(f"best network {network.margin:.6f}, SVM as a network {svm.margin / 4:.6f}")
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
plot.margins(run, {"best network": network, "SVM, as a network": svm}, ax=left)
plot.boundary(run, ax=right)
figure.savefig("margin_against_svm.png")
