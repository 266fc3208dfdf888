"""`python -m assay.lab.fabric.port_telemetry LABDIR TOOL [NODE]` prints readings of a node's fabric.

The tool `errors` has the form of ibqueryerrors, `subnet` of sminfo, `telemetry` of assay.fabric.health.stored_scan;
on Ethernet, `databases` has that of SONiC's databases.
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
from assay.fabric.health.counters import DOWNED, FEC_BINS, SAI_COUNTERS, SONIC_LANES
from assay.lab.fabric.cabling import find_links, load_cabling
from assay.lab.fabric.lldp import name_port
from assay.lab.world import LabWorld
from assay.model.specs.fabric.cable import PortId, format_mac

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


def format_databases(world: LabWorld, node: str = "") -> str:
    """Return what switches that run SONiC dump of their databases, with the kernel's own counts of lost links."""
    now, planted, counted = load_cabling(world, node), _load_planted_facts(world), _node_counters(world)
    dumps: dict[str, dict[str, Any]] = {}
    downs: dict[str, str] = {}
    for cable in find_links(world, now):
        for here, far in ((cable.a, cable.b), (cable.b, cable.a)):
            if now.devices[here.guid].kind == "switch":
                facts = planted.get(f"{here.guid}/{here.number}", {})
                counts = facts.get("counters", {})
                lost = counts.get(DOWNED, 0) + counted.get(f"{far.guid}/{far.number}", {}).get(DOWNED, 0)
                (name, alias), switch = name_port(now, here), now.devices[here.guid].name
                identity = f"oid:0x{crc32(here.guid.encode()):x}{here.number:03x}"
                dump = dumps.setdefault(switch, {"COUNTERS_PORT_NAME_MAP": {}, **_dump_switch(here.guid)})
                dump["COUNTERS_PORT_NAME_MAP"][name] = identity
                dump[f"PORT|{name}"] = {"alias": alias, "admin_status": "up"}
                dump |= _dump_port(name, identity, counts, _port_facts(here, cable, facts))
                downs[switch] = f"{downs.get(switch, '')}/sys/class/net/{name}/carrier_down_count:{lost}\n"
    rows = {name: {key: {"type": "hash", "value": row} for key, row in dump.items()} for name, dump in dumps.items()}
    build = "build_version: 'SONiC.202411'\n"
    return f"{json.dumps({name: [downs[name] + build, row] for name, row in rows.items()})}\n"


def _dump_port(name: str, identity: str, counts: Mapping[str, int], facts: Mapping[str, Any]) -> dict[str, Any]:
    module, bins = facts["module"], facts["fec_bins"]
    stats = {f"SAI_PORT_STAT_{theirs[0]}": str(counts.get(ours, 0)) for ours, theirs in SAI_COUNTERS.items()}
    others = {f"SAI_PORT_STAT_{other}": "0" for theirs in SAI_COUNTERS.values() for other in theirs[1:]}
    symbols = {stat: str(bins[number] if number < len(bins) else 0) for number, stat in enumerate(FEC_BINS)}
    lanes = {
        theirs.format(lane): str(number)
        for ours, theirs in SONIC_LANES.items()
        for lane, number in enumerate(module[ours], 1)
    }
    made = {"manufacturer": module["vendor"], "model": module["part"], "serial": module["serial"]}
    return {
        f"COUNTERS:{identity}": stats | others | symbols,
        f"TRANSCEIVER_INFO|{name}": made,
        f"TRANSCEIVER_DOM_SENSOR|{name}": {"temperature": str(module["temperature_c"]), "voltage": "3.3", **lanes},
    }


def _dump_switch(guid: str) -> dict[str, Any]:
    facts = _switch(guid)
    well = {"presence": "true", "status": "true"}
    return {
        "DEVICE_METADATA|localhost": {"mac": format_mac(guid)},
        "TEMPERATURE_INFO|ASIC": {"temperature": str(facts["temperature_c"])},
        **{f"PSU_INFO|PSU {number}": well for number in facts["psus"]},
        **{f"FAN_INFO|fan{number}": {**well, "speed": "60"} for number in facts["fans"]},
    }


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
ETHERNET_OUTPUTS = {"databases": format_databases}
EVERY_OUTPUT = TOOL_OUTPUTS | ETHERNET_OUTPUTS


def main(arguments: list[str]) -> int:
    """Print the output of one tool. Return 1 if ports have errors, as ibqueryerrors does; 2 on misuse."""
    if len(arguments) not in (2, 3) or arguments[1] not in EVERY_OUTPUT:
        usage = f"usage: python -m assay.lab.fabric.port_telemetry LABDIR {'|'.join(EVERY_OUTPUT)} [NODE]"
        print(usage, file=sys.stderr)  # noqa: T201
        return 2
    text = EVERY_OUTPUT[arguments[1]](LabWorld(Path(arguments[0])), *arguments[2:])
    sys.stdout.write(text)
    return int(text.startswith("Errors for"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
