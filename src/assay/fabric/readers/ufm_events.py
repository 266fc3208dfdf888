r"""Reads the lines of UFM's event log.

```
file  = { line }
line  = date time "[" id "] [" code "]" severity "[" category "]" kind "[" place "]" [ "[dev_id:" guid "]" ] ":" text
place = { name "/" } "Switch:" name "/" label | any text
text  = any, with ends: "(Switch:" name ":" label ")" guid ":" port, and "cable S/N:" serial
label = "1/17/1" (ASIC/cage/port) | "17/1" | port
```

Times are the manager's own, without a time zone. The port comes from the ends in the text, or from `dev_id` with the
label in `place`: cage c, port p of a twin-port cage is port 2·(c-1)+p. Events without either have no port. Nothing
shows that a line is missing, so only lines that cannot be read make the result partial.
Source: NVIDIA UFM Enterprise User Manual, Events; public tools that read the log.
"""

from __future__ import annotations

import re

from assay.fabric.discovery import FabricDiscovery, FabricEvent
from assay.fabric.readers.truncated_output import find_stderr_problems, find_truncation
from assay.model.specs.fabric.ports_and_cables import PortId, normalize_guid

LINE = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?) \[[0-9]{1,20}\] \[([0-9]{1,6})\] "
    r"(\w+) \[([^\]]*)\] ?(\w*) ?\[([^\]]*)\](?: \[dev_id: (?:0x)?([0-9a-fA-F]{1,16})\])?: (.*)"
)
END = re.compile(r"\)(?:0x)?([0-9a-fA-F]{16}):([0-9]{1,5})\b")
SERIAL = re.compile(r"cable S/N: (\S+)")
LABEL = re.compile(r"(?:.*/ |^)(?:(?:[0-9]{1,4}/)?([0-9]{1,4})/([12])|([0-9]{1,5}))$")


def parse(text: str, stderr: str = "") -> FabricDiscovery:
    """Read events, in the order of the log. Never raises: `problems` names what cannot be read."""
    problems = find_stderr_problems(stderr) + find_truncation(text)
    events = []
    for number, line in enumerate(text.splitlines(), start=1):
        if found := LINE.fullmatch(line.strip()):
            events.append(_event(found))
        elif line.strip():
            problems.append(f"line {number} is no event: {line.strip()[:80]!r}")
    if not events and not problems:
        problems.append("there is no event")
    return FabricDiscovery([], {}, tuple(problems), events=tuple(events))


def _event(found: re.Match[str]) -> FabricEvent:
    at, code, severity, category, _, place, device, text = found.groups()
    ports = [PortId(normalize_guid(end[1]), int(end[2])) for end in END.finditer(text)]
    if not ports and device and (number := port_of_label(place)):
        ports = [PortId(normalize_guid(device), number)]
    serial = SERIAL.search(text)
    return FabricEvent(at, int(code), severity.lower(), category, text, tuple(ports), serial[1] if serial else "")


def port_of_label(place: str) -> int:
    """Return the port's number for a label at the end of `place`, 0 if there is none."""
    found = LABEL.search(place.strip())
    if not found:
        return 0
    return int(found[3]) if found[3] else 2 * (int(found[1]) - 1) + int(found[2])
