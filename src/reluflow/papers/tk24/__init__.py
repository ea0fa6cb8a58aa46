"""Tsoy and Konstantinov: simplicity bias of small starts ([TK24]_).

Importing ``claims`` registers its claims, importing ``figures`` its figures.
"""
