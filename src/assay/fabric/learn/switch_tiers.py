"""Finds the switches of the next tier above some switches: those that many of their cables lead to."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from assay.fabric.discovery import AGGREGATION_NODE, FabricDiscovery
from assay.model.specs.fabric.ports_and_cables import PortId

Joints = Mapping[tuple[str, str], list[tuple[int, int]]]
"""The ports of the cables between a lower and an upper switch."""
Peers = Mapping[str, list[tuple[int, PortId]]]
"""For each device, the ports with a cable, and the port at its other end."""
ADAPTERS_BELOW = 0.2
"""A switch at which so many of its cables lead to adapters, such as one of storage, is none of a tier above leaves."""


@dataclass
class SwitchTier:
    """The switches of a tier in the order of the rules, and the ports to the tier above and below."""

    guids: list[str] = field(default_factory=list)
    down: range = range(0)
    up: range = range(0)
    per_pair: int = 1
    spread: bool = False


def join_upper_switches(
    discovery: FabricDiscovery, peers: Peers, lower: Iterable[str], without: Iterable[str] = ()
) -> Joints:
    """Return the cables from the lower switches to other switches that are not below them."""
    below = {*lower, *without}
    found: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for guid in sorted(lower):  # always the same way
        for number, far in peers[guid]:
            if far.guid not in below and _is_switch(discovery, far):
                found[guid, far.guid].append((number, far.number))
    count = Counter(upper for (_, upper), cables in found.items() for _ in cables)
    count = Counter({upper: cables for upper, cables in count.items() if not _has_adapters(discovery, peers, upper)})
    usual = median(count.values()) if count else 0
    real = {  # no stray cable, and no switch beside the tree that hangs on one of its switches
        upper for upper, cables in count.items() if 1 < cables >= max(len(peers[upper]), usual) / 4
    }
    above = {far.guid for upper in real for _, far in peers[upper]} - below
    real |= {upper for upper in count.keys() - real if _is_beside(peers, upper, below, above)}
    return {pair: cables for pair, cables in found.items() if pair[1] in real}


def drop_foreign_units(discovery: FabricDiscovery, peers: Peers, units: Sequence[list[str]]) -> list[list[str]]:
    """Return the units without those that lack a leaf and do not reach most of the spines that leaves reach.

    Such a switch belongs to storage or to a director: its hosts have one adapter each.
    """
    above = {leaf: {far.guid for _, far in peers[leaf] if _is_switch(discovery, far)}
             for unit in units for leaf in unit if leaf}  # fmt: skip
    usual = median(map(len, above.values()))
    kept = []
    for unit in units:
        own = [above[leaf] for leaf in unit if leaf]
        others = {spine for leaf, spines in above.items() if leaf not in unit for spine in spines}
        if all(unit) or len(units) == 1 or any(2 * len(spines & others) > usual for spines in own):
            kept.append(unit)
    return kept


def _is_switch(discovery: FabricDiscovery, port: PortId) -> bool:
    device = discovery.devices.get(port.guid)
    return device is not None and device.kind == "switch"


def _has_adapters(discovery: FabricDiscovery, peers: Peers, switch: str) -> bool:
    own = (discovery.devices.get(far.guid) for _, far in peers[switch])
    adapters = sum(
        device is not None and device.kind == "hca" and device.description != AGGREGATION_NODE for device in own
    )
    return adapters > ADAPTERS_BELOW * len(peers[switch])


def _is_beside(peers: Peers, upper: str, below: set[str], above: set[str]) -> bool:
    """Return whether a switch stands beside others of a tier: most of its cables lead where theirs do.

    A spine of a pod with one unit may have one cable to a leaf, and more to the cores.
    """
    others = [far.guid for _, far in peers[upper] if far.guid not in below]
    return len(others) > 1 and 2 * sum(guid in above for guid in others) > len(others)
