"""The main job: what will a network learn from these data, starting small?"""

from __future__ import annotations

import os
from pathlib import Path

from reluflow.explanation.explanation import Explanation
from reluflow.explanation.gather import gather
from reluflow.explanation.nothing import nothing_to_learn
from reluflow.explanation.settings import Settings, pulls
from reluflow.problem import Problem


def explain(
    problem: Problem,
    m: int = 200,
    scale: float = 1e-6,
    seed: int = 0,
    *,
    lr: float | None = None,
    steps: int | None = None,
    out: str | os.PathLike[str] | None = None,
    image_shape: tuple[int, int] | None = None,
    seconds: float = 120.0,
    progress: bool | str = "auto",
) -> Explanation:
    """Say what a network of small weights learns from data: predict, simulate, compare, certify.

    Parameters
    ----------
    problem : Problem
        Data, loss and activation.
    m, scale, seed : int, float, int
        Width, size and seed of the start: balanced Gaussian weights of size scale / sqrt(m).
    lr, steps : float, int, optional
        Simulate gradient descent with this step size, for this many steps (by default three
        times as long as the prediction needs) instead of gradient flow.
    out : path, optional
        Folder for report.html, report.json, run.nc and certificates/. The same call after a kill
        goes on from what is there and gives the same results.
    image_shape : (rows, columns), optional
        Show directions as images.
    seconds : float
        Budget of each long stage; a stage that needs more is cut short or left out, which the
        verdict says.
    progress : bool or "auto"
        Progress display; "auto" shows it on a terminal.

    Returns
    -------
    Explanation
        ``print`` shows the verdict.

    Examples
    --------
    >>> from reluflow import datasets
    >>> found = explain(datasets.three_points())  # doctest: +SKIP
    >>> found.verdict[0]  # doctest: +SKIP
    ('In short', 'The network of 200 neurons behaves as one neuron and converges to ...')
    """
    settings = Settings(m, scale, seed, lr, steps, seconds, image_shape)
    settings.check(problem)
    folder = None if out is None else Path(out)
    make = gather if pulls(problem) else nothing_to_learn
    found = make(problem, settings, folder, progress)
    if folder is not None:
        found.write(folder)
    return found
