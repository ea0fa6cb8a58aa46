"""The index page of a reproduction: figures beside what must be seen in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from reluflow.claims.ledger import PAPERS
from reluflow.claims.verdict import Verdict, count_statuses
from reluflow.papers.figure import Figure
from reluflow.papers.sketches import Sketch
from reluflow.report.page import Page, verdict_rows


def write_index(
    folder: Path,
    figures: Sequence[Figure],
    verdicts: Sequence[Verdict],
    shown: Mapping[str, set[str]],
    size: str,
    left_out: Sequence[Sketch] = (),
) -> Path:
    """Write ``index.html``: by paper, each figure with its claims, then the other claims.

    Parameters
    ----------
    folder : Path
    figures, verdicts
        What was made.
    shown : mapping
        Figure id to the claims it shows beside its own.
    size : str
        Said in the subtitle.
    left_out : sequence of Sketch
        Drawings without data, named after the figures of their paper.
    """
    everything = [v for f in figures for v in f.verdicts] + list(verdicts)
    papers = [p for p in PAPERS if any(v.paper == p for v in everything)]
    words = {
        "quick": "quick size",
        "scaled": "the papers' own sizes, deep networks scaled down",
        "full": "the papers' own sizes",
    }
    page = Page("Reproductions", f"Figures and claims, {words[size]}.")
    page.text(_outcome(everything), kind="lead")
    if len(papers) > 1:
        page.links({paper: f"#{paper}" for paper in papers})
    for paper in papers:
        page.heading(paper, anchor=paper)
        beside: set[str] = set()
        for figure in figures:
            if figure.paper == paper:
                ids = shown.get(f"{figure.paper}-{figure.name}", set())
                beside |= ids
                _figure(page, folder, figure, [v for v in verdicts if v.id in ids])
        sketches = [sketch.sentence for sketch in left_out if sketch.paper == paper]
        if sketches:
            page.heading(f"Figures of {paper} left out", 3).points(sketches)
        rest = [v for v in verdicts if v.paper == paper and v.id not in beside]
        if rest:
            page.heading(f"Claims of {paper}", 3)
            page.text(_outcome(rest)).table(verdict_rows(rest))
    return page.write(folder / "index.html")


def _figure(page: Page, folder: Path, figure: Figure, beside: Sequence[Verdict]) -> None:
    page.heading(
        f"{figure.paper} {figure.name}: {figure.title}", 3, f"{figure.paper}-{figure.name}"
    )
    for i, shown in enumerate(figure.panels):
        svgs = [(folder / name).read_text(encoding="utf-8") for name in shown["files"]]
        caption = figure.caption if i == len(figure.panels) - 1 else ""
        page.images(svgs, shown["alts"], shown["columns"], caption)
    if figure.films:
        page.links({f"Animation: {name}": name for name in figure.films})
    page.points(figure.summary)
    page.table(verdict_rows([*figure.verdicts, *beside]))


def _outcome(verdicts: Sequence[Verdict]) -> str:
    """How many verdicts of each status, and how many are not as expected."""
    odd = [v.id for v in verdicts if v.surprising]
    end = f"Not as expected: {', '.join(odd)}." if odd else "All as expected."
    return f"{count_statuses(verdicts)} {end}"
