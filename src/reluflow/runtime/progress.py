"""Long work: a progress bar on a terminal and silence elsewhere, and Ctrl-C as a request."""

from __future__ import annotations

import signal
import sys
import threading
import time
from types import FrameType
from typing import Any

_PATIENCE = 1.0  # seconds of work before a bar appears
_SURE = (5.0, 0.05)  # seconds and share of the work from which on the rest is estimated
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
    even : bool
        Whether units of work take about equally long, so that the time left can be estimated;
        otherwise the bar shows the time gone by.
    """

    def __init__(
        self,
        total: float,
        label: str,
        show: bool | str = "auto",
        overall: bool = False,
        even: bool = True,
    ) -> None:
        self.total, self.label, self.overall, self.even = total, label, overall, even
        self._now = (0.0, "")
        self._past: list[tuple[float, float]] = [(0.0, 0.0)]  # (elapsed, done)
        self._began = time.monotonic()
        self._wanted = sys.stderr.isatty() if show == "auto" else bool(show)
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        if self.overall:
            _overall.append(self)
        return self

    @property
    def silent(self) -> bool:
        """Whether nothing is ever shown: then nothing has to be reported."""
        display = _overall[-1] if _overall and not self.overall else self
        return not display._wanted

    def update(self, done: float, elapsed: float, note: str = "") -> None:
        """Report ``done`` units after ``elapsed`` seconds, with a short note such as the loss."""
        if _overall and not self.overall:
            share = 100 * done / self.total if self.total else 0.0
            _overall[-1].inside(f"{self.label} {share:.0f} %", elapsed)
            return
        self._now = (done, note)
        if not self._wanted or (self._bar is None and elapsed < _PATIENCE):
            return
        if elapsed >= 1.01 * self._past[-1][0]:  # some hundred are kept of any number
            self._past.append((elapsed, done))
        if self._bar is None:
            self._open()
        self._bar.update(self._task, completed=done, note=note, time=self.clock())

    def clock(self) -> str:
        """Time left where it can be told, otherwise the time gone by.

        Taken from the slower of two paces: the mean since the beginning, and that of the later
        half of the time, since what was stored before is done at once and beginnings are quick.
        """
        gone = f"{_span(time.monotonic() - self._began)} so far"
        seconds, share = _SURE
        now, done = self._past[-1]
        if not self.even or now < seconds or done < share * self.total:
            return gone
        half, then = next((p for p in self._past[1:] if p[0] >= 0.5 * now), self._past[0])
        if done <= then:  # nothing finished since: the mean alone
            half, then = self._past[0]
        left = (self.total - done) * max(now / done, (now - half) / (done - then))
        return f"about {_span(left)} left"

    def inside(self, part: str, elapsed: float) -> None:
        """What a bar opened inside this one has to say."""
        done, note = self._now
        if self._wanted and (self._bar is not None or elapsed >= _PATIENCE):
            if self._bar is None:
                self._open()
            shown = f"{note}: {part}" if note else part
            self._bar.update(self._task, completed=done, note=shown, time=self.clock())

    def say(self, text: str) -> None:
        """A line on standard error, above the bar if there is one."""
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
        else:
            print(text, file=sys.stderr, flush=True)

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn
        from rich.progress import Progress as RichProgress

        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[time]}"),
            TextColumn("{task.fields[note]}"),
            console=Console(stderr=True),
            transient=True,
        )
        self._bar.start()
        self._task = self._bar.add_task(self.label, total=self.total, note="", time="")

    def __exit__(self, *_: object) -> None:
        if self.overall:
            _overall.remove(self)
        if self._bar is not None:
            self._bar.stop()


def _span(seconds: float) -> str:
    """``40 s``, ``5 min``, ``2.5 h``."""
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"


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
