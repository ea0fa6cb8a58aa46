"""
A leak in the activation
========================

With a leak no neuron is dead: the landscape has no flat part.
"""

import matplotlib.pyplot as plt

import reluflow as rf

figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
for ax, leak in zip(axes, (0.0, 0.3), strict=True):
    rf.plot.landscape(rf.datasets.toy6(leak=leak), ax=ax)
    ax.set_title(f"leak {leak:g}")
