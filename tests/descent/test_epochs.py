"""Mini-batches without replacement: an epoch is every sample once, in a fresh order."""

import numpy as np

from reluflow.descent.schedules import Batches


def epochs(n, size, count, seed=0):
    """The samples of ``count`` epochs, one row each."""
    pieces = -(-n // size)
    rows = Batches(n, size, False, np.random.default_rng(seed)).take(count * pieces)
    flat = rows.reshape(count, -1)
    return np.array([row[row >= 0] for row in flat])


def test_every_sample_once_an_epoch():
    for n, size in ((7, 3), (10, 5), (4, 4), (5, 1)):
        found = epochs(n, size, 40)
        assert (np.sort(found, axis=1) == np.arange(n)).all(), (n, size)


def test_the_order_is_fresh():
    found = epochs(8, 2, 40)
    assert len(np.unique(found, axis=0)) > 35


def test_only_the_last_piece_of_an_epoch_is_short():
    rows = Batches(7, 3, False, np.random.default_rng(1)).take(9)
    assert np.array_equal((rows >= 0).sum(axis=1), [3, 3, 1] * 3)
