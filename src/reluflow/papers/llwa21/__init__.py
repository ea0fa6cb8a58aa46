"""Lyu, Li, Wang and Arora: margins that small starts maximise, and those they miss ([LLWA21]_).

Importing ``claims`` registers its claims, importing ``figures`` its figures.
"""
