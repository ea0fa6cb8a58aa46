"""reluflow claims."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from reluflow.cli.base import AsJson, Scaled, Workers, app, print_json, size_given
from reluflow.errors import ReluflowError
from reluflow.runtime.words import plural


@app.command()
def claims(
    which: Annotated[
        str | None, typer.Argument(help="A paper (BF24) or a claim (BF24-L1); all by default.")
    ] = None,
    run: Annotated[
        bool, typer.Option("--run", help="Run the experiments of these claims.")
    ] = False,
    scaled: Scaled = False,
    full: Annotated[
        bool, typer.Option("--full", help="With --run: at full size, not the quick one.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="With --run: seed.")] = 0,
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, help="With --run: how many seeds, from --seed on.")
    ] = 1,
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """The ledger: every claim of the papers, what is known to come out, and what checks it.

    With --run, exit code 1 if a claim does not come out as it is known to.
    """
    from reluflow.claims.ledger import ledger

    size = size_given("quick", scaled=scaled, full=full)
    given = {
        f"--{size}": size != "quick",
        "--seed": seed != 0,
        "--seeds": seeds != 1,
        "--workers": workers is not None,
    }
    idle = [name for name, on in given.items() if on]
    if idle and not run:
        raise ReluflowError(f"{idle[0]} is about running experiments: give --run with it")
    entries = ledger(which)
    if not run:
        if as_json:
            print_json([entry.to_dict() for entry in entries])
            return
        for entry in entries:
            print(f"{entry.id:<16}  {entry.expected:<24}  {entry.module}")
            print(f"    {entry.statement}")
            if entry.hypotheses:
                print(f"    hypotheses as printed: {entry.hypotheses}")
            if entry.repaired:
                print(f"    repaired: {entry.repaired}")
            if entry.slip:
                print(f"    slip: {entry.slip}")
            if entry.correction:
                print(f"    remark: {entry.correction}")
            for check in entry.checks:
                if check.reason not in ("", entry.correction):
                    print(f"    {check.name} {entry.status_of(check).name}: {check.reason}")
        checked = sum(bool(entry.checks) for entry in entries)
        print(f"{len(entries)} {plural(len(entries), 'claim')}, {checked} with a check.")
        return
    checks = [check for entry in entries for check in entry.checks if check.runnable]
    if not checks:
        raise ReluflowError(f"nothing of {which or 'the ledger'} can be run yet")
    from reluflow.claims.verdict import count_statuses
    from reluflow.papers.parts import Row, run_parts, verdict_in

    def each(row: Row) -> None:
        if not as_json:
            print(verdict_in(row).text(), flush=True)

    names = [check.name for check in checks]
    draws = range(seed, seed + seeds)
    found = [verdict_in(row) for row in run_parts(names, None, size, draws, workers, each)]
    odd = [v for v in found if v.surprising]
    if as_json:
        print_json([v.to_dict() for v in found])
    else:
        print(f"{count_statuses(found)} {len(odd)} not as expected.", file=sys.stderr)
    raise typer.Exit(1 if odd else 0)
