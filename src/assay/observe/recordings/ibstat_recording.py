"""Reads the output of `ibstat` in a file into the branch `hca`.

A line `CA 'mlx5_0'` begins an adapter (`Switch` and `Router` are left out), `Port 1:` one of its ports. Below them are
facts, one a line: `Rate: 400` (Gb/s), `State: Active`, `Base lid: 0` (decimal). Source: ibstat.c of rdma-core's
infiniband-diags. What ibstat does not print (counters, P_Keys, PCI address) is unsupported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from assay.model.reading import absent, failed, unsupported, value
from assay.node.probe.devices.network_adapters import parse_number
from assay.observe.recordings.logs import Branches, RecordingError, RecordingFormat

BEGINNING = re.compile(rb"\s*(CA|Switch|Router) '[^'\n]+'\s*\n\t")
DEVICE = re.compile(r"^(CA|Switch|Router) '([^'\n]{1,64})'\s*$")
PORT = re.compile(r"^\tPort (\d{1,3}):\s*$")
FACT = re.compile(r"^\t{1,2}([A-Z][\w ]*): ?(.*?)\s*$")
STATES = {"Initializing": "INIT"}
MOST_PORTS = 64
"""No adapter has more; so many missing ports are listed, whatever number the file gives."""
NOT_PRINTED = unsupported("ibstat does not print it")

Facts = dict[str, str]
Convert = Callable[[str], Any]


def _read_ibstat(content: bytes, _at: datetime) -> Branches:
    adapters: dict[str, tuple[Facts, dict[str, Facts]]] = {}
    facts: Facts = {}
    kind = name = ""
    for line in content.decode(errors="replace").splitlines():
        if match := DEVICE.match(line):
            kind, name = match.groups()
            facts = {}
            if kind == "CA":
                adapters[name] = (facts, {})
        elif (match := PORT.match(line)) and kind == "CA":
            facts = adapters[name][1].setdefault(match[1], {})
        elif (match := FACT.match(line)) and kind:
            facts[match[1]] = match[2]
        elif line.strip():
            raise RecordingError(f"{line.strip()[:80]!r} is no line of ibstat")
    hcas = {name: _adapter_branch(facts, ports) for name, (facts, ports) in adapters.items()}
    return {("probe", "hca"): hcas or absent("ibstat lists no adapter")}


def _adapter_branch(facts: Facts, ports: Mapping[str, Facts]) -> dict[str, Any]:
    text = facts.get("Number of ports", "1")
    count = min(int(text), MOST_PORTS) if re.fullmatch(r"[0-9]{1,3}", text) else 1
    numbers = map(str, range(1, count + 1))
    others = {name: _port_branch(port) for name, port in ports.items() if name != "1"}
    others |= {name: failed(f"ibstat ended before port {name}") for name in numbers if name not in {"1", *ports}}
    missing = dict.fromkeys(_port_branch({}), failed("ibstat ended before port 1"))
    first = _port_branch(ports["1"]) if "1" in ports else missing
    return {
        "guid": _fact(facts, "Node GUID", _guid),
        "firmware": _fact(facts, "Firmware version", _text),
        "type": _fact(facts, "CA type", _text),
        "board_id": NOT_PRINTED,
        "pci": NOT_PRINTED,
        "numa_node": NOT_PRINTED,
        **first,
        "ports": others or absent("the adapter has one port"),
    }


def _port_branch(facts: Facts) -> dict[str, Any]:
    return {
        "link_layer": _fact(facts, "Link layer", _text),
        "state": _fact(facts, "State", _state),
        "phys_state": _fact(facts, "Physical state", _text),
        "rate_gbps": _fact(facts, "Rate", _rate),
        "port_guid": _fact(facts, "Port GUID", _guid),
        "lid": _fact(facts, "Base lid", parse_number),
        "sm_lid": _fact(facts, "SM lid", parse_number),
        "pkeys": NOT_PRINTED,
        "counters": NOT_PRINTED,
        "hw_counters": NOT_PRINTED,
    }


def _fact(facts: Facts, name: str, convert: Convert) -> dict[str, Any]:
    if name not in facts:
        return failed(f"ibstat: no line {name!r}")
    try:
        return value(convert(facts[name]))
    except ValueError:
        return failed(f"ibstat: cannot make sense of {name} {facts[name][:40]!r}")


def _text(text: str) -> str:
    if not text:
        raise ValueError(text)
    return text


def _guid(text: str) -> str:
    if not re.fullmatch(r"0x[0-9a-f]{16}", text):
        raise ValueError(text)
    return text


def _state(text: str) -> str:
    return STATES.get(_text(text), text.upper())


def _rate(text: str) -> int | float:
    gbps = float(text) if re.fullmatch(r"\d{1,5}(\.\d)?", text) else float("nan")
    if not gbps > 0:
        raise ValueError(text)
    return int(gbps) if gbps.is_integer() else gbps


IBSTAT = RecordingFormat("ibstat", lambda content: BEGINNING.match(content) is not None, _read_ibstat)
