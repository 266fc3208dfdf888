r"""Reads what `ibnetdiscover` prints.

```
file     = { noise } { comment | attribute | device | port | blank }
comment  = "#" text
attribute= ("vendid" | "devid" | "sysimgguid" | "switchguid" | "caguid" | "rtguid") "=" text
device   = ("Switch" | "Ca" | "Rt") count '"' id '"' "#" '"' description '"' text
port     = "[" n "]" ["[ext" n "]"] ["(" guid ")"] '"' id '"' "[" n "]" ["[ext" n "]"] ["(" guid ")"] "#" text rate
id       = ("S" | "H" | "R") "-" up to 16 hex digits
rate     = width "x" speed, "4xNDR"
```

A port belongs to the device above it. Each cable is printed twice, once at either device, which is how a text
that lost a part betrays itself: an end without its other end. Between tokens there may be any blanks, tabs or
nothing; lines end in LF or CRLF; records may follow each other without a blank line. `noise` is a terminal's
header or footer; in the middle of a record it means that something was overwritten.
Source: infiniband-diags 44, `ibnetdiscover.c`, and dumps of real fabrics.
"""

from __future__ import annotations

import re

from assay.fabric.discovery import Discovery, FoundCable, FoundDevice
from assay.fabric.rate import rate_of
from assay.model.cable import DeviceKind, Port

DEVICE = re.compile(r'(Switch|Ca|Rt)\s*(\d+)\s*"[SHR]-([0-9a-fA-F]{1,16})"\s*#\s*"(.*)"')
PORT = re.compile(
    r"\[(\d+)\]\s*(?:\[ext \d+\]\s*)?(?:\([0-9a-fA-F]+\))?\s*"
    r'"[SHR]-([0-9a-fA-F]{1,16})"\[(\d+)\]\s*(?:\[ext \d+\]\s*)?(?:\([0-9a-fA-F]+\))?\s*#'
)
PLAIN = re.compile(r"\s*$|\s*#|(?:vendid|devid|sysimgguid|switchguid|caguid|rtguid)=")
FABRIC_LINE = re.compile(r'\[|Switch|Ca\b|Rt\b|.*"[SHR]-')
LOST = re.compile(
    r"time[d ]*out|bad status|fail|error|abort|incomplete|unreachable|invalid|unable|can't|cannot"
    r"|ib(?:warn|panic): (?!\[\d+\] sim_connect: attached)",
    re.IGNORECASE,
)
"""What libibmad, libibumad and ssh say when an answer did not come. ibsim's greeting is none of it."""
KINDS: dict[str, DeviceKind] = {"Switch": "switch", "Ca": "hca", "Rt": "router"}


def parse(text: str, stderr: str = "") -> Discovery:
    """Read a discovery. Never raises: what cannot be read is said in `problems`, which makes it partial."""
    reader = _Reader()
    for number, line in enumerate(text.split("\n"), start=1):
        reader.line(number, line.rstrip("\r"))
    problems = [f"stderr: {line.strip()}" for line in stderr.splitlines() if LOST.search(line)]
    problems += reader.problems
    cables = _cables(reader.ends, reader.devices, problems)
    if not cables:
        problems.append("no cable was discovered")
    return Discovery(cables, reader.devices, tuple(problems))


class _Reader:
    """What has been read so far: devices, and every port with what it is cabled to."""

    def __init__(self) -> None:
        self.devices: dict[str, FoundDevice] = {}
        self.ends: dict[Port, tuple[Port, str]] = {}
        self.problems: list[str] = []
        self.device = ""
        self.noise = 0

    def line(self, number: int, line: str) -> None:
        if found := PORT.match(line):
            self.port(number, line, found)
        elif found := DEVICE.match(line):
            self.start(number, found)
        elif PLAIN.match(line):
            return
        elif FABRIC_LINE.match(line) or LOST.search(line):
            self.problems.append(f"line {number} cannot be read: {line[:80]!r}")
        else:
            self.noise = number

    def start(self, number: int, found: re.Match[str]) -> None:
        kind, ports, digits, description = found.groups()
        self.device, self.noise = _guid(digits), 0
        if self.device in self.devices:
            self.problems.append(f"line {number}: {self.device} is listed twice")
        self.devices[self.device] = FoundDevice(self.device, KINDS[kind], int(ports), description.strip())

    def port(self, number: int, line: str, found: re.Match[str]) -> None:
        if not self.device or self.noise:
            self.problems.append(f"line {number}: it is not plain which device this port belongs to")
            self.device = ""
            return
        here, there = Port(self.device, int(found[1])), Port(_guid(found[2]), int(found[3]))
        rate = line.rsplit(None, 1)[-1]
        if not rate_of(rate):
            self.problems.append(f"line {number}: no rate at the end of {line[-40:]!r}")
            rate = ""
        if here in self.ends:
            self.problems.append(f"line {number}: port {here.number} of {here.guid} is listed twice")
        self.ends[here] = (there, rate)


def _guid(digits: str) -> str:
    return "0x" + digits.lower().zfill(16)


def _cables(
    ends: dict[Port, tuple[Port, str]], devices: dict[str, FoundDevice], problems: list[str]
) -> list[FoundCable]:
    """Join the two ends of each cable; say which ones do not agree."""
    cables, unlisted = [], set()
    for here, (there, rate) in ends.items():
        back = ends.get(there)
        if back is None and there.guid not in devices:
            unlisted.add(there.guid)
        elif back is None:
            problems.append(f"{_name(here)} leads to {_name(there)}, which is not listed there")
        elif back[0] != here:
            problems.append(f"{_name(here)} leads to {_name(there)}, but that leads to {_name(back[0])}")
            continue
        elif there < here:
            continue
        elif back[1] != rate:
            problems.append(f"{_name(here)} says {rate or 'no rate'}, its other end {back[1] or 'no rate'}")
        cables.append(FoundCable(here, there, rate))
    problems += [f"{guid} is cabled but has no record of its own" for guid in sorted(unlisted)]
    return cables


def _name(port: Port) -> str:
    return f"port {port.number} of {port.guid}"
