"""Tasks that worker processes import."""

import os
import signal
import time

import numpy as np

from reluflow.errors import ReluflowError
from reluflow.sweeps import sweep


def draw(x, rng, y=0):
    return {"value": float(rng.standard_normal()) + x, "even": x % 2 == 0, "word": "abc"[y % 3]}


def slow_draw(x, rng, pause=0.01):
    time.sleep(pause)
    return {"value": float(rng.standard_normal()), "square": x * x}


def picky(x, marker):
    """Fails on odd x until a file exists."""
    if x % 2 and not os.path.exists(marker):
        raise ReluflowError(f"x is {x}, an odd number:\nuse an even one")
    return float(x)


def crashes(x):
    if x == 3:
        raise ZeroDivisionError("by zero")
    return {"size": np.float64(x)}


def deadly(x):
    """Takes its worker process down at one point."""
    if x == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return float(x)


def always_deadly(x):
    os.kill(os.getpid(), signal.SIGKILL)


def threads():
    from threadpoolctl import threadpool_info

    np.ones((4, 4)) @ np.ones((4, 4))
    import numba

    blas = max((pool["num_threads"] for pool in threadpool_info()), default=1)
    return {"blas": blas, "numba": numba.get_num_threads()}


def arrays(x):
    return {"array": np.ones(3)}


def shadows(x):
    return {"x": 1.0}


def nested(x):
    """How a sweep inside a worker runs: in that process alone."""
    rows = sweep(whereabouts, {"y": [x, x + 1]}, progress=False).rows()
    return {"alone": all(row["pid"] == os.getpid() for row in rows), "total": x}


def whereabouts(y):
    return {"pid": os.getpid()}
