"""The process that computes for one view: takes jobs from a pipe, sends blocks of bytes back.

It does one job at a time. SIGINT cancels the job: the limit process and the flow end at their next
look, everything else by an exception; outside a job it is ignored.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any

import numpy as np

from reluflow.errors import ReluflowError
from reluflow.landscape.align import Alignment
from reluflow.landscape.extremal import ExtremalVectors
from reluflow.network import Network
from reluflow.playback.frames import principal_axes
from reluflow.playback.messages import to_block
from reluflow.playback.recording import data_of
from reluflow.prediction.process import JumpProcess
from reluflow.problem import Problem
from reluflow.problem.tables import notes_of
from reluflow.studio import forecast
from reluflow.studio.settings import Refused, Settings, problem_of, read_settings, start_of
from reluflow.trajectory import Trajectory

PREDICT_SECONDS, RUN_SECONDS, EXPLAIN_SECONDS = 20.0, 120.0, 30.0

Send = Callable[..., None]


@dataclass
class Side:
    """What is known of one side of a comparison, A or B."""

    settings: Settings
    problem: Problem
    net: Network
    blob: bytes | None = None
    found: ExtremalVectors | None = None
    alignment: Alignment | None = None
    process: JumpProcess | None = None
    why_not: str = ""
    run: Trajectory | None = None
    t_end: float | None = None
    explanation: Any = None


@dataclass
class Desk:
    """The worker's memory: two sides, and how to speak."""

    send: Send
    sides: dict[str, Side] = field(default_factory=dict)

    def side(self, name: str, given: Any, blob: bytes | None) -> Side:
        """The side for these settings: the one there is, if nothing has changed."""
        settings = read_settings(given)
        old = self.sides.get(name)
        if old is not None and old.settings == settings and (blob is None or old.blob == blob):
            return old
        if blob is None and old is not None and old.settings.data == settings.data:
            blob = old.blob
        problem = problem_of(settings, blob)
        side = Side(settings, problem, start_of(settings, problem), blob)
        self.sides[name] = side
        return side


def predict(desk: Desk, job: dict[str, Any], blob: bytes | None) -> None:
    """Problem, landscape and jumps of a side, each sent as soon as it is there."""
    name = str(job["side"])
    side = desk.side(name, job["settings"], blob)
    head = {"side": name, "id": job["id"]}
    about = {**data_of(side.problem), "notes": list(notes_of(side.problem)), "m": side.net.m}
    desk.send({**head, "type": "problem", "problem": about})
    if side.found is None:
        side.found, side.alignment = forecast.find_landscape(side.problem, side.net)
    shown = forecast.landscape_values(side.problem, side.found, side.alignment)
    desk.send({**head, "type": "landscape", "landscape": shown})
    if side.process is None and not side.why_not:
        side.why_not = forecast.why_no_process(side.problem, side.net)
        if not side.why_not:
            side.process = _find_process(desk, head, side)
    if side.process is not None and side.process.ending == "budget":
        side.why_not, side.process = side.process.status, None
    if side.process is None:
        desk.send({**head, "type": "process", "process": None, "why_not": side.why_not})
        return
    values = forecast.process_values(side.problem, side.net, side.process)
    desk.send({**head, "type": "process", "process": values})


def _find_process(desk: Desk, head: dict[str, Any], side: Side) -> JumpProcess:
    """The limit process; its first jump is sent before the others are known."""
    first = forecast.find_process(side.problem, side.net, PREDICT_SECONDS, jumps=1)
    if first.ending != "budget":
        return first
    values = forecast.process_values(side.problem, side.net, first)
    desk.send({**head, "type": "process", "process": values})
    return forecast.find_process(side.problem, side.net, PREDICT_SECONDS)


def simulate(desk: Desk, job: dict[str, Any], blob: bytes | None) -> None:
    """A run of a side, with its frames."""
    from reluflow.studio.simulation import make_plan
    from reluflow.studio.simulation import simulate as make_run

    name = str(job["side"])
    side = desk.side(name, job["settings"], blob)
    if side.found is None or (side.process is None and not side.why_not):
        predict(desk, job, blob)
    if side.found is None:
        raise ReluflowError("there is no landscape to plan the run by")
    rate = forecast.fastest_rate(side.problem, side.found)
    wanted = side.settings.t_end
    plan = make_plan(side.problem, side.net, rate, side.alignment, side.process, wanted)
    head = {"side": name, "id": job["id"]}

    def report(share: float, note: str) -> None:
        desk.send({**head, "type": "progress", "job": "simulate", "share": share, "note": note})

    run, recording = make_run(side.problem, side.net, plan, side.process, report, RUN_SECONDS)
    side.run, side.t_end = run, plan.t_end
    axes = principal_axes(side.problem, run.final)
    about = {
        **recording.about,
        "status": str(run.status),
        "ok": run.status.ok,
        "t_end": plan.t_end,
        "horizon": plan.times[-1],
        "end_loss": float(run.loss[-1]),
        "steps": int(run.steps[-1]),
        "data": data_of(side.problem, axes),
    }
    desk.send({**head, "type": "run", "run": about}, recording.arrays)


def explain(desk: Desk, job: dict[str, Any], blob: bytes | None) -> None:
    """The verdict on a side: sentences as they become known, then all of it."""
    from reluflow.studio.answer import answer_values, explain_side

    name = str(job["side"])
    side = desk.side(name, job["settings"], blob)
    head = {"side": name, "id": job["id"]}

    def say(topic: str, text: str) -> None:
        desk.send({**head, "type": "sentence", "topic": topic, "text": text})

    side.explanation = explain_side(side.settings, side.problem, EXPLAIN_SECONDS, say)
    desk.send({**head, "type": "answer", "answer": answer_values(side.explanation)})


def export(desk: Desk, job: dict[str, Any], blob: bytes | None) -> None:
    """A file of what was made."""
    from reluflow.studio.exports import make_file

    name = str(job["side"])
    side = desk.side(name, job["settings"], blob)
    made = make_file(str(job["kind"]), side)
    head = {"side": name, "id": job["id"], "type": "file"}
    content = np.frombuffer(made.content, np.uint8)
    desk.send({**head, "name": made.name, "media": made.media}, {"content": content})


JOBS: dict[str, Callable[[Desk, dict[str, Any], bytes | None], None]] = {
    "predict": predict,
    "simulate": simulate,
    "explain": explain,
    "export": export,
}


class _Signals:
    """Turns SIGINT into a cancelled job, and into nothing between jobs."""

    busy = False

    def handle(self, signum: int, frame: FrameType | None) -> None:
        if self.busy:
            raise KeyboardInterrupt


def warm_up(send: Send) -> None:
    """Compile or load the kernels, with progress; after this nothing waits for a compiler."""
    from reluflow.gradientflow.flow import flow
    from reluflow.network import initialize
    from reluflow.problem import datasets

    parts: list[tuple[str, Callable[[Problem, Network], Any]]] = [
        ("landscape", lambda p, net: forecast.find_landscape(p, net)),
        ("limit process", lambda p, net: forecast.find_process(p, net, PREDICT_SECONDS)),
        ("gradient flow", lambda p, net: flow(p, net, t_end=1.0, progress=False)),
    ]
    sets = ("three-points", "xor-orbit")
    total = len(parts) * len(sets)
    for k, name in enumerate(sets):
        problem = datasets.load(name)
        net = initialize(problem, 30, 1e-3, rng=0)
        for i, (what, work) in enumerate(parts):
            done = k * len(parts) + i
            send({"type": "engine", "ready": False, "share": done / total, "note": what})
            work(problem, net)
    send({"type": "engine", "ready": True, "share": 1.0, "note": "ready"})


def main(pipe: Connection) -> None:
    """Work until the pipe is closed."""
    signals = _Signals()
    signal.signal(signal.SIGINT, signals.handle)

    def send(message: dict[str, Any], arrays: dict[str, Any] | None = None) -> None:
        pipe.send_bytes(to_block(message, arrays))

    desk = Desk(send)
    try:
        warm_up(send)
        while True:
            job, blob = pipe.recv()
            signals.busy = True
            began = time.monotonic()
            try:
                _do(desk, job, blob)
                outcome: dict[str, Any] = {"ok": True}
            except KeyboardInterrupt:
                outcome = {"ok": False, "cancelled": True}
            finally:
                signals.busy = False
            done = {"type": "done", "id": job["id"], "job": job["type"], "side": job.get("side")}
            send({**done, **outcome, "seconds": time.monotonic() - began})
    except (EOFError, OSError):
        return


def _do(desk: Desk, job: dict[str, Any], blob: bytes | None) -> None:
    """One job; what is wrong with it becomes a sentence."""
    head = {"type": "refused", "id": job["id"], "job": job["type"], "side": job.get("side")}
    try:
        JOBS[job["type"]](desk, job, blob)
    except Refused as error:
        desk.send({**head, "field": error.field, "sentence": error.sentence})
    except ReluflowError as error:
        desk.send({**head, "field": job["type"], "sentence": str(error)})
    except MemoryError:
        why = "memory ran out: use fewer neurons or samples"
        desk.send({**head, "field": job["type"], "sentence": why})
    except Exception as error:  # a defect of ours must not end the view
        said = f"the computation failed unexpectedly ({type(error).__name__}: {error})"
        desk.send({**head, "field": job["type"], "sentence": said})
