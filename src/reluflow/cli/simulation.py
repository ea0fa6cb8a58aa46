"""One run from its configuration: resumable, stored in one file."""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from reluflow.cli.config import Config
from reluflow.errors import ReluflowError
from reluflow.network import Network, initialize
from reluflow.plot.render import make_folder
from reluflow.problem import Problem, datasets
from reluflow.problem.tables import notes_of, unseen_scores
from reluflow.runtime.checkpoint import KeptFile, fingerprint
from reluflow.runtime.files import LOCK, hold
from reluflow.runtime.plain import to_plain
from reluflow.trajectory import Trajectory, every, geometric

MAX_NUMBERS = 500_000_000  # weights of a start, or of all records of a run, held in memory
_KEEP = 20_000_000  # numbers up to which whole networks are recording by default
_RECORDS = 200  # records aimed at by default
_RATIO = 1.05


@dataclass(frozen=True)
class Simulated:
    """A run, where it is stored, and whether it was made now."""

    run: Trajectory
    path: Path
    made: str  # "now", "resumed", "before", or "interrupted" (then nothing is stored yet)
    problem: Problem  # as it was read: a stored run has neither notes nor unseen rows

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        run, unseen = self.run, unseen_scores(self.problem, self.run.final)
        return {
            "notes": list(notes_of(self.problem)),
            "file": str(self.path),
            "made": self.made,
            "status": {"code": run.status.code, "sentence": str(run.status), "ok": run.status.ok},
            "problem": repr(run.problem),
            "neurons": run.final.m,
            "records": len(run),
            "step": int(run.steps[-1]) if len(run) else None,
            "time": float(run.times[-1]) if len(run) else None,
            "loss": run.problem.loss_of(run.final),
            "unseen": None if unseen is None else {**to_plain(unseen), "sentence": unseen.sentence},
            "observables": list(run.observables),
            "networks": run.networks is not None,
            "cost": dict(run.cost),
        }


def keep_networks(config: Config) -> Config:
    """A run that records networks, which an animation shows: the same one if it does so anyway."""
    if config.save.states is False:
        raise ReluflowError(
            "an animation needs recorded networks: set states = true in [save], or leave it out"
        )
    problem = problem_of(config)
    problem.check_one_output("an animation")  # before the run, not after it
    options = _recording_options(config, problem)
    if options["states"] or (options["states"] is None and options["observe"] is None):
        return config
    return config.model_copy(update={"save": config.save.model_copy(update={"states": True})})


def problem_of(config: Config) -> Problem:
    """The data of a configuration."""
    try:
        return datasets.load(config.data.source, **config.data.options)
    except ReluflowError:
        raise
    except (TypeError, ValueError) as error:
        raise ReluflowError(f"[data] has an option of the wrong kind: {error}") from None


def start_of(config: Config, problem: Problem) -> Network:
    """The initial network of a configuration."""
    given = config.network
    _fits(given.m * (problem.d + 1), f"{given.m:,} neurons in {problem.d} dimensions")
    return initialize(
        problem,
        given.m,
        given.scale,
        given.kind,
        given.seed,
        log_scale=given.log_scale,
        normalize=given.normalize,
        signs=given.signs,
        outer_factor=given.outer_factor,
    )


def simulate(
    config: Config,
    out: str | Path,
    *,
    overwrite: bool = False,
    progress: bool | str = "auto",
    checkpoint_seconds: float = 30.0,
) -> Simulated:
    """Make the run of a configuration, or go on with it, or find it done.

    Parameters
    ----------
    config : Config
    out : path
        File ending in .nc. A checkpoint stands beside it while the run goes on, so that the same
        call continues after a kill; a finished run of the same settings is read, not made again.
    overwrite : bool
        Whether a file with another run may be replaced.
    progress : bool or "auto"
    checkpoint_seconds : float
        Time between two checkpoints.
    """
    path = _target(out)
    problem = problem_of(config)
    net = start_of(config, problem)
    recording = _recording_options(config, problem)
    key = _key(config, problem, net)
    if path.exists() and not overwrite:
        return Simulated(_read_finished(path, key), path, "before", problem)
    _check_place(path)
    with hold(path.with_name(f"{path.name}.{LOCK}"), str(path)):
        if path.exists() and not overwrite:  # made by another process in the meantime
            return Simulated(_read_finished(path, key), path, "before", problem)
        checkpoint = path.with_name(f"{path.name}.{key[:12]}.checkpoint")
        resumed = checkpoint.exists()
        named = {
            **recording,
            "progress": progress,
            "checkpoint": KeptFile(checkpoint),
            "checkpoint_seconds": checkpoint_seconds,
        }
        run = _run(config, problem, net, named)
        if run.status.code == "interrupted":
            return Simulated(run, path, "interrupted", problem)
        run = replace(run, settings={**run.settings, "config": config.to_dict(), "key": key})
        run.save(path)
        for stale in path.parent.glob(f"{path.name}.*.checkpoint"):
            stale.unlink(missing_ok=True)
    return Simulated(run, path, "resumed" if resumed else "now", problem)


def _run(config: Config, problem: Problem, net: Network, named: dict[str, Any]) -> Trajectory:
    run = config.run
    if run.descends:
        from reluflow.descent.descend import descend

        if run.lr is None or run.steps is None:
            raise ReluflowError("gradient descent needs lr and steps: give both")
        return descend(
            problem,
            net,
            lr=run.lr,
            steps=run.steps,
            batch_size=run.batch_size,
            replacement=run.replacement,
            train=run.train,
            weight_decay=run.weight_decay,
            rng=run.seed,
            backend=run.backend,
            dtype=run.dtype,
            **named,
        )
    from reluflow.gradientflow.flow import flow
    from reluflow.gradientflow.stops import loss_below, settled, stationary

    stop = [] if run.stop_loss is None else [loss_below(run.stop_loss)]
    if stop and run.t_end is None:  # the target may never be reached
        stop.append(settled() if run.clock == "loss" else stationary())
    return flow(
        problem,
        net,
        t_end=run.t_end,
        rtol=run.rtol,
        stop=stop or None,
        clock=run.clock,
        on_branch=run.on_branch,
        kinks=run.kinks,
        weight_decay=run.weight_decay,
        max_steps=run.max_steps,
        max_seconds=run.max_seconds,
        **named,
    )


def _recording_options(config: Config, problem: Problem) -> dict[str, Any]:
    """The arguments save, observe and states, with defaults that suit curves and animations."""
    save, run = config.save, config.run
    observe: Any = save.observe or None
    states = save.states
    numbers = config.network.m * (problem.d + 2)
    if observe is None and states is None and numbers * _RECORDS > _KEEP:
        observe, states = ["norm2", "stable_rank"], False
        if problem.loss.margin:
            observe += ["margin", "normalized_margin"]
    policy: Any
    end = run.steps if run.descends else run.t_end
    count = float(_RECORDS)
    if save.at is not None:
        policy, count = save.at, len(save.at)
    elif save.every is not None:
        policy, count = every(save.every), 0 if end is None else end / save.every
    elif save.geometric is not None:
        policy = geometric(save.geometric, save.first or 1.0)
        count = (
            0 if not end else math.log(max(end / (save.first or 1.0), 2)) / math.log(save.geometric)
        )
    elif run.descends:
        policy = geometric(_RATIO)
    elif end:
        policy = every(end / _RECORDS)
    else:  # from a tenth of the shortest time in which a neuron can grow by a factor e
        pull = problem.total_pull
        unit = problem.silent_loss if run.clock == "loss" else 1.0
        policy = geometric(_RATIO, 0.1 * unit / pull if pull > 0 else 1.0)
    if states or (states is None and observe is None):
        _fits(count * numbers, f"{count:,.0f} records of {config.network.m:,} neurons")
    return {"save": policy, "observe": observe, "states": states}


def _fits(numbers: float, what: str) -> None:
    if numbers > MAX_NUMBERS:
        raise ReluflowError(
            f"{what} are {numbers:,.0f} numbers, more than the {MAX_NUMBERS:,} this command holds "
            "in memory: use fewer neurons, or record less"
        )


def _key(config: Config, problem: Problem, net: Network) -> str:
    """Hash of everything that determines the run; names of files do not."""
    arrays = {"X": problem.X, "y": problem.y, "W": net.W, "a": net.a, "ls": net.log_factors}
    settings = {name: part for name, part in config.to_dict().items() if name != "data"}
    return fingerprint(arrays, {**settings, "problem": problem.spec})


def _target(out: str | Path) -> Path:
    path = Path(out)
    if path.suffix.lower() != ".nc":
        raise ReluflowError(f"a run is stored in a .nc file, got {path}: try {path}.nc")
    if path.is_dir():
        raise ReluflowError(f"{path} is a folder: expected the name of a file to write")
    return path


def _check_place(path: Path) -> None:
    """Say before a long run, not after it, that its file cannot be written."""
    make_folder(path.parent)
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ReluflowError(f"cannot write {path}: {why}, give another -o") from None


def _read_finished(path: Path, key: str) -> Trajectory:
    """The finished run of these settings, or a sentence saying what is there instead."""
    try:
        run = Trajectory.load(path)
    except ReluflowError as error:
        raise ReluflowError(
            f"{path} exists and is not a run ({error}): give another -o, or --overwrite"
        ) from None
    if run.settings.get("key") != key:
        raise ReluflowError(
            f"{path} holds a run with other settings: give another -o, or --overwrite"
        )
    return run
