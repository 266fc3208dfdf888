"""Finds nodes that answer as the same machine: an order for one might reach the other, so none is carried out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from assay.decide.state.node_state import NodeState


def find_same_machines(node_states: Iterable[NodeState]) -> dict[str, str]:
    """Return, by node, why nothing is done to it: which other nodes tell the same serial number as it does."""
    nodes: dict[str, set[str]] = defaultdict(set)
    for state in node_states:
        for serial in state.told_serials:
            nodes[serial].add(state.node)
    return {
        name: f"{' and '.join(sorted(names))} answer as the same machine, {serial}: nothing is done to them"
        for serial, names in nodes.items()
        if len(names) > 1
        for name in names
    }
