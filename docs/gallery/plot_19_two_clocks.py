"""
Norm and test error on two clocks
=================================

First a network of usual size fits noisy labels exactly. Then a small weight decay lets it drift towards a smaller norm, in
time :math:`1/\\lambda`, and the error on unseen points falls with it, long after the fit. The least penalised network of
any width need not be reached: the drift finds no feature that no neuron reads.
"""

import matplotlib.pyplot as plt
import numpy as np

import reluflow as rf

rng = np.random.default_rng(5)
x = np.linspace(-1.0, 1.0, 8) + 0.05 * rng.normal(size=8)
problem = rf.Problem(x[:, None], np.abs(x) + 0.15 * rng.normal(size=8), bias=1.0)
grid = np.linspace(-1.0, 1.0, 200)
unseen, truth = np.column_stack([grid, np.ones(200)]), np.abs(grid)


def test_error(network):
    """Mean squared error against the labels without noise."""
    return np.mean((network(unseen) - truth) ** 2)


net = rf.initialize(problem, 24, scale=2.0, kind="gaussian", rng=1)
times = np.geomspace(0.05, 2000.0, 100)
fast = rf.flow(problem, net, t_end=times[-1], save=times)
decay = 1e-3
slow = rf.drift(problem, fast.final, decay, span=4.0, save=80)
best = rf.ridge(problem, decay)

figure, axes = plt.subplots(2, 2, figsize=(9, 5), sharex="col", sharey="row", layout="constrained")
for column, (clock, networks) in enumerate(
    ((fast.times, fast.networks), (slow.clock, slow.networks))
):
    axes[0, column].plot(clock, [each.norm2 for each in networks])
    axes[1, column].semilogy(clock, [test_error(each) for each in networks], label="test error")
    axes[1, column].semilogy(clock, [problem.loss_of(each) for each in networks], label="loss")
for ax, value in zip(axes[:, 1], (best.norm2, test_error(best.network)), strict=True):
    ax.axhline(value, color="0.5", ls="--", lw=1, label="best network of any width")
axes[0, 0].set(title="fast clock, no decay", ylabel="$|\\theta|^2$")
axes[0, 1].set(title=f"slow clock, decay {decay:g}")
axes[1, 0].set(xlabel="time", xscale="log")
axes[1, 1].set(xlabel="decay times time")
axes[1, 1].legend()
print(slow.against_best(best)[1])
