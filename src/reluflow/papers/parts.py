"""Parts of a reproduction, figures and claims, as points of a sweep.

A finished part leaves a record: one with the same settings, version and source is not made twice.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import reluflow
from reluflow._version import __version__
from reluflow.claims.claim import Check, Found, load_all
from reluflow.claims.run import try_check, verdict_of
from reluflow.claims.verdict import Status, Verdict, from_dict
from reluflow.papers.catalogue import all_figures
from reluflow.papers.figure import Drawn, Figure, Skipped, Spec
from reluflow.plot.animation import animate
from reluflow.plot.render import to_svg, write_picture
from reluflow.runtime import write_text
from reluflow.runtime.plain import to_plain

Row = Mapping[str, Any]


def make_part(part: str, folder: str, size: str, root: int) -> dict[str, Any]:
    """Make a figure ("figure BF24-F2") or a verdict ("BF24-L1/printed"): the task of the sweep.

    Both leave a record in the folder; without a folder a verdict is made afresh.
    """
    if part.startswith("figure "):
        spec = spec_of(part)
        return {"resumed": make_figure(spec, Path(folder), size, root).resumed}
    check = load_all()[part]
    if not folder:
        verdict, resumed = try_check(check, size, root), False
    else:
        verdict, resumed = make_verdict(check, Path(folder), size, root)
    return {"resumed": resumed, "verdict": json.dumps(verdict.to_dict(), default=to_plain)}


def run_parts(
    parts: Iterable[str],
    folder: Path | None,
    size: str,
    seeds: Iterable[int] = (0,),
    workers: int | None = None,
    each: Callable[[Row], None] | None = None,
) -> list[Row]:
    """Rows of :func:`make_part` in the order given, each part with each seed.

    Worker processes do it (all cores by default; 0: this process). Ctrl-C ends them at once, and
    what is finished stays in its records.
    """
    from reluflow.sweeps import sweep

    names, roots = list(parts), list(seeds)
    grid = {"part": names, "root": roots, "folder": str(folder or ""), "size": size}
    executor = "serial" if workers == 0 else workers
    table = sweep(make_part, grid, executor=executor, progress=False, each=each)
    rows: list[Row] = sorted(table.rows(), key=lambda row: row["index"])
    if len(rows) < len(names) * len(roots):
        raise KeyboardInterrupt
    return rows


def spec_of(part: str) -> Spec:
    """The figure of a part's name."""
    return next(s for s in all_figures().values() if f"figure {s.id}" == part)


def verdict_in(row: Row) -> Verdict:
    """The verdict of a row; UNDECIDED with the sentence if its worker gave none."""
    if row["status"] == "ok":
        return from_dict(json.loads(row["verdict"]))
    check = load_all()[row["part"]]
    return verdict_of(check, Found((), note=row["message"]), (), {}, known=True)


def figure_in(row: Row, folder: Path, size: str) -> Figure:
    """The figure of a row, from its record; one that failed says why."""
    spec = spec_of(row["part"])
    if row["status"] == "ok":
        return replace(make_figure(spec, folder, size, row["root"]), resumed=row["resumed"])
    settings = {"size": size, "seed": row["root"], **spec.sizes[size]}
    found = Found((), note=row["message"])
    verdict = verdict_of(_check_of(spec), found, (), settings, known=True)
    return _empty(spec, f"Failed: {row['message']}", settings, verdict)


def make_figure(spec: Spec, folder: Path, size: str, seed: int = 0) -> Figure:
    """One figure, made or read from its record."""
    settings = {"size": size, "seed": seed, **spec.sizes[size]}
    stem = f"{spec.paper}-{spec.name}".lower()
    path = folder / "records" / f"{stem}.json"
    key = record_key({"figure": spec.id, **settings})
    stored = read_record(path, key)
    if stored is not None:
        return _read_figure(spec, folder, stored, settings, resumed=True)
    began = time.monotonic()
    check = _check_of(spec)
    try:
        drawn = spec.make(seed=seed, **spec.sizes[size], **_place_of_runs(spec, folder))
    except Skipped as reason:
        found = reason.found
        verdict = verdict_of(check, found, found.hypotheses, settings, known=True)
        return _empty(spec, f"Skipped: {reason}", settings, verdict)
    verdict = verdict_of(check, drawn.found, drawn.hypotheses, settings, known=True)
    files, panels = _render(drawn, folder, stem)
    films = [
        animate(run, folder / f"{stem}-{name}.gif", progress=False).name
        for name, run in drawn.films.items()
    ]
    content = {
        "figure": spec.id,
        "title": spec.title,
        "settings": settings,
        "files": files + films + [name for shown in panels for name in shown["files"]],
        "pictures": files,
        "panels": panels,
        "films": films,
        "numbers": drawn.numbers,
        "summary": list(drawn.summary),
        "caption": drawn.caption,
        "verdicts": [verdict.to_dict()],
        "seconds": time.monotonic() - began,
    }
    write_record(path, key, content)
    return _read_figure(spec, folder, json.loads(json.dumps(content, default=to_plain)), settings)


def _check_of(spec: Spec) -> Check:
    """What a figure shows, as a check of the figure's own id."""
    return Check(spec.id, "stated", "", spec.make.__module__, sizes=spec.sizes)


def _empty(spec: Spec, sentence: str, settings: dict[str, Any], verdict: Verdict) -> Figure:
    """A figure without a picture, which says why."""
    return Figure(spec.paper, spec.name, spec.title, (), {}, (sentence,), settings, (verdict,))


def _place_of_runs(spec: Spec, folder: Path) -> dict[str, Path]:
    """Where a figure that asks for a folder keeps long runs."""
    wanted = "folder" in inspect.signature(spec.make).parameters
    return {"folder": folder / "runs"} if wanted else {}


def _read_figure(
    spec: Spec,
    folder: Path,
    stored: dict[str, Any],
    settings: dict[str, Any],
    resumed: bool = False,
) -> Figure:
    return Figure(
        spec.paper,
        spec.name,
        spec.title,
        files=tuple(folder / name for name in stored["pictures"]),
        numbers=stored["numbers"],
        summary=tuple(stored["summary"]),
        settings=settings,
        verdicts=tuple(from_dict(v) for v in stored["verdicts"]),
        caption=stored["caption"],
        panels=tuple(stored["panels"]),
        films=tuple(stored["films"]),
        seconds=stored["seconds"],
        resumed=resumed,
    )


def _render(drawn: Drawn, folder: Path, stem: str) -> tuple[list[str], list[dict[str, Any]]]:
    """Pictures as PNG, their panels as SVG; names relative to the folder."""
    files, panels = [], []
    for i, picture in enumerate(drawn.pictures):
        name = f"{stem}-{picture.name}" if picture.name else (stem if i == 0 else f"{stem}-{i + 1}")
        files.append(write_picture(picture, folder / f"{name}.png").name)
        names = []
        for k, panel in enumerate(picture.panels):
            path = folder / "panels" / f"{name}-{k}.svg"
            write_text(path, to_svg(panel, picture.width, picture.height))
            names.append(f"panels/{path.name}")
        alts = [panel.title.replace("\n", ", ") or picture.title for panel in picture.panels]
        panels.append({"columns": picture.columns, "files": names, "alts": alts})
    return files, panels


def make_verdict(check: Check, folder: Path, size: str, seed: int = 0) -> tuple[Verdict, bool]:
    """The verdict of a claim's own experiment, made or read from its record."""
    path = folder / "records" / f"{check.name.replace('/', '_').lower()}.json"
    settings = {"claim": check.name, "size": size, "seed": seed, **check.sizes[size]}
    key = record_key(settings)
    stored = read_record(path, key)
    if stored is not None:
        return from_dict(stored["verdict"]), True
    verdict = try_check(check, size, seed)
    if verdict.status is not Status.UNDECIDED:
        write_record(path, key, {"verdict": verdict.to_dict()})
    return verdict, False


def record_key(settings: Mapping[str, Any]) -> str:
    """Hash of the settings, the version and the whole source of the package.

    A result depends on every kernel and solver below it, not on the modules of its paper alone.
    """
    made_from = [__version__, dict(settings), _hash_of_source()]
    plain = json.dumps(made_from, sort_keys=True, default=str)
    return hashlib.sha256(plain.encode()).hexdigest()


@cache
def _hash_of_source() -> str:
    """Hash of every module and table of the package."""
    root = Path(reluflow.__file__).parent
    digest = hashlib.sha256()
    for path in sorted([*root.rglob("*.py"), *root.rglob("*.csv")]):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def read_record(path: Path, key: str) -> dict[str, Any] | None:
    """The record at ``path`` if it belongs to ``key`` and its files are there."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(record, dict) or record.get("key") != key:
        return None
    folder = path.parent.parent
    if any(not (folder / name).is_file() for name in record.get("files", ())):
        return None
    return record


def write_record(path: Path, key: str, content: Mapping[str, Any]) -> None:
    """Write a record beside and rename; it is the last thing a job writes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {"key": key, "version": __version__, **content}
    write_text(path, json.dumps(record, indent=1, default=to_plain))
