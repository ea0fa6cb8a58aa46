"""What an explanation leaves in its folder, and how it gets there whole."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from reluflow._version import __version__
from reluflow.errors import ReluflowError
from reluflow.optimum.certificate_file import Certificate, write_certificate
from reluflow.plot.render import make_folder
from reluflow.problem.tables import to_file_units
from reluflow.report.page import Page
from reluflow.runtime.checkpoint import KeptFile
from reluflow.runtime.files import LOCK, cannot_write, hold, write_text
from reluflow.runtime.plain import to_plain
from reluflow.trajectory import Trajectory

if TYPE_CHECKING:
    from reluflow.claims.verdict import Verdict
    from reluflow.explanation.end import Group
    from reluflow.explanation.explanation import Explanation
    from reluflow.explanation.settings import Settings
    from reluflow.optimum.certificate import Certificate
    from reluflow.problem import Problem

WORK = ".explain"  # beside the results: checkpoint and files not yet complete
RUN, PAGE, DATA, PROOFS = "run.nc", "report.html", "report.json", "certificates"


def prepare(folder: Path) -> None:
    """Make the folder and the place for unfinished files, or say in one sentence why not."""
    make_folder(folder / WORK)
    if not os.access(folder / WORK, os.W_OK):
        raise ReluflowError(f"cannot write into {folder}: permission denied, choose another folder")


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    """Make the folder and be the only one at work in it, or say who is."""
    prepare(folder)
    with hold(folder / WORK / LOCK, f"the folder {folder}"):
        yield


def report_on_other_data(folder: Path, key: str) -> str | None:
    """What a report in ``folder`` is about, unless it is that of the same problem and settings."""
    try:
        old = json.loads((folder / DATA).read_bytes())
        return None if old.get("key") == key else str(old["problem"]["name"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return "something else"


def kept_in(place: Path | None, name: str) -> KeptFile | None:
    """Path of a checkpoint among the unfinished files, None where there are no files."""
    return None if place is None else KeptFile(place / f"{name[:24]}.npz")


class HasDict(Protocol):
    """A result of a stage."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""


class Report(Protocol):
    """What is written: an explanation of one output or of several."""

    @property
    def problem(self) -> Problem:
        """What was explained."""

    @property
    def settings(self) -> Settings:
        """How."""

    @property
    def verdict(self) -> list[tuple[str, str]]:
        """(topic, sentences)."""

    @property
    def landscape(self) -> HasDict:
        """Directions."""

    @property
    def alignment(self) -> HasDict | None:
        """Early alignment."""

    @property
    def process(self) -> HasDict | None:
        """The limit process."""

    @property
    def comparison(self) -> HasDict | None:
        """Of the process with the run."""

    @property
    def run(self) -> Trajectory:
        """run.nc."""

    @property
    def claims(self) -> tuple[Verdict, ...]:
        """What theorems say of the run."""

    @property
    def skipped(self) -> Mapping[str, str]:
        """Stages that were left out, and why."""

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """certificates/."""

    def page(self) -> Page:
        """report.html."""

    def to_dict(self) -> dict[str, Any]:
        """report.json."""


def write(e: Report, folder: Path) -> list[Path]:
    """Make every file under ``WORK``, then rename them, report.json last."""
    prepare(folder)
    work = folder / WORK
    try:
        e.run.save(work / RUN)  # what stands there may be of other settings, or damaged
        e.page().write(work / PAGE)
        write_text(work / DATA, json.dumps(e.to_dict(), indent=2) + "\n")
        proofs = make_folder(work / PROOFS)
        for certificate in e.certificates:
            write_certificate(certificate, proofs / f"{certificate.kind}.json")
        old = folder / PROOFS
        if old.is_dir():
            for path in old.glob("*.json"):
                path.unlink()
        made = []
        for path in sorted(proofs.glob("*.json")):
            made.append(path.replace(make_folder(old) / path.name))
        for name in (RUN, PAGE, DATA):
            made.append((work / name).replace(folder / name))
    except OSError as error:
        raise cannot_write(folder, error) from None
    shutil.rmtree(work, ignore_errors=True)  # the lock with it; another process may come at once
    return made


def common_fields(e: Report) -> dict[str, Any]:
    """What report.json says of one output and of several alike, no times of the clock.

    Each part is the ``to_dict()`` of the result it is about.
    """

    def part(result: HasDict | None) -> dict[str, Any] | None:
        return None if result is None else result.to_dict()

    return {
        "software": f"reluflow {__version__}",
        "problem": e.problem.to_dict(),
        "settings": e.settings.to_dict(),
        "key": e.settings.key(e.problem),
        "verdict": [{"topic": topic, "text": text} for topic, text in e.verdict],
        "directions": e.landscape.to_dict(),
        "alignment": part(e.alignment),
        "process": part(e.process),
        "comparison": part(e.comparison),
        "run": {
            "status": str(e.run.status),
            "code": e.run.status.code,
            "ok": e.run.status.ok,
            "cost": dict(sorted(e.run.cost.items())),
        },
        "certificates": [
            {"kind": c.kind, "grade": c.grade, "claim": c.claim} for c in e.certificates
        ],
        "claims": [v.to_dict() for v in e.claims],
        "skipped": dict(e.skipped),
    }


def as_dict(e: Explanation) -> dict[str, Any]:
    """The document of report.json: the verdict and every number behind it."""
    margin = e.problem.loss.margin
    document = {
        **common_fields(e),
        "notes": list(e.notes),
        "infinite_width": None if e.wide is None else e.wide.to_dict(),
        "horizon": None if e.horizon is None else e.horizon.to_dict(),
        "unseen": None if e.unseen is None else e.unseen.to_dict(),
        "end": {
            "loss": e.loss,
            "mse": None if margin else e.mse,
            "normalized_margin": e.margin if margin else None,
            "least_squares": e.linear,
            "groups": [_group(e, g) for g in e.groups],
            "stationarity": None
            if e.point is None
            else {
                "kind": e.point.kind,
                "local": e.point.local,
                "residual": e.point.residual,
                "gain": e.point.gain,
                "escape": e.point.escape,
                "escape_bound": e.point.escape_bound,
            },
            "kkt_residual": None if e.kkt is None else e.kkt.residual,
            "settling_rate": e.settling,
        },
        "optimum": _optimum(e),
        "larger_scale": None if e.large is None else e.large.to_dict(),
    }
    return dict(to_plain(document))


def _group(e: Explanation, g: Group) -> dict[str, Any]:
    """A direction at the end, in the units of the file too where columns are scaled."""
    found = g.to_dict()
    if e.problem.known.get("scaling") is not None:
        found["file_units"] = to_file_units(e.problem, g.direction)._asdict()
    return found


def _optimum(e: Explanation) -> dict[str, Any] | None:
    from reluflow.optimum.min_norm import MinNorm

    o = e.optimum
    if o is None:
        return None
    size = None if o.network is None else o.network.m
    found: dict[str, Any] = {"status": o.status, "neurons": size}
    if isinstance(o, MinNorm):
        found |= {"norm2": o.norm2, "lower_bound": o.lower_bound}
        if e.small is not None:
            W, a = e.small.weights()
            found["small_interpolator"] = {
                "neurons": e.small.m,
                "norm2": e.small.norm2,
                "W": W,
                "a": a,
            }
    else:
        found |= {"margin": o.margin, "upper_bound": o.upper_bound}
    return found
