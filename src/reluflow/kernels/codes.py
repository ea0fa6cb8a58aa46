"""How a call of a stepping kernel ended."""

DONE, DIVERGED, GROW, UNPROFITABLE = 0, 1, 2, 3
