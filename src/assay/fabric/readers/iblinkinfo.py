r"""Reads what `iblinkinfo -l` (`--line`) prints, and `iblinkinfo` without it.

```
file = { line }
line = guid '"' desc '"' lid port "[" [ext] "]" "==(" link ")==>" far
far  = [ guid lid port ] "[" [ext] "]" '"' desc '"' "(" remark ")" | '"Port not available"'
link = width lane "Gbps" state "/" physical | state "/" physical
lane = Gbit/s of one lane: "53.125" is HDR
```

One line a port, each cable twice. A port without a cable is printed with an empty other end (`[  ] "" ( )`). So is one
whose other end did not answer ("Port not available"), which is a problem unless the port is disabled. `desc` is padded
with blanks at its left. `guid` is the PORT's, as in `ibnetdiscover -p`. The text does not name the kind of a device:
one with several ports counts as a switch. A switch lists all of its ports from 1 on, cabled or not, which shows lost
lines. Remarks such as `Could be 12X` are not read,
nor what `-p` adds (`(HOQ:0 VL_Stall:7)`).

Without `-l`, the ports stand below their device, and the other end has only a LID:

```
file  = { group { row } }
group = ("CA" | "Switch" | "Router") ":" [ guid ] desc ":"
row   = [ port-guid ] lid port "[" [ext] "]" "==(" link ")==>" [ lid port ] "[" [ext] "]" '"' desc '"' "(" remark ")"
```

Each device's own rows show its LID, so the text itself resolves the others. A LID 0 (no subnet manager) resolves none.
Source: infiniband-diags 44, `iblinkinfo.c`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from assay.fabric.discovery import FabricDiscovery, LocalProblem, PortFacts
from assay.fabric.link_words import parse_port_state, rate_from_lanes
from assay.fabric.readers.link_end_matching import PortListing
from assay.fabric.readers.tool_text import (
    NO_ANSWER,
    SWITCHLIKE,
    find_port_gaps,
    find_product,
    find_truncated_switches,
    number_lines,
)
from assay.model.specs.fabric.cable import DeviceKind, PortId, normalize_guid

_EXT = r"\[[ 0-9]*\]"
LINE = re.compile(
    rf'0x([0-9a-fA-F]{{1,16}})\s+"(.*)"\s+[0-9]+\s+([0-9]{{1,5}}){_EXT}\s+'
    r"==\(\s*(?:([0-9]{1,2}X)\s+([0-9.]+|FDR10)(?:\s+Gbps)?\s+(?:\(FDR10\)\s+)?)?([A-Za-z]*)/\s*([A-Za-z ]*)\)"
    rf"(?: \(HOQ:.*\))?==>\s+(?:(?:0x([0-9a-fA-F]{{1,16}})\s+[0-9]+\s+([0-9]{{1,5}}))?{_EXT}\s+"
    r'".*"\s+\((.*)\)|"(Port not available)")'
)
GROUP = re.compile(r"(CA|Switch|Router): (?:0x([0-9a-fA-F]{1,16}) )?(.*):")
ROW = re.compile(
    rf"(?:0x([0-9a-fA-F]{{1,16}})\s+)?([0-9]{{1,5}})\s+([0-9]{{1,5}}){_EXT}\s+"
    r"==\(\s*(?:([0-9]{1,2}X)\s+([0-9.]+|FDR10)(?:\s+Gbps)?\s+(?:\(FDR10\)\s+)?)?([A-Za-z]*)/\s*([A-Za-z ]*)\)"
    rf'(?: \(HOQ:.*\))?==>\s+(?:(?:([0-9]{{1,5}})\s+([0-9]{{1,5}}))?{_EXT}\s+".*"\s+\((.*)\)|"(Port not available)")'
)
KINDS: dict[str, DeviceKind] = {"CA": "hca", "Switch": "switch", "Router": "router"}
UNABRIDGED = re.compile(r"(?m)^(?:CA|Switch|Router): .*:\r?$")


def parse(text: str, stderr: str = "") -> FabricDiscovery:
    """Read link information, a line a port. Never raises: `problems` names what cannot be read."""
    listing = PortListing(stderr, port_guids=True)
    if UNABRIDGED.search(text):
        _read_groups(listing, text)
        return listing.to_discovery()
    for number, line in number_lines(text):
        if match := LINE.fullmatch(line):
            _port(listing, f"line {number}", match)
        elif line:
            listing.add_unreadable_line(number, line)
    listing.problems += _find_missing_ports(listing)
    return listing.to_discovery()


def _read_groups(listing: PortListing, text: str) -> None:
    """Read the output without `-l`: first which LID is whose, then each port."""
    group: tuple[DeviceKind, str, str] | None = None
    rows: list[tuple[int, str, PortId, re.Match[str]]] = []
    guid_of: dict[str, str] = {}
    for number, line in number_lines(text):
        if match := GROUP.fullmatch(line):
            group = KINDS[match[1]], match[2] or "", match[3].strip()
        elif group and (match := ROW.fullmatch(line)) and bool(group[1]) != bool(match[1]):
            digits = group[1] or match[1]
            here = PortId(normalize_guid(digits), int(match[3]))
            listing.add_device(here, group[0], group[2])
            guid_of[match[2]] = here.guid
            rows.append((number, line, here, match))
        elif line:
            listing.add_unreadable_line(number, line, normalize_guid(group[1]) if group and group[1] else "")
    guid_of.pop("0", None)
    for number, line, here, match in rows:
        _add_row(listing, number, line, here, match, guid_of)
    listing.problems += _find_missing_ports(listing)


def _add_row(
    listing: PortListing, number: int, line: str, here: PortId, match: re.Match[str], guid_of: Mapping[str, str]
) -> None:
    width, lane, logical, physical, far_lid, far_port, remark, no_answer = match.groups()[3:]
    state, physical = parse_port_state(logical, physical)
    far = guid_of.get(far_lid or "")
    lost = no_answer or NO_ANSWER.search(remark or "") or (physical == "linkup" and not far)
    if lost and physical != "disabled":
        problem = (
            f"line {number}: the other end of port {here.number} of {here.guid} is not known: {line[-60:].strip()!r}"
        )
        listing.problems.append(LocalProblem(problem, here.guid))
    there = PortId(far, int(far_port)) if far else None
    rate = rate_from_lanes(width, lane) if width and there else ""
    listing.add_port(f"line {number}", PortFacts(here, state, physical, rate), there)


def _find_missing_ports(listing: PortListing) -> list[str]:
    """Return a problem for each switch that does not list all its ports. Only the last one may have been cut off."""
    switches = {
        guid: find_product(device.description)
        for guid, device in listing.devices.items()
        if device.kind == "switch" or SWITCHLIKE.match(device.description)
    }
    numbers = listing.list_port_numbers(switches)
    last = next(reversed(listing.facts), None)
    suspects = [last.guid] if last and last.guid in switches else []
    return find_port_gaps(numbers) or find_truncated_switches(suspects, numbers, switches)


def _port(listing: PortListing, where: str, match: re.Match[str]) -> None:
    digits, name, port, width, lane, logical, physical, far, far_port, remark, no_answer = match.groups()
    here = PortId(normalize_guid(digits), int(port))
    listing.add_device(here, "switch" if here.guid in listing.devices else "hca", name.strip())
    state, physical = parse_port_state(logical, physical)
    remark = remark or no_answer
    lost = NO_ANSWER.search(remark) or "not available" in remark or (not far and physical == "linkup")
    if lost and physical != "disabled":
        problem = f"{where}: the other end of port {here.number} of {here.guid} did not answer"
        listing.problems.append(LocalProblem(problem, here.guid))
    there = PortId(normalize_guid(far), int(far_port)) if far else None
    rate = rate_from_lanes(width, lane) if width and there else ""
    listing.add_port(where, PortFacts(here, state, physical, rate), there)
