"""Decorator for functions that only kernels call: no entry from Python, so quicker to compile."""

from numba import njit

inner = njit(cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
