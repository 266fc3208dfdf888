"""`python -m assay.lab.fabric.port_telemetry LABDIR errors|subnet|telemetry [NODE]` prints readings of a node's fabric.

`errors` has the form of ibqueryerrors, `subnet` of sminfo, `telemetry` of assay.fabric.health.stored_scan.
Counters of adapters come from the nodes' states; `port_facts.json` overrides single ports. Transceiver values differ
from port to port, as real ones do, but are the same in every run.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

from assay.fabric.discovery import DiscoveredCable
from assay.lab.fabric.cabling import find_links, load_cabling
from assay.lab.world import LabWorld
from assay.model.specs.fabric.cable import PortId

MASTER = "sminfo: sm lid 1 sm guid 0x{guid}, activity count 4711 priority 14 state 3 SMINFO_MASTER\n"
TRANSCEIVER_MODELS = (
    ("NVIDIA", "MCP4Y10-N002", "MT2431"),
    ("NVIDIA", "MMS4X00-NS", "MT2447"),
    ("Lightwave", "LW-800-DR8", "LW2502"),
)
"""Vendor, part number, and start of the serial number: its year and week, which identify a batch."""

DEFAULT_PARTITION = "0xffff"
"""OpenSM's default P_Key table of a port: full membership in the default partition."""


def format_ibqueryerrors(world: LabWorld, node: str = "") -> str:
    """Return the output of ibqueryerrors: ports with errors by device, and the summary."""
    now = load_cabling(world, node)
    planted = _load_planted_facts(world)
    counted = _node_counters(world)
    for key, facts in planted.items():
        counted[key] = {**counted.get(key, {}), **facts.get("counters", {})}
    by_guid: dict[str, list[str]] = {}
    for key, counters in sorted(counted.items()):
        guid, number = key.split("/")
        errors = " ".join(f"[{name} == {count}]" for name, count in sorted(counters.items()) if count)
        if errors and guid in now.devices:
            by_guid.setdefault(guid, []).append(f"   GUID {guid} port {number}: {errors}")
    lines = []
    for guid, ports in by_guid.items():
        lines += [f'Errors for {guid} "{now.devices[guid].name}"', *ports]
    port_count = 2 * len(find_links(world, now))
    bad_count = sum(map(len, by_guid.values()))
    lines += ["", f"## Summary: {len(now.devices)} nodes checked, {len(by_guid)} bad nodes found"]
    lines += [f"##          {port_count} ports checked, {bad_count} ports have errors beyond threshold"]
    return "\n".join([*lines, "## Thresholds: ", "## Suppressed:", ""])


def format_sminfo(world: LabWorld, node: str = "") -> str:
    """Return the output of sminfo: the first switch manages the subnet."""
    guids = [device.guid for device in load_cabling(world, node).devices.values() if device.kind == "switch"]
    return MASTER.format(guid=min(guids)[2:])


def port_telemetry(world: LabWorld, node: str = "") -> str:
    """Return a JSON document with every port's transceiver and bit error ratio, and every switch."""
    now = load_cabling(world, node)
    planted = _load_planted_facts(world)
    ports = [
        _port_facts(port, cable, planted.get(f"{port.guid}/{port.number}", {}))
        for cable in find_links(world, now)
        for port in (cable.a, cable.b)
    ]
    switches = [_switch(device.guid) for device in now.devices.values() if device.kind == "switch"]
    return json.dumps({"schema": "assay.fabric-facts/1", "ports": ports, "switches": switches}, separators=(",", ":"))


def _port_facts(port: PortId, cable: DiscoveredCable, planted: Mapping[str, Any]) -> dict[str, Any]:
    chance = crc32(f"{port.guid}/{port.number}".encode())
    vendor, part, batch = TRANSCEIVER_MODELS[crc32(f"{cable.a}{cable.b}".encode()) % len(TRANSCEIVER_MODELS)]
    rx = [round(1.2 - (chance >> shift & 7) / 10, 1) for shift in (0, 3, 6, 9)]
    module = {
        "vendor": vendor,
        "part": part,
        "serial": f"{batch}{chance % 100_000:05}",
        "temperature_c": 44.0 + chance % 9,
        "rx_power_dbm": rx,
        "tx_power_dbm": [1.4, 1.6, 1.5, 1.3],
        "bias_ma": [7.1, 7.0, 7.2, 7.1],
    }
    overrides = {
        name: value
        for name, value in planted.items()
        if name not in ("counters", "ber", "pkeys", "fec_bins", "m_key_protect")
    }
    ber = planted.get("ber", {"symbol": 10.0 ** -(17 + chance % 3), "effective": 1e-16})
    bins = {"fec_bins": planted.get("fec_bins", [4_000_000_000, 1 + chance % 5000, 1 + chance % 7])}
    kept = {"pkeys": planted.get("pkeys", [DEFAULT_PARTITION]), "m_key_protect": planted.get("m_key_protect", 1)}
    return {"guid": port.guid, "port": port.number, "ber": ber, "module": module | overrides} | kept | bins


def _switch(guid: str) -> dict[str, Any]:
    chance = crc32(guid.encode())
    fans = {str(number): 8000.0 + chance % 500 for number in range(1, 8)}
    psus = {"1": "ok", "2": "ok"}
    temperature = 58.0 + chance % 7
    return {"guid": guid, "firmware": "31.2014.1068", "temperature_c": temperature, "psus": psus, "fans": fans}


def _node_counters(world: LabWorld) -> dict[str, dict[str, int]]:
    return {
        f"{hca['guid']}/1": {"LinkDownedCounter": hca["link_downed"], "SymbolErrorCounter": hca["symbol_error"]}
        for node in world.nodes()
        for hca in world.load(node).get("hcas", ())
    }


def _load_planted_facts(world: LabWorld) -> dict[str, dict[str, Any]]:
    file = world.home / "port_facts.json"
    planted: dict[str, dict[str, Any]] = json.loads(file.read_text()) if file.exists() else {}
    return planted


TOOL_OUTPUTS = {"errors": format_ibqueryerrors, "subnet": format_sminfo, "telemetry": port_telemetry}


def main(arguments: list[str]) -> int:
    """Print the output of one tool. Return 1 if ports have errors, as ibqueryerrors does; 2 on misuse."""
    if len(arguments) not in (2, 3) or arguments[1] not in TOOL_OUTPUTS:
        usage = f"usage: python -m assay.lab.fabric.port_telemetry LABDIR {'|'.join(TOOL_OUTPUTS)} [NODE]"
        print(usage, file=sys.stderr)  # noqa: T201
        return 2
    text = TOOL_OUTPUTS[arguments[1]](LabWorld(Path(arguments[0])), *arguments[2:])
    sys.stdout.write(text)
    return int(text.startswith("Errors for"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
