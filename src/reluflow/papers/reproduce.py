"""reproduce: figures and claims of the papers, resumable, with one page to read."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reluflow.claims.claim import SIZES, Check
from reluflow.claims.ledger import ledger
from reluflow.claims.run import as_found, try_check, verdict_of
from reluflow.claims.verdict import Hypothesis, Status, Verdict, from_dict
from reluflow.errors import ReluflowError
from reluflow.papers import record
from reluflow.papers.figure import Drawn, Figure, Skipped, Spec, chosen
from reluflow.report.render import to_svg, write_picture
from reluflow.runtime import Progress


@dataclass(frozen=True)
class Reproduction:
    """What was reproduced: figures, verdicts of further claims, and the page that shows both."""

    figures: tuple[Figure, ...]
    verdicts: tuple[Verdict, ...]
    page: Path

    @property
    def all_verdicts(self) -> tuple[Verdict, ...]:
        """Those of the figures and the further ones."""
        return tuple(v for f in self.figures for v in f.verdicts) + self.verdicts

    @property
    def surprising(self) -> tuple[Verdict, ...]:
        """Verdicts that differ from what is known to come out."""
        return tuple(v for v in self.all_verdicts if v.surprising)


def reproduce(
    paper: str | None = None,
    figure: str | None = None,
    out: str | os.PathLike[str] = "out",
    size: str = "full",
    *,
    seed: int = 0,
    progress: bool | str = "auto",
    say: bool = False,
) -> Reproduction:
    """Make figures of the papers and check their claims.

    Parameters
    ----------
    paper, figure : str, optional
        "BF24" and "F2" make one figure with the claims it shows; a paper alone all its figures
        and every claim that can be run; nothing, all papers.
    out : path
        Folder for pictures, records and ``index.html``; made if needed. What is there already,
        with the same settings and version, is not made again.
    size : {"quick", "full"}
        A version in seconds, or the paper's own size.
    seed : int
    progress : bool or "auto"
        One display for the whole job.
    say : bool
        Whether to name each finished part on standard error.
    """
    if size not in SIZES:
        raise ReluflowError(f"size must be one of {', '.join(SIZES)}, got {size!r}")
    specs, checks = _wanted(paper, figure)
    folder = _folder(out)
    began = time.monotonic()
    figures: list[Figure] = []
    verdicts: list[Verdict] = []
    jobs = len(specs) + len(checks)
    with Progress(jobs, "reproduce", progress, overall=True) as bar:
        for spec in specs:
            bar.update(len(figures), time.monotonic() - began, f"{spec.paper} {spec.name}")
            made = make_figure(spec, folder, size, seed)
            figures.append(made)
            if say:
                how = "already done" if made.resumed else f"done in {made.seconds:.1f} s"
                bar.say(f"{spec.paper} {spec.name}: {how}")
        for check in checks:
            done = len(figures) + len(verdicts)
            bar.update(done, time.monotonic() - began, check.name)
            verdict, resumed = make_verdict(check, folder, size, seed)
            verdicts.append(verdict)
            if say and not resumed:
                bar.say(verdict.line())
    from reluflow.papers.page import write_index

    shown = {spec.id: set(spec.claims) for spec in specs}
    page = write_index(folder, figures, verdicts, shown, size)
    return Reproduction(tuple(figures), tuple(verdicts), page)


def _wanted(paper: str | None, figure: str | None) -> tuple[list[Spec], list[Check]]:
    """Figures to make, and checks to run beside them (those of the figures left out)."""
    specs = (
        [] if paper is not None and figure is None and _no_figures(paper) else chosen(paper, figure)
    )
    ids = {spec.id for spec in specs}
    shown = {id for spec in specs for id in spec.claims}
    checks = [
        check
        for entry in ledger(None if figure is not None else paper)
        for check in entry.checks
        if check.runnable and check.id not in ids and (figure is None or check.id in shown)
    ]
    return specs, [check for check in checks if not check.module.startswith("reluflow.papers")]


def _no_figures(paper: str) -> bool:
    from reluflow.claims.ledger import PAPERS
    from reluflow.papers.figure import all_figures

    known = paper.upper() in PAPERS
    return known and not any(key[0] == paper.upper() for key in all_figures())


def _folder(out: str | os.PathLike[str]) -> Path:
    folder = Path(out)
    try:
        (folder / "records").mkdir(parents=True, exist_ok=True)
        (folder / "panels").mkdir(exist_ok=True)
    except OSError as error:
        raise ReluflowError(f"cannot write into {folder}: {error.strerror}") from None
    return folder


def make_figure(spec: Spec, folder: Path, size: str, seed: int = 0) -> Figure:
    """One figure, made or read from its record."""
    settings = {"size": size, "seed": seed, **spec.sizes[size]}
    stem = f"{spec.paper}-{spec.name}".lower()
    path = folder / "records" / f"{stem}.json"
    key = record.key_of(spec.make.__module__, {"figure": spec.id, **settings})
    stored = record.read(path, key)
    if stored is not None:
        return _figure(spec, folder, stored, settings, resumed=True)
    began = time.monotonic()
    check = Check(spec.id, "stated", "", spec.make.__module__, sizes=spec.sizes)
    try:
        drawn = spec.make(seed=seed, **spec.sizes[size])
    except Skipped as reason:
        unmet = [Hypothesis("what the figure needs is there", False, str(reason))]
        verdict = verdict_of(check, as_found(()), unmet, settings)
        return Figure(
            spec.paper, spec.name, spec.title, (), {}, (f"Skipped: {reason}",), settings, (verdict,)
        )
    verdict = verdict_of(check, as_found(drawn.seen), (), settings, known=True)
    files, panels = _render(drawn, folder, stem)
    content = {
        "figure": spec.id,
        "title": spec.title,
        "settings": settings,
        "files": files + [name for shown in panels for name in shown["files"]],
        "pictures": files,
        "panels": panels,
        "numbers": drawn.numbers,
        "summary": list(drawn.summary),
        "caption": drawn.caption,
        "verdicts": [verdict.to_dict()],
        "seconds": time.monotonic() - began,
    }
    record.write(path, key, content)
    return _figure(spec, folder, json.loads(json.dumps(content, default=record.plain)), settings)


def _figure(
    spec: Spec,
    folder: Path,
    stored: dict[str, Any],
    settings: dict[str, Any],
    resumed: bool = False,
) -> Figure:
    return Figure(
        spec.paper, spec.name, spec.title,
        files=tuple(folder / name for name in stored["pictures"]),
        numbers=stored["numbers"],
        summary=tuple(stored["summary"]),
        settings=settings,
        verdicts=tuple(from_dict(v) for v in stored["verdicts"]),
        caption=stored["caption"],
        panels=tuple(stored["panels"]),
        seconds=stored["seconds"],
        resumed=resumed,
    )  # fmt: skip


def _render(drawn: Drawn, folder: Path, stem: str) -> tuple[list[str], list[dict[str, Any]]]:
    """Pictures as PNG, their panels as SVG; names relative to the folder."""
    files, panels = [], []
    for i, picture in enumerate(drawn.pictures):
        name = f"{stem}-{picture.name}" if picture.name else (stem if i == 0 else f"{stem}-{i + 1}")
        files.append(write_picture(picture, folder / f"{name}.png").name)
        names = []
        for k, panel in enumerate(picture.panels):
            path = folder / "panels" / f"{name}-{k}.svg"
            beside = path.with_name(path.name + ".part")
            beside.write_text(to_svg(panel, picture.width, picture.height), encoding="utf-8")
            beside.replace(path)
            names.append(f"panels/{path.name}")
        alts = [panel.title.replace("\n", ", ") or picture.title for panel in picture.panels]
        panels.append({"columns": picture.columns, "files": names, "alts": alts})
    return files, panels


def make_verdict(check: Check, folder: Path, size: str, seed: int = 0) -> tuple[Verdict, bool]:
    """The verdict of a claim's own experiment, made or read from its record."""
    path = folder / "records" / f"{check.name.replace('/', '_').lower()}.json"
    settings = {"claim": check.name, "size": size, "seed": seed, **check.sizes[size]}
    key = record.key_of(check.module, settings)
    stored = record.read(path, key)
    if stored is not None:
        return from_dict(stored["verdict"]), True
    verdict = try_check(check, size, seed)
    if verdict.status is not Status.UNDECIDED:
        record.write(path, key, {"verdict": verdict.to_dict()})
    return verdict, False
