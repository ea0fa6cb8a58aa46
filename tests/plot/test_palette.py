"""Colours are seen on light and dark pages, and told apart by those who do not see all hues."""

import re
from importlib.resources import files
from itertools import combinations

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from reluflow import (
    Network,
    align,
    datasets,
    descend,
    every,
    flow,
    initialize,
    limit,
    max_margin,
    plot,
)
from reluflow.plot import palette
from reluflow.plot.figures import samples_panel
from reluflow.plot.panels import boundary_panel
from reluflow.plot.render import to_svg
from reluflow.plot.traces import Image, Line, Panel, Points

NAMES = ("VIOLET", "RED", "GREEN", "BLUE", "ORANGE", "GREY")
COLOURS = {name: getattr(palette, name) for name in NAMES}
CONTRAST = 3.0  # WCAG 2.1, 1.4.11: graphical objects
APART = 25.0  # units of CIE Lab; about 2.3 is just noticeable side by side

# linear RGB as seen without one kind of cone: Machado, Oliveira, Fernandes 2009, severity 1
SEEN = {
    "all cones": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)


def linear(colour):
    c = np.array(to_rgb(colour))
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    """(L1 + 0.05) / (L2 + 0.05) of relative luminances."""
    light, dark = sorted(float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (one, other))[::-1]
    return (light + 0.05) / (dark + 0.05)


def lab(rgb):
    """CIE Lab of linear RGB, white that of sRGB."""
    t = (np.clip(rgb, 0.0, 1.0) @ XYZ.T) / XYZ.sum(axis=1)
    f = np.where(t > 216 / 24389, np.cbrt(t), (24389 / 27 * t + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_the_measures_are_the_known_ones():
    assert contrast("white", "black") == pytest.approx(21.0)
    assert contrast("#767676", "white") == pytest.approx(4.54, abs=0.01)
    assert lab(linear("red")) == pytest.approx([53.24, 80.09, 67.20], abs=0.05)
    red, green = (SEEN["deuteranopia"] @ linear(c) for c in ("#c00000", "#7a5200"))
    assert np.linalg.norm(lab(red) - lab(green)) < 25.0  # the pair that no picture should rest on
    assert np.linalg.norm(lab(linear("#c00000")) - lab(linear("#7a5200"))) > 40.0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("paper", [palette.PAPER, palette.DARK_PAPER, "black"])
def test_every_colour_stands_out_on_light_and_dark(name, paper):
    assert contrast(COLOURS[name], paper) >= CONTRAST


@pytest.mark.parametrize("eye", SEEN)
def test_any_two_colours_stay_apart(eye):
    seen = {name: lab(SEEN[eye] @ linear(colour)) for name, colour in COLOURS.items()}
    for one, other in combinations((n for n in NAMES if n != "GREY"), 2):
        apart = float(np.linalg.norm(seen[one] - seen[other]))
        assert apart >= APART, f"{one} and {other} are {apart:.1f} apart in {eye}"


@pytest.fixture(scope="module")
def shown():
    """Every public picture."""
    line, xor = datasets.three_points(), datasets.symmetric_xor()
    net = initialize(line, 20, scale=1e-3, rng=0)
    run, process = flow(line, net, t_end=30.0, save=every(0.5)), limit(line, net)
    flat = descend(xor, initialize(xor, 12, scale=0.1, rng=0), lr=0.1, steps=200)
    return {
        "loss": plot.loss(run, process),
        "sizes": plot.sizes(run, process),
        "neurons": plot.neurons(run),
        "function": plot.function(run),
        "boundary": plot.boundary(flat),
        "landscape": plot.landscape(line),
        "jumps": plot.jumps(process, run),
        "exponents": plot.exponents(process, run),
        "alignment": plot.alignment(run),
        "aligned": plot.alignment(align(line, net)),
        "margins": plot.margins(flat, max_margin(xor)),
    }


def colour_of(handle):
    """The colour a legend shows of a line, of points or of a patch."""
    for name in ("get_color", "get_facecolor", "get_edgecolor"):
        if hasattr(handle, name):
            value = np.atleast_2d(np.asarray(to_rgba(getattr(handle, name)())))
            if value.size and value[0][3] > 0.0:
                return tuple(value[0][:3])
    return None


def to_rgba(value):
    from matplotlib.colors import to_rgba_array

    return to_rgba_array(value)


def test_what_a_legend_names_can_be_seen_on_both_papers(shown):
    for name, ax in shown.items():
        handles, labels = ax.get_legend_handles_labels()
        assert labels, name
        for handle, label in zip(handles, labels, strict=True):
            colour = colour_of(handle)
            if colour in ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)):  # ink, by the style of the page
                continue
            for paper in (palette.PAPER, palette.DARK_PAPER):
                assert contrast(colour, paper) >= CONTRAST, (name, label, colour)


def colours_of_css(block):
    return dict(re.findall(r"--rf-(\w+): (#[0-9a-f]{6})", block))


def test_the_studio_has_the_colours_of_pictures():
    """Of the palette's colours the one with the same meaning is the nearest in hue."""
    style = (files("reluflow") / "playback/static/studio.css").read_text()
    looks = [
        found
        for block in re.findall(r"\{([^{}]*)\}", style)
        if "plus" in (found := colours_of_css(block))
    ]
    assert len(looks) == 3  # light, dark by the system, dark by choice
    meant = {
        "plus": "POSITIVE",
        "minus": "NEGATIVE",
        "predicted": "PREDICTED",
        "point": "DATA",
    }
    for look in looks:
        for name, meaning in meant.items():
            hue = lab(linear(look[name]))[1:]
            near = min(
                (n for n in NAMES if n != "GREY"),
                key=lambda n: -cosine(hue, lab(linear(COLOURS[n]))[1:]),
            )
            assert COLOURS[near] == getattr(palette, meaning), (name, look[name], near)


def cosine(one, other):
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def test_positive_is_red_for_neurons_classes_and_the_function():
    plus, minus = to_rgb(palette.RED), to_rgb(palette.BLUE)
    xor = datasets.symmetric_xor()
    net = Network(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0]))
    drawn = plot.neurons(net).collections[0].get_facecolors()
    assert [tuple(row[:3]) for row in drawn] == [plus, minus]
    for panel in (boundary_panel(net, xor), samples_panel(xor)):
        named = {t.label: t.color for t in panel.traces if isinstance(t, Points) and t.label}
        assert {name[-2:]: to_rgb(colour) for name, colour in named.items()} == {
            "+1": plus,
            "-1": minus,
        }
    image = next(t for t in boundary_panel(net, xor).traces if isinstance(t, Image))
    high, low = (matplotlib.colormaps[image.colors](end)[:3] for end in (1.0, 0.0))
    assert high[0] > high[2]
    assert low[2] > low[0]


def test_dark_styles_turn_ink_to_white():
    panel = Panel([Line([0, 1], [0, 1], "ink", "black")], legend="best")
    with matplotlib.rc_context({"text.color": "white", "axes.facecolor": "black"}):
        from reluflow.plot.render import draw

        assert to_rgb(draw(panel).lines[0].get_color()) == (1.0, 1.0, 1.0)
    svg = to_svg(panel)
    assert "stroke: currentColor" in svg
    assert "#000000" not in svg
