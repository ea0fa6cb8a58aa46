"""Looks at every link of the built pages that stays within the site: its page and anchor exist."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

from sphinx.application import Sphinx
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)


class Marks(HTMLParser):
    """Links out of a page, and anchors in it."""

    def __init__(self) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what points elsewhere and what can be pointed at."""
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.links.add(value)


@cache
def marks_of(page: Path) -> Marks:
    """Links and anchors of a page."""
    found = Marks()
    found.feed(page.read_text(encoding="utf-8"))
    return found


def broken_links(root: Path) -> Iterator[tuple[str, str]]:
    """(page, link) of every link within the site that leads nowhere."""
    pages = (page for page in root.rglob("*.html") if "_static" not in page.parts)
    for page in sorted(pages):
        for link in sorted(marks_of(page).links):
            if urlsplit(link).scheme or link.startswith("//"):
                continue
            address, anchor = urldefrag(link)
            path = unquote(urlsplit(address).path)
            target = (page.parent / path).resolve() if path else page
            if target.is_dir():
                target = target / "index.html"
            there = target.is_file()
            if there and anchor and target.suffix == ".html":
                there = unquote(anchor) in marks_of(target).anchors
            if not there:
                yield page.relative_to(root).as_posix(), link


def check(app: Sphinx, error: Exception | None) -> None:
    """Warn about each link that leads nowhere; with -W the build fails."""
    if error is None and app.builder.format == "html":
        for page, link in broken_links(Path(app.outdir).resolve()):
            LOGGER.warning("%s: the link %s leads nowhere", page, link, type="links")


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect to the end of the build."""
    app.connect("build-finished", check)
    return {"parallel_read_safe": True}
