"""Reads a topology file (`.topo`), as ibdiagnet -w, UFM's export and NVIDIA's cable validation write it.

```
file   = { "#" text | blank | system { port } }
system = type name { "CFG:" | option }                          at the start of a line
option = key "=" value
port   = port [ "-" width "x-" lane "G" ] "->" type name port  indented
```

The file names devices and ports, and no GUIDs. Read are the names and ports of both ends, and width and lane rate
(Gb/s). The types of systems and their options are not read: what they contain is in other files (`.ibnl`). A cable that
stands at both of its ends counts once.
Source: ibutils 1.5.7, `ibdm-topo-file(1)`; NVIDIA ibdiagnet User Manual, Topology Comparison.
"""

from __future__ import annotations

import re

from assay.fabric.drafts.sheets.point_to_point_sheet import PointToPointSheet, SheetCable, SheetEnd, drop_mirrored
from assay.fabric.link_rates_and_states import rate_from_lanes
from assay.fabric.readers.format_detection import NAMED_PORTS

SYSTEM = re.compile(r"(\w[\w.+-]*)\s+(\S+)(?:\s+(?:CFG:|\S+=\S+))*")
"""A prompt, and other foreign text, is no system: it has other characters, or more words."""
PORT = re.compile(r"\s+(\S+)\s+(?:-(\d+x)-([\d.]+)G-?>|-+>)\s+(\S+)\s+(\S+)\s+(\S+)\s*")


def is_topology_file(text: str) -> bool:
    """Return whether a text has a line of such a file."""
    return NAMED_PORTS.search(text) is not None


def read_topology_file(text: str) -> PointToPointSheet:
    """Return the cables of the file, and a problem for each line that cannot be read."""
    sheet = PointToPointSheet()
    system = ""
    for number, line in enumerate(text.splitlines(), start=1):
        plain = line.partition("#")[0].rstrip()
        if not plain:
            continue
        if not plain[0].isspace() and (found := SYSTEM.fullmatch(plain)):
            system = found[2]
        elif (found := PORT.fullmatch(plain)) and system:
            port, width, lane, _, far, far_port = found.groups()
            rate = rate_from_lanes(width, lane) if width else ""
            if width and not rate:
                sheet.problems.append((number, f"{width} of {lane} Gb/s are no known rate"))
            ends = SheetEnd(system, port), SheetEnd(far, far_port)
            sheet.cables.append(SheetCable(number, *ends, rate))
        else:
            sheet.problems.append((number, f"{plain.strip()[:80]!r} is neither a system nor a port of one"))
    sheet.cables = drop_mirrored(sheet.cables)
    sheet.tell_open_end(text)
    return sheet
