"""What readers share: joins the listed ends into cables, and finds the signs of a text that lost a part.

Most tools print each cable twice, once at either device. So an end without its other end shows that a part is missing.
Tools that list every port of a switch, cabled or not, show it by a gap in the port numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice, FabricDiscovery, PortFacts
from assay.fabric.link_rates_and_states import find_slowest_rate
from assay.model.fabric.ports_and_cables import DeviceKind, PortId

PortEnds = dict[PortId, tuple[PortId, str]]
"""Each port with the port that it is cabled to, and the rate."""

MAX_LINE_LENGTH = 4096

NO_ANSWER = re.compile(
    r"time[d ]*out|bad status|fail|error|abort|incomplete|unreachable|invalid|unable|can't|cannot"
    r"|ib(?:warn|panic): (?!\[\d+\] sim_connect: attached)",
    re.IGNORECASE,
)
"""What libibmad, libibumad and ssh print when an answer is missing. ibsim's greeting is not such a line."""


def find_stderr_problems(stderr: str) -> list[str]:
    """Return a problem for each line of stderr that reports a missing answer."""
    return [f"stderr: {line.strip()}" for line in stderr.splitlines() if NO_ANSWER.search(line)]


def find_truncation(text: str) -> list[str]:
    """Return a problem if the last line has no line feed. Needed for formats in which a number may end a line."""
    return ["the last line has no end: the text was cut off"] if text and not text.endswith("\n") else []


def number_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines, stripped, with their numbers. A line longer than any tool writes is cut to 80 characters.

    Regular expressions with several repetitions take very long on a very long line.
    """
    for number, line in enumerate(text.splitlines(), start=1):
        yield number, line.strip() if len(line) <= MAX_LINE_LENGTH else f"{line[:80].strip()} …"


def format_port(port: PortId) -> str:
    """Return a port for a message."""
    return f"port {port.number} of {port.guid}"


def join_ends(
    ends: Mapping[PortId, tuple[PortId, str]], devices: Mapping[str, DiscoveredDevice], problems: list[str]
) -> list[DiscoveredCable]:
    """Join the two ends of each cable. Add to `problems` the ends that do not agree.

    If the two ends report different rates, the slower counts: the link may have been coming up.
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
            problems.append(f"{format_port(here)} reports {rate or 'no rate'}, its other end {back[1] or 'no rate'}")
        cables.append(DiscoveredCable(here, there, slower or rate))
    problems += [f"{guid} is cabled but has no record of its own" for guid in sorted(unlisted)]
    return cables


def check_has_cables(cables: Sequence[DiscoveredCable], problems: list[str]) -> list[str]:
    """Return the problems, and one more if there is no cable at all."""
    return problems if cables else [*problems, "no cable was discovered"]


class PortListing:
    """Collects the ports of a tool that lists them line by line."""

    def __init__(self, stderr: str) -> None:
        self.devices: dict[str, DiscoveredDevice] = {}
        self.ends: PortEnds = {}
        self.facts: dict[PortId, PortFacts] = {}
        self.problems = find_stderr_problems(stderr)

    def add_device(self, port: PortId, kind: DeviceKind, description: str) -> None:
        """Add the device of a listed port. It has at least as many ports as the port's number."""
        known = self.devices.get(port.guid)
        self.devices[port.guid] = DiscoveredDevice(
            port.guid, kind, max(port.number, known.ports if known else 0), description
        )

    def add_port(self, where: str, facts: PortFacts, there: PortId | None) -> None:
        """Add a port. `where` is its place in the text, `there` the port that it is cabled to."""
        here = facts.port
        if here in self.facts:
            self.problems.append(f"{where}: {format_port(here)} is listed twice")
        self.facts[here] = facts
        if there:
            self.ends[here] = (there, facts.rate)
            if not facts.rate:
                self.problems.append(f"{where}: no rate of {format_port(here)}")

    def add_unreadable_line(self, number: int, line: str) -> None:
        """Add the problem of a line that cannot be read."""
        self.problems.append(f"line {number} cannot be read: {line.strip()[:80]!r}")

    def list_port_numbers(self, guids: Iterable[str]) -> dict[str, set[int]]:
        """Return the numbers of the listed ports of these devices, by GUID."""
        numbers: dict[str, set[int]] = {guid: set() for guid in guids}
        for port in self.facts:
            if port.guid in numbers:
                numbers[port.guid].add(port.number)
        return numbers

    def to_discovery(self) -> FabricDiscovery:
        """Return the discovery, with the ends joined into cables."""
        cables = join_ends(self.ends, self.devices, self.problems)
        return FabricDiscovery(cables, self.devices, tuple(check_has_cables(cables, self.problems)), self.facts)


PRODUCT = re.compile(r".*:([\w-]+)/U[0-9]+")
SWITCHLIKE = re.compile(r"MF0;|.*:[\w-]+/U[0-9]+$|Quantum|SwitchIB|Switch-IB|Infiniscale|SwitchX")
"""How switches describe themselves: managed ones, and others by default."""

PORTS_OF_PRODUCT: Mapping[str, set[int]] = {
    "MQM9700": {64, 65, 128, 129}, "MQM9790": {64, 65, 128, 129}, "MQM8700": {40, 41, 80, 81},
    "MQM8790": {40, 41, 80, 81}, "MSB7700": {36}, "MSB7780": {36}, "MSB7790": {36}, "MSB7800": {36, 37},
    "MSB7890": {36, 37}, "SX6036": {36},
}  # fmt: skip
"""The number of ports of a product, whole or split, with and without the aggregation node's (NVIDIA's manuals)."""


def find_product(description: str) -> str:
    """Return the product that a switch names in its description, "" if it names none."""
    found = PRODUCT.fullmatch(description)
    return found[1] if found else ""


def find_port_gaps(numbers: Mapping[str, set[int]]) -> list[str]:
    """Return a problem for each switch whose listed port numbers have a gap. `numbers` are by GUID."""
    return [
        f"{guid} does not list port {min(missing)}"
        for guid, listed in numbers.items()
        if (missing := set(range(1, max(listed, default=0) + 1)) - listed)
    ]


def find_truncated_switches(
    suspects: Iterable[str], numbers: Mapping[str, set[int]], products: Mapping[str, str]
) -> list[str]:
    """Return a problem for each suspect switch that may have ports after the last listed one.

    A switch has as many ports as its product. If the product is not known here, it has as many as another one of it.
    """
    highest = {guid: max(listed, default=0) for guid, listed in numbers.items()}
    problems = []
    for guid in suspects:
        ports, product = highest[guid], products[guid]
        of_same = [highest[other] for other, its in products.items() if its == product and other != guid]
        known = PORTS_OF_PRODUCT.get(product, set())
        if known and ports not in known and ports not in of_same:
            problems.append(f"{guid} lists {ports} ports, but a {product} has {min(known)} or more")
        elif not known and ports < max(of_same, default=ports + 1):
            problems.append(f"{guid} lists {ports} ports; nothing shows whether that is all of them")
    return problems
