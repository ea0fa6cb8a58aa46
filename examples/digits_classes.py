"""Which digits separate first, from small and from usual weights.

python examples/digits_classes.py takes the 1,797 digits of scikit-learn (half a minute);
RELUFLOW_DATA=folder python examples/digits_classes.py mnist takes all 60,000 of MNIST with 100
neurons (some minutes). reluflow explain mnist-digits --image-shape 28x28 makes a whole report.
"""

import sys

import numpy as np

from reluflow import Observable, Problem, datasets, descend, initialize
from reluflow.explanation.multioutput.quantities import SEPARATE, separations
from reluflow.explanation.multioutput.stages import find_directions, usual_step
from reluflow.explanation.multioutput.words import told_apart


def digits():
    """The 8 x 8 digits of scikit-learn, centred."""
    from sklearn.datasets import load_digits

    X, labels = load_digits(return_X_y=True)
    X = X / 16.0
    return Problem(X - X.mean(axis=0), labels, loss="softmax", bias=1.0)


def compare(problem, steps, batch_size=None, m=100):
    """Where small neurons turn, and the order of pairs from small and from usual weights."""
    found = find_directions(problem)
    for b, rate in zip(found.outer[:4], found.values, strict=False):
        print(f"small neurons grow at rate {rate:.3g} where that {told_apart(problem.classes, b)}")
    pairs = Observable("pairs", separations, ("class", "other_class"), of_outputs=True)
    lr, orders = 3.0 * usual_step(problem), {}
    records = [0, *np.unique(np.geomspace(1, steps, 90).astype(int)).tolist()]
    for scale in (1e-4, 1.0):
        net = initialize(problem, m, scale=scale, kind="pytorch", rng=0)
        options = {"save": records, "observe": [pairs, "accuracy"]}
        run = descend(problem, net, lr=lr, steps=steps, batch_size=batch_size, rng=0, **options)
        apart = run["pairs"] >= SEPARATE
        first = np.where(apart.any(axis=0), run.steps[apart.argmax(axis=0)], np.inf)
        order = sorted((first[c, e], c, e) for c in range(problem.K) for e in range(c))
        seen = [row for row in order if np.isfinite(row[0])]
        words = ", ".join(f"{e} and {c} (step {step:.0f})" for step, c, e in seen[:3]) or "none"
        last = ", ".join(f"{e} and {c}" for _, c, e in order[-3:])
        right = f"{run['accuracy'][-1]:.1%}"
        print(f"weights of {scale:g}: first {words}; last or not at all {last}; right {right}")
        orders[scale] = order
    return orders


if __name__ == "__main__":
    if sys.argv[1:] == ["mnist"]:
        compare(datasets.mnist_digits(bias=1.0), steps=800, batch_size=4096)
    else:
        compare(digits(), steps=2000)
