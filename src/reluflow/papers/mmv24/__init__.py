"""Min, Mallada and Vidal: positively correlated data ([MMV24]_).

Importing ``claims`` registers its claims, importing ``figures`` its figures.
"""
