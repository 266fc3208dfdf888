"""Words for histories: events, what moved, and nodes that an inventory knows."""

from __future__ import annotations

from typing import Any

from assay.model.node import Node
from assay.model.specs.node_settings import NodeSettings, ServiceImport

HOUR = 3600


def fault(time: float, node: str, name: str, **other: Any) -> dict[str, Any]:
    return {"time": time, "node": node, "event": "fault", "fault": name, **other}


def clear(time: float, node: str, name: str, **other: Any) -> dict[str, Any]:
    return {"time": time, "node": node, "event": "clear", "fault": name, **other}


def moves(document: dict[str, Any], node: str = "") -> list[tuple[Any, ...]]:
    """Return time, from, to and timing of what moved, or waits to; not the mere cordons of what is held back."""
    decided = [one for one in document["decisions"] if not one["rule"].endswith("held-back")]
    made = [one for one in decided if one["timing"] != "record" and node in ("", one["node"])]
    return [(one["time"], one["from"], one["to"], one["timing"]) for one in made]


def pool(*names: str, rack: str = "r1", profile: str = "managed") -> dict[str, Node]:
    """Return nodes of pool `a` that start in production."""
    start = NodeSettings(service_import=ServiceImport(nodes=list(names), reason="they serve", expires="2999-01-01"))
    return {name: Node(name, "a", "lab1", rack, 1, f"s-{name}", "hgx", profile, settings=start) for name in names}
