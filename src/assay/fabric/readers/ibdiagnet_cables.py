"""Reads the modules that ibdiagnet2 lists in `ibdiagnet2.cables` (`--get_cable_info`).

```
file   = { rule  "Port=" n "Lid=" lid "GUID=" guid "Port Name=" name  rule  { field } }
rule   = "---…";  field = name ":" text
```

Fields read: Vendor, PN, SN, FW Version, Type, Length (metres) and Temperature (°C). "N/A" and an empty text are no
value. The file has no cable's other end, so it describes no fabric. GUID is that of
the port, which on ConnectX and Quantum devices is the node's.
Source: NVIDIA ibdiagnet InfiniBand Fabric Diagnostic Tool User Manual, Cable Diagnostics.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from assay.fabric.discovery import FabricDiscovery, ModuleValue, PortFacts
from assay.fabric.readers.link_end_matching import format_port
from assay.fabric.readers.truncated_output import find_stderr_problems, number_lines
from assay.model.specs.fabric.ports_and_cables import PortId, normalize_guid

PORT = re.compile(r"Port=([0-9]{1,5}) +Lid=\S+ +GUID=(?:0x)?([0-9a-fA-F]{1,16})\b")
FIELD = re.compile(r"([A-Za-z][\w ,/()#.-]*?)\s*:\s*(.*)")
TEXTS = {"Vendor": "vendor", "PN": "part", "SN": "serial", "FW Version": "firmware", "Type": "technology"}
NUMBERS = {"Length": "length_m", "Temperature": "temperature_c"}
NUMBER = re.compile(r"(-?[0-9]{1,6}(?:\.[0-9]{1,6})?)\s*(?:m|C|°C)?(?=\s|$)")


def parse(text: str, stderr: str = "") -> FabricDiscovery:
    """Read the modules. Never raises: `problems` names what cannot be read."""
    problems = find_stderr_problems(stderr)
    fields: dict[PortId, dict[str, str]] = {}
    here: PortId | None = None
    for number, line in number_lines(text):
        if found := PORT.match(line):
            here = PortId(normalize_guid(found[2]), int(found[1]))
            if here in fields:
                problems.append(f"line {number}: {format_port(here)} is listed twice")
            fields[here] = {}
        elif (field := FIELD.fullmatch(line)) and not here:
            if field[1] in TEXTS or field[1] in NUMBERS:
                problems.append(f"line {number}: no port has this {field[1]}")
        elif field and here:
            if field[1] in fields[here]:
                problems.append(f"line {number}: {format_port(here)} has {field[1]} twice")
            fields[here][field[1]] = field[2].strip()
        elif line and here and not line.startswith(("-", "#")):
            problems.append(f"line {number} cannot be read: {line[:80]!r}")
    problems += _find_lost_lines(fields)
    facts = {port: PortFacts(port, module=module) for port, own in fields.items() if (module := _make_module(own))}
    return FabricDiscovery([], {}, tuple(problems), facts)


def _find_lost_lines(fields: Mapping[PortId, Mapping[str, str]]) -> Iterator[str]:
    """Yield each port that lacks a field which another has: all modules of a file have the same ones."""
    every = {name for own in fields.values() for name in own if name in TEXTS or name in NUMBERS}
    for port, own in fields.items():
        if lost := sorted(every - own.keys()):
            yield f"{format_port(port)} has no {', '.join(lost)}"
    if not every:
        yield "no module is listed"


def _make_module(fields: Mapping[str, str]) -> dict[str, ModuleValue]:
    known = {name: text for name, text in fields.items() if text not in ("", "N/A", "NA")}
    module: dict[str, ModuleValue] = {ours: known[theirs] for theirs, ours in TEXTS.items() if theirs in known}
    for theirs, ours in NUMBERS.items():
        if found := NUMBER.match(known.get(theirs, "")):
            module[ours] = float(found[1])
    return module
