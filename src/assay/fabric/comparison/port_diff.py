"""Where a discovery differs from the design, port by port; nothing at all is built for what is as designed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from assay.fabric.discovery import AGGREGATION_NODE, DiscoveredCable, DiscoveredDevice, FabricDiscovery
from assay.fabric.lazy_discovery import LazyDiscovery, PortRow, PortRows, diff_rows
from assay.fabric.link_rates_and_states import is_slower, parse_rate
from assay.fabric.readers.port_listing import PortEnds, format_port, join_ends
from assay.fabric.topology.compiled_topology import CompiledTopology
from assay.model.fabric.ports_and_cables import PortId

Matching = dict[PortId, PortId]
RowPort = tuple[str, str]
"""A port as rows write it: the device's 16 hex digits, the port's number."""
DeviceRows = list[tuple[str, PortRow]]
"""Rows, each with its device's 16 hex digits."""


@dataclass
class PortDiff:
    """Designed cables that are not there, and cables that are not designed; each by both of its ports.

    `slow` are cables in their place below the designed rate. `found` counts all cables that were found; `rates` has
    those of the undesigned ones. `rows` is all that was found.
    """

    expected: Matching = field(default_factory=dict)
    actual: Matching = field(default_factory=dict)
    rates: dict[PortId, str] = field(default_factory=dict)
    slow: list[DiscoveredCable] = field(default_factory=list)
    found: int = 0
    problems: list[str] = field(default_factory=list)
    rows: PortRows = field(default_factory=dict)

    @property
    def has_differences(self) -> bool:
        """Whether there is a difference."""
        return bool(self.expected or self.actual or self.slow)


def diff_ports(plan: CompiledTopology, discovery: FabricDiscovery) -> PortDiff:
    """Compare all ports of a design with all ports of a discovery."""
    listed = isinstance(discovery, LazyDiscovery)
    rows = discovery.rows if isinstance(discovery, LazyDiscovery) else _rows(discovery.cables)
    problems = list(discovery.stderr_problems if isinstance(discovery, LazyDiscovery) else discovery.problems)
    lacking, strange = diff_rows(rows, plan.rows)
    inside = _inside_switches(discovery, plan, strange) if strange else set()
    cabled = [(digits, row) for digits, row in strange if digits not in inside and row[1] not in inside]
    total = sum(map(len, rows.values())) + len(cabled) - len(strange)
    result = PortDiff(found=total, problems=problems, rows=rows)
    if lacking or cabled:
        concerned = _PortDiffBuilder(plan, rows, discovery.devices)
        concerned.fill(result, lacking, cabled, problems if listed else [])
    result.found //= 2
    if listed and not result.found:
        problems.append("no cable was discovered")
    return result


def _inside_switches(
    discovery: FabricDiscovery, plan: CompiledTopology, strange: Iterable[tuple[str, PortRow]]
) -> set[str]:
    """Return the devices (16 hex digits) that are no cable's end but a part of a switch: aggregation nodes."""
    suspects = {row[1] for _, row in strange} | {digits for digits, _ in strange}
    found = set()
    for digits in suspects - plan.rows.keys():
        if isinstance(discovery, LazyDiscovery):
            said = discovery.heads[digits][2].strip() if digits in discovery.heads else ""
        else:
            device = discovery.devices.get(f"0x{digits}")
            said = device.description if device else ""
        if said == AGGREGATION_NODE:
            found.add(digits)
    return found


class _PortDiffBuilder:
    """The ports that differ and those that they, or the design, lead to: joined into cables."""

    def __init__(self, plan: CompiledTopology, rows: PortRows, devices: Mapping[str, DiscoveredDevice]) -> None:
        self.rows, self.devices = rows, devices
        self.order = {digits: index for index, digits in enumerate(plan.rows)}

    def fill(self, result: PortDiff, lacking: DeviceRows, strange: DeviceRows, problems: list[str]) -> None:
        """Tell of every port what it is: `result.found` has the number of ports until now."""
        designed = self._expected(result, lacking)
        start = [(digits, row[0]) for digits, row in strange] + [(row[1], row[2]) for _, row in lacking]
        ends = _ends(self.rows, start, problems)
        cables = join_ends(dict(sorted(ends.items(), key=lambda end: self._by_design(end[0]))), self.devices, problems)
        result.found += 2 * len(cables) - len(ends)
        odd = {PortId(f"0x{digits}", int(row[0])) for digits, row in strange}
        both: Matching = {}
        for cable in cables:
            differs = cable.a in odd or cable.b in odd
            if differs and not parse_rate(cable.rate):
                result.problems.append(f"the rate of {format_port(cable.a)} is {cable.rate!r}")
            if result.expected.get(cable.a) == cable.b:
                del result.expected[cable.a], result.expected[cable.b]
                result.slow += [cable] if is_slower(cable.rate, designed[cable.a]) else []
            elif differs:
                both |= {cable.a: cable.b, cable.b: cable.a}
                result.rates[cable.a] = result.rates[cable.b] = cable.rate
        result.actual = {port: both[port] for port in sorted(both, key=self._by_design)}

    def _expected(self, result: PortDiff, lacking: DeviceRows) -> dict[PortId, str]:
        """Add the designed cables, and return their rates."""
        rates: dict[PortId, str] = {}
        for digits, (number, far, far_number, rate) in lacking:
            here, there = PortId(f"0x{digits}", int(number)), PortId(f"0x{far}", int(far_number))
            rates[here] = rates[there] = rate
            result.expected |= {here: there, there: here}
        result.expected = {port: result.expected[port] for port in sorted(result.expected, key=self._by_design)}
        return rates

    def _by_design(self, port: PortId) -> tuple[int, str, int]:
        """Tools list devices in any order; what is said of them must not depend on it. Unknown ones come first."""
        digits = port.guid[2:]
        return self.order.get(digits, -1), digits, port.number


def _ends(rows: PortRows, start: Iterable[RowPort], problems: list[str]) -> PortEnds:
    """Return the ports of `start` that are listed, those that they lead to, and so on, each with its other end."""
    by_number: dict[str, Mapping[str, PortRow]] = {}
    ends: PortEnds = {}
    todo = list(start)
    while todo:
        digits, number = todo.pop()
        if digits not in by_number:
            found = rows.get(digits, ())
            by_number[digits] = {row[0]: row for row in found}
            problems += [f"port {one} of 0x{digits} is listed twice" for one in _twice(found)]
        here = PortId(f"0x{digits}", int(number))
        row = by_number[digits].get(number)
        if row and here not in ends:
            ends[here] = PortId(f"0x{row[1]}", int(row[2])), row[3]
            todo.append((row[1], row[2]))
    return ends


def _twice(rows: Iterable[PortRow]) -> list[str]:
    numbers = [row[0] for row in rows]
    return sorted({one for one in numbers if numbers.count(one) > 1}) if len(set(numbers)) < len(numbers) else []


def _rows(cables: Iterable[DiscoveredCable]) -> PortRows:
    """Return cables in the form in which flawless texts are read, and designs compiled."""
    rows: dict[str, list[PortRow]] = {}
    for a, b, rate in cables:
        a_digits, b_digits, a_port, b_port = a.guid[2:], b.guid[2:], str(a.number), str(b.number)
        rows.setdefault(a_digits, []).append((a_port, b_digits, b_port, rate))
        if a != b:
            rows.setdefault(b_digits, []).append((b_port, a_digits, a_port, rate))
    for found in rows.values():
        found.sort(key=lambda row: int(row[0]))
    return rows
