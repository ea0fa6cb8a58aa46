"""What the domino runs of [TK24]_ say, as numbers, sentences and panels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from reluflow.claims.verdict import Comparison, at_least, at_most
from reluflow.papers.figure import Drawn
from reluflow.papers.tk24_dominoes_run import epochs_of
from reluflow.report.traces import Band, Line, Panel, Picture, Rule
from reluflow.torch.probe import Drop, Score, drop

Runs = Sequence[Mapping[str, Any]]


def effects(
    runs: Runs, settings: Mapping[str, Any], alone: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The four effects of Section 7 as numbers; ``alone`` is the run without digits."""
    early, late = epochs_of(settings)[settings["points"] // 4], settings["epochs"]
    objects = [run["probes"]["objects"] for run in runs]
    table = np.array([probe["accuracy"] for probe in objects])
    out: dict[str, Any] = {
        "digits": float(np.mean([run["probes"]["digits"]["accuracy"][-1] for run in runs])),
        "objects": table.mean(axis=0).tolist(),
        "best": float(table.mean(axis=0).max()),
        "train": float(np.mean([run["records"][-1]["right"] for run in runs])),
        "epochs": epochs_of(settings),
        "early": early,
        "late": late,
        "drop": drop([_scores(probe) for probe in objects], early, late),
    }
    free = [run["probes"]["objects, no penalty"] for run in runs]
    sizes = np.mean([probe["coefficients"][-1] for probe in free])
    out["ratio"] = float(sizes / np.mean([probe["coefficients"][-1] for probe in objects]))
    out["free_drop"] = drop([_scores(probe) for probe in free], early, late)
    if alone is not None:
        out["alone"] = float(alone["records"][-1]["validation"])
    return out


def _scores(probe: Mapping[str, Any]) -> dict[int, Score]:
    none = np.zeros(1, dtype=bool)
    columns = zip(
        probe["epochs"], probe["accuracy"], probe["coefficients"], probe["settled"], strict=True
    )
    return {e: Score(accuracy, size, none, ok) for e, accuracy, size, ok in columns}


def seen_of(found: Mapping[str, Any], size: str, runs: int) -> list[Comparison]:
    """What must be seen: the shortcut at every size, the later effects where training is long."""
    if size == "quick":
        gap = found["digits"] - found["objects"][-1]
        return [at_least(gap, 0.1, what="digit probe above object probe at the end")]
    seen = [at_least(found["digits"], 0.97, what="digit probe at the end")]
    if "alone" in found:
        gap = found["alone"] - found["best"]
        seen.append(at_least(gap, 0.15, what="baseline above the best object probe"))
        seen.append(at_least(found["ratio"], 5.0, what="coefficients without penalty, ratio"))
    lost: Drop = found["drop"]
    seen.append(at_least(lost.mean, 0.0, what=f"mean drop, {runs} paired runs"))
    seen.append(at_most(lost.p, 0.05, what="p of no drop (paired t)"))
    return seen


def drawn_of(
    size: str,
    settings: Mapping[str, Any],
    panels: Sequence[Panel],
    found: Mapping[str, Any],
    start: str,
    seen: list[Comparison],
) -> Drawn:
    """A figure of object probes: panels, what was measured, what was seen and what was not."""
    lost: Drop = found["drop"]
    words = [
        f"Digit probe {found['digits']:.1%}; training images classified rightly "
        f"{found['train']:.2%}.",
        f"Object probe (C = 1000): best {found['best']:.1%}"
        + (f", a network trained without digits {found['alone']:.1%}" if "alone" in found else "")
        + ".",
        f"Drop from epoch {lost.early} to {lost.late}: {lost.mean:.2%}, sd {lost.sd:.2%}, "
        f"p = {lost.p:.2g}; without penalty {found['free_drop'].mean:.2%}, with coefficients "
        f"{found['ratio']:.3g} times as large.",
    ]
    if size != "quick":
        for c in seen:
            mark = "Seen" if c.status.name == "HOLDS" else "Not seen"
            words.append(f"{mark}: {c.what} {c.measured:.3g}, asked for {c.sense} {c.bound:.3g}.")
    numbers = {k: vars(v) if isinstance(v, Drop) else v for k, v in found.items()}
    title = title_of(f"Probes of the object, initial factor {start}", size)
    paper = (
        "The paper: best about 45 %, drop 8.13 % (sd 0.80 %) from epoch 64 to 256, coefficients "
        "about 50 times as large without penalty; 6.43 % (sd 2.43 %) from the usual start; no late "
        "drop with 95 % matching digits."
    )
    return Drawn(
        [Picture(panels, 1, title, width=6.4, height=2.9)], numbers, words, at_size(seen, size),
        caption_of(size, settings, paper),
    )  # fmt: skip


def probe_panels(runs: Runs, shown: Mapping[str, str], title: str = "") -> list[Panel]:
    """Accuracy and root mean square of coefficients by epoch: mean and deviation over runs."""
    accuracy: list[Any] = []
    sizes: list[Any] = []
    for (name, label), color in zip(shown.items(), ("tab:blue", "tab:orange"), strict=False):
        epochs = runs[0]["probes"][name]["epochs"]
        for traces, what in ((accuracy, "accuracy"), (sizes, "coefficients")):
            table = np.array([run["probes"][name][what] for run in runs])
            mean = table.mean(axis=0)
            sd = table.std(axis=0, ddof=1) if len(table) > 1 else np.zeros_like(mean)
            traces += [
                Band(epochs, mean - sd, mean + sd, color=color), Line(epochs, mean, label, color)
            ]  # fmt: skip
    legend = "best" if len(shown) > 1 else ""
    return [
        Panel([*accuracy, Rule(0.1, "y", text="chance", dash=":")], title, "epoch", "accuracy",
              legend=legend),
        Panel(sizes, "", "epoch", "RMS coefficient", yscale="log" if len(shown) > 1 else "linear"),
    ]  # fmt: skip


def at_size(seen: Sequence[Comparison], size: str) -> list[Comparison]:
    """Comparisons that name the size they were made at: verdicts show it."""
    return [replace(c, what=f"{size} size, {c.what}") for c in seen]


def title_of(what: str, size: str) -> str:
    """The title with the size, unless it is the paper's own."""
    return what if size == "full" else f"{what} ({size})"


def caption_of(size: str, settings: Mapping[str, Any], paper: str) -> str:
    """What differs from the paper's recipe, and what the paper found."""
    if size == "full":
        return f"The paper's recipe: ResNet-18, {settings['epochs']} epochs. {paper}"
    mirror = "" if settings["flip"] else ", without mirrored images"
    return (
        f"{size.capitalize()}: a network of three convolutions ({settings['width']} to "
        f"{4 * settings['width']} channels) instead of ResNet-18, {settings['n_train']:,} CIFAR-10 "
        f"images instead of 50,000, {settings['epochs']} epochs of batches of {settings['batch']} "
        f"instead of 256 of 128, weight decay {settings['weight_decay']:g}{mirror}, "
        f"{settings['n_seeds']} seeds. {paper}"
    )
