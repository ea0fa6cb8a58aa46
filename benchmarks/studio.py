"""The studio as a reader feels it: from drag to prediction, frames a second, bytes a frame.

In a real Chromium where there is one (Playwright and a browser); the prediction alone otherwise.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from statistics import median
from time import process_time
from typing import Any

import numpy as np

DRAGS = 6
SIZES = ((10, 2), (30, 2), (10, 3), (30, 3))  # points, features with the bias
WIDTHS = (2_000, 200_000)
FRAMES = 100
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_PLAY = """async (frames) => {
  const slider = document.querySelector(".rf-time");
  const last = Number(slider.max);
  const next = () => new Promise((done) => requestAnimationFrame(done));
  const go = async (k) => {
    slider.value = String(Math.floor((k * last) / frames));
    slider.dispatchEvent(new Event("input"));
    await next();
  };
  await go(0);
  const began = performance.now();
  for (let k = 1; k <= frames; k += 1) await go(k);
  return (performance.now() - began) / frames;
}"""


def settings(n: int, d: int, shift: float = 0.0) -> dict[str, Any]:
    """Random points with one of them dragged: on a line with a bias (d = 2), or in the plane."""
    rng = np.random.default_rng(n)
    rows = np.column_stack([rng.uniform(-1.0, 1.0, (n, d - 1)), rng.uniform(-1.0, 1.0, n)])
    rows[0, 0] += shift
    return {
        "data": {"source": "points", "rows": rows.tolist()},
        "bias": 1.0,
        "start": {"m": 200, "scale": 1e-6},
    }


def predictions(n: int, d: int) -> dict[str, float]:
    """Milliseconds from a moved point to what a worker sends, medians over drags.

    ``landscape`` comes with an estimate of the first jump, ``first`` is that jump computed, and
    ``process`` all of them. Processor time: other work on the machine does not count.
    """
    from reluflow.studio import worker

    names = ("landscape", "first", "process")
    seen: dict[str, list[float]] = {name: [] for name in names}
    began = [0.0]
    now: dict[str, float] = {}

    def send(message: dict[str, Any], arrays: Any = None) -> None:
        kind = message["type"]
        if kind in ("landscape", "process"):
            now[kind] = 1e3 * (process_time() - began[0])
            if kind == "process":
                now.setdefault("first", now[kind])

    desk = worker.Desk(send)
    for k in range(DRAGS + 1):
        job = {"type": "predict", "id": k, "side": "A", "settings": settings(n, d, 0.003 * k)}
        now.clear()
        began[0] = process_time()
        worker.predict(desk, job, None)
        for name in names:
            seen[name].append(now[name])
    return {name: median(times[1:]) for name, times in seen.items()}


def frames(browser: Any, m: int) -> dict[str, float]:
    """Milliseconds for each frame of the page and bytes for each frame of the run."""
    from reluflow.playback.messages import from_block

    server = subprocess.Popen(
        [sys.executable, "-m", "reluflow", "studio", "--no-open"], stdout=subprocess.PIPE, text=True
    )
    blocks: list[bytes] = []

    def keep(payload: str | bytes) -> None:
        if isinstance(payload, bytes) and len(payload) > 100_000:
            blocks.append(payload)

    try:
        address = server.stdout.readline().strip() if server.stdout is not None else ""
        start = {"m": m, "scale": 1e-6, "log_scale": None}
        text = json.dumps({"a": {"start": start}, "b": None})
        packed = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.set_default_timeout(300_000)
        page.on("websocket", lambda socket: socket.on("framereceived", keep))
        page.goto(f"{address}&s={packed}")
        if m > 20_000:
            page.get_by_role("button", name="Simulate").click()
        page.locator(".rf-run", has_text="Simulated").first.wait_for()
        each = float(page.evaluate(_PLAY, FRAMES))
        page.close()
    finally:
        server.terminate()
        server.wait(20)
    _, arrays = from_block(blocks[-1])
    moving = ("cone", "shift", "matrix", "index", "vector", "log_size", "group", "counts")
    count = arrays["counts"].reshape(-1, 2)
    first = 4 * int(count[0, 1]) * (3 + arrays["vector"].size // arrays["index"].size)
    total = sum(arrays[name].nbytes for name in moving) - first
    return {"ms": each, "fps": 1e3 / each, "bytes": total / (len(count) - 1), "first": float(first)}


def run(console: Callable[[str], object] = print) -> list[dict[str, Any]]:
    """Print and return one row for each measurement."""
    rows: list[dict[str, Any]] = []
    for n, d in SIZES:
        found = predictions(n, d)
        rows.append({"name": f"drag, n = {n}, d = {d}", **found})
        console(
            f"drag to new prediction, n = {n}, d = {d}: landscape and estimated first jump "
            f"{found['landscape']:.1f} ms (wanted < 100), first jump computed "
            f"{found['first']:.0f} ms, all jumps {found['process']:.0f} ms"
        )
    named = [os.environ.get("RELUFLOW_CHROMIUM"), *map(shutil.which, _BROWSERS)]
    browser = next(filter(None, named), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        browser = None
    if browser is None:
        console("frames: left out, no Playwright with a Chromium here")
        return rows
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for m in WIDTHS:
            found = frames(chromium, m)
            rows.append({"name": f"frames, {m} neurons", **found})
            console(
                f"{m:,} neurons: {found['fps']:.0f} frames a second ({found['ms']:.1f} ms each, "
                f"wanted < 33), {found['bytes']:,.0f} bytes a frame after {found['first']:,.0f}"
            )
        chromium.close()
    return rows


if __name__ == "__main__":
    run()
