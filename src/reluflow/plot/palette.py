"""Colours of pictures: told apart on light and dark pages, and by those who do not see all hues.

One set serves white and dark paper, so every colour has a relative luminance between 0.13 and 0.3:
its contrast is at least 3 to 1 on both (WCAG 2.1, success criterion 1.4.11, for what carries
meaning in a picture). Any two stay apart by at least 25 units of CIE Lab, also as protanopes,
deuteranopes and tritanopes see them; ``tests/plot/test_palette.py`` computes both.

A meaning has one colour in pictures, in reports and in the studio, whose style sheet has a lighter
or darker tone of it: red raises the output and blue lowers it, be it a neuron, the function or a
label; what a run did has the colour of text, what was predicted is violet, samples are green.
"""

from __future__ import annotations

VIOLET, RED, GREEN, BLUE, ORANGE = "#b570e0", "#cc1739", "#12a57f", "#215afd", "#c68102"
GREY = "#808080"
INK = "black"  # the colour of text, whatever the page: white on a dark one

POSITIVE, NEGATIVE, NEUTRAL = RED, BLUE, INK  # sign of an output weight, of f, of a label
DATA = GREEN  # samples and their hyperplanes
SIMULATED, PREDICTED = INK, VIOLET
CYCLE = (BLUE, ORANGE, VIOLET, GREEN, RED, GREY)  # of lines that have no meaning of their own

PAPER, DARK_PAPER = "#ffffff", "#15181c"  # of the pages that reluflow writes


def cycle_colour(i: int) -> str:
    """The colour of line ``i``, in turn."""
    return CYCLE[i % len(CYCLE)]
