"""Which digits separate first, from small and from usual weights.

python examples/digits_classes.py takes the 1,797 digits of scikit-learn (half a minute);
RELUFLOW_DATA=folder python examples/digits_classes.py mnist takes all 60,000 of MNIST with 100
neurons (some minutes).
"""

import sys

import numpy as np

from reluflow import Observable, Problem, descend, every, extremal_vectors, initialize
from reluflow.explanation.multioutput import SEPARATE, separations, told_apart, usual_step

if sys.argv[1:] == ["mnist"]:
    from reluflow.problem.datasets.mnist import read_split

    images, labels = read_split(None, "train", download=False)
    X, steps, batch = images.reshape(len(images), -1) / 255.0, 400, 4096
else:
    from sklearn.datasets import load_digits

    X, labels = load_digits(return_X_y=True)
    X, steps, batch = X / 16.0, 2000, None
problem = Problem(X - X.mean(axis=0), labels, loss="softmax", bias=1.0)
# directions of a sample of the images: an estimate for MNIST
some = problem.replace(X=problem.X[:1000, :-1], y=problem.y[:1000])
found = extremal_vectors(some, method="multistart", starts=8)
for b, rate in zip(found.outer[:4], found.values, strict=False):
    print(f"small neurons grow at rate {rate:.3g} where that {told_apart(problem.classes, b)}")
pairs = Observable("pairs", separations, ("class", "other_class"), of_outputs=True)
lr = usual_step(problem) * (10.0 if batch else 3.0)
for scale in (1e-4, 1.0):
    net = initialize(problem, 100, scale=scale, kind="pytorch", rng=0)
    options = {"save": every(steps // 40), "observe": [pairs, "accuracy"], "batch_size": batch}
    run = descend(problem, net, lr=lr, steps=steps, rng=0, **options)
    apart = run["pairs"] >= SEPARATE
    first = np.where(apart.any(axis=0), run.steps[apart.argmax(axis=0)], steps + 1)
    order = sorted((int(first[c, e]), c, e) for c in range(10) for e in range(c + 1, 10))
    words = ", ".join(f"{c} and {e} (step {step})" for step, c, e in order[:3])
    last = ", ".join(f"{c} and {e}" for _, c, e in order[-3:])
    print(f"weights of {scale:g}: first {words}; last {last}; right {run['accuracy'][-1]:.1%}")
