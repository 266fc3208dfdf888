"""Reads what `ibnetdiscover` prints, with and without `-p`.

```
file     = { noise } { comment | attribute | device | port | blank }
comment  = "#" text
attribute= ("vendid" | "devid" | "sysimgguid" | "switchguid" | "caguid" | "rtguid") "=" text
device   = ("Switch" | "Ca" | "Rt") count '"' id '"' "#" '"' description '"' text
port     = "[" n "]" ["[ext" n "]"] ["(" guid ")"] '"' id '"' "[" n "]" ["[ext" n "]"] ["(" guid ")"] "#" text rate
id       = ("S" | "H" | "R") "-" up to 16 hex digits
rate     = width "x" speed [ " s=" n " w=" n " v=" n ], "4xNDR" (-f adds the rest)
```

A port belongs to the device above it. Each cable is printed twice, once at either device: an end without its other end
shows that the text lost a part. Between tokens there may be blanks, tabs or nothing. Lines end in LF or CRLF. Records
may follow each other without a blank line. `noise` is any other line, such as a prompt: `notes` names each. Within a
record it means that something was overwritten.

The tool prints switches before adapters, so a text that is cut off among the switches has open cables to adapters. A
text in another order is read too, but a cut could go unnoticed.

A text in which every line is as it should be, as nearly all are, is split record by record (`_read_records`). Any other
text is read line by line, which finds what is wrong and where.
Source: infiniband-diags 44, `ibnetdiscover.c`, and dumps of real fabrics. `ibnetdiscover -p` prints another format
(`parse_ports`).
"""

from __future__ import annotations

import re

from assay.fabric.discovery import DiscoveredDevice, FabricDiscovery, LocalProblem, PortFacts
from assay.fabric.lazy_discovery import DeviceHead, LazyDiscovery, PortRow, read_system
from assay.fabric.link_words import parse_rate
from assay.fabric.readers.link_end_matching import PortEnds, PortListing, check_has_cables, format_port, join_ends
from assay.fabric.readers.tool_text import NO_ANSWER, find_port_gaps, find_stderr_problems, number_lines
from assay.model.gc_pause import pause_gc
from assay.model.specs.fabric.cable import DeviceKind, PortId, normalize_guid

DEVICE = re.compile(r'(Switch|Ca|Rt)\s*([0-9]{1,5})\s*"[SHR]-([0-9a-fA-F]{1,16})"\s*#\s*"(.*)"')
PORT = re.compile(
    r"\[([0-9]{1,5})\]\s*(?:\[ext \d+\]\s*)?(?:\([0-9a-fA-F]+\))?\s*"
    r'"[SHR]-([0-9a-fA-F]{1,16})"\[([0-9]{1,5})\]\s*(?:\[ext \d+\]\s*)?(?:\([0-9a-fA-F]+\))?\s*#'
)
ATTRIBUTE = re.compile("(vendid|devid|sysimgguid|switchguid|caguid|rtguid)=")
PLAIN = re.compile(r"\s*$|\s*#")
FULL = re.compile(r"(?: [a-z]+=\d+)+$")
"""What `ibnetdiscover -f` adds to a line: the bit fields of speed, width and virtual lanes."""
FABRIC_LINE = re.compile(r'\[\d|Switch|Ca\b|Rt\b|.*"[SHR]-')
OWN_REMARK = re.compile(r"(?:Non-Chassis Nodes|Chassis \d+\b.*)$|DR path .* -> (?:new|known|processing) ")
"""What `-g` prints between groups of records, and `-s` before all records."""
KINDS: dict[str, DeviceKind] = {"Switch": "switch", "Ca": "hca", "Rt": "router"}

_RECORD = re.compile(
    r"vendid=.*+\ndevid=.*+\nsysimgguid=(0x[0-9a-f]{1,16}+)\n(?:switch|ca|rt)guid=.*+\n"
    r'(Switch|Ca|Rt)[ \t]*+([0-9]{1,5})[ \t]*+"[SHR]-([0-9a-f]{16})"[ \t]*+#[ \t]*+"(.*)".*+'
)
"""The head of a record. This pattern and the next run over 10 MB. They never backtrack (`*+`), and are not anchored at
the start of a line, which would cost much (see `_read_records`)."""
HEAD_LINES = 4  # line feeds within a head
_EXTRA = r"[ \t]*+(?:\[ext \d++\][ \t]*+)?+(?:\([0-9a-f]++\))?+[ \t]*+"
_ROW = re.compile(
    rf'\n\[([0-9]{{1,5}})\]{_EXTRA}"[SHR]-([0-9a-f]{{16}})"\[([0-9]{{1,5}})\]{_EXTRA}#.* (\d++x[A-Z0-9]++)(?!.)'
)
_PREAMBLE = re.compile(r"(?:(?:#.*)?\n)*")
_END = r"(CA|SW|RT)\s+[0-9]+\s+([0-9]{1,5})\s+0x([0-9a-fA-F]{1,16})"
LINE = re.compile(rf"{_END}\s+(\S+)\s+(\S+)(?: - {_END} \( '(.*)' - '(.*)' \)| {{8,}}(\S.*))")
PORT_KINDS: dict[str, DeviceKind] = {"SW": "switch", "CA": "hca", "RT": "router"}


def parse(text: str, stderr: str = "") -> FabricDiscovery:
    """Read a discovery. Never raises: `problems` names what cannot be read, which makes the discovery partial."""
    unix = text.replace("\r\n", "\n") if "\r" in text else text
    return _read_records(unix, stderr) or _line_by_line(unix, stderr)


def _read_records(text: str, stderr: str) -> LazyDiscovery | None:
    """Read a flawless text record by record; return None if any line is not exactly as it should be.

    A record's body, between its head and the next one, starts with the line feed before its first row. Every line feed
    of the text must belong to a head, a row, or the end of a body, with a blank line or without. Any other line would
    add a line feed, so it is enough to count them once for the whole text.
    """
    parts = iter(_RECORD.split(text))
    preamble = next(parts)
    if not _PREAMBLE.fullmatch(preamble):
        return None
    heads: dict[str, DeviceHead] = {}
    rows: dict[str, list[PortRow]] = {}
    records, lines = 0, preamble.count("\n")
    with pause_gc():
        for system, kind, ports, digits, description, body in zip(*[parts] * 6, strict=True):
            rows[digits] = own_rows = _ROW.findall(body)
            heads[digits] = (KINDS[kind], ports, description, system)
            lines += len(own_rows) + (2 if body[-2:] == "\n\n" else 1)
            records += body[-1:] == "\n"
    flawless = records == len(heads) and text.count("\n") == lines + HEAD_LINES * records
    return LazyDiscovery(heads, rows, find_stderr_problems(stderr)) if flawless else None


def _line_by_line(text: str, stderr: str) -> FabricDiscovery:
    reader = _Reader()
    for number, line in enumerate(text.split("\n"), start=1):
        reader.read_line(number, line.rstrip("\r"))
    problems = find_stderr_problems(stderr) + reader.problems
    unsystematic = [guid for guid, device in reader.devices.items() if not device.system]
    if len(unsystematic) < len(reader.devices):
        problems += [LocalProblem(f"{guid} has no line sysimgguid=, though others have") for guid in unsystematic]
    cables = join_ends(reader.ends, reader.devices, problems)
    facts = {
        here: PortFacts(here, rate=rate)
        for here, (there, rate) in reader.ends.items()
        if reader.ends.get(there, (here, rate))[1] != rate
    }
    all_problems = tuple(check_has_cables(cables, problems))
    return FabricDiscovery(cables, reader.devices, all_problems, facts, notes=tuple(reader.notes))


class _Reader:
    """The devices read so far, and each port with the port that it is cabled to."""

    def __init__(self) -> None:
        self.devices: dict[str, DiscoveredDevice] = {}
        self.ends: PortEnds = {}
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.device = self.system = ""
        self.noise = 0

    def read_line(self, number: int, line: str) -> None:
        if match := PORT.match(line):
            self._add_port(number, line, match)
        elif match := DEVICE.match(line):
            self._start_device(number, match)
        elif match := ATTRIBUTE.match(line):  # another record begins, even if its head is lost
            self.device = ""
            self.system = read_system(line[match.end() :]) if match[1] == "sysimgguid" else self.system
        elif PLAIN.match(line) or OWN_REMARK.match(line):
            return
        elif NO_ANSWER.search(line):
            self.problems.append(f"line {number} cannot be read: {line[:80]!r}")
        elif FABRIC_LINE.match(line):
            self.problems.append(LocalProblem(f"line {number} cannot be read: {line[:80]!r}", self.device))
            if not line.startswith("["):  # the head of another device: what follows is not this one's
                self.device = ""
        else:
            self.noise = number
            self.notes.append(f"line {number} is none of ibnetdiscover's and was skipped: {line[:80]!r}")

    def _start_device(self, number: int, match: re.Match[str]) -> None:
        kind, ports, digits, description = match.groups()
        self.device, self.noise = normalize_guid(digits), 0
        if self.device in self.devices:
            self.problems.append(LocalProblem(f"line {number}: {self.device} is listed twice", self.device))
        self.devices[self.device] = DiscoveredDevice(
            self.device, KINDS[kind], int(ports), description.strip(), self.system
        )
        self.system = ""

    def _add_port(self, number: int, line: str, match: re.Match[str]) -> None:
        if not self.device or self.noise:
            if self.device or not self.problems:  # once, and not for each port that follows
                problem = f"line {number}: it is not clear which device this port belongs to"
                self.problems.append(LocalProblem(problem, self.device))
            self.device = ""
            return
        here, there = PortId(self.device, int(match[1])), PortId(normalize_guid(match[2]), int(match[3]))
        rate = FULL.sub("", line).rsplit(None, 1)[-1]
        if not parse_rate(rate):
            self.problems.append(LocalProblem(f"line {number}: no rate at the end of {line[-40:]!r}"))
            rate = ""
        if here in self.ends:
            self.problems.append(LocalProblem(f"line {number}: {format_port(here)} is listed twice", here.guid))
        self.ends[here] = (there, rate)


def parse_ports(text: str, stderr: str = "") -> FabricDiscovery:
    """Read a report of ports. Never raises: `problems` names what cannot be read.

    ```
    file = { line }
    line = kind lid port guid width speed [ " - " kind lid port guid "(" name "-" name ")" | name ]
    name = "'" desc "'"
    kind = "CA" | "SW" | "RT"
    ```

    One line a port, each cable twice. A port without a cable is printed too, without an other end and with a
    meaningless rate (`4x SDR`). A switch lists all of its ports, the last one first, which shows where a text is cut
    off. The description of a port without a cable may lack its quotation marks. `guid` is the PORT's: the same as the
    device's for switches, and for adapters with one port a device, as ConnectX-5 and later are. For others see
    `port_guids`.
    Source: infiniband-diags 44, `ibnetdiscover.c`, `dump_ports_report`.
    """
    listing = PortListing(stderr, port_guids=True)
    for number, line in number_lines(text):
        if match := LINE.fullmatch(line):
            _port(listing, f"line {number}", match)
        elif line and not line.startswith("#"):
            listing.add_unreadable_line(number, line)
    switches = (device.guid for device in listing.devices.values() if device.kind == "switch")
    listing.problems += find_port_gaps(listing.list_port_numbers(switches))
    return listing.to_discovery()


def _port(listing: PortListing, where: str, match: re.Match[str]) -> None:
    kind, port, digits, width, speed, far_kind, far_port, far, name, _, alone = match.groups()
    here = PortId(normalize_guid(digits), int(port))
    listing.add_device(here, PORT_KINDS[kind], (name if far_kind else alone.strip("'")).strip())
    if not far_kind:
        listing.add_port(where, PortFacts(here), None)
        return
    rate = f"{width}{speed}"
    listing.add_port(
        where, PortFacts(here, rate=rate if parse_rate(rate) else ""), PortId(normalize_guid(far), int(far_port))
    )
