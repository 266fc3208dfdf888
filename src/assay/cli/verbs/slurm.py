"""`assay slurm orders NODE`: the configuration of Slurm's hooks on a node: what they check and drain for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.options import FleetDir, argument, complete_nodes
from assay.cli.workspace import require_known
from assay.declare.home import require_repository

if TYPE_CHECKING:
    from assay.model.fleet import Fleet
    from assay.model.node import Node
    from assay.model.specs.lifecycle_policy import LifecyclePolicy

slurm_app = typer.Typer(add_completion=False, no_args_is_help=True)

HOOK_LOG_PATH = "/var/log/assay-slurm-hook.log"
HOOK_FAULT_CLASSES = ("gpu.missing", "ib.hca.missing", "ib.link.down", "gpu.process.left")
"""The fault classes that hooks can find."""


@slurm_app.callback()
def _slurm() -> None:
    """Configure Slurm's hooks on a node."""


@slurm_app.command()
def orders(
    node: Annotated[str, argument("NODE", "The node.", complete=complete_nodes)], fleet: FleetDir = Path()
) -> None:
    """Print what the hooks on a node check, and for which faults they drain it, as JSON.

    Install it on the node as /etc/assay-agent/slurm-hook.json (docs/slurm.md). It changes with the node's spec, the
    fault catalogue and the policy.

    Exit codes: 0 printed; 2 it cannot be made.
    """
    from assay.declare.loader import load_fleet

    require_repository(fleet)
    loaded = load_fleet(fleet)
    require_known([node], loaded.nodes, "node")
    typer.echo(json.dumps(build_hook_config(loaded, loaded.policy, loaded.nodes[node]), indent=1))


def build_hook_config(fleet: Fleet, policy: LifecyclePolicy, node: Node) -> dict[str, Any]:
    """Return the configuration of a node's hooks, as JSON data.

    They drain the node for faults for which the policy would move an idle node out of service, and for nothing where
    its management profile does not act on faults, or the trust step of drains is not `act`. Raises AssayError for a
    fleet without a fault catalogue.
    """
    spec, trust = fleet.spec_of(node.name), fleet.find_trust(node.name, ["drain"])
    acts = fleet.profile_of(node.name).acts_on_faults and trust.step == "act"
    return {
        "node": node.name,
        "gpus": {f"gpu{slot}": address for slot, address in enumerate(spec.gpus.pci)},
        "hcas": [hca.name for hca in spec.hcas],
        "drains": [name for name in HOOK_FAULT_CLASSES if acts and _moves_idle_node(fleet, policy, name)],
        "log": HOOK_LOG_PATH,
        "root": "/",
    }


def _moves_idle_node(fleet: Fleet, policy: LifecyclePolicy, name: str) -> bool:
    from assay.model.specs.policy_response import respond_to_class

    catalog = fleet.fault_catalog
    is_known = name in catalog.classes
    return is_known and respond_to_class(policy, catalog, policy.service_state, name, in_use=False).moves_node
