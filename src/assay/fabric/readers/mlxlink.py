r"""Reads what `mlxlink --json -m -c` (or mstlink) prints of one port.

```
file   = { "result": { "output": { section: { name: cell } } } }          (JSON)
cell   = text, a number first where it is one ("42 [-10..80]") | lanes | "N/A"
lanes  = { "values": [ text, ... ] } | [ text, ... ] | "1.2,1.3 [-8..5]"
```

Sections read: Operational Info (or "Operational Info" with the port's name), Physical Counters and BER Info, Module
Info. Not the tool but its caller knows which port this is: `port`. Cells are texts; "N/A" is no value, never zero;
"15E-255", the smallest ratio that the registers can hold, is a bit error ratio of zero.
Source: the tool's own strings (mstflint, mlxlink), and public parsers of its output.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from assay.fabric.discovery import FabricDiscovery, ModuleValue, PortFacts
from assay.fabric.health.bit_error_rate import zero_if_no_errors
from assay.fabric.link_rates_and_states import SPEEDS, parse_port_state, parse_rate, rate_from_lanes
from assay.fabric.readers.port_listing import find_stderr_problems
from assay.fabric.readers.tolerant_json import find_object, load_json, read_lanes, read_leading_number
from assay.model.fabric.ports_and_cables import PortId

NOWHERE = PortId("port not told", 0)
SECTIONS = ("Operational Info", "Physical Counters and BER Info", "Module Info")
BER = {"Raw Physical BER": "raw", "Effective Physical BER": "effective", "Symbol BER": "symbol"}
COUNTERS = {
    "Symbol Errors": "SymbolErrors", "Effective Physical Errors": "EffectivePhysicalErrors",
    "Link Down Counter": "LinkDownedCounter", "Link Error Recovery Counter": "LinkErrorRecoveryCounter",
}  # fmt: skip
TEXTS = {
    "Vendor Name": "vendor", "Vendor Part Number": "part", "Vendor Serial Number": "serial", "FW Version": "firmware",
    "Cable Technology": "technology",
}  # fmt: skip
NUMBERS = {"Temperature [C]": "temperature_c", "Voltage [mV]": "voltage_mv", "Cable Length [m]": "length_m"}
LANES = {
    "Rx Power Current [dBm]": "rx_power_dbm", "Tx Power Current [dBm]": "tx_power_dbm", "Bias Current [mA]": "bias_ma",
}  # fmt: skip
IB_SPEED = re.compile(r"(?:IB-)?([A-Z]+(?:10)?)")


def parse(text: str, stderr: str = "", port: PortId | None = None) -> FabricDiscovery:
    """Read one port. Never raises: what cannot be read is said in `problems`."""
    problems = find_stderr_problems(stderr)
    output = find_object(load_json(text, problems), "result", "output")
    problems += [f"there is no {name!r}" for name in SECTIONS if not find_object(output, name)] if not problems else []
    if port is None:
        problems.append("mlxlink does not say whose port this is")
    here = port or NOWHERE
    facts = _facts(here, output)
    return FabricDiscovery([], {}, tuple(problems), {here: facts} if output else {})


def _facts(port: PortId, output: Mapping[str, Any]) -> PortFacts:
    link, errors, module = (find_object(output, name) for name in SECTIONS)
    state, place = parse_port_state(str(link.get("State", "")), str(link.get("Physical state", "")))
    told = {ours: one for theirs, ours in BER.items() if (one := read_leading_number(errors.get(theirs))) is not None}
    counts = {
        ours: int(one)
        for theirs, ours in COUNTERS.items()
        if (one := read_leading_number(errors.get(theirs))) is not None
    }
    return PortFacts(
        port, state, place, _rate(link), counts,
        {name: zero_if_no_errors(ratio) for name, ratio in told.items()}, _module(module),
    )  # fmt: skip


def _rate(link: Mapping[str, Any]) -> str:
    width, speed = str(link.get("Width", "")), str(link.get("Speed", ""))
    name = IB_SPEED.fullmatch(speed)
    if name and name[1] in SPEEDS:
        rate = f"{width}{name[1]}"
        return rate if parse_rate(rate) else ""
    return rate_from_lanes(width, speed)


def _module(module: Mapping[str, Any]) -> dict[str, ModuleValue]:
    texts: dict[str, ModuleValue] = {
        ours: module[theirs].strip()
        for theirs, ours in TEXTS.items()
        if isinstance(module.get(theirs), str) and module[theirs].strip() not in ("N/A", "")
    }
    numbers: dict[str, ModuleValue] = {
        ours: one for theirs, ours in NUMBERS.items() if (one := read_leading_number(module.get(theirs))) is not None
    }
    each: dict[str, ModuleValue] = {
        ours: values for key, ours in LANES.items() if (values := read_lanes(module.get(key)))
    }
    return texts | numbers | each
