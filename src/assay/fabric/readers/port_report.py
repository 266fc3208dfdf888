r"""Reads what `ibnetdiscover -p` (`--ports`) prints.

```
file = { line }
line = kind lid port guid width speed [ " - " kind lid port guid "(" "'" desc "'" "-" "'" desc "'" ")" | "'" desc "'" ]
kind = "CA" | "SW" | "RT"
```

One line a port, each cable twice. A port without a cable is printed too, with no other end and a rate that means
nothing (`4x SDR`): a switch lists all of its ports, the last one first, which shows where a text was cut off. Such a
port's description may lack its quotation marks. `guid` is the PORT's: the device's own for switches
and for adapters with one port a device, as ConnectX-5 and later are; elsewhere see `addresses.py`.
Source: infiniband-diags 44, `ibnetdiscover.c`, `dump_ports_report`.
"""

from __future__ import annotations

import re

from assay.fabric.discovery import Discovery
from assay.fabric.ends import Listing, guid, numbered
from assay.fabric.port_counts import gaps
from assay.fabric.port_facts import PortFacts
from assay.fabric.rate import rate_of
from assay.model.cable import DeviceKind, Port

_END = r"(CA|SW|RT)\s+[0-9]+\s+([0-9]{1,5})\s+0x([0-9a-fA-F]{1,16})"
LINE = re.compile(rf"{_END}\s+(\S+)\s+(\S+)(?: - {_END} \( '(.*)' - '(.*)' \)| {{8,}}(\S.*))")
KINDS: dict[str, DeviceKind] = {"SW": "switch", "CA": "hca", "RT": "router"}


def parse(text: str, stderr: str = "") -> Discovery:
    """Read a report of ports. Never raises: what cannot be read is said in `problems`."""
    listing = Listing(stderr)
    for number, line in numbered(text):
        if found := LINE.fullmatch(line):
            _port(listing, f"line {number}", found)
        elif line and not line.startswith("#"):
            listing.unread(number, line)
    listing.problems += gaps(listing.numbers(one.guid for one in listing.devices.values() if one.kind == "switch"))
    return listing.discovery()


def _port(listing: Listing, where: str, found: re.Match[str]) -> None:
    kind, port, digits, width, speed, far_kind, far_port, far, name, _, alone = found.groups()
    here = Port(guid(digits), int(port))
    listing.device(here, KINDS[kind], (name if far_kind else alone.strip("'")).strip())
    if not far_kind:
        listing.port(where, PortFacts(here), None)
        return
    rate = f"{width}{speed}"
    listing.port(where, PortFacts(here, rate=rate if rate_of(rate) else ""), Port(guid(far), int(far_port)))
