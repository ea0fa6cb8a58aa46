"""
Weight decay makes a network forget a feature
=============================================

One neuron fits two samples with label 1: the simple feature. Labels 0.3 and -0.3 on two other samples need a neuron each:
the complex one. A network that has learnt both is trained on with a decay above the gain g of the complex feature, and
forgets it like :math:`e^{-2 (\\lambda - g) t}`, while `ridge` and `limit` say beforehand what is kept.
"""

import matplotlib.pyplot as plt
import numpy as np

import reluflow as rf

X = np.array([[1.0, 0.2], [1.0, -0.2], [-0.3, 0.4], [-0.3, -0.4]])
problem = rf.Problem(X, [1.0, 1.0, 0.3, -0.3])
net = rf.initialize(problem, 24, scale=1e-3, rng=2)
learnt = rf.flow(problem, net, t_end=600.0)

decay = 0.1
gain = (
    0.3 * np.linalg.norm(X[2]) / problem.n
)  # |G| along a sample of label 0.3, as long as it is not fitted
run = rf.flow(
    problem, learnt.final, t_end=70.0, save=np.linspace(0.0, 70.0, 300), weight_decay=decay
)
kept, predicted = rf.ridge(problem, decay).network, rf.limit(problem, net, weight_decay=decay).final


def features(f):
    """How much of either feature outputs have."""
    return f[0] + f[1], f[2] - f[3]


parts = np.array([features(each(X)) for each in run.networks]) / features(problem.y)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
for column, name in enumerate(("simple", "complex")):
    (line,) = left.plot(run.times, parts[:, column], label=name)
    for f, style in ((kept(X), "--"), (predicted(X), ":")):
        end = features(f)[column] / features(problem.y)[column]
        left.axhline(end, color=line.get_color(), ls=style, lw=1.2)
left.set(
    xlabel="time with decay", ylabel="share of the feature", title="dashed: ridge, dotted: limit"
)
left.legend()
right.semilogy(run.times, parts[:, 1], "C1", label="complex")
late = run.times > 30.0
slope = np.exp(-2.0 * (decay - gain) * (run.times[late] - run.times[late][0])) * parts[late, 1][0]
right.semilogy(run.times[late], slope, "k:", lw=3, alpha=0.5, label="$e^{-2 (\\lambda - g) t}$")
right.set(xlabel="time with decay", title=f"$\\lambda$ = {decay:g}, g = {gain:.4f}")
right.legend()
