"""Joins the ends that a tool listed into cables, and says which do not agree.

Most tools print each cable twice, once at either device. That is how a text that lost a part betrays itself: an end
without its other end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from assay.fabric.discovery import Discovery, FoundCable, FoundDevice
from assay.fabric.port_facts import PortFacts
from assay.fabric.rate import slowest
from assay.model.cable import DeviceKind, Port

Ends = dict[Port, tuple[Port, str]]
"""Each port with what it is cabled to, and the rate."""

LONGEST = 4096

LOST = re.compile(
    r"time[d ]*out|bad status|fail|error|abort|incomplete|unreachable|invalid|unable|can't|cannot"
    r"|ib(?:warn|panic): (?!\[\d+\] sim_connect: attached)",
    re.IGNORECASE,
)
"""What libibmad, libibumad and ssh say when an answer did not come. ibsim's greeting is none of it."""


def lost_on(stderr: str) -> list[str]:
    """Return a problem for every line of stderr that says that an answer did not come."""
    return [f"stderr: {line.strip()}" for line in stderr.splitlines() if LOST.search(line)]


def cut_off(text: str) -> list[str]:
    """Return a problem for a text whose last line does not end, for formats where a number may end a line."""
    return ["the last line has no end: the text was cut off"] if text and not text.endswith("\n") else []


def numbered(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers, without blanks around them. One longer than any tool writes is cut short.

    Patterns with several open places take very long on a very long line.
    """
    for number, line in enumerate(text.splitlines(), start=1):
        yield number, line.strip() if len(line) <= LONGEST else f"{line[:80].strip()} …"


def guid(digits: str) -> str:
    """Return the canonical form of 1 to 16 hex digits, with or without `0x`."""
    return "0x" + digits.lower().removeprefix("0x").zfill(16)


def named(port: Port) -> str:
    """Return a port for a message."""
    return f"port {port.number} of {port.guid}"


def cables_of(
    ends: Mapping[Port, tuple[Port, str]], devices: Mapping[str, FoundDevice], problems: list[str]
) -> list[FoundCable]:
    """Join the two ends of each cable; add to `problems` which ones do not agree.

    A link is as slow as the slower of its ends: they may be asked while it comes up.
    """
    cables, unlisted = [], set()
    for here, (there, rate) in ends.items():
        back = ends.get(there)
        if back is None and there.guid not in devices:
            unlisted.add(there.guid)
        elif back is None:
            problems.append(f"{named(here)} leads to {named(there)}, which is not listed there")
        elif back[0] != here:
            problems.append(f"{named(here)} leads to {named(there)}, but that leads to {named(back[0])}")
            continue
        elif there < here:
            continue
        slower = slowest(rate, back[1]) if back and back[1] != rate else rate
        if back and back[1] != rate and not slower:
            problems.append(f"{named(here)} says {rate or 'no rate'}, its other end {back[1] or 'no rate'}")
        cables.append(FoundCable(here, there, slower or rate))
    problems += [f"{one} is cabled but has no record of its own" for one in sorted(unlisted)]
    return cables


def whole(cables: Sequence[FoundCable], problems: list[str]) -> list[str]:
    """Return the problems, and one more where there is no cable at all."""
    return problems if cables else [*problems, "no cable was discovered"]


class Listing:
    """What a reader has understood so far of a tool that lists ports line by line."""

    def __init__(self, stderr: str) -> None:
        self.devices: dict[str, FoundDevice] = {}
        self.ends: Ends = {}
        self.facts: dict[Port, PortFacts] = {}
        self.problems = lost_on(stderr)

    def device(self, port: Port, kind: DeviceKind, description: str) -> None:
        """Take in that a port is listed under its device, which has at least as many ports."""
        known = self.devices.get(port.guid)
        self.devices[port.guid] = FoundDevice(
            port.guid, kind, max(port.number, known.ports if known else 0), description
        )

    def port(self, where: str, facts: PortFacts, there: Port | None) -> None:
        """Take in one port; `there` is what it is cabled to."""
        here = facts.port
        if here in self.facts:
            self.problems.append(f"{where}: {named(here)} is listed twice")
        self.facts[here] = facts
        if there:
            self.ends[here] = (there, facts.rate)
            if not facts.rate:
                self.problems.append(f"{where}: no rate of {named(here)}")

    def unread(self, number: int, line: str) -> None:
        """Take in a line that cannot be read."""
        self.problems.append(f"line {number} cannot be read: {line.strip()[:80]!r}")

    def numbers(self, guids: Iterable[str]) -> dict[str, set[int]]:
        """Return the numbers of the ports that these devices list."""
        numbers: dict[str, set[int]] = {one: set() for one in guids}
        for port in self.facts:
            if port.guid in numbers:
                numbers[port.guid].add(port.number)
        return numbers

    def discovery(self) -> Discovery:
        """Return all of it, joined into cables."""
        cables = cables_of(self.ends, self.devices, self.problems)
        return Discovery(cables, self.devices, tuple(whole(cables, self.problems)), self.facts)
