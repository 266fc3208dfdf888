"""`assay slurm orders`: what Slurm's hooks on a node look at, and what they drain it for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from assay.model.errors import Trouble

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Write what Slurm's hooks on a node look at.")
Where = Annotated[Path, typer.Option("--fleet", help="The fleet repository.", envvar="ASSAY_FLEET")]


@app.callback()
def _slurm() -> None:
    """Write what Slurm's hooks on a node look at."""


@app.command()
def orders(node: Annotated[str, typer.Argument(metavar="NODE")], fleet: Where = Path()) -> None:
    """Print a node's orders as JSON, for /etc/assay-agent/slurm-hook.json there (docs/slurm.md).

    They change with the node's spec, the fault catalogue and the policy. Exit code 0: printed; 2: they cannot be made.
    """
    from assay.controller.slurm_orders import orders_of
    from assay.fleet.load import load_fleet

    loaded = load_fleet(fleet)
    if node not in loaded.nodes:
        raise Trouble(f"there is no node {node}", where=str(fleet / "inventory"))
    if len(loaded.policies) != 1:
        raise Trouble(f"the fleet has {len(loaded.policies)} policies", where=str(fleet / "specs"))
    typer.echo(json.dumps(orders_of(loaded, next(iter(loaded.policies.values())), loaded.nodes[node]), indent=1))
