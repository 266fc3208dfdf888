r"""Reads what `mlxlink --json -m -c` (or mstlink) prints of one port.

```
file   = { "result": { "output": { section: { name: cell } } } }          (JSON)
cell   = text, a number first where it is one ("42 [-10..80]") | lanes | "N/A"
lanes  = { "values": [ text, ... ] } | [ text, ... ] | "1.2,1.3 [-8..5]"
```

Sections read: Operational Info, Physical Counters and BER Info, Module Info; with --rx_fec_histogram --show_histogram
also Histogram of FEC Errors, whose cells `Bin n` are lanes of a range and a count. The tool does not name the port, so
the caller gives it as `port`. Cells are texts. "N/A" is no value, never zero. "15E-255", the smallest ratio that the
registers can hold, is a bit error ratio of zero.
Source: the tool's own strings (mstflint, mlxlink), and public parsers of its output.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from assay.fabric.discovery import FabricDiscovery, ModuleValue, PortFacts
from assay.fabric.health.counters import zero_if_no_errors
from assay.fabric.link_words import SPEEDS, parse_port_state, parse_rate, rate_from_lanes
from assay.fabric.readers.tool_text import find_object, find_stderr_problems, load_json, read_lanes, read_leading_number
from assay.model.specs.fabric.cable import PortId

UNKNOWN_PORT = PortId("unknown port", 0)
SECTIONS = ("Operational Info", "Physical Counters and BER Info", "Module Info")
BER = {"Raw Physical BER": "raw", "Effective Physical BER": "effective", "Symbol BER": "symbol"}
COUNTERS = {
    "Symbol Errors": "SymbolErrors",
    "Effective Physical Errors": "EffectivePhysicalErrors",
    "Link Down Counter": "LinkDownedCounter",
    "Link Error Recovery Counter": "LinkErrorRecoveryCounter",
}
TEXTS = {
    "Vendor Name": "vendor",
    "Vendor Part Number": "part",
    "Vendor Serial Number": "serial",
    "FW Version": "firmware",
    "Cable Technology": "technology",
}
NUMBERS = {"Temperature [C]": "temperature_c", "Voltage [mV]": "voltage_mv", "Cable Length [m]": "length_m"}
LANES = {
    "Rx Power Current [dBm]": "rx_power_dbm",
    "Tx Power Current [dBm]": "tx_power_dbm",
    "Bias Current [mA]": "bias_ma",
}
HISTOGRAM = "Histogram of FEC Errors"
MAX_BINS = 64
IB_SPEED = re.compile(r"(?:IB-)?([A-Z]+(?:10)?)")


def parse(text: str, stderr: str = "", port: PortId | None = None) -> FabricDiscovery:
    """Read one port. Never raises: `problems` names what cannot be read."""
    problems = find_stderr_problems(stderr)
    output = find_object(load_json(text, problems), "result", "output")
    problems += [f"there is no {name!r}" for name in SECTIONS if not find_object(output, name)] if not problems else []
    if port is None:
        problems.append("mlxlink does not name the port that this is")
    here = port or UNKNOWN_PORT
    facts = _facts(here, output)
    return FabricDiscovery([], {}, tuple(problems), {here: facts} if output else {})


def _facts(port: PortId, output: Mapping[str, Any]) -> PortFacts:
    link, errors, module = (find_object(output, name) for name in SECTIONS)
    state, physical = parse_port_state(str(link.get("State", "")), str(link.get("Physical state", "")))
    counters = {name: int(count) for name, count in _read_numbers(errors, COUNTERS).items()}
    ratios = {name: zero_if_no_errors(ratio) for name, ratio in _read_numbers(errors, BER).items()}
    bins = _read_bins(find_object(output, HISTOGRAM))
    return PortFacts(port, state, physical, _rate(link), counters, ratios, _module(module), fec_bins=bins)


def _read_bins(histogram: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the count of each bin, none if a bin is missing or no number: a histogram with a hole tells nothing."""
    bins = sum(re.fullmatch(r"Bin \d{1,2}", name) is not None for name in histogram)
    names = (f"Bin {number}" for number in range(min(bins, MAX_BINS)))
    cells = [find_object(histogram, name).get("values") for name in names]
    counts = [read_leading_number(cell[1]) for cell in cells if isinstance(cell, list) and len(cell) > 1]
    known = [int(count) for count in counts if count is not None and count >= 0]
    return tuple(known) if len(known) == len(cells) else ()


def _read_numbers(section: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, float]:
    """Return the numbers in a section. `names` maps the tool's names to those of PortFacts."""
    numbers = ((ours, read_leading_number(section.get(theirs))) for theirs, ours in names.items())
    return {ours: number for ours, number in numbers if number is not None}


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
    lanes: dict[str, ModuleValue] = {
        ours: values for theirs, ours in LANES.items() if (values := read_lanes(module.get(theirs)))
    }
    return texts | _read_numbers(module, NUMBERS) | lanes
