"""A self-contained HTML page: text, tables and pictures in one file, for light and dark screens."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

from reluflow._version import __version__
from reluflow.claims.verdict import Comparison, Status, Verdict
from reluflow.errors import ReluflowError
from reluflow.plot.render import to_svg
from reluflow.plot.svg import can_write, write_svg
from reluflow.plot.traces import Panel, Picture
from reluflow.report.glossary import definition, mark_terms
from reluflow.runtime import write_text

_CSS = """
:root{color-scheme:light dark;--ink:#1c2024;--soft:#5b6570;--line:#d5d9de;--paper:#fff;
--raised:#f6f7f9;--good:#1a7f37;--bad:#c62828;--open:#9a6700;--away:#6b7280}
@media (prefers-color-scheme:dark){:root{--ink:#d7dbe0;--soft:#98a2ad;--line:#3a4048;
--paper:#15181c;--raised:#1d2126;--good:#57c46f;--bad:#ff7b72;--open:#e3b341;--away:#9aa4af}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1120px;margin:0 auto;padding:24px 20px 64px}
h1{font-size:1.7rem;line-height:1.25;margin:0 0 .3em}
h2{font-size:1.25rem;margin:2em 0 .5em;padding-top:.6em;border-top:1px solid var(--line)}
h3{font-size:1.05rem;margin:1.6em 0 .4em}
p{margin:.5em 0;max-width:78ch}
.soft{color:var(--soft)}
.lead{font-size:1.08rem}
figure{margin:1.2em 0}
.grid{display:grid;gap:12px;align-items:center;grid-template-columns:repeat(var(--columns),minmax(0,1fr))}
.grid img{width:100%;height:auto;display:block}
.grid.one{max-width:640px}
figcaption{color:var(--soft);font-size:.92rem;margin-top:.4em;max-width:90ch}
.scroll{overflow-x:auto;margin:.8em 0;border:1px solid var(--line);border-radius:6px}
table{border-collapse:collapse;width:100%;font-size:.9rem}
th,td{text-align:left;vertical-align:top;padding:6px 10px;border-bottom:1px solid var(--line)}
tr:last-child td{border-bottom:0}
th{background:var(--raised);font-weight:600;white-space:nowrap}
td.number{font-variant-numeric:tabular-nums;white-space:nowrap}
td:first-child{white-space:nowrap}
td>div>div+div,td>div>details{margin-top:.25em}
td[data-label=measured]{min-width:22em}td[data-label=statement]{min-width:14em}
td[data-label="rests on"]{min-width:13em}
summary{color:var(--soft);cursor:pointer}
.status{font-weight:600;white-space:nowrap}
.HOLDS{color:var(--good)}.FAILS{color:var(--bad)}.UNDECIDED{color:var(--open)}
.OUT_OF_SCOPE{color:var(--away)}.MET,.ILLUSTRATED{color:inherit}
ul{margin:.4em 0;padding-left:1.3em}
nav a{margin-right:1em}
a{color:inherit}
a.term{text-decoration:underline dotted var(--soft);text-underline-offset:3px}
.bad{color:var(--bad)}
dl{display:grid;grid-template-columns:minmax(9em,auto) minmax(0,1fr);gap:.35em 1.2em;
font-size:.92rem}
dt{font-weight:600}dd{margin:0;max-width:78ch}dt:target,dt:target+dd{background:var(--raised)}
@media (max-width:760px){main{padding:16px 12px 48px}.grid{grid-template-columns:minmax(0,1fr)}
h1{font-size:1.4rem}thead{display:none}tr{display:block;padding:8px 10px}
tr+tr{border-top:1px solid var(--line)}
td{display:grid;grid-template-columns:6.5em minmax(0,1fr);border:0;padding:2px 0}
td[data-label]{min-width:0}
td::before{content:attr(data-label);color:var(--soft)}td:first-child{white-space:normal}
td:empty{display:none}}
"""

_FEW, _MANY = 3, 4  # lines of a cell that are shown, where there are more than so many
_SMALL = 120  # pixels per inch of panels less than 3 inches wide, which are not stretched


class Page:
    """An HTML page built from top to bottom; every method returns the page.

    Parameters
    ----------
    title : str
    subtitle : str
        A soft line below the title.
    terms : bool
        Whether terms of the glossary lead to their definitions where they stand first; the
        definitions are what :meth:`definitions` adds.

    Examples
    --------
    >>> page = Page("A run").text("It ends well.").table([{"loss": 0.5}])
    >>> ">0.5</td>" in page.html
    True
    """

    def __init__(self, title: str, subtitle: str = "", terms: bool = False) -> None:
        self.title = title
        self._terms = terms
        self._used: list[str] = []  # names of terms, as they come
        self._parts = [f"<h1>{escape(title)}</h1>"]
        if subtitle:
            self.text(subtitle, kind="soft")

    def heading(self, text: str, level: int = 2, anchor: str = "") -> Page:
        """A heading of level 2 or 3, with an anchor to link to."""
        name = f' id="{escape(anchor, quote=True)}"' if anchor else ""
        return self._add(f"<h{level}{name}>{escape(text)}</h{level}>")

    def text(self, *paragraphs: str, kind: str = "") -> Page:
        """Paragraphs; ``kind`` "lead" is larger, "soft" is grey."""
        mark = f' class="{escape(kind, quote=True)}"' if kind else ""
        return self._add("".join(f"<p{mark}>{self._words(p)}</p>" for p in paragraphs))

    def points(self, items: Sequence[str]) -> Page:
        """A list with bullets."""
        return self._add("<ul>" + "".join(f"<li>{self._words(i)}</li>" for i in items) + "</ul>")

    def links(self, targets: Mapping[str, str], rows: bool = False) -> Page:
        """Links, name to address, in a line or one below the other."""
        made = (
            f'<a href="{escape(to, quote=True)}">{escape(name)}</a>' for name, to in targets.items()
        )
        return self._add(f"<nav>{('<br>' if rows else '').join(made)}</nav>")

    def figure(
        self, figure: Picture | Panel, caption: str = "", alts: Sequence[str] | None = None
    ) -> Page:
        """Panels side by side on a wide screen, below each other on a narrow one."""
        picture = figure if isinstance(figure, Picture) else Picture([figure])
        drawn = [
            (write_svg if can_write(panel) else to_svg)(panel, picture.width, picture.height)
            for panel in picture.panels
        ]
        names = alts or [panel.title or picture.title for panel in picture.panels]
        small = round(_SMALL * picture.width) if picture.width < 3.0 else None
        return self.images(drawn, names, picture.columns, caption, small)

    def images(
        self,
        svgs: Sequence[str],
        alts: Sequence[str],
        columns: int = 1,
        caption: str = "",
        pixels: int | None = None,
    ) -> Page:
        """Panels already rendered as SVG; ``pixels`` bounds the width of each."""
        made = "".join(
            f'<img alt="{escape(alt, quote=True)}" src="data:image/svg+xml;base64,'
            f'{base64.b64encode(svg.encode()).decode()}">'
            for svg, alt in zip(svgs, alts, strict=True)
        )
        one = " one" if columns == 1 else ""
        most = f";max-width:{columns * pixels}px" if pixels else ""
        grid = f'<div class="grid{one}" style="--columns:{columns}{most}">{made}</div>'
        note = f"<figcaption>{self._words(caption)}</figcaption>" if caption else ""
        return self._add(f"<figure>{grid}{note}</figure>")

    def embed(self, html: str) -> Page:
        """HTML as it is, from a trusted maker of it."""
        return self._add(html)

    def table(
        self, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None
    ) -> Page:
        """Rows as mappings from column to value; a list is shown line by line, a Mark in colour."""
        if not rows:
            return self
        names = list(columns or rows[0])
        head = "".join(f"<th>{self._words(name)}</th>" for name in names)
        body = "".join(
            "<tr>" + "".join(self._cell(row.get(name, ""), name) for name in names) + "</tr>"
            for row in rows
        )
        return self._add(
            f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table></div>"
        )

    @property
    def html(self) -> str:
        """The whole page."""
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width,initial-scale=1">'
            f"<title>{escape(self.title)}</title><style>{_CSS}</style></head>\n<body><main>\n"
            + "\n".join(self._parts)
            + f'\n<p class="soft">Made by reluflow {__version__}.</p>\n</main></body></html>\n'
        )

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the page beside and rename."""
        target = Path(path)
        try:
            return write_text(target, self.html)
        except OSError as error:
            raise ReluflowError(f"cannot write {target}: {error.strerror}") from None

    def definitions(self, title: str = "Words used here") -> Page:
        """A section with the definition of every term that the page has used so far."""
        if not self._used:
            return self
        rows = "".join(
            f'<dt id="{_anchor(name)}">{escape(name)}</dt><dd>{escape(definition(name))}</dd>'
            for name in sorted(self._used, key=str.lower)
        )
        return self.heading(title, anchor="words")._add(f"<dl>{rows}</dl>")

    def _add(self, html: str) -> Page:
        self._parts.append(html)
        return self

    def _words(self, text: str) -> str:
        """Text as HTML; where a term stands first it leads to its definition."""
        return mark_terms(text, self._term, escape) if self._terms else escape(text)

    def _term(self, name: str, words: str) -> str:
        if name in self._used:
            return escape(words)
        self._used.append(name)
        says = escape(definition(name), quote=True)
        return f'<a class="term" href="#{_anchor(name)}" title="{says}">{escape(words)}</a>'

    def _cell(self, value: Any, column: str) -> str:
        label = f'data-label="{escape(column, quote=True)}"'
        if isinstance(value, Mark):
            name = escape(value, quote=True)
            return f'<td {label}><span class="status {name}">{self._words(value)}</span></td>'
        if isinstance(value, bool):
            return f"<td {label}>{'yes' if value else 'no'}</td>"
        if isinstance(value, int | float):
            shown = f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
            return f'<td {label} class="number">{shown}</td>'
        if isinstance(value, list | tuple):
            fold = column != "claim"  # names of claims are what a row is looked for by
            return f"<td {label}>{self._lines(value, fold)}</td>"
        return f"<td {label}>{self._words(str(value))}</td>"

    def _lines(self, items: Sequence[Any], fold: bool = True) -> str:
        """One below the other; of many the first few, the others folded."""
        lines = [f"<div>{self._words(str(item))}</div>" for item in items]
        if fold and len(lines) > _MANY:
            rest = f"<details><summary>{len(lines) - _FEW} more</summary>{''.join(lines[_FEW:])}"
            lines = [*lines[:_FEW], f"{rest}</details>"]
        return f"<div>{''.join(lines)}</div>" if lines else ""


def _anchor(name: str) -> str:
    """Where the definition of a term stands on its page."""
    return "term-" + re.sub(r"[^A-Za-z]+", "-", name.replace("*", "star")).strip("-")


class Mark(str):
    """A word of a table that is coloured by its value: the name of a status."""


def verdict_rows(verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """One row for each verdict: what is claimed, what was measured, what it rests on."""
    surprise = any(v.surprising for v in verdicts)
    rows = []
    for v in verdicts:
        row: dict[str, Any] = {
            "claim": v.label,
            "status": Mark(v.status.name),
        }
        if surprise:
            row["expected"] = Mark(v.expected.name) if v.surprising and v.expected else ""
        row |= {"statement": v.statement, "measured": _measurements(v), "rests on": _rests_on(v)}
        rows.append(row)
    return rows


def law_rows(verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """As :func:`verdict_rows` for verdicts on one run: a law that several papers prove is one row.

    Claims are of one law if they come to the same status and one measures everything that the
    others measure; the row says which of them rests on what.
    """
    made = []
    for group in _same_laws(verdicts):
        if len(group) == 1:
            made += verdict_rows(group)
            continue
        by_hypothesis: dict[str, list[str]] = {}
        for v in group:
            for line in _rests_on(v):
                by_hypothesis.setdefault(line, []).append(v.label)
        rests = [
            line if len(ids) == len(group) else f"{line} ({', '.join(ids)})"
            for line, ids in by_hypothesis.items()
        ]
        made.append(
            {
                "claim": [v.label for v in group],
                "status": Mark(group[0].status.name),
                "statement": [f"{v.label}: {v.statement}" for v in group],
                "measured": _measurements(_strictest(group)),
                "rests on": rests,
            }
        )
    return made


def _same_laws(verdicts: Sequence[Verdict]) -> list[list[Verdict]]:
    """Verdicts by law, each group with the one that measures most first.

    What one paper derives from the same numbers stays apart.
    """
    groups: list[list[Verdict]] = []
    measured = {v.label: {(c.what, c.measured) for c in v.comparisons} for v in verdicts}
    alone = {v.label for v in verdicts if v.form != "stated" or v.note or not v.comparisons}
    for v in sorted(verdicts, key=lambda v: -len(measured[v.label])):
        for group in groups:
            first = group[0]
            whole = measured[v.label] <= measured[first.label] and v.status is first.status
            whole = whole and (v.paper != first.paper or len({w.paper for w in group}) > 1)
            if whole and not {v.label, first.label} & alone:
                group.append(v)
                break
        else:
            groups.append([v])
    order = {v.label: i for i, v in enumerate(verdicts)}
    return sorted(groups, key=lambda group: min(order[v.label] for v in group))


def _strictest(group: Sequence[Verdict]) -> Verdict:
    """The first verdict of a law, each number with the narrowest bound that a paper gives it."""
    narrow: dict[str, Comparison] = {}
    for c in (c for v in group for c in v.comparisons):
        if c.what not in narrow or c.slack < narrow[c.what].slack:
            narrow[c.what] = c
    return replace(group[0], comparisons=tuple(narrow.values()))


def _measurements(verdict: Verdict) -> list[str]:
    """Print and meaning where they differ, comparisons that do not hold, a remark, those that do,
    and notes."""
    known = verdict.status is Status.FAILS and verdict.expected is Status.FAILS
    bad: list[str] = []
    good: list[str] = []
    for c in verdict.comparisons:
        tolerance = f" within {c.tolerance:.3g}" if c.tolerance else ""
        error = f" (error {c.error:.1e})" if c.error else ""
        what = f"{c.what}: " if c.what else ""
        lead = "counterexample: " if known and c.status is Status.FAILS else ""
        line = f"{lead}{what}{c.measured:.6g} {c.sense} {c.bound:.6g}{tolerance}{error}"
        (good if c.status is Status.HOLDS else bad).append(line)
    remark = [f"remark: {verdict.reason}"] if verdict.reason else []
    return [*verdict.wording(), *bad, *remark, *good, *_note_lines(verdict.note)]


def _note_lines(note: str) -> list[str]:
    """A note; one that lists many things, line by line below what it lists."""
    head, _, rest = note.partition(": ")
    items = rest.split("; ")
    if len(items) > 3:
        return [head + ":", *items]
    return [note] if note else []


def _rests_on(verdict: Verdict) -> list[str]:
    if verdict.status is Status.OUT_OF_SCOPE:
        failed = [h for h in verdict.hypotheses if h.ok is False]
        return [
            f"not so: {h.name} ({h.detail})" if h.detail else f"not so: {h.name}" for h in failed
        ]
    marks = {"ok": "", "failed": "not so: ", "unchecked": "unchecked: "}
    # a counterexample shows by numbers that each hypothesis is met
    details = verdict.status is Status.FAILS
    return [
        marks[h.state] + h.name + (f" ({h.detail})" if details and h.detail else "")
        for h in verdict.hypotheses
    ]
