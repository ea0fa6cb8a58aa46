"""reproduce: figures and claims of the papers, resumable, with one page to read."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reluflow.checks import check_arguments
from reluflow.claims.claim import SIZES, Check
from reluflow.claims.ledger import PAPERS, ledger
from reluflow.claims.verdict import Status, Verdict, count_statuses
from reluflow.errors import ReluflowError
from reluflow.papers.catalogue import Sketch, all_figures, select_figures, sketches_of
from reluflow.papers.figure import Figure, Spec
from reluflow.papers.parts import Row, figure_in, run_parts, verdict_in
from reluflow.papers.sources import SOURCES
from reluflow.report.page import Page, verdict_rows
from reluflow.runtime import Progress

DEVICES = ("cpu", "cuda", "auto")


@dataclass(frozen=True)
class Reproduction:
    """What was reproduced: figures, verdicts of further claims, and the page that shows both.

    Attributes
    ----------
    figures : tuple of Figure
    verdicts : tuple of Verdict
        Of claims beside those that the figures show.
    page : Path
        The page with both.
    left_out : tuple of Sketch
        Drawings of the papers that hold no data to reproduce.
    """

    figures: tuple[Figure, ...]
    verdicts: tuple[Verdict, ...]
    page: Path
    left_out: tuple[Sketch, ...] = ()

    @property
    def all_verdicts(self) -> tuple[Verdict, ...]:
        """Those of the figures and the further ones."""
        return tuple(v for f in self.figures for v in f.verdicts) + self.verdicts

    @property
    def surprising(self) -> tuple[Verdict, ...]:
        """Verdicts that differ from what is known to come out."""
        return tuple(v for v in self.all_verdicts if v.surprising)


@check_arguments
def reproduce(
    paper: str | None = None,
    figure: str | None = None,
    out: str | os.PathLike[str] = "out",
    size: str = "full",
    *,
    seed: int = 0,
    workers: int | None = None,
    device: str | None = None,
    progress: bool | str = "auto",
    say: bool = False,
) -> Reproduction:
    """Make figures of the papers and check their claims.

    Parameters
    ----------
    paper, figure : str, optional
        "BF24" and "F2" make one figure with the claims it shows, "LLWA21" and "F1" the three
        parts F1L, F1M and F1R; a paper alone all its figures and every claim that can be run;
        nothing, all papers.
    out : path
        Folder for pictures, records and ``index.html``; made if needed. What is there already,
        with the same settings and version, is not made again.
    size : {"quick", "scaled", "full"}
        A smaller version (a paper in about a minute on two cores), the papers' own sizes with
        deep networks scaled down to a machine without a GPU, or the papers' own sizes.
    seed : int
        Of random draws; figures with a fixed sample keep theirs.
    workers : int, optional
        Processes that share the work, all cores by default; 0 for this process alone.
    device : {"cpu", "cuda", "auto"}, optional
        Where deep networks are trained; by default what RELUFLOW_DEVICE says, or a GPU where
        there is one. At full size the CPU is used only if it is asked for.
    progress : bool or "auto"
        One display for the whole job.
    say : bool
        Whether to name each finished part on standard error.

    Returns
    -------
    Reproduction
    """
    if size not in SIZES:
        raise ReluflowError(f"size must be one of {', '.join(SIZES)}, got {size!r}")
    _check_device(device)
    specs, checks = _select(paper, figure)
    folder = _folder(out)
    names = [check.name for check in checks]
    # the first part has the machine for itself while kernels compile: a short one
    ordered = sorted(specs, key=lambda spec: spec.waits)
    parts = names[:1] + [f"figure {spec.id}" for spec in ordered] + names[1:]
    began, done = time.monotonic(), 0
    with (
        _passing_on(device),
        Progress(len(parts), "reproduce", progress, overall=True) as bar,
    ):

        def each(row: Row) -> None:
            nonlocal done
            done += 1
            bar.update(done, time.monotonic() - began, row["part"])
            if say:
                bar.say(_line_of(row))

        rows = run_parts(parts, folder, size, [seed], workers, each)
        made = {row["part"]: row for row in rows}
        drawn = [made.pop(f"figure {spec.id}", None) for spec in specs]
        figures = [figure_in(row, folder, size) for row in drawn if row is not None]
    verdicts = [verdict_in(row) for row in made.values()]
    shown = {spec.id: set(spec.claims) for spec in specs}
    left_out = sketches_of(paper) if figure is None else ()
    page = write_index(folder, figures, verdicts, shown, size, left_out)
    return Reproduction(tuple(figures), tuple(verdicts), page, left_out)


@contextlib.contextmanager
def _passing_on(device: str | None) -> Iterator[None]:
    """Pass the device on by the environment, which worker processes share."""
    from reluflow.papers.tk24.figures.dominoes_run import DEVICE

    before = os.environ.get(DEVICE)
    if device is not None:
        os.environ.pop(DEVICE, None)
    if device not in (None, "auto"):  # "auto" is what is done where nothing is said
        os.environ[DEVICE] = str(device)
    try:
        yield
    finally:
        os.environ.pop(DEVICE, None)
        if before is not None:
            os.environ[DEVICE] = before


def _line_of(row: Row) -> str:
    """What to print when a part is finished."""
    done = row["status"] == "ok"
    again = done and row["resumed"]
    if done and "verdict" in row:
        return verdict_in(row).line() + (" (already done)" if again else "")
    how = f"done in {row['seconds']:.1f} s" if done else row["message"]
    return f"{row['part'].replace('figure ', '').replace('-', ' ')}: " + (
        "already done" if again else how
    )


def _check_device(device: str | None) -> None:
    """Refuse a device that is unknown, or that is not here."""
    if device not in (None, *DEVICES):
        raise ReluflowError(f"device must be one of {', '.join(DEVICES)}, got {device!r}")
    from reluflow.torch import has_torch

    if device == "cuda" and has_torch():
        from reluflow.torch.training import device_of

        device_of(device)


def _select(paper: str | None, figure: str | None) -> tuple[list[Spec], list[Check]]:
    """Figures to make, and checks to run beside them (without those of the figures)."""
    for sketch in sketches_of(paper, figure) if figure is not None and paper is not None else ():
        raise ReluflowError(sketch.sentence)
    specs = select_figures(paper, figure)
    ids = {spec.id for spec in specs}
    shown = {id for spec in specs for id in spec.claims}
    checks = [
        check
        for entry in ledger(None if figure is not None else paper)
        for check in entry.checks
        if check.runnable and check.id not in ids and (figure is None or check.id in shown)
    ]
    drawn = {spec.id for spec in all_figures().values()}  # a figure is its own check
    return specs, [check for check in checks if check.id not in drawn]


def _folder(out: str | os.PathLike[str]) -> Path:
    folder = Path(out)
    try:
        (folder / "records").mkdir(parents=True, exist_ok=True)
        (folder / "panels").mkdir(exist_ok=True)
    except OSError as error:
        raise ReluflowError(f"cannot write into {folder}: {error.strerror}") from None
    return folder


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
    title = f"Reproduction of {papers[0]}" if len(papers) == 1 else "Reproductions"
    page = Page(title, f"Figures and claims, {words[size]}.", terms=True)
    page.text(_outcome(everything), kind="lead")
    if len(papers) > 1:
        page.links({f"{p}: {SOURCES[p].title}": f"#{p}" for p in papers}, rows=True)
    for paper in papers:
        source = SOURCES[paper]
        page.heading(f"{paper}: {source.title}", anchor=paper)
        page.text(f"{source.authors}.").links({source.link: source.link})
        mine = {f"{paper}-{f.name}": f for f in figures if f.paper == paper}
        beside = {id for name in mine for id in shown.get(name, set())}
        rest = [v for v in verdicts if v.paper == paper and v.id not in beside]
        contents = {figure.name: f"#{name}" for name, figure in mine.items()}
        page.links(contents | ({"Claims": f"#{paper}-claims"} if rest else {}))
        for name, figure in mine.items():
            ids = shown.get(name, set())
            _add_figure(page, folder, figure, [v for v in verdicts if v.id in ids])
        sketches = [sketch.sentence for sketch in left_out if sketch.paper == paper]
        if sketches:
            page.heading(f"Figures of {paper} left out", 3).points(sketches)
        if rest:
            page.heading(f"Claims of {paper}", 3, f"{paper}-claims")
            page.text(_outcome(rest)).table(verdict_rows(rest))
    return page.definitions().write(folder / "index.html")


def _add_figure(page: Page, folder: Path, figure: Figure, beside: Sequence[Verdict]) -> None:
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
    """How many verdicts of each status, which are not as expected, and which fail."""
    odd = [v.id for v in verdicts if v.surprising]
    end = f"Not as expected: {', '.join(odd)}." if odd else "All as expected."
    fails = dict.fromkeys(v.id for v in verdicts if v.status is Status.FAILS and not v.surprising)
    known = f" These fail as printed, which is known: {', '.join(fails)}." if fails else ""
    return f"{count_statuses(verdicts)} {end}{known}"
