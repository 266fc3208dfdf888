"""Plants readings of single ports of the lab's fabric."""

from __future__ import annotations

import json
from typing import Any

from assay.lab.fabric.cabling import load_cabling
from assay.lab.virtual_node_state import write_json
from assay.lab.world import LabWorld


def plant_port_facts(world: LabWorld, end: str, **facts: Any) -> None:
    """Override readings of a port: `counters`, `ber`, `pkeys`, `fec_bins`, transceiver fields.

    `end` is written as in `assay.lab.fabric.cabling`.
    """
    file = world.home / "port_facts.json"
    planted = json.loads(file.read_text()) if file.exists() else {}
    port = load_cabling(world).port(end)
    planted.setdefault(f"{port.guid}/{port.number}", {}).update(facts)
    write_json(file, planted)
