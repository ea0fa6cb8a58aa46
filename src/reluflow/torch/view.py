"""What the records of a monitor say: arrays, alignment, clusters, pictures. No torch here."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reluflow.arrays import AnyArray
from reluflow.errors import ReluflowError
from reluflow.report.render import write_picture
from reluflow.report.traces import Band, Line, Panel, Picture
from reluflow.runtime import beside
from reluflow.torch.extremal import ExtremalDirections, extremal_directions

_STARTS = 64


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
    """

    def __init__(
        self,
        records: Sequence[Mapping[str, Any]],
        starts: Mapping[str, tuple[AnyArray, AnyArray]],
        layers: Sequence[str],
    ) -> None:
        self.records, self.starts, self.layers = records, starts, list(layers)
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
        """Rows of panels, one row a layer: norms, alignment, condensation, balance."""
        names = list(self.layers if layers is None else layers)
        x = self.steps + 1
        panels: list[Panel] = []
        for name in names:
            seen: Mapping[str, Any] = self.records[-1][name]
            panels.append(
                _quantiles(x, self[name, "norms"], f"{name}: norms of neurons", "|w_j|", "log")
            )
            traces: list[Any] = []
            if name in self.starts:
                traces += _band(x, self.alignment(name), "extremal direction", "tab:blue")
            if "gradient_cosine" in seen:
                cosine = self[name, "gradient_cosine"]
                traces += _band(x, cosine, "own gradient", "tab:orange")
            panels.append(
                Panel(
                    traces,
                    f"{name}: alignment",
                    "step + 1",
                    "cosine",
                    "log",
                    ylim=(-1.05, 1.05),
                    legend="best" if traces else "",
                )
            )
            gather = [
                Line(x, self[name, "condensation"], "condensation"),
                Line(
                    x,
                    self[name, "stable_rank"] / self[name, "stable_rank"][0],
                    "stable rank / start",
                    "tab:green",
                ),
            ]
            panels.append(
                Panel(gather, f"{name}: condensation", "step + 1", "", "log", legend="best")
            )
            if "balance" in seen:
                panels.append(
                    _quantiles(x, self[name, "balance"], f"{name}: balance", "relative", "linear")
                )
            elif any("margin" in record for record in self.records):
                margin = [
                    Line(x, self["margin"], "least"),
                    Line(x, self["median_margin"], "median", "tab:orange"),
                ]
                panels.append(
                    Panel(margin, "margins on the data", "step + 1", "margin", "log", legend="best")
                )
            else:
                panels.append(
                    Panel(
                        [Line(x, self[name, "frobenius"])], f"{name}: norm", "step + 1", "", "log"
                    )
                )
        return Picture(panels, 4, width=3.6, height=2.9)

    def plot(self, path: str | os.PathLike[str], layers: Sequence[str] | None = None) -> Path:
        """Draw :meth:`picture` into a file."""
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
    traces = _band(x, values, "", "tab:blue")
    return Panel(traces, title, "step + 1", ylabel, "log", yscale)
