"""What the domino runs of [TK24]_ say, as numbers, sentences and panels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from reluflow.claims.verdict import Comparison, Hypothesis, Status, at_least, at_most
from reluflow.papers.figure import Drawn
from reluflow.papers.tk24.figures.dominoes_run import FULL, epochs_of
from reluflow.plot.traces import Band, Line, Panel, Picture, Rule
from reluflow.torch.images import cifar10_images
from reluflow.torch.probe import Drop, Score, drop

Runs = Sequence[Mapping[str, Any]]

#: CIFAR-10 images for training and for tests.
COMPLETE = (50_000, 10_000)
FREE = "objects, no penalty"
#: What is to be known of the scaled settings.
LENGTHENED = (
    "The length was set after a look: 40 epochs, with a quarter of the paper's decay (learning "
    "rate times weight decay times steps), had shown no drop with the first seed from small "
    "weights; 160 epochs have all of it. The other seeds were not looked at before."
)


def images_used(settings: Mapping[str, Any]) -> tuple[int, int]:
    """CIFAR-10 images for training and for tests: those found, or as many as asked for."""
    found = [len(cifar10_images(split=split)[1]) for split in ("train", "test")]
    train, test = (
        n if settings[most] is None else min(n, settings[most])
        for n, most in zip(found, ("n_train", "n_test"), strict=True)
    )
    return train, test


def effects(
    runs: Runs, settings: Mapping[str, Any], alone: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The effects of Section 7 as numbers; ``alone`` is the run without digits."""
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
    free = [run["probes"][FREE] for run in runs]
    sizes = np.mean([probe["coefficients"][-1] for probe in free])
    out["ratio"] = float(sizes / np.mean([probe["coefficients"][-1] for probe in objects]))
    out["free_drop"] = drop([_scores(probe) for probe in free], early, late)
    out["free_fits"], out["free_settled"] = fits_of(runs)
    if alone is not None:
        out["alone"] = float(alone["records"][-1]["validation"])
        others = [_scores(probe) for probe in objects[1:]]
        out["drop_of_other_seeds"] = drop(others, early, late)
    return out


def fits_of(runs: Runs) -> tuple[int, int]:
    """Number of fits without penalty, and of those that settled."""
    settled = [ok for run in runs for ok in run["probes"][FREE]["settled"]]
    return len(settled), sum(settled)


def _scores(probe: Mapping[str, Any]) -> dict[int, Score]:
    none = np.zeros(1, dtype=bool)
    columns = zip(
        probe["epochs"], probe["accuracy"], probe["coefficients"], probe["settled"], strict=True
    )
    return {e: Score(accuracy, size, none, ok) for e, accuracy, size, ok in columns}


def shortcut_of(found: Mapping[str, Any], size: str) -> list[Comparison]:
    """The digit is in the features; at quick size, it is there more than the object."""
    if size == "quick":
        gap = found["digits"] - found["objects"][-1]
        return [at_least(gap, 0.1, what="digit probe above object probe at the end")]
    return [at_least(found["digits"], 0.97, what="digit probe at the end")]


def late_drop_of(found: Mapping[str, Any]) -> list[Comparison]:
    """The object probe loses accuracy late."""
    lost: Drop = found["drop"]
    return [
        at_least(lost.mean, 0.0, what=f"mean drop, {lost.runs} paired runs"),
        at_most(lost.p, 0.05, what="p of no drop (paired t)"),
    ]


def small_start_of(found: Mapping[str, Any], size: str) -> list[Comparison]:
    """What Figure 4 must show beside the shortcut and the drop.

    Coefficients without penalty are compared only where their fits have settled.
    """
    first, *between, last = found["objects"]
    above = max(between) - max(first, last)
    seen = [
        at_least(found["alone"] - found["best"], 0.15, what="baseline above the best object probe"),
        at_least(above, 0.0, what="best object probe between the ends, above both"),
        *late_drop_of(found),
        at_most(found["free_drop"].mean, 0.02, what="mean drop without penalty"),
    ]
    if size == "scaled":
        rest: Drop = found["drop_of_other_seeds"]
        what = f"p of no drop, the {rest.runs} seeds not looked at before"
        seen.append(at_most(rest.p, 0.05, what=what))
    if found["free_settled"] == found["free_fits"]:
        seen.append(at_least(found["ratio"], 5.0, what="coefficients without penalty, ratio"))
    return seen


def conditions(
    size: str,
    settings: Mapping[str, Any],
    images: tuple[int, int],
    found: Mapping[str, Any] | None = None,
) -> list[Hypothesis]:
    """What the figures' statements rest on; ``found`` where fits without penalty are shown."""
    held = []
    if size == "quick":
        short = f"{settings['epochs']} epochs on {images[0]:,} images: --scaled trains longer"
        held.append(Hypothesis("trained long enough for the paper's effects", False, short))
    if size == "scaled":
        held.append(Hypothesis("the paper's network, images and epochs", False, _smaller(images)))
    if size == "full":
        some = f"{images[0]:,} and {images[1]:,} images found"
        held.append(Hypothesis("CIFAR-10 is complete", images == COMPLETE, some))
    if found is not None and found["free_settled"] < found["free_fits"]:
        few = f"{found['free_settled']} of {found['free_fits']} did"
        held.append(Hypothesis("the fits without penalty settled", None, few))
    return held


def _smaller(images: tuple[int, int]) -> str:
    """What a scaled run has instead: it neither confirms nor refutes the paper's figure."""
    return (
        f"three convolutions on {images[0]:,} images instead of ResNet-18 on {COMPLETE[0]:,}: what "
        "was seen at this size is listed with the figure"
    )


def drawn_of(
    size: str,
    settings: Mapping[str, Any],
    images: tuple[int, int],
    panels: Sequence[Panel],
    found: Mapping[str, Any],
    start: str,
    seen: list[Comparison],
    chosen: str = "",
) -> Drawn:
    """A figure of object probes: panels, what was measured, what was seen and what was not.

    ``chosen`` tells which settings and bounds were set after which look.
    """
    lost: Drop = found["drop"]
    words = [
        f"Digit probe {found['digits']:.1%}; training images classified rightly "
        f"{found['train']:.2%}.",
        f"Object probe (C = 1000): {found['objects'][0]:.1%} at epoch 0, best {found['best']:.1%} "
        f"at epoch {found['epochs'][int(np.argmax(found['objects']))]}, {found['objects'][-1]:.1%} "
        "at the end"
        + (f"; a network trained without digits {found['alone']:.1%}" if "alone" in found else "")
        + ".",
        f"Drop from epoch {lost.early} to {lost.late}: {lost.mean:.2%}, sd {lost.sd:.2%}, "
        f"p = {lost.p:.2g}; without penalty {found['free_drop'].mean:.2%}.",
        _free_words(found),
    ]
    words += sentences_of(seen, size)
    numbers = {k: vars(v) if isinstance(v, Drop) else v for k, v in found.items()}
    title = title_of(f"Probes of the object, initial factor {start}", size)
    paper = (
        "The paper: best about 45 %, drop 8.13 % (sd 0.80 %) from epoch 64 to 256, coefficients "
        "about 50 times as large without penalty; 6.43 % (sd 2.43 %) from the usual start; no late "
        "drop with 95 % matching digits."
    )
    if size == "scaled":
        paper = f"{paper} {chosen}".strip()
    return Drawn(
        [Picture(panels, 1, title, width=6.4, height=2.9)],
        numbers,
        words,
        at_size(seen, size),
        caption_of(size, settings, images, paper),
        hypotheses=conditions(size, settings, images, found),
    )


def sentences_of(seen: Sequence[Comparison], size: str) -> list[str]:
    """Which effects were seen and which were not, in sentences; quick runs are too short for it."""
    marks = {True: "Seen", False: "Not seen"}
    return [
        f"{marks[c.status is Status.HOLDS]}: {c.what} {c.measured:.3g}, asked for {c.sense} "
        f"{c.bound:.3g}."
        for c in seen
        if size != "quick"
    ]


def _free_words(found: Mapping[str, Any]) -> str:
    """How much larger the coefficients without penalty are, and whether that means anything."""
    start = f"Coefficients without penalty are {found['ratio']:.3g} times as large"
    if found["free_settled"] == found["free_fits"]:
        return f"{start}; all {found['free_fits']} fits settled."
    return (
        f"{start}, but {found['free_settled']} of {found['free_fits']} fits settled: the number "
        "tells where the fits were cut and is compared with nothing; the accuracies without "
        "penalty are those of cut fits too."
    )


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
                Band(epochs, mean - sd, mean + sd, color=color),
                Line(epochs, mean, label, color),
            ]
    legend = "best" if len(shown) > 1 else ""
    accuracy.append(Rule(0.1, "y", text="chance", dash=":"))
    return [
        Panel(accuracy, title, "epoch", "accuracy", legend=legend),
        Panel(sizes, "", "epoch", "RMS coefficient", yscale="log" if len(shown) > 1 else "linear"),
    ]


def at_size(seen: Sequence[Comparison], size: str) -> list[Comparison]:
    """Comparisons that name the size they were made at: verdicts show it."""
    return [replace(c, what=f"{size} size, {c.what}") for c in seen]


def title_of(what: str, size: str) -> str:
    """The title with the size, unless it is the paper's own."""
    return what if size == "full" else f"{what} ({size})"


def caption_of(
    size: str,
    settings: Mapping[str, Any],
    images: tuple[int, int],
    paper: str,
    probed: bool = True,
) -> str:
    """What differs from the paper's recipe, and what the paper found."""
    train, test = images
    if size == "full":
        data = (
            f", but on the {train:,} training and {test:,} test images of CIFAR-10 found, not "
            "50,000 and 10,000"
        ) * (images != COMPLETE)
        return f"The paper's recipe: ResNet-18, {settings['epochs']} epochs{data}. {paper}"
    mirror = "" if settings["flip"] else ", without mirrored images"
    probes = (
        "; probes with penalty by Newton's method instead of L-BFGS, those without cut at "
        f"{settings['free_fits']} fits of {settings['free_iterations']:,} iterations instead of "
        f"{FULL['free_fits']} of {FULL['free_iterations']:,}; {settings['n_seeds']} seeds instead "
        f"of {FULL['n_seeds']}"
    ) * probed
    return (
        f"{size.capitalize()}: a network of three convolutions ({settings['width']} to "
        f"{4 * settings['width']} channels) instead of ResNet-18; {train:,} training and {test:,} "
        "test images of CIFAR-10 instead of 50,000 and 10,000, not passed through JPEG; "
        f"{settings['epochs']} epochs of batches of {settings['batch']} instead of 256 of 128, "
        f"learning rate {settings['lr']:g} instead of {FULL['lr']:g}, weight decay "
        f"{settings['weight_decay']:g} instead of {FULL['weight_decay']:g}{mirror}{probes}. {paper}"
    )
