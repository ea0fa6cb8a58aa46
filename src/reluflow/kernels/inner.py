"""Decorators for functions that only kernels call: no entry from Python, so quicker to compile."""

from reluflow._compiled import njit

inner = njit(cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
#: Small functions of large states: a call would copy dozens of array headers, so there is none.
inlined = njit(cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True)
