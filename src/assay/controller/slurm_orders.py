"""What Slurm's hooks on a node look at and drain for, as the fleet's specs and its policy say."""

from __future__ import annotations

from typing import Any

from assay.lifecycle.answers import answer
from assay.model.fleet import Fleet, Node
from assay.model.policy import LifecyclePolicy

STATE = "production"
LOG = "/var/log/assay-slurm-hook.log"
FOUND = ("gpu.missing", "ib.hca.missing", "ib.link.down", "gpu.process.left")
"""The fault classes that hooks can find."""


def orders_of(fleet: Fleet, policy: LifecyclePolicy, node: Node) -> dict[str, Any]:
    """Return the orders of a node's hooks. It drains for what the policy moves a free node out of service for.

    Nothing drains a node whose management profile lets nobody act on faults. Trouble without a policy or catalogue.
    """
    spec, acts = fleet.spec_of(node.name), fleet.profile_of(node.name).acts_on_faults
    return {
        "node": node.name,
        "gpus": {f"gpu{slot}": address for slot, address in enumerate(spec.gpus.pci)},
        "hcas": [hca.name for hca in spec.hcas],
        "drains": [fault for fault in FOUND if acts and _drains(fleet, policy, fault)],
        "log": LOG,
        "root": "/",
    }


def _drains(fleet: Fleet, policy: LifecyclePolicy, fault: str) -> bool:
    known = fault in fleet.catalog.classes
    return known and answer(policy, fleet.catalog, STATE, fault, in_use=False).moves
