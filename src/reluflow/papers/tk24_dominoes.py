"""[TK24]_ Section 7: dominoes, and what probes find in networks trained on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reluflow.claims.verdict import Comparison, at_least, at_most, equals
from reluflow.papers.figure import Drawn, figure
from reluflow.papers.tk24_dominoes_run import (
    FULL,
    QUICK,
    SCALED,
    epochs_of,
    require_images,
    runs_of,
)
from reluflow.report.traces import Band, Image, Line, Panel, Picture, Rule
from reluflow.torch.dominoes import dominoes
from reluflow.torch.probe import Drop, Score, drop

Runs = Sequence[Mapping[str, Any]]
QUICK_SIZE: dict[str, Any] = {"size": "quick", **QUICK}
SCALED_SIZE: dict[str, Any] = {"size": "scaled", **SCALED}
FULL_SIZE: dict[str, Any] = {"size": "full", **FULL}


@figure(
    "TK24",
    "F3",
    title="Dominoes: a digit above an image, the digit telling the class in training only",
    quick={"n_train": 2000, "n_test": 1000},
    full={"n_train": None, "n_test": None},
)
def figure3(*, n_train: int | None, n_test: int | None, seed: int = 0) -> Drawn:
    """Figure 3: one domino of every class from the training and from the test distribution."""
    require_images(torch_too=False)
    data = dominoes(n_train=n_train, n_test=n_test, seed=42 + seed)
    panels, shares = [], {}
    for title, part in (
        ("training: digit = class", data.train),
        ("test: random digit", data.probe_train),
    ):
        rows = [int(np.flatnonzero(part.objects == c)[0]) for c in range(10)]
        mosaic = np.concatenate([part.images[r] for r in rows], axis=1) / 255
        panels.append(Panel([Image(mosaic, symmetric=False)], title, axes=False))
        shares[title] = float(np.mean(part.digits == part.objects))
    matched, random = shares.values()
    mixed = dominoes(n_train=n_train, n_test=n_test, match=0.95, seed=42 + seed).train
    share95 = float(np.mean(mixed.digits == mixed.objects))
    n, n95 = len(data.probe_train), len(mixed)
    height, width = data.train.images.shape[1:3]
    seen = [
        equals(height / width, 2, tolerance=0, what="height over width"),
        equals(matched, 1.0, tolerance=0.0, what="training images whose digit is the class"),
        equals(random, 0.1, tolerance=4 * np.sqrt(0.09 / n), what="test images, the same share"),
        equals(share95, 0.95, tolerance=4 * np.sqrt(0.0475 / n95), what="share, 95 % variant"),
    ]
    counts = [
        len(p) for p in (data.train, data.validation, data.probe_train, data.probe_validation)
    ]
    return Drawn(
        [Picture(panels, 1, width=9, height=2.2)],
        {"counts": counts, "matching": [matched, random, share95]},
        [f"{counts[0]}, {counts[1]}, {counts[2]} and {counts[3]} images: training, validation, and "
         "the two parts of the test set.",
         f"Digit and class agree in {matched:.0%} of the training images, {random:.1%} of the test "
         f"images, {share95:.1%} in the 95 % variant."],
        seen,
        "One image of each class, airplane to truck, from left to right; the paper shows one car "
        "of either kind.",
    )  # fmt: skip


@figure(
    "TK24",
    "F4",
    title="Probes of a network trained on dominoes from small weights",
    quick=QUICK_SIZE,
    scaled=SCALED_SIZE,
    full=FULL_SIZE,
)
def figure4(*, size: str, folder: Path | None = None, seed: int = 0, **settings: Any) -> Drawn:
    """Figure 4: accuracy and coefficients of object probes, with small penalty and with none."""
    require_images()
    runs = runs_of("small start", settings, folder)
    alone = runs_of("cifar", settings, folder)[0]
    panels = _probe_panels(runs, {"objects": "C = 1000", "objects, no penalty": "no penalty"})
    found = effects(runs, settings, alone)
    return _drawn(size, settings, panels, found, "2^-5", seen_of(found, size, len(runs)))


@figure(
    "TK24",
    "F8",
    title="The same features tell the digit, from both starts",
    quick=QUICK_SIZE,
    scaled=SCALED_SIZE,
    full=FULL_SIZE,
)
def figure8(*, size: str, folder: Path | None = None, seed: int = 0, **settings: Any) -> Drawn:
    """Figure 8: probes of the digit ("reversed" test labels), initial factors 2^-5 and 1."""
    require_images()
    numbers: dict[str, Any] = {}
    panels: list[Panel] = []
    seen: list[Comparison] = []
    least = {"quick": 0.3, "scaled": 0.97, "full": 0.97}[size]
    for variant in ("small start", "usual start"):
        runs = runs_of(variant, settings, folder)
        panels += _probe_panels(runs, {"digits": "C = 1000"}, variant)
        accuracy = float(np.mean([run["probes"]["digits"]["accuracy"][-1] for run in runs]))
        numbers[variant] = accuracy
        seen.append(at_least(accuracy, least, what=f"digit probe at the end, {variant}"))
    panels = [panels[0], panels[2], panels[1], panels[3]]
    words = [f"Digit probe at the end: {v:.1%} ({k})." for k, v in numbers.items()]
    return Drawn(
        [Picture(panels, 2, _title("Probes of the digit", size), width=4.8)], numbers, words, seen,
        _caption(size, settings, "The paper has about 99 % from both starts."),
    )  # fmt: skip


@figure(
    "TK24",
    "F9",
    title="As Figure 4 from the usual weights",
    quick=QUICK_SIZE,
    scaled=SCALED_SIZE,
    full=FULL_SIZE,
)
def figure9(*, size: str, folder: Path | None = None, seed: int = 0, **settings: Any) -> Drawn:
    """Figure 9: object probes when the initial weights are not scaled."""
    require_images()
    runs = runs_of("usual start", settings, folder)
    found = effects(runs, settings)
    panels = _probe_panels(runs, {"objects": "C = 1000"})
    return _drawn(size, settings, panels, found, "1", seen_of(found, size, len(runs)))


@figure(
    "TK24",
    "F10",
    title="As Figure 4 with digits that match in 95 % of the images",
    quick=QUICK_SIZE,
    scaled=SCALED_SIZE,
    full=FULL_SIZE,
)
def figure10(*, size: str, folder: Path | None = None, seed: int = 0, **settings: Any) -> Drawn:
    """Figure 10: object probes when the digit does not always tell the class."""
    require_images()
    runs = runs_of("95 % match", settings, folder)
    found = effects(runs, settings)
    seen = seen_of(found, size, len(runs))[:1]
    if size != "quick":  # the late drop of Figure 4 is gone
        lost: Drop = found["drop"]
        seen.append(at_most(lost.mean, 0.02, what="mean drop of the object probe"))
    panels = _probe_panels(runs, {"objects": "C = 1000"})
    return _drawn(size, settings, panels, found, "2^-5, 95 % match", seen)


@figure(
    "TK24",
    "CIFAR",
    title="The baseline without digits",
    quick=QUICK_SIZE,
    scaled=SCALED_SIZE,
    full=FULL_SIZE,
)
def baseline(*, size: str, folder: Path | None = None, seed: int = 0, **settings: Any) -> Drawn:
    """Validation accuracy of the same recipe on CIFAR-10 alone."""
    require_images()
    (run,) = runs_of("cifar", settings, folder)
    epochs = epochs_of(settings)
    records = {record["epoch"]: record for record in run["records"]}
    accuracy = [records[e]["validation"] for e in epochs]
    least = {"quick": 0.15, "scaled": 0.45, "full": 0.88}[size]
    panel = Panel([Line(epochs, accuracy)], "", "epoch", "validation accuracy", ylim=(0, 1))
    words = [f"Validation accuracy {accuracy[-1]:.1%} after {epochs[-1]} epochs."]
    return Drawn(
        [Picture([panel], title=_title("CIFAR-10 alone", size), width=6)],
        {"epochs": epochs, "validation": accuracy, "train": run["records"][-1]["right"]},
        words,
        [at_least(accuracy[-1], least, what="validation accuracy at the end")],
        _caption(size, settings, "The paper's log has 78.4, 85.2, 88.1 and 92.6 % at epochs 64, "
                 "128, 192 and 256."),
    )  # fmt: skip


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


def _drawn(
    size: str,
    settings: Mapping[str, Any],
    panels: Sequence[Panel],
    found: Mapping[str, Any],
    start: str,
    seen: list[Comparison],
) -> Drawn:
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
    title = _title(f"Probes of the object, initial factor {start}", size)
    paper = (
        "The paper: best about 45 %, drop 8.13 % (sd 0.80 %) from epoch 64 to 256, coefficients "
        "about 50 times as large without penalty; 6.43 % (sd 2.43 %) from the usual start; no late "
        "drop with 95 % matching digits."
    )
    return Drawn(
        [Picture(panels, 1, title, width=6.4, height=2.9)], numbers, words, seen,
        _caption(size, settings, paper),
    )  # fmt: skip


def _probe_panels(runs: Runs, shown: Mapping[str, str], title: str = "") -> list[Panel]:
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
        Panel(sizes, "", "epoch", "RMS coefficient", yscale="log"),
    ]  # fmt: skip


def _title(what: str, size: str) -> str:
    return what if size == "full" else f"{what} ({size})"


def _caption(size: str, settings: Mapping[str, Any], paper: str) -> str:
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
