"""
Sweeps: many runs, one table
============================

Settings and seeds, runs in processes or on a cluster, results in a table. A sweep that was interrupted
goes on where it was.
"""

import reluflow as rf

table = rf.sweep(
    "descend",
    {
        "problem": {"name": "three-points"},
        "init": {"m": [4, 20, 100], "scale": [1e-4, 1e-2, 1.0]},
        "clock": {"lr": 0.01, "steps": 20_000},
    },
    seeds=5,
    observe=["norm2"],
    executor="serial",
    progress=False,
)
print(table)  # 45 ok

# %%
# Rows are a pandas DataFrame away. Small starts never fit the three points, large ones often do.

frame = table.to_pandas()
means = frame.groupby(["init.m", "init.scale"])["loss"].mean()
print(means.unstack())  # 0.087521 from scale 0.01, at any width

# %%
# On a cluster, ``executor`` is a Dask client or the address of a scheduler; ``out="table.parquet"`` keeps rows
# as they come. The same sweep as a file is run by ``reluflow sweep widths.toml``.
