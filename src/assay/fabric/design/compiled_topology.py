"""A design compiled for one fleet. Cables are held as numbers, and become objects only on demand.

A fabric has tens of thousands of cables, and most callers need a few of them.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice, repeat
from operator import gt
from typing import NamedTuple, overload

from assay.fabric.design.devices import DesignedDevice
from assay.fabric.lazy_discovery import PortRow, PortRows
from assay.model.specs.fabric.cable import Cable, CableEnd, PortId


class CableRun(NamedTuple):
    """Consecutive cables with the same rate and length."""

    cable_count: int
    rate: str
    length_m: float


class CableTable:
    """Cables as numbers. Each has two ends: a device, by its index in the topology's devices, and a port.

    Add cables with `add`, then call `set_rate_and_length` for them.
    """

    __slots__ = ("a", "a_port", "b", "b_port", "runs")

    def __init__(self) -> None:
        self.a, self.a_port, self.b, self.b_port = (array("I") for _ in range(4))
        self.runs: list[CableRun] = []

    def __len__(self) -> int:
        return len(self.a)

    def add(self, a: Iterable[int], a_port: Iterable[int], b: Iterable[int], b_port: Iterable[int]) -> None:
        """Add cables. A call of `set_rate_and_length` must follow."""
        self.a.extend(a)
        self.a_port.extend(a_port)
        self.b.extend(b)
        self.b_port.extend(b_port)

    def set_rate_and_length(self, rate: str, length_m: float) -> None:
        """Set the rate and the length of all cables that were added since the last call."""
        count = len(self.a) - sum(run.cable_count for run in self.runs)
        if self.runs and self.runs[-1][1:] == (rate, length_m):
            count += self.runs.pop().cable_count
        if count:
            self.runs.append(CableRun(count, rate, length_m))

    def __iter__(self) -> Iterator[tuple[int, int, int, int]]:
        return zip(self.a, self.a_port, self.b, self.b_port, strict=True)

    def ends(self, number: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return both ends of a cable, each as (device, port)."""
        return (self.a[number], self.a_port[number]), (self.b[number], self.b_port[number])

    def without(self, removed: Container[int]) -> CableTable:
        """Return the cables except those with these numbers."""
        remaining, first = CableTable(), 0
        for run in self.runs:
            numbers = [number for number in range(first, first + run.cable_count) if number not in removed]
            columns = (self.a, self.a_port, self.b, self.b_port)
            remaining.add(*([column[number] for number in numbers] for column in columns))
            remaining.set_rate_and_length(run.rate, run.length_m)
            first += run.cable_count
        return remaining

    def length(self, number: int) -> float:
        """Return the length of a cable in metres."""
        lengths = (length for run in self.runs for length in repeat(run.length_m, run.cable_count))
        return next(islice(lengths, number, None))

    def rates(self) -> Iterator[str]:
        """Yield the rate of every cable."""
        for run in self.runs:
            yield from repeat(run.rate, run.cable_count)


class CableSequence(Sequence[Cable]):
    """Every cable of a topology, made on access."""

    def __init__(self, devices: Sequence[DesignedDevice], links: CableTable) -> None:
        self._devices, self._links = devices, links
        self._starts = [0]
        for run in links.runs:
            self._starts.append(self._starts[-1] + run.cable_count)

    def __len__(self) -> int:
        return len(self._links)

    @overload
    def __getitem__(self, number: int) -> Cable: ...
    @overload
    def __getitem__(self, number: slice) -> list[Cable]: ...
    def __getitem__(self, number: int | slice) -> Cable | list[Cable]:
        if isinstance(number, slice):
            return [self._cable(each) for each in range(*number.indices(len(self)))]
        return self._cable(range(len(self))[number])

    def __iter__(self) -> Iterator[Cable]:
        devices, links = self._devices, iter(self._links)
        for run in self._links.runs:
            for a, a_port, b, b_port in islice(links, run.cable_count):
                yield Cable(devices[a].end(a_port), devices[b].end(b_port), run.rate, run.length_m)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def _cable(self, number: int) -> Cable:
        links, devices = self._links, self._devices
        run = links.runs[bisect_right(self._starts, number) - 1]
        a = devices[links.a[number]].end(links.a_port[number])
        return Cable(a, devices[links.b[number]].end(links.b_port[number]), run.rate, run.length_m)


class CompiledTopology:
    """The devices of a design by GUID, and every cable, both in the design's order.

    To compare a whole fabric, use `rows` with `compare/port_diff.py:diff_rows`: it needs no object a cable.
    `cable_numbers` and `peer_ports` answer for single ports. `cable_at`, `end` and `cables_of_node` make the objects
    that reports name. `spare` are the ports that are unused on purpose.
    """

    def __init__(
        self,
        name: str,
        devices: Iterable[DesignedDevice],
        links: CableTable,
        rows: PortRows | None = None,
        spare: Iterable[PortId] = (),
        first_adapters: Sequence[int] | None = None,
    ) -> None:
        self.name, self.links = name, links
        self._list = _tell_apart(list(devices))
        self.devices: Mapping[str, DesignedDevice] = {device.guid: device for device in self._list}
        self.spare = frozenset(spare)
        if rows is not None:
            self.__dict__["rows"] = rows
        if first_adapters is not None:
            self.__dict__["first_adapters"] = [self._list[place] for place in first_adapters]

    def __iter__(self) -> Iterator[DesignedDevice]:
        return iter(self._list)

    @cached_property
    def first_adapters(self) -> Sequence[DesignedDevice]:
        """The first adapter of each node."""
        first = {device.node: device for device in reversed(self._list) if device.node}
        return list(reversed(first.values()))

    @cached_property
    def cables(self) -> CableSequence:
        """Every cable: those of nodes first, then tier by tier, then the listed ones."""
        return CableSequence(self._list, self.links)

    @cached_property
    def rows(self) -> PortRows:
        """The rows that `ibnetdiscover` would print for each device: ports in order, GUIDs as 16 digits."""
        digits = [device.guid[2:] for device in self._list]
        highest = max((*self.links.a_port, *self.links.b_port), default=0)
        number = [str(port) for port in range(highest + 1)]
        rows_of: list[list[PortRow]] = [[] for _ in digits]
        for (a, a_port, b, b_port), rate in zip(self.links, self.links.rates(), strict=True):
            here, there = number[a_port], number[b_port]
            rows_of[a].append((here, digits[b], there, rate))
            rows_of[b].append((there, digits[a], here, rate))
        for rows in rows_of:
            ports = [int(row[0]) for row in rows] if len(rows) > 1 else ()
            if any(map(gt, ports, ports[1:])):  # rare, and a sort costs more than this test
                rows.sort(key=lambda row: int(row[0]))
        return dict(zip(digits, rows_of, strict=True))

    @cached_property
    def cable_numbers(self) -> Mapping[PortId, int]:
        """The index in `cables` of the cable at each port that has one."""
        guids = [device.guid for device in self._list]
        numbers: dict[PortId, int] = {}
        for number, (a, a_port, b, b_port) in enumerate(self.links):
            numbers[PortId(guids[a], a_port)] = numbers[PortId(guids[b], b_port)] = number
        return numbers

    @cached_property
    def peer_ports(self) -> Mapping[PortId, PortId]:
        """Each port's other end."""
        guids = [device.guid for device in self._list]
        peers: dict[PortId, PortId] = {}
        for a, a_port, b, b_port in self.links:
            here, there = PortId(guids[a], a_port), PortId(guids[b], b_port)
            peers[here], peers[there] = there, here
        return peers

    @cached_property
    def chips_of_box(self) -> Mapping[str, list[DesignedDevice]]:
        """The chips of each box that has several."""
        chips: dict[str, list[DesignedDevice]] = defaultdict(list)
        for device in self._list:
            if device.box:
                chips[device.box].append(device)
        return chips

    def joins_planes(self, a: str, b: str) -> bool:
        """Return whether a link of these devices is inside a box: between its chips of two planes. No cable is."""
        first, second = self.devices.get(a), self.devices.get(b)
        return (
            first is not None and second is not None and first.box == second.box != "" and first.plane != second.plane
        )

    def list_ports_sharing_plug(self, port: PortId) -> list[PortId]:
        """Return the ports whose links go down when the plug of a designed port is pulled, this one included."""
        device = self.devices[port.guid]
        chips = self.chips_of_box[device.box] if device.plane else [device]
        return [PortId(chip.guid, number) for chip in chips for number in device.ports_sharing_plug(port.number)]

    def find_box(self, a: PortId, b: PortId) -> str:
        """Return the box that a cable is inside of, "" for a cable that a person can pull."""
        first, second = self.devices.get(a.guid), self.devices.get(b.guid)
        return first.box if first and second and first.box == second.box else ""

    def cable_at(self, port: PortId) -> Cable | None:
        """Return the cable at a port, with that port's end first; None for a port without a cable."""
        number = self.cable_numbers.get(port)
        if number is None:
            return None
        cable = self.cables[number]
        return cable if cable.a.port_id == port else Cable(cable.b, cable.a, cable.rate, cable.length_m)

    def count_cables(self, guid: str) -> int:
        """Return how many cables a device has."""
        return len(self._numbers.get(guid, ()))

    def cables_of_device(self, guid: str) -> list[Cable]:
        """Return the cables of one device, in the order of the design."""
        return [self.cables[number] for number in self._numbers.get(guid, ())]

    def cables_of_node(self, node: str) -> list[Cable]:
        """Return the cables of one node, in rail order."""
        return [self.cables[number] for number in sorted(self._by_node.get(node, ()))]

    def list_cables_at(self, ports: Iterable[PortId]) -> list[Cable]:
        """Return the cables at these ports, each once, in the order of the design."""
        return [self.cables[number] for number in sorted({self.cable_numbers[port] for port in ports})]

    def end(self, port: PortId) -> CableEnd | None:
        """Return a port of a designed device, None for a device that the design lacks."""
        device = self.devices.get(port.guid)
        return device.end(port.number) if device else None

    @cached_property
    def _numbers(self) -> Mapping[str, list[int]]:
        numbers: dict[int, list[int]] = defaultdict(list)
        for number, (a, _, b, _) in enumerate(self.links):
            numbers[a].append(number)
            if b != a:
                numbers[b].append(number)
        return {self._list[device].guid: own for device, own in numbers.items()}

    @cached_property
    def _by_node(self) -> Mapping[str, set[int]]:
        numbers: dict[str, set[int]] = defaultdict(set)
        for device in self._list:
            if device.node:
                numbers[device.node].update(self._numbers.get(device.guid, ()))
        return numbers


def _tell_apart(devices: list[DesignedDevice]) -> list[DesignedDevice]:
    """Add its GUID to each name that several devices have."""
    count = Counter(device.name for device in devices)
    if len(count) == len(devices):
        return devices
    return [
        device._replace(name=f"{device.name} {device.guid}") if count[device.name] > 1 else device for device in devices
    ]
