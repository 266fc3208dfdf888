r"""Reads what `ibnetdiscover -p` (`--ports`) prints.

```
file = { line }
line = kind lid port guid width speed [ " - " kind lid port guid "(" "'" desc "'" "-" "'" desc "'" ")" | "'" desc "'" ]
kind = "CA" | "SW" | "RT"
```

One line a port, each cable twice. A port without a cable is printed too, without an other end and with a meaningless
rate (`4x SDR`). A switch lists all of its ports, the last one first, which shows where a text is cut off. The
description of a port without a cable may lack its quotation marks. `guid` is the PORT's: the same as the device's for
switches, and for adapters with one port a device, as ConnectX-5 and later are. For others see `port_guids`.
Source: infiniband-diags 44, `ibnetdiscover.c`, `dump_ports_report`.
"""

from __future__ import annotations

import re

from assay.fabric.discovery import FabricDiscovery, PortFacts
from assay.fabric.link_rates_and_states import parse_rate
from assay.fabric.readers.link_end_matching import PortListing
from assay.fabric.readers.truncated_output import find_port_gaps, number_lines
from assay.model.specs.fabric.ports_and_cables import DeviceKind, PortId, normalize_guid

_END = r"(CA|SW|RT)\s+[0-9]+\s+([0-9]{1,5})\s+0x([0-9a-fA-F]{1,16})"
LINE = re.compile(rf"{_END}\s+(\S+)\s+(\S+)(?: - {_END} \( '(.*)' - '(.*)' \)| {{8,}}(\S.*))")
KINDS: dict[str, DeviceKind] = {"SW": "switch", "CA": "hca", "RT": "router"}


def parse(text: str, stderr: str = "") -> FabricDiscovery:
    """Read a report of ports. Never raises: `problems` names what cannot be read."""
    listing = PortListing(stderr, port_guids=True)
    for number, line in number_lines(text):
        if found := LINE.fullmatch(line):
            _port(listing, f"line {number}", found)
        elif line and not line.startswith("#"):
            listing.add_unreadable_line(number, line)
    switches = (device.guid for device in listing.devices.values() if device.kind == "switch")
    listing.problems += find_port_gaps(listing.list_port_numbers(switches))
    return listing.to_discovery()


def _port(listing: PortListing, where: str, found: re.Match[str]) -> None:
    kind, port, digits, width, speed, far_kind, far_port, far, name, _, alone = found.groups()
    here = PortId(normalize_guid(digits), int(port))
    listing.add_device(here, KINDS[kind], (name if far_kind else alone.strip("'")).strip())
    if not far_kind:
        listing.add_port(where, PortFacts(here), None)
        return
    rate = f"{width}{speed}"
    listing.add_port(
        where, PortFacts(here, rate=rate if parse_rate(rate) else ""), PortId(normalize_guid(far), int(far_port))
    )
