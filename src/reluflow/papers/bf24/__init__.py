"""Boursier and Flammarion: early alignment, and the line that three points end at ([BF24]_).

Importing ``claims`` registers its claims, importing ``figures`` its figures.
"""
