"""
Weight decay: XOR and three points
==================================

With the penalty :math:`\\frac\\lambda2 |\\theta|^2` a neuron grows only where its pull beats lambda, so jumps come later and
fit less (left, from scale 1e-40; dots are predicted). Right: where small starts end, and the best network of any width;
from the decay at which the two meet the end is the best possible.
"""

import matplotlib.pyplot as plt
import numpy as np

import reluflow as rf

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")

corners = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
xor = rf.Problem(corners, corners[:, 0] * corners[:, 1])
net = rf.initialize(xor, 24, scale=1e-40, rng=1)
largest = rf.max_G(xor).value  # from this decay on the silent network is best
for share in (0.0, 0.3, 0.6):
    process = rf.limit(xor, net, weight_decay=share * largest)
    jumps = process.jump_times(log_scale=net.log_norms.max())
    times = np.linspace(0.0, 1.3 * jumps[-1], 300)
    run = rf.flow(xor, net, t_end=times[-1], save=times, weight_decay=share * largest)
    (line,) = left.plot(run.times, run.loss, label=f"{share:g}")
    left.plot(jumps, process.losses[1:], "o", color=line.get_color())
left.set(xlabel="time", ylabel="loss", title="XOR", ylim=(-0.03, 0.55))
left.legend(title="$\\lambda$ / max |G|", loc="lower left")

three = rf.datasets.three_points()
net = rf.initialize(three, 40, scale=1e-6, rng=0)
path = rf.ridge_path(three, 1e-3, points=40)
right.plot(path.weight_decays, path.losses, label="best network of any width")
for kink in path.kinks:
    right.axvline(kink.weight_decay, color="0.7", lw=0.7)
decays = np.geomspace(1e-3, 0.97, 14) * path.largest
ends = [rf.limit(three, net, weight_decay=decay).losses[-1] for decay in decays]
right.plot(decays, ends, "o", ms=4, label="end of small starts")
right.set(
    xscale="log",
    xlabel="weight decay",
    ylabel="loss",
    title="three points (grey: kinks of the path)",
)
right.legend()
