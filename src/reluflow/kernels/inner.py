"""Decorators for functions that only kernels call: no entry from Python, so quicker to compile."""

from reluflow._compiled import njit

inner = njit(cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
#: Small functions of large states: a call would copy dozens of array headers, so there is none.
inlined = njit(cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True)
#: Long sums, several partial sums at a time: the order of the additions is the compiler's.
in_any_order = njit(
    cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, fastmath={"reassoc", "contract"}
)
