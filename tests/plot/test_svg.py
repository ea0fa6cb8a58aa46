"""Panels written as SVG without a drawing library: whole, inside the frame, on every scale."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from reluflow.plot.svg import Axis, _ticks, _without_flat, can_write, write_svg
from reluflow.plot.svg_images import colour_of
from reluflow.plot.traces import Band, Image, Line, Panel, Points, Rule

X = np.linspace(0.0, 4.0, 200)
PANEL = Panel(
    [
        Rule(1.5, "x", "predicted <jump>", text="here", color="tab:orange", dash="--"),
        Rule(0.2, "y"),
        Band(X, np.exp(-X) - 0.1, np.exp(-X) + 0.1, "spread"),
        Line(X, np.where(X[50] == X, np.nan, np.exp(-X)), "loss"),
        Points([1.0, 2.0], [0.5, 0.1], "data", ["darkviolet", "0.3"], "*"),
    ],
    "a & b",
    "time",
    "loss",
    legend="best",
)


def texts(svg):
    return [
        "".join(node.itertext()) for node in ET.fromstring(svg).iter() if node.tag[-4:] == "text"
    ]


def places(svg):
    """Coordinates of all moves and lines with absolute coordinates."""
    found = []
    for node in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}path"):
        if node.get("transform") is None:
            pairs = re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", node.get("d"))
            found += [(float(a), float(b)) for a, b in pairs]
    return np.array(found)


def test_everything_of_a_panel_is_there():
    assert can_write(PANEL)
    svg = write_svg(PANEL)
    assert svg == write_svg(PANEL)
    said = texts(svg)
    for word in ("a & b", "time", "loss", "predicted <jump>", "here", "spread", "data"):
        assert word in said
    assert "prefers-color-scheme:dark" in svg
    assert "darkviolet" in svg
    assert "rgb(76,76,76)" in svg
    assert svg.count("M-0") == 0
    at = places(svg)
    assert at.min() >= 0.0
    assert at[:, 0].max() <= 4.6 * 72
    assert at[:, 1].max() <= 3.4 * 72


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_lines_stand_where_their_values_are(scale):
    panel = Panel([Line([1.0, 10.0], [1.0, 100.0])], xlim=(1.0, 100.0), ylim=(1.0, 100.0))
    svg = write_svg(Panel(panel.traces, xlim=panel.xlim, ylim=panel.ylim, xscale=scale))
    frame = next(n for n in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}rect"))
    left, wide = float(frame.get("x")), float(frame.get("width"))
    top, high = float(frame.get("y")), float(frame.get("height"))
    line = np.array(re.findall(r'd="M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)"', svg)[0], dtype=float)
    share = 0.5 if scale == "log" else 9.0 / 99.0
    assert line == pytest.approx([left, top + high, left + share * wide, top], abs=0.02)


@pytest.mark.parametrize(
    ("axis", "whole", "names"),
    [
        (Axis(0.0, 1.0, 0.0, 1.0, False), False, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (Axis(0.0, 1.3, 0.0, 1.0, False), True, ["0", "1"]),
        (Axis(-1.0, 0.0, 0.0, 1.0, False), False, ["−1.0", "−0.8", "−0.6", "−0.4", "−0.2", "0.0"]),
        (
            Axis(0.0, 2.5e6, 0.0, 1.0, False),
            False,
            ["0", "5e+05", "1e+06", "1.5e+06", "2e+06", "2.5e+06"],
        ),
        (
            Axis(0.0, 1.0, 0.0, 1.0, False)._replace(high=1.25),
            False,
            ["0.00", "0.25", "0.50", "0.75", "1.00", "1.25"],
        ),
    ],
)
def test_ticks_are_round_numbers(axis, whole, names):
    assert [name for _, name in _ticks(axis, 5, whole)] == names


def test_powers_of_ten_are_thinned():
    powers = [place for place, _ in _ticks(Axis(-30.0, 0.0, 0.0, 1.0, True), 6, False)]
    assert powers == [-30.0, -25.0, -20.0, -15.0, -10.0, -5.0, 0.0]


def test_straight_stretches_lose_their_vertices_and_curves_keep_their_shape():
    x = np.linspace(0.0, 300.0, 400)
    line = np.column_stack([x, np.maximum(100.0 - x, 0.0)])
    short = _without_flat(line)
    assert len(short) < 30
    wave = np.column_stack([x, 80.0 * np.sin(x / 30.0)])
    less = _without_flat(wave)
    assert len(less) < 300
    assert np.abs(np.interp(x, *less.T) - wave[:, 1]).max() < 0.1


def test_around_a_pole():
    panel = Panel(
        [Points([0.0, np.pi / 2], [0.0, 1.0], clip=False)], ylim=(0.0, 1.0), polar=True, hole=0.5
    )
    svg = write_svg(panel)
    circles = [
        tuple(float(n.get(k)) for k in ("cx", "cy", "r"))
        for n in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}circle")
    ]
    (cx, cy, outer), (_, _, inner), *_ = circles[0], circles[1]
    assert inner == pytest.approx(outer / 3.0, abs=0.02)  # radius 0 of a range from -0.5 to 1
    marks = np.array(re.findall(r"translate\(([\d.]+) ([\d.]+)\)", svg), dtype=float)
    assert marks[0] == pytest.approx([cx + inner, cy], abs=0.02)
    assert marks[1] == pytest.approx([cx, cy - outer], abs=0.02)


def test_other_panels_are_left_to_matplotlib():
    assert not can_write(Panel([Image(np.eye(2))]))  # without an extent
    assert not can_write(Panel([Image(np.eye(2), (0.0, 1.0, 0.0, 1.0), colors="viridis")]))
    assert not can_write(Panel([Image(np.eye(60), (0.0, 1.0, 0.0, 1.0))]))  # 3,600 pixels
    assert not can_write(Panel([Line([0, 1], [0, 1])], xscale="symlog"))
    assert not can_write(Panel([Points(np.zeros(3000), np.zeros(3000))]))


HEAT = Panel(
    [Image(np.array([[1.0, -0.5, 0.0], [0.25, 0.5, -1.0]]), (-0.5, 2.5, 1.5, -0.5), bar=True)],
    "heat",
    "feature",
    "direction",
    xnames=["a <b", "c", "the constant"],
    ynames=["1", "2"],
)


def test_pixels_stand_at_their_rows_and_columns_and_have_their_colours():
    assert can_write(HEAT)
    svg = write_svg(HEAT)
    for name in ("heat", "feature", "direction", "a <b", "c", "the constant", "1", "2", "1.0"):
        assert name in texts(svg)
    found = re.findall(r'fill="(#\w+)" d="M([\d.]+) ([\d.]+)H([\d.]+)V([\d.]+)H[\d.]+z"/>', svg)
    assert len(found) == 6
    assert [colour for colour, *_ in found] == [  # 1 is the darkest red, 0 white, -1 blue
        *("#67001f", "#6aacd0", "#f7f7f7"),
        *("#fbceb6", "#e58268", "#053061"),
    ]
    boxes = np.array([list(map(float, box)) for _, *box in found]).reshape(2, 3, 4)
    assert (np.diff(boxes[:, :, 0], axis=1) > 0.0).all()  # columns go to the right
    assert (np.diff(boxes[:, :, 1], axis=0) > 0.0).all()  # rows go down
    assert boxes[0, 0, 2] == boxes[0, 1, 0]
    assert boxes[0, 0, 3] == boxes[1, 0, 1]


def test_long_names_are_slanted_and_stay_inside():
    names = [f"a long name {i}" for i in range(5)]
    image = Image(np.ones((2, 5)), (-0.5, 4.5, 1.5, -0.5))
    svg = write_svg(Panel([image], "", "feature", xnames=names))
    assert svg.count("rotate(-60)") == 5
    low = max(float(y) for y in re.findall(r"translate\([\d.]+ ([\d.]+)\) rotate", svg))
    assert low + 0.87 * 8.4 * 0.56 * len(names[0]) < 3.4 * 72


def test_contours_are_cut_at_their_levels():
    side = np.linspace(-1.0, 1.0, 41)
    values = np.broadcast_to(side, (41, 41))
    image = Image(values, (-1.0, 1.0, -1.0, 1.0), [-0.5, 0.0, 0.5], origin="lower")
    svg = write_svg(Panel([image], xlim=(-1.0, 1.0), ylim=(-1.0, 1.0)))
    paths = re.findall(r'fill="(#\w+)" fill-rule="evenodd" d="([^"]+)"', svg)
    assert len(paths) == 4  # below -0.5, two in between, above 0.5
    spans = [[float(x) for x, _ in re.findall(r"[ML]([\d.]+) ([\d.]+)", path)] for _, path in paths]
    edges = [min(spans[0]), *(max(span) for span in spans)]
    assert np.diff(edges) == pytest.approx(np.full(4, (edges[-1] - edges[0]) / 4), abs=0.11)
    assert [colour for colour, _ in paths] == [
        colour_of(-1.0),
        colour_of(-0.5),
        colour_of(0.5),
        colour_of(1.0),
    ]


def test_no_drawing_library_is_loaded():
    code = (
        "import sys; from reluflow.report.page import Page\n"
        "from reluflow.plot.traces import Line, Panel\n"
        "html = Page('t').figure(Panel([Line([0.0, 1.0], [0.0, 1.0])])).html\n"
        "assert 'svg+xml' in html and 'matplotlib' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
