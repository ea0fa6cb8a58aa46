"""A studio that runs, and a real browser for it; without one, tests skip with a reason."""

import os
import shutil
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class Studio:
    """A server in a process of its own."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "reluflow", "studio", *arguments, "--no-open"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        self.address = self.process.stdout.readline().strip()
        parts = urlsplit(self.address)
        self.host, self.port = parts.netloc, parts.port
        self.token = parts.fragment.removeprefix("token=")

    @property
    def alive(self):
        return self.process.poll() is None

    def close(self):
        self.process.terminate()
        self.process.wait(15)
        self.process.stdout.close()


@pytest.fixture(scope="session")
def studio():
    """One studio for all tests that do not change it."""
    made = Studio("three-points")
    yield made
    assert made.alive, "the server died on the way"
    made.close()


@pytest.fixture(scope="session")
def chromium():
    """A browser; its pages are made by `page`."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = os.environ.get("RELUFLOW_CHROMIUM") or next(
        filter(None, map(shutil.which, BROWSERS)), None
    )
    if found is None:
        pytest.skip("no Chromium found: apt-get install chromium, or set RELUFLOW_CHROMIUM")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(chromium):
    """A page that notes every error on it; the test fails if there is one."""
    context = chromium.new_context(viewport={"width": 1400, "height": 1000}, accept_downloads=True)
    made = context.new_page()
    made.set_default_timeout(60_000)
    errors = []
    made.on("pageerror", lambda error: errors.append(str(error)))
    made.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    yield made
    context.close()
    assert errors == []
