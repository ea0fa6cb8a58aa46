"""How many threads linear algebra may use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS and OpenMP with one thread: processes do not fight, and all give the same bits.

    Small matrices gain nothing from a second thread, which waits for work in a loop: on a busy
    machine that took several times as long as the products.
    """
    import scipy.linalg  # noqa: F401 (has a BLAS of its own, which must be there to be limited)
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield
