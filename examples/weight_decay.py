"""Weight decay on both clocks: jumps against the decay, then a drift that forgets a feature.

python examples/weight_decay.py [picture.png] (some seconds). Two points of the plane share a large
label that one neuron fits; two others, beyond its reach, have small labels of opposite signs and
need a neuron each. Without decay the network learns both. Trained on with a decay above the gain of
the small labels it keeps the first feature and forgets the second: predicted by `limit` and
`ridge`, simulated by `flow` (fast clock, t) and `drift` (slow clock, lambda t).
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from reluflow import Problem, drift, flow, initialize, limit, max_G, ridge

XOR = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
PARITY = XOR[:, 0] * XOR[:, 1]


SIMPLE = np.array([[1.0, 0.2], [1.0, -0.2]])  # label 1
COMPLEX = np.array([[-0.3, 0.4], [-0.3, -0.4]])  # labels 0.3 and -0.3


def features(net):
    """How much of either feature a network has learnt."""
    simple, complex_ = net(SIMPLE), net(COMPLEX)
    return float(simple.mean()), float(complex_[0] - complex_[1]) / 0.6


def jumps_against_decay(ax):
    """XOR alone: jump times of runs from scale 1e-40 beside the prediction, for several decays."""
    problem = Problem(XOR, PARITY)
    top = max_G(problem).value
    print(f"XOR: silence is best from weight decay {top:.4g} on")
    for share, colour in ((0.0, "C0"), (0.3, "C1"), (0.6, "C2")):
        net = initialize(problem, 24, scale=1e-40, rng=1)
        process = limit(problem, net, weight_decay=share * top)
        when = process.jump_times(log_scale=float(net.log_norms.max()))
        run = flow(
            problem,
            net,
            t_end=1.3 * float(when[-1]),
            save=np.linspace(0.0, 1.3 * float(when[-1]), 400),
            observe="norm2",
            weight_decay=share * top,
        )
        ax.plot(run.times, run.loss, colour, label=f"$\\lambda$ = {share:g} max|G|")
        ax.plot(when, process.losses[1:], "o", color=colour)
        print(f"  {share:.1f} of it: jumps at {np.round(when, 2)}, end {process.losses[-1]:.6f}")
    ax.set(xlabel="t", ylabel="loss", title="XOR from 1e-40, jumps predicted (dots)")
    ax.legend()


def forgetting(axes):
    """A fit of both features, trained on with decay: what stays, and when."""
    X, y = np.vstack([SIMPLE, COMPLEX]), np.array([1.0, 1.0, 0.3, -0.3])
    problem = Problem(X, y)
    net = initialize(problem, 24, scale=1e-3, rng=2)
    learnt = flow(problem, net, t_end=600.0, save=np.linspace(0.0, 600.0, 200), states=True)
    decay, gain = 0.1, 0.3 * 0.5 / 4  # G of a neuron along one of the small samples, at f = 0
    slow = drift(problem, learnt.final, decay, span=8.0, save=120)
    best, process = ridge(problem, decay), limit(problem, net, weight_decay=decay)
    print(f"forgetting: learnt {np.round(features(learnt.final), 4)} of the features without decay")
    ends = {"ridge": best.network, "limit": process.final, "drift": slow.final}
    for name, end in ends.items():
        print(f"  at decay {decay} {name} ends with {np.round(features(end), 4)}")
    print(f"  {slow.against_best(best)[1]}")
    late = (slow.clock > 4.0) & (slow.clock < 8.0)
    rest = np.array([features(each)[1] for each in slow.networks])
    slope = np.polyfit(slow.clock[late], np.log(rest[late]), 1)[0]
    print(f"  forgets as exp({slope:.4f} lambda t), predicted {-2 * (1 - gain / decay):.4f}")
    clean = np.array([1.0, 1.0, 0.0, 0.0])  # where the small labels are noise
    for ax, x, nets, name in (
        (axes[0], learnt.times, learnt.networks, "t"),
        (axes[1], slow.clock, slow.networks, r"$\lambda t$"),
    ):
        learnt_parts = np.array([features(each) for each in nets])
        ax.plot(x, learnt_parts[:, 0], label="simple feature")
        ax.plot(x, learnt_parts[:, 1], label="complex feature")
        errors = [float(np.mean((each(X) - clean) ** 2)) for each in nets]
        ax.plot(x, np.array(errors) * 10, label="10 x test error")
        ax.plot(x, [each.norm2 / 10 for each in nets], "k:", label="norm$^2$ / 10")
        ax.set(xlabel=name, ylim=(-0.05, 1.25))
    axes[0].set(title="fast clock, no decay yet")
    for value, colour in zip(features(best.network), ("C0", "C1"), strict=True):
        axes[1].axhline(value, color=colour, ls="--", lw=0.8)
    axes[1].set(title=f"slow clock, decay {decay} (dashed: ridge)")
    axes[0].legend()


def main():
    figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    jumps_against_decay(axes[0])
    forgetting(axes[1:])
    if len(sys.argv) > 1:
        figure.savefig(sys.argv[1], dpi=120)
    else:
        plt.show()


if __name__ == "__main__":
    main()
