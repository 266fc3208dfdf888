"""What Slurm's hooks on a node look at and drain for, as the fleet's specs and its policy say."""

from __future__ import annotations

from typing import Any

from assay.lifecycle.policy_response import respond_to_class
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.lifecycle_policy import LifecyclePolicy

IN_SERVICE_STATE = "production"
HOOK_LOG_PATH = "/var/log/assay-slurm-hook.log"
HOOK_FAULT_CLASSES = ("gpu.missing", "ib.hca.missing", "ib.link.down", "gpu.process.left")
"""The fault classes that hooks can find."""


def build_hook_config(fleet: Fleet, policy: LifecyclePolicy, node: Node) -> dict[str, Any]:
    """Return the orders of a node's hooks. It drains for what the policy moves a free node out of service for.

    Nothing drains a node whose management profile lets nobody act on faults. Trouble without a policy or catalogue.
    """
    spec, acts = fleet.spec_of(node.name), fleet.profile_of(node.name).acts_on_faults
    return {
        "node": node.name,
        "gpus": {f"gpu{slot}": address for slot, address in enumerate(spec.gpus.pci)},
        "hcas": [hca.name for hca in spec.hcas],
        "drains": [fault for fault in HOOK_FAULT_CLASSES if acts and _is_drained_for(fleet, policy, fault)],
        "log": HOOK_LOG_PATH,
        "root": "/",
    }


def _is_drained_for(fleet: Fleet, policy: LifecyclePolicy, fault: str) -> bool:
    known = fault in fleet.fault_catalog.classes
    return known and respond_to_class(policy, fleet.fault_catalog, IN_SERVICE_STATE, fault, in_use=False).moves_node
