"""The studio in a notebook: Jupyter, VS Code, marimo."""

from __future__ import annotations

import contextlib
import json
import threading
from typing import Any

from reluflow.errors import ReluflowError

try:
    import anywidget
    import traitlets
except ImportError as error:
    raise ReluflowError(
        f"the widget needs {error.name}, which is not installed: pip install 'reluflow[notebook]'"
    ) from None

from reluflow.playback.bundle import bundle, read_static
from reluflow.playback.messages import from_block, to_block
from reluflow.problem import Problem
from reluflow.studio.opening import settings_of
from reluflow.studio.session import Session
from reluflow.studio.settings import read_settings
from reluflow.studio.welcome import welcome


class Studio(anywidget.AnyWidget):
    """Data, prediction and training in one widget.

    Parameters
    ----------
    problem : Problem or str, optional
        Up to 500 samples of up to 64 features, or the name of a built-in set; "three-points" by
        default. The widget edits a copy.
    m, scale, seed : int, float, int
        Width, size and seed of the start.
    **traits
        Traits of a widget.

    Attributes
    ----------
    state : dict
        ``{"a": settings, "b": what differs on side B, or None}``, as it stands in the page's
        address; setting it changes the view.
    results : dict
        What was computed last, by side and type: ``results["A"]["process"]`` and so on.

    Examples
    --------
    >>> from reluflow import Studio, datasets  # doctest: +SKIP
    >>> Studio(datasets.three_points())  # doctest: +SKIP
    """

    _esm = bundle("studio")
    _css = read_static("studio.css")
    state = traitlets.Dict().tag(sync=True)
    given = traitlets.Bool(True).tag(sync=True)
    live = traitlets.Bool(False).tag(sync=True)
    _session: Session | None = None  # also while a widget is half made

    def __init__(
        self,
        problem: Problem | str = "three-points",
        *,
        m: int = 200,
        scale: float = 1e-6,
        seed: int = 0,
        **traits: Any,
    ) -> None:
        if isinstance(problem, Problem):
            about = settings_of(problem)
        else:
            about = {"data": {"source": "built-in", "name": problem}}
        about["start"] = {"m": m, "scale": scale, "seed": seed}
        read_settings(about)
        super().__init__(state={"a": about, "b": None}, **traits)
        self.results: dict[str, dict[str, Any]] = {"A": {}, "B": {}}
        self.refusal = ""  # the sentence by which the last settings were refused
        self._answer = threading.Event()
        self.on_msg(self._take)

    def _take(self, widget: Any, message: Any, buffers: list[Any]) -> None:
        """A message of the front end; the worker starts with the first one."""
        if not isinstance(message, dict):
            return
        if self._session is None:
            self._session = Session(self._emit)
        if message.get("type") == "hello":
            self._emit(to_block(welcome(None)))
            return
        blob = bytes(buffers[0]) if buffers else None
        self._session.receive(message, blob)

    def predict(self, side: str = "A", seconds: float = 120.0) -> dict[str, Any]:
        """The jumps predicted for the present settings, without a front end.

        Parameters
        ----------
        side : {"A", "B"}
        seconds : float
            How long to wait; kernels are compiled on first use.

        Returns
        -------
        dict
            ``times``, ``losses``, ``jumps``, ``status``, ``words``: what the page shows.
        """
        given = dict(self.state["a"])
        if side == "B":
            other = dict(self.state.get("b") or {})
            start = {**given.get("start", {}), **other.pop("start", {})}
            given = {**given, **other, "start": start}
        if self._session is None:
            self._session = Session(self._emit)
        self._answer.clear()
        self.results[side].pop("process", None)
        message = {"type": "predict", "id": -1, "side": side, "settings": given}
        self._session.receive(message)
        if not self._answer.wait(seconds):
            raise ReluflowError(f"no prediction came within {seconds:g} seconds: wait longer")
        if self.refusal:
            raise ReluflowError(self.refusal)
        found: dict[str, Any] | None = self.results[side].get("process")
        if found is None:
            raise ReluflowError("there is no prediction of jumps for these settings")
        return found

    def _emit(self, block: bytes) -> None:
        """Hand a block to the front end, and keep what it says."""
        message, _ = from_block(block)
        side, kind = message.get("side"), str(message.get("type"))
        if side in self.results and kind in message:
            self.results[side][kind] = message[kind]
        if kind == "refused":
            self.refusal = str(message["sentence"])
        elif kind == "problem":
            self.refusal = ""
        elif kind == "done" and message["id"] == -1:
            self._answer.set()
        with contextlib.suppress(Exception):  # a front end that has gone is no reason to stop
            self.send({"type": "block"}, buffers=[block])

    def close(self) -> None:
        """End the worker and the widget."""
        if self._session is not None:
            self._session.close()
            self._session = None
        super().close()

    def __repr__(self) -> str:
        return f"Studio({json.dumps(self.state.get('a', {}).get('start', {}))})"
