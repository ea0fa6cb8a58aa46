"""The pictures of README.md and of the site's first pages, drawn by the present code.

    python docs/make_pictures.py [three-points] [report] [studio] [monitor]

writes docs/img (all of them by default). ``report`` and ``studio`` are photographs of the pages
and need playwright and Chromium, ``monitor`` needs PyTorch and MNIST (RELUFLOW_DATA).
"""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

import reluflow as rf
from reluflow.papers.bf24.figures.three_points import three_points_run

ROOT = Path(__file__).resolve().parents[1]
IMG = ROOT / "docs" / "img"
DRAWN = 5_000  # neurons of the three points that are drawn, evenly sampled, and the 100 largest
MOMENTS = ("the start", "aligned, about to grow", "the line is nearly reached", "the end")


def three_points() -> None:
    """Four moments of Figure 2 of [BF24]_: the function above, the neurons below."""
    made = three_points_run(m=200_000, scale=1e-3, lr=1e-3, steps=2_000_000, seed=0)
    figure = plt.figure(figsize=(13.5, 7.4), layout="constrained")
    above, below = figure.subfigures(2, 1)
    above.suptitle("What the network computes")
    below.suptitle(f"Its neurons by angle and size ({DRAWN:,} of {made.run.final.m:,} drawn)")
    functions = above.subplots(1, 4, sharey=True)
    circles = below.subplots(1, 4, subplot_kw={"projection": "polar"})
    moments = zip(functions, circles, MOMENTS, made.run.steps, made.states, strict=True)
    for function, circle, moment, step, net in moments:
        rf.plot.function(net, made.problem, span=(-1.0, 1.0), ax=function)
        error = np.mean((net(made.problem.X) - made.problem.y) ** 2)
        function.set_title(f"{moment}\nstep {step:,}\nmean squared error {error:.4f}")
        function.set(ylim=(-0.1, 1.3))
        function.get_legend().remove()
        function.label_outer()
        rf.plot.neurons(net, made.problem, most=DRAWN, legend=False, ax=circle)
        circle.set_title("")
    name_marks(above, functions[0])
    name_marks(below, circles[0], larger=2)
    figure.savefig(IMG / "three-points.png", dpi=110)


def name_marks(figure: Any, axes: Any, larger: float = 1.0) -> None:
    """One legend for a row of pictures with the same marks."""
    handles, labels = axes.get_legend_handles_labels()
    how = {"loc": "outside lower center", "ncols": len(labels), "frameon": False}
    figure.legend(handles, labels, markerscale=larger, **how)


def shrink(path: Path) -> None:
    """256 colours are enough for a page."""
    Image.open(path).convert("RGB").quantize(256).save(path, optimize=True)


def monitor() -> None:
    """Alignment and growth of an MLP and a CNN: the picture of examples/monitor_mnist.py."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        runpy.run_path(str(ROOT / "examples" / "monitor_mnist.py"))
        shutil.copy("monitor_mnist.png", IMG / "monitor.png")


@contextmanager
def page(width: int, height: int, dark: bool = False) -> Iterator[Any]:
    """A page of a browser of that size."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        scheme = "dark" if dark else "light"
        yield browser.new_page(
            viewport={"width": width, "height": height}, color_scheme=scheme, locale="en-GB"
        )
        browser.close()


def report() -> None:
    """The head of the report on the three points, light and dark."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "reluflow", "explain", "three-points", "-o", folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        for dark, name in (
            (False, "explain-three-points.png"),
            (True, "explain-three-points-dark.png"),
        ):
            with page(1280, 1500, dark) as shown:
                shown.goto(f"file://{folder}/report.html")
                shown.screenshot(path=IMG / name)


def studio() -> None:
    """The studio on the three points, near the jump."""
    command = [sys.executable, "-m", "reluflow", "studio", "three-points", "--no-open"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        with page(1400, 1130) as shown:
            shown.goto(server.stdout.readline().strip())
            shown.locator(".rf-column-A .rf-run", has_text="Simulated").wait_for(timeout=180_000)
            slider = shown.locator(".rf-time")
            slider.evaluate("e => { e.value = 0.68 * e.max; e.dispatchEvent(new Event('input')); }")
            shown.wait_for_timeout(500)
            shown.screenshot(path=IMG / "studio.png")
    finally:
        server.terminate()
        server.wait(15)


PICTURES = {"three-points": three_points, "report": report, "studio": studio, "monitor": monitor}

if __name__ == "__main__":
    for name in sys.argv[1:] or PICTURES:
        PICTURES[name]()
    for path in IMG.glob("*.png"):
        shrink(path)
