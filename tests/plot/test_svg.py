"""Panels written as SVG without a drawing library: whole, inside the frame, on every scale."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from reluflow.plot.svg import Axis, _ticks, _without_flat, can_write, write_svg
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
    assert not can_write(Panel([Image(np.eye(2))]))
    assert not can_write(Panel([Line([0, 1], [0, 1])], xscale="symlog"))
    assert not can_write(Panel([Points(np.zeros(3000), np.zeros(3000))]))
    assert not can_write(Panel([Line([0, 1], [0, 1])], xnames=["a", "b"]))


def test_no_drawing_library_is_loaded():
    code = (
        "import sys; from reluflow.report.page import Page\n"
        "from reluflow.plot.traces import Line, Panel\n"
        "html = Page('t').figure(Panel([Line([0.0, 1.0], [0.0, 1.0])])).html\n"
        "assert 'svg+xml' in html and 'matplotlib' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
