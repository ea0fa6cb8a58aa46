"""Long work: a progress bar on a terminal and silence elsewhere, and Ctrl-C as a request."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType
from typing import Any

_PATIENCE = 1.0  # seconds of work before a bar appears
_overall: list[Progress] = []  # the display of a whole job, into which its parts report


class Progress:
    """Bar of ``total`` units of work; appears only on a terminal and only for long work.

    Parameters
    ----------
    total : float
        Amount of work.
    label : str
        What is being done.
    show : bool or "auto"
        "auto" shows the bar when standard error is a terminal.
    overall : bool
        Whether this is the display of a whole job: bars opened inside it draw nothing and report
        into its note.
    """

    def __init__(
        self, total: float, label: str, show: bool | str = "auto", overall: bool = False
    ) -> None:
        self.total, self.label, self.overall = total, label, overall
        self._now = (0.0, "")
        self._wanted = sys.stderr.isatty() if show == "auto" else bool(show)
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        if self.overall:
            _overall.append(self)
        return self

    def update(self, done: float, elapsed: float, note: str = "") -> None:
        """Report ``done`` units after ``elapsed`` seconds, with a short note such as the loss."""
        if _overall and not self.overall:
            share = 100 * done / self.total if self.total else 0.0
            _overall[-1].inside(f"{self.label} {share:.0f} %", elapsed)
            return
        self._now = (done, note)
        if not self._wanted or (self._bar is None and elapsed < _PATIENCE):
            return
        if self._bar is None:
            self._open()
        self._bar.update(self._task, completed=done, note=note)

    def inside(self, part: str, elapsed: float) -> None:
        """What a bar opened inside this one has to say."""
        done, note = self._now
        if self._wanted and (self._bar is not None or elapsed >= _PATIENCE):
            if self._bar is None:
                self._open()
            self._bar.update(self._task, completed=done, note=f"{note}: {part}")

    def say(self, text: str) -> None:
        """A line on standard error, above the bar if there is one."""
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
        else:
            print(text, file=sys.stderr, flush=True)

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=Console(stderr=True),
            transient=True,
        )
        self._bar.start()
        self._task = self._bar.add_task(self.label, total=self.total, note="")

    def __exit__(self, *_: object) -> None:
        if self.overall:
            _overall.remove(self)
        if self._bar is not None:
            self._bar.stop()


class Interrupt:
    """Context in which the first Ctrl-C sets ``requested`` and a second one raises.

    The running loop finishes its chunk and returns what it has.

    Outside the main thread, where Python allows no signal handlers, it never triggers.
    """

    def __init__(self) -> None:
        self.requested = False
        self._previous: Any = None
        self._installed = False

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._handle)
            self._installed = True
        return self

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True

    def __exit__(self, *_: object) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, self._previous)
            self._installed = False
