"""What the records of a monitor say: arrays, alignment, clusters, pictures. No torch here."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reluflow.arrays import AnyArray
from reluflow.errors import ReluflowError
from reluflow.plot.palette import BLUE, GREEN, ORANGE
from reluflow.plot.render import compose, write_picture
from reluflow.plot.traces import Band, Line, Panel, Picture
from reluflow.runtime import beside
from reluflow.runtime.words import count
from reluflow.torch.extremal import ExtremalDirections, extremal_directions

_STARTS = 64
_ALIGNED = 0.9  # median cosine from which a layer counts as aligned


class View:
    """Records of a monitor as arrays.

    Parameters
    ----------
    records : sequence of mappings
        One a record: ``step``, scalars, and a mapping for each layer.
    starts : mapping
        Layer to (inputs, pulls) before training.
    layers : names
        Watched layers, first to last.
    titles : mapping, optional
        What to call them in pictures and sentences.
    """

    def __init__(
        self,
        records: Sequence[Mapping[str, Any]],
        starts: Mapping[str, tuple[AnyArray, AnyArray]],
        layers: Sequence[str],
        titles: Mapping[str, str] | None = None,
    ) -> None:
        self.records, self.starts, self.layers = records, starts, list(layers)
        self.titles = titles or {name: name for name in self.layers}
        self._found: dict[str, ExtremalDirections] = {}

    @property
    def steps(self) -> AnyArray:
        """Steps of the records."""
        return np.array([record["step"] for record in self.records])

    def __getitem__(self, key: str | tuple[str | int, str]) -> AnyArray:
        if isinstance(key, str):
            if not any(key in record for record in self.records):
                named = sorted({k for r in self.records for k in r if k not in self.layers})
                raise ReluflowError(f"nothing called {key!r} was recorded: there is {named}")
            return np.array([record.get(key, np.nan) for record in self.records])
        layer, what = self._name(key[0]), key[1]
        if what == "alignment":
            return self.alignment(layer)
        if what in ("condensation", "clusters"):
            shown = zip(self[layer, "directions"], self[layer, "norms"], strict=True)
            rule = condensation if what == "condensation" else clusters
            return np.array([rule(directions, norms) for directions, norms in shown])
        seen = [record[layer] for record in self.records]
        if what not in seen[0] and what not in seen[-1]:
            raise ReluflowError(f"{what!r} was not recorded of {layer}: there is {list(seen[-1])}")
        like = seen[-1].get(what, seen[0].get(what))
        return np.array([one.get(what, np.full_like(like, np.nan)) for one in seen])

    def _name(self, layer: str | int) -> str:
        """Name of a layer given by it or by its place."""
        if isinstance(layer, int) and 0 <= layer < len(self.layers):
            return self.layers[layer]
        if isinstance(layer, int) or layer not in self.layers:
            raise ReluflowError(f"no layer {layer!r}: watched are {', '.join(self.layers)}")
        return layer

    def extremal(self, layer: str) -> ExtremalDirections:
        """Extremal directions of the inputs a layer had at the start, sought once."""
        if layer not in self._found:
            if layer not in self.starts:
                raise ReluflowError(
                    f"extremal directions of {layer} need the layer's inputs: give the monitor "
                    "data=(x, y); the last layer and convolutions other than plain 2-d have none"
                )
            X, P = self.starts[layer]
            first = self[layer, "directions"][0]
            rng = np.random.default_rng(0)
            drawn = rng.normal(size=(max(0, _STARTS - len(first)), X.shape[1]))
            self._found[layer] = extremal_directions(X, P, starts=np.vstack([first, drawn]))
        return self._found[layer]

    def alignment(self, layer: str) -> AnyArray:
        """Largest cosine of each followed neuron with an extremal direction, by record."""
        found = self.extremal(layer)
        return np.array([found.nearest(directions) for directions in self[layer, "directions"]])

    def picture(self, layers: Sequence[str] | None = None) -> Picture:
        """Rows of panels, one row a layer: norms, alignment, condensation, balance or norm; at the
        end loss and margins, where there were data."""
        names = [self._name(name) for name in (self.layers if layers is None else layers)]
        panels = [panel for name in names for panel in self._layer_panels(name)]
        return Picture([*panels, *self._data_panels()], 4, width=3.6, height=2.9)

    def _layer_panels(self, name: str) -> list[Panel]:
        x, title = self.steps + 1, self.titles[name]
        seen: Mapping[str, Any] = self.records[-1][name]
        norms = _quantiles(x, self[name, "norms"], f"{title}: norms of neurons", "|w_j|", "log")
        traces: list[Any] = []
        if name in self.starts:
            traces += _band(x, self.alignment(name), "extremal direction", BLUE)
        if "gradient_cosine" in seen:
            traces += _band(x, self[name, "gradient_cosine"], "own gradient", ORANGE)
        turning = Panel(
            traces,
            f"{title}: alignment",
            "step + 1",
            "cosine",
            "log",
            ylim=(-1.05, 1.05),
            legend="best" if traces else "",
        )
        rank = self[name, "stable_rank"] / self[name, "stable_rank"][0]
        gather = [
            Line(x, self[name, "condensation"], "condensation", BLUE),
            Line(x, rank, "stable rank / start", GREEN),
        ]
        gathering = Panel(gather, f"{title}: condensation", "step + 1", "", "log", legend="best")
        if "balance" in seen:
            last = _quantiles(x, self[name, "balance"], f"{title}: balance", "relative", "linear")
        else:
            norm = Line(x, self[name, "frobenius"], color=BLUE)
            last = Panel([norm], f"{title}: norm", "step + 1", "", "log")
        return [norms, turning, gathering, last]

    def _data_panels(self) -> list[Panel]:
        """Loss and margins on the monitor's data, and the loss of the loop's own batches."""
        x, panels = self.steps + 1, []
        names = (("loss", "monitor's data", BLUE), ("batch_loss", "loop's batches", ORANGE))
        known = [(name, label, c) for name, label, c in names if self._has(name)]
        if known:
            lines = [Line(x, self[name], label, c) for name, label, c in known]
            positive = all(np.nanmin(self[name]) > 0.0 for name, _, _ in known)
            scale = "log" if positive else "linear"
            panels.append(Panel(lines, "loss", "step + 1", "loss", "log", scale, legend="best"))
        if self._has("margin"):
            margin = [
                Line(x, self["margin"], "least", BLUE),
                Line(x, self["median_margin"], "median", ORANGE),
            ]
            panels.append(
                Panel(margin, "margins on the data", "step + 1", "margin", "log", legend="best")
            )
        return panels

    def _has(self, name: str) -> bool:
        return any(name in record for record in self.records)

    def sentences(self) -> list[str]:
        """What happened: the loss, then for each layer growth, alignment and directions."""
        steps = self.steps
        said = [f"{count(len(steps), 'record')} up to step {steps[-1]:,}".capitalize() + "."]
        if self._has("loss"):
            loss = self["loss"]
            said.append(f"Loss on the monitor's data: from {loss[0]:.4g} to {loss[-1]:.4g}.")
        return said + [self._layer_sentence(name) for name in self.layers]

    def _layer_sentence(self, name: str) -> str:
        norms = np.median(self[name, "norms"], axis=1)
        grows = norms[-1] > 2.0 * norms[0]
        grown = self._first(norms >= 0.5 * norms[-1]) if grows else None
        text = f"{self.titles[name]}: median norm from {norms[0]:.3g} to {norms[-1]:.3g}"
        text += "" if grown is None else f" (half of that by step {self.steps[grown]:,})"
        if name in self.starts:
            cosine = np.median(self.alignment(name), axis=1)
            aligned = self._first(cosine >= _ALIGNED)
            text += f"; median cosine with extremal directions from {cosine[0]:.2f} to "
            text += f"{cosine[-1]:.2f}"
            if aligned is not None:
                text += f" ({_ALIGNED:g} by step {self.steps[aligned]:,})"
                if grown is not None and aligned < grown:
                    text += ": alignment came before growth"
        groups = int(self[name, "clusters"][-1])
        return f"{text}; {count(groups, 'direction')} left at the end."

    def _first(self, holds: AnyArray) -> int | None:
        return int(np.argmax(holds)) if holds.any() else None

    def plot(
        self, path: str | os.PathLike[str] | None = None, layers: Sequence[str] | None = None
    ) -> Any:
        """Draw :meth:`picture` into a file; without one return the figure."""
        if path is None:
            return compose(self.picture(layers))
        target = Path(path)
        if target.suffix not in (".png", ".svg", ".pdf"):
            raise ReluflowError(f"cannot draw into {target}: expected a .png, .svg or .pdf file")
        return write_picture(self.picture(layers), target)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write arrays "step", "margin", "layer/norms", ... into one .npz file."""
        arrays: dict[str, AnyArray] = {"step": self.steps}
        scalars = {k for record in self.records for k in record} - {"step", *self.layers}
        for name in sorted(scalars):
            arrays[name] = self[name]
        for layer in self.layers:
            for what in self.records[-1][layer]:
                arrays[f"{layer}/{what}"] = self[layer, what]
        target = Path(path)
        with beside(target) as part, open(part, "wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)
        return target


def condensation(directions: AnyArray, norms: AnyArray) -> float:
    r"""How far neurons lie on one line: :math:`\sum_{jk} p_j p_k \cos^2(w_j, w_k)`, p_j the share
    of neuron j in the squared norm; 1 on one line, about 1/k on k orthogonal ones."""
    share = norms.astype(float) ** 2
    total = share.sum()
    if not total > 0:
        return float("nan")
    share /= total
    return float(share @ (directions.astype(float) @ directions.T.astype(float)) ** 2 @ share)


def clusters(
    directions: AnyArray, norms: AnyArray, cosine: float = 0.95, share: float = 0.01
) -> int:
    """Number of groups of directions within ``cosine`` of a leader, largest neurons leading, that
    hold at least ``share`` of the squared norm."""
    weight = norms.astype(float) ** 2
    total = weight.sum()
    left = list(np.argsort(-weight))
    count = 0
    while left:
        near = directions[left] @ directions[left[0]] >= cosine
        near[0] = True
        members = [j for j, inside in zip(left, near, strict=True) if inside]
        count += bool(weight[members].sum() >= share * total)
        left = [j for j, inside in zip(left, near, strict=True) if not inside]
    return count


def _band(x: AnyArray, values: AnyArray, label: str, color: str) -> list[Any]:
    low, mid, high = np.nanquantile(values, [0.1, 0.5, 0.9], axis=1)
    return [Band(x, low, high, color=color), Line(x, mid, label, color)]


def _quantiles(x: AnyArray, values: AnyArray, title: str, ylabel: str, yscale: str) -> Panel:
    """Median with the range of the middle 80 %."""
    traces = _band(x, values, "", BLUE)
    return Panel(traces, title, "step + 1", ylabel, "log", yscale)
