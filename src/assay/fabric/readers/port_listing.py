"""Joins the ends that a tool listed into cables, and says which do not agree.

Most tools print each cable twice, once at either device. That is how a text that lost a part betrays itself: an end
without its other end.

Whether all ports of a switch are listed, for tools that list every port, cabled or not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice, FabricDiscovery, PortFacts
from assay.fabric.link_rates_and_states import find_slowest_rate
from assay.model.fabric.ports_and_cables import DeviceKind, PortId

PortEnds = dict[PortId, tuple[PortId, str]]
"""Each port with what it is cabled to, and the rate."""

MAX_LINE_LENGTH = 4096

NO_ANSWER = re.compile(
    r"time[d ]*out|bad status|fail|error|abort|incomplete|unreachable|invalid|unable|can't|cannot"
    r"|ib(?:warn|panic): (?!\[\d+\] sim_connect: attached)",
    re.IGNORECASE,
)
"""What libibmad, libibumad and ssh say when an answer did not come. ibsim's greeting is none of it."""


def find_stderr_problems(stderr: str) -> list[str]:
    """Return a problem for every line of stderr that says that an answer did not come."""
    return [f"stderr: {line.strip()}" for line in stderr.splitlines() if NO_ANSWER.search(line)]


def find_truncation(text: str) -> list[str]:
    """Return a problem for a text whose last line does not end, for formats where a number may end a line."""
    return ["the last line has no end: the text was cut off"] if text and not text.endswith("\n") else []


def number_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers, without blanks around them. One longer than any tool writes is cut short.

    Patterns with several open places take very long on a very long line.
    """
    for number, line in enumerate(text.splitlines(), start=1):
        yield number, line.strip() if len(line) <= MAX_LINE_LENGTH else f"{line[:80].strip()} …"


def normalise_guid(digits: str) -> str:
    """Return the canonical form of 1 to 16 hex digits, with or without `0x`."""
    return "0x" + digits.lower().removeprefix("0x").zfill(16)


def format_port(port: PortId) -> str:
    """Return a port for a message."""
    return f"port {port.number} of {port.guid}"


def join_ends(
    ends: Mapping[PortId, tuple[PortId, str]], devices: Mapping[str, DiscoveredDevice], problems: list[str]
) -> list[DiscoveredCable]:
    """Join the two ends of each cable; add to `problems` which ones do not agree.

    A link is as slow as the slower of its ends: they may be asked while it comes up.
    """
    cables, unlisted = [], set()
    for here, (there, rate) in ends.items():
        back = ends.get(there)
        if back is None and there.guid not in devices:
            unlisted.add(there.guid)
        elif back is None:
            problems.append(f"{format_port(here)} leads to {format_port(there)}, which is not listed there")
        elif back[0] != here:
            problems.append(
                f"{format_port(here)} leads to {format_port(there)}, but that leads to {format_port(back[0])}"
            )
            continue
        elif there < here:
            continue
        slower = find_slowest_rate(rate, back[1]) if back and back[1] != rate else rate
        if back and back[1] != rate and not slower:
            problems.append(f"{format_port(here)} says {rate or 'no rate'}, its other end {back[1] or 'no rate'}")
        cables.append(DiscoveredCable(here, there, slower or rate))
    problems += [f"{one} is cabled but has no record of its own" for one in sorted(unlisted)]
    return cables


def check_has_cables(cables: Sequence[DiscoveredCable], problems: list[str]) -> list[str]:
    """Return the problems, and one more where there is no cable at all."""
    return problems if cables else [*problems, "no cable was discovered"]


class PortListing:
    """What a reader has understood so far of a tool that lists ports line by line."""

    def __init__(self, stderr: str) -> None:
        self.devices: dict[str, DiscoveredDevice] = {}
        self.ends: PortEnds = {}
        self.facts: dict[PortId, PortFacts] = {}
        self.problems = find_stderr_problems(stderr)

    def add_device(self, port: PortId, kind: DeviceKind, description: str) -> None:
        """Take in that a port is listed under its device, which has at least as many ports."""
        known = self.devices.get(port.guid)
        self.devices[port.guid] = DiscoveredDevice(
            port.guid, kind, max(port.number, known.ports if known else 0), description
        )

    def add_port(self, where: str, facts: PortFacts, there: PortId | None) -> None:
        """Take in one port; `there` is what it is cabled to."""
        here = facts.port
        if here in self.facts:
            self.problems.append(f"{where}: {format_port(here)} is listed twice")
        self.facts[here] = facts
        if there:
            self.ends[here] = (there, facts.rate)
            if not facts.rate:
                self.problems.append(f"{where}: no rate of {format_port(here)}")

    def add_unreadable_line(self, number: int, line: str) -> None:
        """Take in a line that cannot be read."""
        self.problems.append(f"line {number} cannot be read: {line.strip()[:80]!r}")

    def list_port_numbers(self, guids: Iterable[str]) -> dict[str, set[int]]:
        """Return the numbers of the ports that these devices list."""
        numbers: dict[str, set[int]] = {one: set() for one in guids}
        for port in self.facts:
            if port.guid in numbers:
                numbers[port.guid].add(port.number)
        return numbers

    def to_discovery(self) -> FabricDiscovery:
        """Return all of it, joined into cables."""
        cables = join_ends(self.ends, self.devices, self.problems)
        return FabricDiscovery(cables, self.devices, tuple(check_has_cables(cables, self.problems)), self.facts)


PRODUCT = re.compile(r".*:([\w-]+)/U[0-9]+")
SWITCHLIKE = re.compile(r"MF0;|.*:[\w-]+/U[0-9]+$|Quantum|SwitchIB|Switch-IB|Infiniscale|SwitchX")
"""How switches describe themselves, managed and by default."""

PORTS_OF_PRODUCT: Mapping[str, set[int]] = {
    "MQM9700": {64, 65, 128, 129}, "MQM9790": {64, 65, 128, 129}, "MQM8700": {40, 41, 80, 81},
    "MQM8790": {40, 41, 80, 81}, "MSB7700": {36}, "MSB7780": {36}, "MSB7790": {36}, "MSB7800": {36, 37},
    "MSB7890": {36, 37}, "SX6036": {36},
}  # fmt: skip
"""How many ports a product has, whole or split, with and without the one of its aggregation node (NVIDIA's manuals)."""


def find_product(description: str) -> str:
    """Return the product that a switch names in its description, empty where it names none."""
    found = PRODUCT.fullmatch(description)
    return found[1] if found else ""


def find_port_gaps(numbers: Mapping[str, set[int]]) -> list[str]:
    """Say of which switches, by GUID, a port is missing among those that are listed."""
    return [
        f"{guid} does not list port {min(lacking)}"
        for guid, listed in numbers.items()
        if (lacking := set(range(1, max(listed, default=0) + 1)) - listed)
    ]


def find_truncated_switches(
    suspects: Iterable[str], numbers: Mapping[str, set[int]], products: Mapping[str, str]
) -> list[str]:
    """Say of which of these switches ports may be missing after the last one that is listed.

    A switch has as many ports as its product has, or, for a product that is not known here, as another one like it.
    """
    tops = {guid: max(listed, default=0) for guid, listed in numbers.items()}
    said = []
    for guid in suspects:
        top, product = tops[guid], products[guid]
        alike = [tops[other] for other, its in products.items() if its == product and other != guid]
        if product in PORTS_OF_PRODUCT:
            if top not in PORTS_OF_PRODUCT[product] and top not in alike:
                said.append(f"{guid} lists {top} ports, but a {product} has {min(PORTS_OF_PRODUCT[product])} or more")
        elif top < max(alike, default=top + 1):
            said.append(f"{guid} lists {top} ports; nothing says whether that is all of them")
    return said
