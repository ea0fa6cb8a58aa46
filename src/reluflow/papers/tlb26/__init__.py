"""Town, Lewis and Boursier: incremental learning on orthonormal inputs ([TLB26]_).

Importing ``claims`` registers its claims, importing ``figures`` its figures.
"""
