"""Compiled loops: arrays in, arrays filled; no objects, no checks, NumPy and Numba alone.

Each kernel has a slow NumPy twin in the tests. Kernels are imported where they are used, so that
importing the library does not import the compiler.
"""
