"""Finds where a discovery differs from the design, port by port. Builds nothing for cables that are as designed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.discovery import AGGREGATION_NODE, DiscoveredCable, DiscoveredDevice, FabricDiscovery
from assay.fabric.lazy_discovery import LazyDiscovery, PortRow, PortRows
from assay.fabric.link_rates_and_states import is_slower, parse_rate
from assay.fabric.readers.link_end_matching import PortEnds, format_port, join_ends
from assay.fabric.reading_problems import LocalProblem
from assay.model.specs.fabric.ports_and_cables import PortId

Matching = dict[PortId, PortId]
"""Cables, each by both of its ports: the other end of each port."""
RowPort = tuple[str, str]
"""A port as rows write it: the device's 16 hex digits, the port's number."""
DeviceRows = list[tuple[str, PortRow]]
"""Rows, each with its device's 16 hex digits."""


class RowDiff(NamedTuple):
    """Rows that are designed and not found, and rows that are found and not designed, each with its device."""

    missing: DeviceRows
    unexpected: DeviceRows


@dataclass
class PortDiff:
    """The cables that are designed and not found (`expected`), and those that are found and not designed (`actual`).

    `rates` are those of the undesigned cables, by port. `slow` are cables in their place, but below the designed rate;
    `unrated` are the ports of those whose rate was not read.
    `found` counts all cables that were found, `rows` holds them.
    """

    expected: Matching = field(default_factory=dict)
    actual: Matching = field(default_factory=dict)
    rates: dict[PortId, str] = field(default_factory=dict)
    slow: list[DiscoveredCable] = field(default_factory=list)
    unrated: frozenset[PortId] = frozenset()
    found: int = 0
    problems: list[str] = field(default_factory=list)
    rows: PortRows = field(default_factory=dict)

    @property
    def has_differences(self) -> bool:
        """Whether any cable differs."""
        return bool(self.expected or self.actual or self.slow)


def diff_ports(topology: CompiledTopology, discovery: FabricDiscovery) -> PortDiff:
    """Compare all ports of a design with all ports of a discovery."""
    lazy = discovery if isinstance(discovery, LazyDiscovery) else None
    rows = lazy.rows if lazy else _make_rows(discovery.cables)
    problems = list(lazy.stderr_problems if lazy else discovery.problems)
    missing, unexpected = diff_rows(rows, topology.rows)
    inside = _find_aggregation_nodes(discovery, topology, unexpected) if unexpected else set()
    cabled = [(digits, row) for digits, row in unexpected if digits not in inside and row[1] not in inside]
    ports = sum(map(len, rows.values())) + len(cabled) - len(unexpected)
    result = PortDiff(found=ports, problems=problems, rows=rows)
    if missing or cabled:
        builder = _PortDiffBuilder(topology, rows, discovery.devices)
        builder.fill(result, missing, cabled, problems if lazy else [])
    result.found //= 2
    if lazy and not result.found:
        problems.append("no cable was discovered")
    return result


def diff_rows(found: PortRows, expected: PortRows) -> RowDiff:
    """Return where two listings differ. A row in neither list is the same in both, at this end of its cable.

    A row that is printed twice counts once as unexpected.
    """
    missing: DeviceRows = []
    unexpected: DeviceRows = []
    if found == expected:
        return RowDiff(missing, unexpected)
    for digits, rows in found.items():
        designed = expected.get(digits, ())
        if rows != designed:
            seen, known = set(rows), set(designed)
            missing += [(digits, row) for row in designed if row not in seen]
            unexpected += [(digits, row) for row in rows if row not in known]
            if len(seen) < len(rows):
                unexpected += [(digits, row) for row, times in Counter(rows).items() if times > 1]
    missing += [(digits, row) for digits, rows in expected.items() if digits not in found for row in rows]
    return RowDiff(missing, unexpected)


def _find_aggregation_nodes(
    discovery: FabricDiscovery, topology: CompiledTopology, unexpected: Iterable[tuple[str, PortRow]]
) -> set[str]:
    """Return the aggregation nodes among the undesigned devices, as 16 hex digits. They are parts of a switch."""
    suspects = {row[1] for _, row in unexpected} | {digits for digits, _ in unexpected}
    found = set()
    for digits in suspects - topology.rows.keys():
        if isinstance(discovery, LazyDiscovery):
            description = discovery.heads[digits][2].strip() if digits in discovery.heads else ""
        else:
            device = discovery.devices.get(f"0x{digits}")
            description = device.description if device else ""
        if description == AGGREGATION_NODE:
            found.add(digits)
    return found


class _PortDiffBuilder:
    """Joins the ports that differ, and those that they or the design lead to, into cables."""

    def __init__(self, topology: CompiledTopology, rows: PortRows, devices: Mapping[str, DiscoveredDevice]) -> None:
        self.rows, self.devices = rows, devices
        self.order = {digits: index for index, digits in enumerate(topology.rows)}

    def fill(self, result: PortDiff, missing: DeviceRows, unexpected: DeviceRows, problems: list[str]) -> None:
        """Sort every port that differs into `result`. Before, `result.found` counts ports, not cables."""
        designed_rates = self._add_expected(result, missing)
        start = [(digits, row[0]) for digits, row in unexpected] + [(row[1], row[2]) for _, row in missing]
        ends = _follow_ends(self.rows, start, problems)
        in_order = dict(sorted(ends.items(), key=lambda end: self._find_design_position(end[0])))
        cables = join_ends(in_order, self.devices, problems)
        result.found += 2 * len(cables) - len(ends)
        unexpected_ports = {PortId(f"0x{digits}", int(row[0])) for digits, row in unexpected}
        actual: Matching = {}
        unrated: list[DiscoveredCable] = []
        for cable in cables:
            differs = cable.a in unexpected_ports or cable.b in unexpected_ports
            if differs and not parse_rate(cable.rate):
                unrated.append(cable)
            if result.expected.get(cable.a) == cable.b:
                del result.expected[cable.a], result.expected[cable.b]
                result.slow += [cable] if is_slower(cable.rate, designed_rates[cable.a]) else []
            elif differs:
                actual |= {cable.a: cable.b, cable.b: cable.a}
                result.rates[cable.a] = result.rates[cable.b] = cable.rate
        result.unrated = frozenset(port for cable in unrated for port in cable[:2])
        if unrated:
            first = f"the first is {format_port(unrated[0].a)}: {unrated[0].rate!r}"
            result.problems.append(LocalProblem(f"no rate is known of {len(unrated)} cables; {first}"))
        result.actual = {port: actual[port] for port in sorted(actual, key=self._find_design_position)}

    def _add_expected(self, result: PortDiff, missing: DeviceRows) -> dict[PortId, str]:
        """Add the designed cables, and return the designed rate at each of their ports."""
        rates: dict[PortId, str] = {}
        for digits, (number, far, far_number, rate) in missing:
            here, there = PortId(f"0x{digits}", int(number)), PortId(f"0x{far}", int(far_number))
            rates[here] = rates[there] = rate
            result.expected |= {here: there, there: here}
        ports = sorted(result.expected, key=self._find_design_position)
        result.expected = {port: result.expected[port] for port in ports}
        return rates

    def _find_design_position(self, port: PortId) -> tuple[int, str, int]:
        """Return a sort key: tools list devices in any order, and reports must not depend on it. Unknown ones first."""
        digits = port.guid[2:]
        return self.order.get(digits, -1), digits, port.number


def _follow_ends(rows: PortRows, start: Iterable[RowPort], problems: list[str]) -> PortEnds:
    """Return the listed ports of `start`, the ports that they lead to, and so on, each with its other end."""
    by_number: dict[str, Mapping[str, PortRow]] = {}
    ends: PortEnds = {}
    todo = list(start)
    while todo:
        digits, number = todo.pop()
        if digits not in by_number:
            device_rows = rows.get(digits, ())
            by_number[digits] = {row[0]: row for row in device_rows}
            problems += [f"port {port} of 0x{digits} is listed twice" for port in _list_duplicates(device_rows)]
        here = PortId(f"0x{digits}", int(number))
        row = by_number[digits].get(number)
        if row and here not in ends:
            ends[here] = PortId(f"0x{row[1]}", int(row[2])), row[3]
            todo.append((row[1], row[2]))
    return ends


def _list_duplicates(rows: Iterable[PortRow]) -> list[str]:
    numbers = [row[0] for row in rows]
    if len(set(numbers)) == len(numbers):
        return []
    return sorted({number for number in numbers if numbers.count(number) > 1})


def _make_rows(cables: Iterable[DiscoveredCable]) -> PortRows:
    """Return cables as rows, the form that designs are compiled to."""
    rows: dict[str, list[PortRow]] = {}
    for a, b, rate in cables:
        a_digits, b_digits, a_port, b_port = a.guid[2:], b.guid[2:], str(a.number), str(b.number)
        rows.setdefault(a_digits, []).append((a_port, b_digits, b_port, rate))
        if a != b:
            rows.setdefault(b_digits, []).append((b_port, a_digits, a_port, rate))
    for device_rows in rows.values():
        device_rows.sort(key=lambda row: int(row[0]))
    return rows
