"""What still differs between a design and a discovery once each device has the GUID of the place that it stands in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from assay.fabric.compare.port_diff import Matching, PortDiff
from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.discovery import DiscoveredCable
from assay.fabric.link_rates_and_states import is_slower
from assay.model.specs.fabric.ports_and_cables import PortId

PortPair = tuple[PortId, PortId]
Unit = str
"""What moves as one: a node, by its name, or a device, by its GUID."""


@dataclass(frozen=True, slots=True)
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
            if is_slower(residual.rates[a], _find_designed_rate(topology, a)):
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


def _find_designed_rate(topology: CompiledTopology, port: PortId) -> str:
    return next(row[3] for row in topology.rows[port.guid[2:]] if int(row[0]) == port.number)
