"""reluflow probe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from reluflow.cli.base import AsJson, app, print_json
from reluflow.errors import ReluflowError


@app.command()
def probe(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FEATURES.npz...",
            help="One file an epoch: features (n, k), simple (n,), complex (n,), epoch; "
            "optional: fit (n,) and run.",
        ),
    ],
    labels: Annotated[
        Path | None,
        typer.Option(help="An .npz with simple, complex and fit, if the files have none."),
    ] = None,
    strength: Annotated[
        float, typer.Option("--C", help="Inverse strength of the penalty of the probes.")
    ] = 1000.0,
    early: Annotated[int | None, typer.Option(help="Epoch to compare from.")] = None,
    late: Annotated[int | None, typer.Option(help="Epoch to compare with (the last).")] = None,
    penalized_only: Annotated[
        bool, typer.Option("--penalized-only", help="Leave out the probe without penalty.")
    ] = False,
    restarts: Annotated[int, typer.Option(min=2, help="Most fits of one probe.")] = 50,
    seed: Annotated[int, typer.Option(min=0, help="Of the split where there is no fit.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Say whether a network forgot a complex attribute in favour of a simple one.

    Fits logistic probes of both attributes to the features at every epoch: accuracy on held-out
    samples, size of the coefficients, and the drop from early to late with its test.
    """
    from reluflow.torch.simplicity import read_features, simplicity_bias

    if not strength > 0:
        raise ReluflowError(f"--C must be positive, got {strength:g}")
    found = simplicity_bias(
        read_features(files, labels, seed),
        C=strength,
        early=early,
        late=late,
        unpenalized=not penalized_only,
        restarts=restarts,
    )
    if as_json:
        print_json(found)
        return
    print(_table(found))
    for sentence in found["sentences"]:
        print(sentence)


def _table(found: dict[str, Any]) -> str:
    """Accuracy and size of coefficients by epoch, means over runs."""
    names = [name for name in ("simple", "complex", "complex, no penalty") if name in found]
    lines = ["epoch" + "".join(f"{name:>28}" for name in names)]
    for i, epoch in enumerate(found["epochs"]):
        cells = []
        for name in names:
            accuracy = sum(row[i] for row in found[name]["accuracy"]) / len(found["runs"])
            size = sum(row[i] for row in found[name]["coefficients"]) / len(found["runs"])
            cells.append(f"{accuracy:>15.1%} {f'(coef {size:.3g})':>12}")
        lines.append(f"{epoch:>5}" + "".join(cells))
    return "\n".join(lines)
