"""Builds the configuration of Slurm's hooks on a node: what they look at, and what they drain the node for."""

from __future__ import annotations

from typing import Any

from assay.lifecycle.policy_response import respond_to_class
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.lifecycle_policy import LifecyclePolicy

HOOK_LOG_PATH = "/var/log/assay-slurm-hook.log"
HOOK_FAULT_CLASSES = ("gpu.missing", "ib.hca.missing", "ib.link.down", "gpu.process.left")
"""The fault classes that hooks can find."""


def build_hook_config(fleet: Fleet, policy: LifecyclePolicy, node: Node) -> dict[str, Any]:
    """Return the configuration of a node's hooks, as JSON data.

    They drain the node for faults for which the policy would move an idle node out of service, and for nothing where
    its management profile does not act on faults. Raises AssayError for a fleet without a fault catalogue.
    """
    spec, acts = fleet.spec_of(node.name), fleet.profile_of(node.name).acts_on_faults
    return {
        "node": node.name,
        "gpus": {f"gpu{slot}": address for slot, address in enumerate(spec.gpus.pci)},
        "hcas": [hca.name for hca in spec.hcas],
        "drains": [name for name in HOOK_FAULT_CLASSES if acts and _moves_idle_node(fleet, policy, name)],
        "log": HOOK_LOG_PATH,
        "root": "/",
    }


def _moves_idle_node(fleet: Fleet, policy: LifecyclePolicy, name: str) -> bool:
    catalog = fleet.fault_catalog
    is_known = name in catalog.classes
    return is_known and respond_to_class(policy, catalog, policy.service_state, name, in_use=False).moves_node
