"""`assay slurm orders NODE`: the configuration of Slurm's hooks on a node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from assay.cli.name_check import require_known
from assay.cli.options import FleetDir
from assay.cli.verbs.declare.policy import find_only_policy

slurm_app = typer.Typer(add_completion=False, no_args_is_help=True)


@slurm_app.callback()
def _slurm() -> None:
    """Configure Slurm's hooks on a node."""


@slurm_app.command()
def orders(
    node: Annotated[str, typer.Argument(metavar="NODE", help="The node.", show_default=False)],
    fleet: FleetDir = Path(),
) -> None:
    """Print what the hooks on a node check, and for which faults they drain it, as JSON.

    Install it on the node as /etc/assay-agent/slurm-hook.json (docs/slurm.md). It changes with the node's spec, the
    fault catalogue and the policy.

    Exit codes: 0 printed; 2 it cannot be made.
    """
    from assay.fleet.fleet_loader import load_fleet
    from assay.lifecycle.slurm_hook_policy import build_hook_config

    loaded = load_fleet(fleet)
    require_known([node], loaded.nodes, "node")
    typer.echo(json.dumps(build_hook_config(loaded, find_only_policy(loaded), loaded.nodes[node]), indent=1))
