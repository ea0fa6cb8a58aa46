"""A recording inside a page: one piece of HTML that plays without a server or a network."""

from __future__ import annotations

from typing import Any

from reluflow.playback.bundle import bundle, read_static
from reluflow.playback.messages import to_text
from reluflow.playback.recording import Recording


def snippet(
    problem: dict[str, Any],
    landscape: dict[str, Any] | None,
    process: dict[str, Any] | None,
    recording: Recording,
) -> str:
    """HTML that plays a recording: styles, data and the front end in one piece.

    Parameters
    ----------
    problem : dict
        As `reluflow.playback.recording.data_of` gives it.
    landscape, process : dict, optional
        What was predicted: vectors, values, kinds and perhaps circle; times and losses.
    recording : Recording
    """
    message = {
        "problem": problem,
        "landscape": landscape,
        "process": process,
        "run": recording.about,
    }
    data = to_text(message, recording.arrays)
    script = bundle("replay").replace(
        "export default m_replay.default;",
        'const text = document.getElementById("reluflow-recording").textContent;\n'
        'const el = document.getElementById("reluflow-replay");\n'
        "m_replay.default.render({ model: { get: () => text }, el });",
    )
    return (
        f"<style>{read_static('studio.css')}</style>\n"
        '<div id="reluflow-replay"></div>\n'
        f'<script type="application/json" id="reluflow-recording">{data}</script>\n'
        f'<script type="module">\n{script}</script>'
    )
