"""Finds where a discovery differs from the design, port by port, also once each device has the GUID of its place.

Builds nothing for cables that are as designed. The rest falls into independent walks: a port has at most one designed
and one found cable, so there are only alternating paths and cycles. A cycle of k designed and k found cables is k
exchanged cables (k = 2 is one swap). A path is a cable that is missing, moved or unexpected. The cost is linear in the
number of ports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.discovery import AGGREGATION_NODE, DiscoveredCable, DiscoveredDevice, FabricDiscovery, LocalProblem
from assay.fabric.lazy_discovery import LazyDiscovery, PortRow, PortRows
from assay.fabric.link_words import is_slower, parse_rate
from assay.fabric.readers.link_end_matching import PortEnds, format_port, join_ends
from assay.model.facts import frozen
from assay.model.specs.fabric.cable import PortId

PortPair = tuple[PortId, PortId]
PortPairs = Mapping[PortId, PortId]
Matching = dict[PortId, PortId]
"""Cables, each by both of its ports: the other end of each port."""
Unit = str
"""What moves as one: a node, by its name, or a device, by its GUID."""
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
    `cable_count` counts all cables that were found, `rows` holds them.
    """

    expected: Matching = field(default_factory=dict)
    actual: Matching = field(default_factory=dict)
    rates: dict[PortId, str] = field(default_factory=dict)
    slow: list[DiscoveredCable] = field(default_factory=list)
    unrated: frozenset[PortId] = frozenset()
    cable_count: int = 0
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
    result = PortDiff(cable_count=ports, problems=problems, rows=rows)
    if missing or cabled:
        builder = _PortDiffBuilder(topology, rows, discovery.devices)
        builder.fill(result, missing, cabled, problems if lazy else [])
    result.cable_count //= 2
    if lazy and not result.cable_count:
        problems.append("no cable was discovered")
    return result


def diff_rows(seen: PortRows, expected: PortRows) -> RowDiff:
    """Return where two listings differ. A row in neither list is the same in both, at this end of its cable.

    A row that is printed twice counts once as unexpected.
    """
    missing: DeviceRows = []
    unexpected: DeviceRows = []
    if seen == expected:
        return RowDiff(missing, unexpected)
    for digits, rows in seen.items():
        designed = expected.get(digits, ())
        if rows != designed:
            seen_rows, known = set(rows), set(designed)
            missing += [(digits, row) for row in designed if row not in seen_rows]
            unexpected += [(digits, row) for row in rows if row not in known]
            if len(seen_rows) < len(rows):
                unexpected += [(digits, row) for row, times in Counter(rows).items() if times > 1]
    missing += [(digits, row) for digits, rows in expected.items() if digits not in seen for row in rows]
    return RowDiff(missing, unexpected)


def _find_aggregation_nodes(
    discovery: FabricDiscovery, topology: CompiledTopology, unexpected: Iterable[tuple[str, PortRow]]
) -> set[str]:
    """Return the aggregation nodes among the undesigned devices, as 16 hex digits. They are parts of a switch."""
    suspects = {row[1] for _, row in unexpected} | {digits for digits, _ in unexpected}
    aggregation_nodes = set()
    for digits in suspects - topology.rows.keys():
        if isinstance(discovery, LazyDiscovery):
            description = discovery.heads[digits][2].strip() if digits in discovery.heads else ""
        else:
            device = discovery.devices.get(f"0x{digits}")
            description = device.description if device else ""
        if description == AGGREGATION_NODE:
            aggregation_nodes.add(digits)
    return aggregation_nodes


class _PortDiffBuilder:
    """Joins the ports that differ, and those that they or the design lead to, into cables."""

    def __init__(self, topology: CompiledTopology, rows: PortRows, devices: Mapping[str, DiscoveredDevice]) -> None:
        self.rows, self.devices = rows, devices
        self.order = {digits: index for index, digits in enumerate(topology.rows)}

    def fill(self, result: PortDiff, missing: DeviceRows, unexpected: DeviceRows, problems: list[str]) -> None:
        """Sort every port that differs into `result`. Before, `result.cable_count` counts ports, not cables."""
        designed_rates = self._add_expected(result, missing)
        start = [(digits, row[0]) for digits, row in unexpected] + [(row[1], row[2]) for _, row in missing]
        ends = _follow_ends(self.rows, start, problems)
        in_order = dict(sorted(ends.items(), key=lambda end: self._find_design_position(end[0])))
        cables = join_ends(in_order, self.devices, problems)
        result.cable_count += 2 * len(cables) - len(ends)
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
            counts = sorted(Counter(port for port, *_ in device_rows).items())
            problems += [f"port {port} of 0x{digits} is listed twice" for port, count in counts if count > 1]
        here = PortId(f"0x{digits}", int(number))
        row = by_number[digits].get(number)
        if row and here not in ends:
            ends[here] = PortId(f"0x{row[1]}", int(row[2])), row[3]
            todo.append((row[1], row[2]))
    return ends


def _make_rows(cables: Iterable[DiscoveredCable]) -> PortRows:
    """Return cables as rows, the form that designs are compiled to."""
    rows: dict[str, list[PortRow]] = {}
    for a, b, rate in cables:
        a_digits = a.guid[2:]
        b_digits = b.guid[2:]
        a_port = str(a.number)
        b_port = str(b.number)
        rows.setdefault(a_digits, []).append((a_port, b_digits, b_port, rate))
        if a != b:
            rows.setdefault(b_digits, []).append((b_port, a_digits, a_port, rate))
    for device_rows in rows.values():
        device_rows.sort(key=lambda row: int(row[0]))
    return rows


@frozen
class AlternatingWalk:
    """One alternating walk over `ports`. `first_expected`: its first cable is a designed one.

    A cycle ends where it started, `ports[0] == ports[-1]`, and its first cable is a designed one.
    """

    ports: tuple[PortId, ...]
    first_expected: bool

    @property
    def is_cycle(self) -> bool:
        """Whether the walk is closed."""
        return len(self.ports) > 3 and self.ports[0] == self.ports[-1]

    @property
    def steps(self) -> list[tuple[bool, PortId, PortId]]:
        """The cables of the walk, each as (is it a designed one, from, to)."""
        pairs = zip(self.ports, self.ports[1:], strict=False)
        return [((index % 2 == 0) == self.first_expected, a, b) for index, (a, b) in enumerate(pairs)]


def find_alternating_walks(expected: PortPairs, actual: PortPairs) -> list[AlternatingWalk]:
    """Return the components of the symmetric difference: paths first, in the order of the expected ports."""
    only_expected = {port: peer for port, peer in expected.items() if actual.get(port) != peer}
    only_actual = {port: peer for port, peer in actual.items() if expected.get(port) != peer}
    ends = [port for port in (*only_expected, *only_actual) if (port in only_expected) != (port in only_actual)]
    walks = [_walk(port, only_expected, only_actual) for port in ends]
    walks += [_walk(port, only_expected, only_actual) for port in (*only_expected, *only_actual)]
    return [walk for walk in walks if walk]


def _walk(start: PortId, expected: dict[PortId, PortId], actual: dict[PortId, PortId]) -> AlternatingWalk | None:
    """Follow cables of alternating kind from `start` and remove each, until none is left to follow."""
    first_expected = start in expected
    edges, others = (expected, actual) if first_expected else (actual, expected)
    ports, here = [start], start
    while (there := edges.pop(here, None)) is not None:
        edges.pop(there, None)
        ports.append(there)
        here, edges, others = there, others, edges
    return AlternatingWalk(tuple(ports), first_expected) if len(ports) > 1 else None


@frozen
class DevicePermutation:
    """Units that stand in each other's places: each of `moves` is (unit, place).

    If it is `closed`, the last unit stands in the place of the first. Otherwise the first unit is new, or left its own
    place to nothing or to a new device, and the last place is that of a unit that is gone. `places` maps the GUID of
    each device that answers to its place's. `devices` are all of the units' GUIDs: an adapter may have been replaced.
    `renewed` are the new devices among them that announce the name of a device that is gone, each with its GUID.
    """

    moves: tuple[tuple[Unit, Unit], ...]
    closed: bool
    places: Mapping[str, str]
    devices: tuple[str, ...] = ()
    renewed: Mapping[str, str] = field(default_factory=dict)


@dataclass
class ResidualDiff:
    """What still differs once each device has the GUID of its place.

    Of `expected` and `actual` cables, those that the devices' places explain are moved to `explained`. `rates` and
    `slow` are as in PortDiff.
    """

    expected: Matching
    actual: Matching
    rates: dict[PortId, str]
    explained: list[PortPair] = field(default_factory=list)
    slow: list[DiscoveredCable] = field(default_factory=list)


def map_devices_to_places(permutations: Iterable[DevicePermutation]) -> dict[str, str]:
    """Return the place of every device that is not in its own."""
    return {guid: place for permutation in permutations for guid, place in permutation.places.items()}


def find_residual_diff(topology: CompiledTopology, diff: PortDiff, places: Mapping[str, str]) -> ResidualDiff:
    """Remove the cables that are as designed once each device has the GUID of its place."""
    if not places:
        return ResidualDiff(diff.expected, diff.actual, diff.rates)
    residual = ResidualDiff(dict(diff.expected), {}, {})
    for a, b, rate in _list_observed_cables(topology, diff, places, residual.expected):
        here, there = PortId(places.get(a.guid, a.guid), a.number), PortId(places.get(b.guid, b.guid), b.number)
        residual.actual |= {here: there, there: here}
        residual.rates |= {here: rate, there: rate}
    for a, b in list(residual.actual.items()):
        if residual.expected.get(a) == b and a in residual.actual:
            residual.explained.append((a, b))
            designed_rate = next(row[3] for row in topology.rows[a.guid[2:]] if int(row[0]) == a.number)
            if is_slower(residual.rates[a], designed_rate):
                residual.slow.append(DiscoveredCable(a, b, residual.rates[a]))
            for port in (a, b):
                del residual.expected[port], residual.actual[port]
    return residual


def _list_observed_cables(
    topology: CompiledTopology, diff: PortDiff, moved: Iterable[str], expected: Matching
) -> Iterator[tuple[PortId, PortId, str]]:
    """Yield the undesigned cables, and those of `moved` devices that still lead where their own GUIDs belong.

    The latter differ too, since the device's place has another cable. So they are added to `expected`.
    """
    for a, b in diff.actual.items():
        yield a, b, diff.rates[a]
    for guid in moved:
        own = {row[:3] for row in topology.rows.get(guid[2:], ())}
        for number, far, far_number, rate in diff.rows.get(guid[2:], ()):
            if (number, far, far_number) in own:
                a, b = PortId(guid, int(number)), PortId(f"0x{far}", int(far_number))
                expected |= {a: b, b: a}
                yield a, b, rate
