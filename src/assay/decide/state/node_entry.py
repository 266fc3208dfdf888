"""How a node enters the ledger: through proof, or by a one-time import that the inventory names."""

from __future__ import annotations

from collections.abc import Container, Iterable
from datetime import datetime

from assay.model.node import Node
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.node_settings import DEFAULT_START


def find_start_state(policy: LifecyclePolicy, node: Node, now: datetime | None) -> str:
    """Return the state in which a node that the ledger does not know starts at `now` (None: imports do not expire).

    A node starts in service only by a `service_import` that names it. The state may be none of the policy's.
    """
    if is_imported(node, now):
        return policy.service_state
    start = node.settings.lifecycle_start
    if policy.is_in_service(start):
        if DEFAULT_START in policy.states:
            return DEFAULT_START
        return next(name for name, state in policy.states.items() if not state.in_service)
    return start


def is_imported(node: Node, now: datetime | None) -> bool:
    """Whether an import that has not expired lets this node start in service."""
    service_import = node.settings.service_import
    is_named = service_import is not None and node.name in service_import.names
    return service_import is not None and is_named and (now is None or now < service_import.expires_at)


def find_lapsed_import(node: Node, now: datetime | None) -> str:
    """Return why the import that names a node does not let it in at `now`; "" if it does, or if none names it."""
    service_import = node.settings.service_import
    if service_import is None or node.name not in service_import.names or is_imported(node, now):
        return ""
    return f"its service_import expired on {service_import.expires}"


def list_lapsed_imports(nodes: Iterable[Node], known: Container[str], now: datetime | None) -> dict[str, list[str]]:
    """Return the nodes that the ledger does not know and that an expired import names, by that import's day."""
    lapsed: dict[str, list[str]] = {}
    for node in nodes:
        if node.name not in known and node.settings.service_import and find_lapsed_import(node, now):
            lapsed.setdefault(node.settings.service_import.expires, []).append(node.name)
    return lapsed


def describe_entry(node: Node, now: datetime | None) -> str:
    """Return how a new node enters at `now` (None: imports do not expire), for people."""
    service_import = node.settings.service_import
    if lapsed := find_lapsed_import(node, now):
        return f"starts in {node.settings.lifecycle_start}, and enters service through proof: {lapsed}"
    if service_import and node.name in service_import.names:
        return f"starts in service without proof, by an import until {service_import.expires}: {service_import.reason}"
    return f"starts in {node.settings.lifecycle_start}, and enters service through proof"
