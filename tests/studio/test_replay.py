"""The run inside report.html plays offline, in a real Chromium."""

import re

import pytest

import reluflow as rf

pytestmark = pytest.mark.slow


def test_the_report_plays_offline(chromium, tmp_path):
    found = rf.explain(rf.datasets.three_points(), m=30, scale=1e-4, out=tmp_path, progress=False)
    context = chromium.new_context(offline=True, viewport={"width": 1200, "height": 1000})
    page = context.new_page()
    asked, errors = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((tmp_path / "report.html").as_uri())
    reading = page.locator(".rf-reading")
    before = reading.text_content()
    page.get_by_label("Speed").select_option("4")
    page.get_by_role("button", name="Play").click()
    page.get_by_role("button", name="Pause").wait_for()
    page.get_by_role("button", name="Play").wait_for()
    after = reading.text_content()
    context.close()
    assert errors == []
    assert all(url.startswith(("file:", "data:")) for url in asked)
    assert before.startswith("time 0 ")
    loss = float(re.search(r"loss ([\d.e-]+)", after)[1])
    assert loss == float(f"{found.run.loss[-1]:.6g}")
