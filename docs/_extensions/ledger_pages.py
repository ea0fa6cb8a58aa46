"""Writes a page for each paper from the ledger: claims as checked by this build, figures, readings.

The numbers are those of ``reluflow reproduce --quick``, run by the build; its records are reused as
long as the package's source is the same.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

if TYPE_CHECKING:
    from reluflow.claims.claim import Check

MADE = Path("_made/papers")
SOURCES = "source"
WIDE = "html_theme.sidebar_secondary.remove: true"  # tables and code take the whole page


def checked_claims(out: Path) -> dict[str, Any]:
    """What ``reluflow reproduce --quick`` finds, as its JSON says it."""
    out.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "reluflow", "reproduce", "--quick", "--json", "--quiet"]
    workers = str(min(2, os.cpu_count() or 1))
    done = subprocess.run(
        [*command, "--workers", workers, "-o", str(out)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):
        raise ExtensionError(
            f"reluflow reproduce ended with {done.returncode}: {done.stderr[-2000:]}"
        )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def cell(text: str) -> str:
    """Text in a cell of a Markdown table."""
    return " ".join(text.replace("|", r"\|").replace("<", "&lt;").replace("*", r"\*").split())


def measured(verdict: dict[str, Any]) -> str:
    """The comparison that comes closest to its bound stands for the check."""
    rows = verdict["comparisons"]
    if not rows:
        return ""
    worst = next((row for row in rows if row["status"] != "HOLDS"), rows[0])
    more = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
    return cell(
        f"{worst['what']}: {worst['measured']:.4g} {worst['sense']} {worst['bound']:.4g}{more}"
    )


def hypotheses(verdict: dict[str, Any], check: Check | None) -> str:
    """Names of the hypotheses, with a mark where one is not met; else what the check makes."""
    if not verdict["hypotheses"] and check is not None and check.experiment is not None:
        does = (check.experiment.__doc__ or "").strip().split("\n\n")[0]
        return cell(f"its own data. {does}" if does else "its own data")
    marks = {"ok": "", "not met": " (not met)", "unchecked": " (unchecked)"}
    named = {h["name"]: marks.get(h["state"], f" ({h['state']})") for h in verdict["hypotheses"]}
    return cell("; ".join(name + mark for name, mark in named.items()))


def source(check: Check | None) -> str:
    """Link to the page with the source of a check."""
    return f"[source]({SOURCES}/{check.module}.md)" if check is not None else ""


def write_sources(folder: Path, modules: set[str]) -> None:
    """A page for each module with checks."""
    import reluflow

    root = Path(reluflow.__file__).parents[1]
    (folder / SOURCES).mkdir(exist_ok=True)
    for module in modules:
        path = root / f"{module.replace('.', '/')}.py"
        head = f"---\norphan: true\n{WIDE}\n---\n\n# {module}\n\n"
        text = f"{head}```python\n{path.read_text()}```\n"
        write_if_new(folder / SOURCES / f"{module}.md", text)


def write_if_new(page: Path, text: str) -> None:
    """Leave a page alone that would not change, so that it is not built again."""
    if not page.exists() or page.read_text() != text:
        page.write_text(text)


def claim_rows(
    paper: str, verdicts: list[dict[str, Any]], checks: Mapping[tuple[str, str, str], Check]
) -> list[str]:
    """The table: one line for each check."""
    rows = [
        "| claim | says | status | measured | hypotheses | check |",
        "|---|---|---|---|---|---|",
    ]
    before = ""
    for v in verdicts:
        if v["paper"] != paper:
            continue
        form = "" if v["form"] == "stated" else f" ({v['form']})"
        part = f" {v['part']}" if v["part"] else ""
        name = cell(f"{v['id'].removeprefix(paper + '-')}{part}{form}")
        says = "" if v["id"] == before else cell(v["statement"])
        before = v["id"]
        check = checks.get((v["id"], v["form"], v["part"]))
        rows.append(
            f"| {name} | {says} | {v['status']} | {measured(v)} | {hypotheses(v, check)} "
            f"| {source(check)} |"
        )
    return rows


def readings(paper: str, verdicts: list[dict[str, Any]]) -> list[str]:
    """Where print and meaning part: what is printed, what is meant or repaired, and why."""
    from reluflow import ledger

    lines: list[str] = []
    for entry in ledger(paper):
        name = entry.id.removeprefix(paper + "-")
        slips = [v for v in verdicts if v["id"] == entry.id and v["form"] == "slip"]
        for v in slips:
            lines += [f"**{name}.** Printed: {cell(v['printed'])}. Meant: {cell(v['meant'])}.", ""]
        if entry.slip and not slips:
            lines += [f"**{name}.** {cell(entry.slip)}.", ""]
        if entry.repaired:
            said, given, holds = map(cell, (entry.statement, entry.hypotheses, entry.repaired))
            lines += [
                f"**{name}.** This clause fails as printed: {said}. Its printed hypotheses, met by "
                f"the counterexample: {given}. What holds: {holds}.",
                "",
            ]
    return lines


def figures(paper: str, found: list[dict[str, Any]], folder: Path) -> list[str]:
    """The figures of a paper, copied beside the page."""
    lines: list[str] = []
    for figure in found:
        if figure["paper"] != paper:
            continue
        lines += [f"### {figure['figure']}: {figure['title']}", ""]
        for path in map(Path, figure["files"]):
            if path.suffix == ".png" and path.exists():
                shutil.copyfile(path, folder / path.name)
                lines += [f"![{cell(figure['title'])}]({path.name})", ""]
    return lines


def paper_page(paper: str, found: dict[str, Any], folder: Path) -> str:
    """One paper: title, claims, figures, readings."""
    from reluflow import ledger
    from reluflow.papers.sources import SOURCES as PAPERS

    title, authors, link = PAPERS[paper]
    verdicts = found["claims"] + [v for f in found["figures"] for v in f["verdicts"]]
    entries = ledger(paper)
    checks = {(c.id, c.form, c.part): c for entry in entries for c in entry.checks}
    mine = [v for v in verdicts if v["paper"] == paper]
    counts = {
        s: sum(v["status"] == s for v in mine) for s in dict.fromkeys(v["status"] for v in mine)
    }
    lines = [
        f"---\n{WIDE}\n---\n",
        f"# {paper}: {title}",
        "",
        f"{authors}. [The paper]({link}).",
        "",
        f"{len(entries)} claims, {len(mine)} checks run by this build at their quick size: "
        + ", ".join(f"{n} {s}" for s, n in counts.items())
        + ". What the words mean stands [below the list of papers](../../papers.md).",
        "",
        "## Claims",
        "",
        "Where a check makes its own data, the words beside it say which.",
        "",
        *claim_rows(paper, verdicts, checks),
        "",
        "## Figures",
        "",
        *figures(paper, found["figures"], folder),
        "## What we read differently, and why",
        "",
        "Most are slips of print beside a true statement; none changes what the paper is about.",
        "",
        *readings(paper, verdicts),
    ]
    return "\n".join(lines) + "\n"


def write_pages(app: Sphinx) -> None:
    """Write the five pages before the sources are read."""
    from reluflow import ledger
    from reluflow.papers.sources import SOURCES as PAPERS

    folder = Path(app.srcdir) / MADE
    folder.mkdir(parents=True, exist_ok=True)
    found = checked_claims(Path(app.srcdir) / "_build" / "reproduction")
    for paper in PAPERS:
        write_if_new(folder / f"{paper.lower()}.md", paper_page(paper, found, folder))
    write_sources(folder, {check.module for entry in ledger() for check in entry.checks})


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect to the start of the build."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True}
