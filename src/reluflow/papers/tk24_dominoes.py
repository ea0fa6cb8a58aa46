"""[TK24]_ Section 7: dominoes, and what probes find in networks trained on them."""

from __future__ import annotations

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
    require,
    require_images,
    runs_of,
)
from reluflow.papers.tk24_dominoes_view import (
    at_size,
    caption_of,
    drawn_of,
    effects,
    probe_panels,
    seen_of,
    title_of,
)
from reluflow.report.traces import Image, Line, Panel, Picture
from reluflow.torch.dominoes import dominoes
from reluflow.torch.probe import Drop

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
    require_images()
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
    require(size)
    runs = runs_of("small start", settings, folder)
    alone = runs_of("cifar", settings, folder)[0]
    panels = probe_panels(runs, {"objects": "C = 1000", "objects, no penalty": "no penalty"})
    found = effects(runs, settings, alone)
    return drawn_of(size, settings, panels, found, "2^-5", seen_of(found, size, len(runs)))


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
    require(size)
    numbers: dict[str, Any] = {}
    panels: list[Panel] = []
    seen: list[Comparison] = []
    least = {"quick": 0.3, "scaled": 0.97, "full": 0.97}[size]
    for variant in ("small start", "usual start"):
        runs = runs_of(variant, settings, folder)
        panels += probe_panels(runs, {"digits": "C = 1000"}, variant)
        accuracy = float(np.mean([run["probes"]["digits"]["accuracy"][-1] for run in runs]))
        numbers[variant] = accuracy
        seen.append(at_least(accuracy, least, what=f"digit probe at the end, {variant}"))
    panels = [panels[0], panels[2], panels[1], panels[3]]
    words = [f"Digit probe at the end: {v:.1%} ({k})." for k, v in numbers.items()]
    return Drawn(
        [Picture(panels, 2, title_of("Probes of the digit", size), width=4.8)],
        numbers, words, at_size(seen, size),
        caption_of(size, settings, "The paper has about 99 % from both starts."),
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
    require(size)
    runs = runs_of("usual start", settings, folder)
    found = effects(runs, settings)
    panels = probe_panels(runs, {"objects": "C = 1000"})
    return drawn_of(size, settings, panels, found, "1", seen_of(found, size, len(runs)))


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
    require(size)
    runs = runs_of("95 % match", settings, folder)
    found = effects(runs, settings)
    seen = seen_of(found, size, len(runs))[:1]
    if size != "quick":  # the late drop of Figure 4 is gone
        lost: Drop = found["drop"]
        seen.append(at_most(lost.mean, 0.02, what="mean drop of the object probe"))
    panels = probe_panels(runs, {"objects": "C = 1000"})
    return drawn_of(size, settings, panels, found, "2^-5, 95 % match", seen)


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
    require(size)
    (run,) = runs_of("cifar", settings, folder)
    epochs = epochs_of(settings)
    records = {record["epoch"]: record for record in run["records"]}
    accuracy = [records[e]["validation"] for e in epochs]
    least = {"quick": 0.15, "scaled": 0.45, "full": 0.88}[size]
    panel = Panel([Line(epochs, accuracy)], "", "epoch", "validation accuracy", ylim=(0, 1))
    words = [f"Validation accuracy {accuracy[-1]:.1%} after {epochs[-1]} epochs."]
    return Drawn(
        [Picture([panel], title=title_of("CIFAR-10 alone", size), width=6)],
        {"epochs": epochs, "validation": accuracy, "train": run["records"][-1]["right"]},
        words,
        at_size([at_least(accuracy[-1], least, what="validation accuracy at the end")], size),
        caption_of(size, settings, "The paper's log has 78.4, 85.2, 88.1 and 92.6 % at epochs 64, "
                 "128, 192 and 256."),
    )  # fmt: skip
