"""`python -m assay.lab.fabric.lldp LABDIR [NODE]` prints what the switches of a node's Ethernet fabric hear of others.

It is one JSON document: for each switch the answers of `lldpctl -f json`, `lldpcli -f json show chassis` and
`grep . /sys/class/net/*/speed`. A switch without a link is not heard, and says nothing itself.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from assay.fabric.discovery import DiscoveredDevice
from assay.fabric.link_words import parse_rate
from assay.lab.fabric.cabling import LabCabling, find_links, load_cabling
from assay.lab.fabric.ibnetdiscover import peer_ports, print_discovery
from assay.lab.world import LabWorld
from assay.model.specs.fabric.cable import PortId, format_mac


def format_lldp(now: LabCabling, ends: Mapping[PortId, tuple[PortId, str]], interfaces: Mapping[str, str]) -> str:
    """Return the document. `interfaces`: the interface of each adapter, by GUID."""
    neighbours: dict[str, list[dict[str, Any]]] = {}
    speeds: dict[str, list[str]] = {}
    for here, (far, rate) in sorted(ends.items()):
        if now.devices[here.guid].kind == "switch":
            name, _ = name_port(now, here)
            entry = {"via": "LLDP", "chassis": _chassis(now.devices[far.guid]), "port": _port(now, far, interfaces)}
            neighbours.setdefault(here.guid, []).append({name: entry})
            speed = parse_rate(rate)
            speeds.setdefault(here.guid, []).append(
                f"/sys/class/net/{name}/speed:{speed.width * 1000 if speed else -1}"
            )
    reports = {}
    for guid, heard in neighbours.items():
        own = {"local-chassis": {"chassis": _chassis(now.devices[guid])}}
        reports[now.devices[guid].name] = [{"lldp": {"interface": heard}}, own, "\n".join(speeds[guid])]
    return f"{json.dumps(reports, indent=1)}\n"


def name_port(now: LabCabling, port: PortId) -> tuple[str, str]:
    """Return the name and the alias of a switch's port in SONiC, which counts eight lanes a cage."""
    split = now.splits.get(port.guid, 1)
    cage, part = divmod(port.number - 1, split)
    return f"Ethernet{8 * cage + 8 // split * part}", f"etp{cage + 1}{'abcdefgh'[part] if split > 1 else ''}"


def _chassis(device: DiscoveredDevice) -> dict[str, Any]:
    return {device.name.partition(" ")[0]: {"id": {"type": "mac", "value": format_mac(device.guid)}}}


def _port(now: LabCabling, far: PortId, interfaces: Mapping[str, str]) -> dict[str, Any]:
    if now.devices[far.guid].kind == "switch":
        name, alias = name_port(now, far)
        return {"id": {"type": "local", "value": alias}, "descr": name}
    return {"id": {"type": "mac", "value": format_mac(far.guid)}, "descr": interfaces.get(far.guid, "")}


def discover_ethernet(world: LabWorld, node: str = "") -> str:
    """Return the document of the fabric of `node`. Raises AssayError if there is none."""
    now = load_cabling(world, node)
    hcas = [hca for name in world.nodes() for hca in world.load(name).get("hcas", ()) if "roce" in hca]
    interfaces = {hca["guid"]: hca["roce"]["interface"] for hca in hcas}
    return format_lldp(now, peer_ports(find_links(world, now)), interfaces)


if __name__ == "__main__":
    sys.exit(print_discovery("lldp", discover_ethernet, sys.argv[1:]))
