"""Monitor: what the neurons of a network do while it is trained."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from reluflow.arrays import AnyArray
from reluflow.errors import ReluflowError
from reluflow.runtime.words import plural
from reluflow.torch.layers import (
    default_loss,
    evaluating,
    find_layers,
    given_to,
    margins,
    measure,
    open_writer,
    write,
)
from reluflow.torch.view import View

Loss = Callable[[Tensor, Tensor], Tensor]


class Monitor:
    r"""Records what neurons do during an ordinary training loop.

    ::

        monitor = Monitor(model, data=(x[:256], y[:256]))
        for x, y in batches:
            ...                     # forward, backward, optimizer.step()
            monitor.step()
        monitor.plot("monitor.png")

    For every watched layer, with neuron j the j-th row of its weights, its bias included:

    - ``norms``, ``directions``: of the followed neurons;
    - ``alignment``: largest cosine of a neuron with an extremal direction of the layer's inputs
      at the start, computed once and when asked for (:func:`extremal_directions`);
    - ``gradient_cosine``: cosine of w_j and -dL/dw_j. It is 1 where w_j is an extremal direction
      for the pulls it feels at that moment;
    - ``balance``: (\|w_j\|^2 - \|out_j\|^2) / (\|w_j\|^2 + \|out_j\|^2) with out_j what leaves the
      neuron; \|w_j\|^2 - \|out_j\|^2 is constant under gradient flow of ReLU layers without
      normalisation between them;
    - ``stable_rank``: \|W\|_F^2 / \|W\|_2^2, with \|W\|_2 by power iteration, so never too small;
    - ``frobenius``: \|W\|_F;
    - ``condensation``, ``clusters``: whether directions gather.

    For the model, on the data: ``loss`` and the margins of the samples, ``margin`` the least one
    and ``median_margin``: the score of the right class less the best other one, or y f(x) for
    one output; ``normalized_margin`` is ``margin`` over the product of the layers' norms.

    Parameters
    ----------
    model : torch.nn.Module
        Any model, compiled by ``torch.compile`` or not; it is never changed, nor are gradients,
        random numbers or running statistics.
    data : (x, y), optional
        A fixed batch on which gradients, margins and extremal directions are taken, in evaluation
        mode; more than ``samples`` rows are cut. Without it gradients are those that the loop
        left on the parameters, and there are neither margins nor extremal directions.
    loss : function of (outputs, y), optional
        Mean loss; by default cross-entropy for several outputs, the logistic loss for one output
        and labels -1, +1, else half the mean square.
    layers : names, optional
        As in ``model.named_modules()``; all linear and convolutional layers by default.
    every : int, optional
        Record each so many steps. By default at steps that grow geometrically, 24 in each
        factor of ten, as long as ``budget`` allows.
    budget : float
        Largest share of the time of the loop that records may take, the one before training not
        counted; ignored with ``every``.
    neurons : int
        Neurons followed one by one in each layer, drawn once.
    samples : int
        Rows of ``data`` that are used.
    patches : int
        Patches of each sample that stand for the inputs of a convolution in extremal directions.
        A filter is compared with them as if averages over all positions were read out.
    writer : str, path or SummaryWriter, optional
        Where to write scalars for TensorBoard, if that is installed.
    seed : int
        Of the draws.
    """

    def __init__(
        self,
        model: nn.Module,
        data: tuple[Tensor, Tensor] | None = None,
        *,
        loss: Loss | None = None,
        layers: Sequence[str] | None = None,
        every: int | None = None,
        budget: float = 0.03,
        neurons: int = 64,
        samples: int = 128,
        patches: int = 4,
        writer: Any = None,
        seed: int = 0,
    ) -> None:
        if every is not None and every < 1:
            raise ReluflowError(f"every must be at least 1, got {every}: it counts steps")
        if not 0 < budget <= 1:
            raise ReluflowError(f"budget is a share of time, expected 0 to 1, got {budget!r}")
        if not isinstance(model, nn.Module):
            raise ReluflowError(f"model must be a torch.nn.Module, got {type(model).__name__}")
        # a compiled model shares its parameters with the one it was made of, where hooks work
        model = getattr(model, "_orig_mod", model)
        self._generator = torch.Generator().manual_seed(seed)
        self.model, self.every, self.budget = model, every, budget
        self.layers = find_layers(
            model, None if layers is None else list(layers), neurons, self._generator
        )
        self.data = None if data is None else _checked_data(data, samples)
        self._loss, self._patches, self._writer = loss, patches, open_writer(writer)
        self._steps = 0
        self._next = 0
        self._spent = 0.0
        self._least = np.inf  # seconds of the quickest record
        self.records: list[dict[str, Any]] = []
        self.starts: dict[str, tuple[AnyArray, AnyArray]] = {}
        #: What the records say: arrays by layer, alignment, clusters, pictures.
        titles = {layer.name: layer.title for layer in self.layers}
        self.view = View(self.records, self.starts, list(titles), titles)
        if self.data is not None:
            self.starts.update(self._inputs_and_pulls(*self.data))
        self.step()
        self._spent, self._began = 0.0, time.perf_counter()

    @property
    def steps(self) -> NDArray[np.int64]:
        """Steps at which there are records; 0 is before training."""
        return np.array([record["step"] for record in self.records])

    def step(self, loss: float | Tensor | None = None) -> bool:
        """Count a step of the loop, after ``optimizer.step()``, and record if it is time.

        Parameters
        ----------
        loss : float or tensor, optional
            Loss of the loop's own batch, kept as ``batch_loss``.

        Returns
        -------
        bool
            Whether a record was made.
        """
        due = self._due()
        if due:
            start = time.perf_counter()
            self._record(loss)
            took = time.perf_counter() - start
            self._spent, self._least = self._spent + took, min(self._least, took)
        self._steps += 1
        return due

    def _due(self) -> bool:
        if self.every is not None:
            return self._steps % self.every == 0
        if self._steps < self._next:
            return False
        if self._steps:
            elapsed = time.perf_counter() - self._began
            if self._spent + self._least > self.budget * elapsed:
                return False
        self._next = max(self._steps + 1, int(self._steps * 1.1))
        return True

    @property
    def overhead(self) -> float:
        """Share of the time since the start that records took, the first one not counted."""
        return self._spent / max(1e-9, time.perf_counter() - self._began)

    def _record(self, batch_loss: float | Tensor | None) -> None:
        record: dict[str, Any] = {"step": self._steps}
        if batch_loss is not None:
            loose = isinstance(batch_loss, Tensor)
            record["batch_loss"] = float(batch_loss.detach() if loose else batch_loss)  # type: ignore[union-attr]
        gradients = self._gradients(record)
        with torch.no_grad():
            product = 1.0
            for layer in self.layers:
                seen = measure(layer, gradients.get(layer.name))
                product *= float(seen["frobenius"])
                record[layer.name] = seen
            if "margin" in record:
                record["normalized_margin"] = record["margin"] / product if product else np.nan
        self.records.append(record)
        if self._writer is not None:
            write(self._writer, record)

    def _gradients(self, record: dict[str, Any]) -> dict[str, list[Tensor]]:
        """Gradients of the watched layers, on the data or as the loop left them."""
        wanted = [layer for layer in self.layers if layer.weight.requires_grad]
        if self.data is None:
            left = {layer.name: [part.grad for part in layer.parts] for layer in wanted}
            return {
                name: [g for g in parts if g is not None]
                for name, parts in left.items()
                if all(g is not None for g in parts)
            }
        x, y = self.data
        with evaluating(self.model), torch.enable_grad():
            outputs = self.model(x)
            value = self._value(outputs, y)
            flat = [part for layer in wanted for part in layer.parts]
            found = torch.autograd.grad(value, flat, allow_unused=True) if flat else ()
        record["loss"] = float(value.detach())
        record["margin"], record["median_margin"] = margins(outputs.detach(), y)
        rest = iter(found)
        parts_of = {layer.name: [next(rest) for _ in layer.parts] for layer in wanted}
        return {n: parts for n, parts in parts_of.items() if all(g is not None for g in parts)}

    def _inputs_and_pulls(self, x: Tensor, y: Tensor) -> dict[str, tuple[AnyArray, AnyArray]]:
        """Inputs of the layers and pulls on the outputs, before training."""
        with evaluating(self.model), given_to(self.layers) as given, torch.enable_grad():
            try:
                outputs = self.model(x)
                (pull,) = torch.autograd.grad(-self._value(outputs, y), outputs)
            except RuntimeError as error:
                why = str(error).splitlines()[0]
                raise ReluflowError(f"the model does not take the monitor's data: {why}") from None
        P = pull.reshape(len(pull), -1).double().cpu().numpy()
        found = {}
        for layer in self.layers:
            if not layer.last and layer.name in given and layer.lists_inputs:
                rows = layer.inputs(given[layer.name], self._patches, self._generator)
                count = rows.shape[1]
                X = rows.reshape(-1, rows.shape[-1]).double().cpu().numpy()
                found[layer.name] = (X, np.repeat(P / count, count, axis=0))
        return found

    def _value(self, outputs: Tensor, y: Tensor) -> Tensor:
        return default_loss(outputs, y) if self._loss is None else self._loss(outputs, y)

    def __getitem__(self, key: str | tuple[str | int, str]) -> AnyArray:
        """``monitor["margin"]`` by record, ``monitor["layer", "norms"]`` by record and neuron.

        A layer goes by its name or its place among the watched ones, the first being 0.
        """
        return self.view[key]

    def summary(self) -> str:
        """What happened, in sentences: loss, and for each layer growth, alignment and directions;
        and the share of time that the monitor took."""
        share = f"Records took {100 * self.overhead:.1f} % of the time since the start."
        return "\n".join([*self.view.sentences(), share])

    def __repr__(self) -> str:
        last = self.records[-1]
        loss = f", loss {last['loss']:.4g}" if "loss" in last else ""
        names = ", ".join(layer.title for layer in self.layers)
        return (
            f"Monitor({len(self.records)} {plural(len(self.records), 'record')} up to step "
            f"{last['step']}{loss}; layers {names}; overhead {100 * self.overhead:.1f} %)"
        )

    def plot(
        self, path: str | os.PathLike[str] | None = None, layers: Sequence[str] | None = None
    ) -> Any:
        """Draw norms, alignment, condensation, balance, loss and margins into a PNG, SVG or PDF
        file and return its path; without one return the matplotlib figure."""
        return self.view.plot(path, layers)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write all records into one .npz file."""
        return self.view.save(path)


def _checked_data(data: tuple[Tensor, Tensor], samples: int) -> tuple[Tensor, Tensor]:
    x, y = data
    if len(x) != len(y) or not len(x):
        raise ReluflowError(
            f"data has {len(x)} inputs and {len(y)} labels: expected as many, not 0"
        )
    return x[:samples], y[:samples]
