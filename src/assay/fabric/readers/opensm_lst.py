r"""Reads the list of links that OpenSM (`opensm-subnet.lst`) and ibdiagnet (`.lst`) write.

```
file = { "{" end "}" "{" end "}" "PHY=" width "x" "LOG=" state "SPD=" lane }
end  = kind "Ports:" hex "SystemGUID:" hex "NodeGUID:" hex "PortGUID:" hex … "{" desc "}" "LID:" hex "PN:" hex
kind = "CA" | "SW" | "RT", and "-SM" where a subnet manager runs
```

Numbers are hexadecimal. Ports without a link are not listed. DevID and Rev are not read: OpenSM shifts those of the far
end.
Source: OpenSM 3.3, `osm_subnet.c` and `osm_db_files.c`; ibutils 1.5, `ibdiagnet`.
"""

from __future__ import annotations

import re

from assay.fabric.discovery import DiscoveredDevice, FabricDiscovery, PortFacts
from assay.fabric.lazy_discovery import read_system
from assay.fabric.link_rates_and_states import parse_port_state, rate_from_lanes
from assay.fabric.readers.link_end_matching import PortListing
from assay.fabric.readers.truncated_output import number_lines
from assay.model.specs.fabric.ports_and_cables import DeviceKind, PortId, normalize_guid

_HEX = "[0-9a-fA-F]{1,16}"
_END = (
    rf"\{{ (CA|SW|RT)(?:-SM)? Ports:({_HEX}) SystemGUID:({_HEX}) NodeGUID:({_HEX}) PortGUID:{_HEX} "
    rf"VenID:\w+ DevID:\w+ Rev:\w+ \{{(.*)\}} LID:{_HEX} PN:({_HEX}) \}}"
)
LINE = re.compile(rf"{_END} {_END} PHY=([0-9]{{1,2}}x) LOG=(\w+) SPD=([0-9.]+)")
CUT_SPEEDS = ("1", "2", "5", "10", "20")
"""Speeds that may be the beginning of another one at the end of a text: 10 of 100."""
KINDS: dict[str, DeviceKind] = {"CA": "hca", "SW": "switch", "RT": "router"}


def parse(text: str, stderr: str = "") -> FabricDiscovery:
    """Read a list of links. Never raises: `problems` names what cannot be read."""
    listing = PortListing(stderr)
    lines = list(number_lines(text))
    last = lines[-1][0] if lines and not text.endswith("\n") else 0
    for number, line in lines:
        if (found := LINE.fullmatch(line)) and not (number == last and found[15] in CUT_SPEEDS):
            _link(listing, f"line {number}", found)
        elif line:
            listing.add_unreadable_line(number, line)
    return listing.to_discovery()


def _link(listing: PortListing, where: str, found: re.Match[str]) -> None:
    kind, ports, system, digits, description, port = found.groups()[:6]
    here, there = PortId(normalize_guid(digits), int(port, 16)), PortId(normalize_guid(found[10]), int(found[12], 16))
    state, physical = parse_port_state(found[14], "linkup")
    listing.devices[here.guid] = DiscoveredDevice(
        here.guid, KINDS[kind], int(ports, 16), description.strip(), read_system(system)
    )
    listing.add_port(where, PortFacts(here, state, physical, rate_from_lanes(found[13], found[15])), there)
