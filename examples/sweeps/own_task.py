"""A task of one's own: any function that returns numbers can be swept."""

import numpy as np

from reluflow import Problem, extremal_vectors


def count_extrema(n: int, d: int, rng: np.random.Generator) -> dict[str, float]:
    """How many directions early alignment knows on Gaussian data with random labels."""
    problem = Problem(rng.standard_normal((n, d)), rng.choice([-1.0, 1.0], n))
    found = extremal_vectors(problem)
    return {"extrema": len(found), "fastest": float(found.rates.max()), "exact": found.exact}
