"""
Your own table, from CSV to verdict
===================================

A table with a label column is all that is needed. Here one is written first; use your own instead.
"""

import tempfile
from pathlib import Path

from sklearn.datasets import load_iris

import reluflow as rf

folder = Path(tempfile.mkdtemp())
table = load_iris(as_frame=True).frame.query("target != 2")
table.to_csv(folder / "flowers.csv", index=False)

# %%
# The reader says what it took for granted.

problem = rf.Problem.from_table(folder / "flowers.csv", label="target", standardize=True, bias=1.0)
print(problem)  # n=100, d=5

# %%
# Prediction alone takes a moment: when does the network begin to tell the classes apart, and by which direction?

net = rf.initialize(problem, 50, scale=1e-6, rng=0)
process = rf.limit(problem, net, seconds=5)
print(process)  # one jump, at 2.0331772; margin 0.36357 in the end

# %%
# And the whole answer in words.

explanation = rf.explain(problem, m=50, scale=1e-6)
print(explanation)  # margin 0.36357 again, by simulation
