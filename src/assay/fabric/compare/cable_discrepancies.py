"""Reports discrepancies of single cables: swapped, moved, missing, disabled, unexpected or slow.

Which plugs of swapped cables were exchanged is not in the data, so the likelier side comes first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from assay.fabric.compare.discrepancy import CablePair, CablingDiscrepancy, DiscrepancyKind
from assay.fabric.compare.port_diff import AlternatingWalk
from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.discovery import FabricDiscovery
from assay.model.specs.fabric.cable import Cable, CableEnd, PortId

WalkStep = tuple[bool, PortId, PortId]
"""A step of an AlternatingWalk: is the cable a designed one, from, to."""
PortPair = tuple[PortId, PortId]
DesignedAndSeen = tuple[PortPair | None, PortPair | None]
"""A cable as designed and as seen, by its ports."""
PlugMove = tuple[PortId, PortId, PortId]
"""A plug in a wrong port: the port at the other end of its cable, the port where it is, the port where it belongs."""


class EndResolver:
    """Turns ports into ends and cables that a person can find, by the design's names where it has the device.

    `rates` are those of cables as seen, by port. `guid_at_place` has the GUID of the device that stands in a place, if
    it is not the designed one. `renewed` are new devices, each with the GUID of the device whose name it announces.
    """

    def __init__(
        self,
        topology: CompiledTopology,
        discovery: FabricDiscovery,
        rates: Mapping[PortId, str],
        guid_at_place: Mapping[str, str] | None = None,
        renewed: Mapping[str, str] | None = None,
    ) -> None:
        self.topology = topology
        self.discovery = discovery
        self.rates = rates
        self.guid_at_place, self.renewed = guid_at_place or {}, renewed or {}

    def end(self, port: PortId) -> CableEnd:
        """Return a port as designed. For a device that the design lacks, use the name that it announces."""
        designed = self.topology.end(port)
        if designed:
            return designed
        if port.guid in self.renewed:
            return replace(self.end(PortId(self.renewed[port.guid], port.number)), guid=port.guid)
        device = self.discovery.devices.get(port.guid)
        return CableEnd(device.name if device else port.guid, port.guid, port.number)

    def find_designed_cable(self, port: PortId) -> Cable:
        """Return the designed cable at a port, its ends in the design's order."""
        return self.topology.cables[self.topology.cable_numbers[port]]

    def find_observed_cable(self, a: PortId, b: PortId) -> Cable:
        """Return a cable that was seen between two places, under the names of the places."""
        return Cable(self._resolve_seen_end(a), self._resolve_seen_end(b), self.rates[a])

    def find_cable_by_guid(self, a: PortId, b: PortId) -> Cable:
        """Return a cable that was seen between two places, under the names of the devices that answer there."""
        here, there = (self.end(PortId(self.guid_at_place.get(port.guid, port.guid), port.number)) for port in (a, b))
        return Cable(here, there, self.rates[a])

    def _resolve_seen_end(self, port: PortId) -> CableEnd:
        end = self.end(port)
        return replace(end, guid=self.guid_at_place[port.guid]) if port.guid in self.guid_at_place else end


def diagnose_cables(walk: AlternatingWalk, resolver: EndResolver) -> CablingDiscrepancy:
    """Report a walk of more than one cable without link: as swap, moved or unexpected."""
    if walk.is_cycle:
        return _report_swap(walk, resolver)
    pairs = _choose_pairs(walk.steps, resolver)
    if all(expected is None for expected, _ in pairs):
        return _report_unexpected([_make_pair(pair, resolver) for pair in pairs])
    return _report_moved(pairs, resolver)


def report_missing_cable(cable: Cable, behind: Sequence[Cable] = ()) -> CablingDiscrepancy:
    """Report a cable that is designed and not seen. `behind` are the cables that it cuts off."""
    reason = "the cable is unplugged or broken, or the port at one end is down"
    steps = (f"seat or replace the cable from {cable.a} to {cable.b}",)
    return _report_without_link("missing", cable, reason, steps, behind)


def report_missing_link_in_box(cable: Cable, box: str, behind: Sequence[Cable] = ()) -> CablingDiscrepancy:
    """Report a link between two chips of one box that is not seen. Nobody can seat it: it has no plug."""
    reason = f"it runs inside {box}, where it has no plug"
    steps = (f"restart {box}, or replace the card that has {cable.a.device} or {cable.b.device}, as its vendor says",)
    return replace(_report_without_link("missing", cable, reason, steps, behind), box=box)


def report_missing_nvlink(cable: Cable, behind: Sequence[Cable] = ()) -> CablingDiscrepancy:
    """Report an NVLink of a rack that is not seen. Nobody can seat it: it runs over the rack's cable cartridges."""
    reason = "it runs over the rack's cable cartridges, where it has no plug of its own"
    node = cable.a.node or cable.b.node
    step = (
        f"read the port at both ends (`nvidia-smi nvlink -s` on {node}); then reseat or replace the compute tray, the"
        " switch tray or the cartridge, as the vendor says"
    )
    return _report_without_link("missing", cable, reason, (step,), behind)


def report_disabled_port(
    cable: Cable, disabled: Sequence[CableEnd], behind: Sequence[Cable] = ()
) -> CablingDiscrepancy:
    """Report a cable without link because its `disabled` ends were disabled. `behind` are the cables it cuts off."""
    ports = " and ".join(map(str, disabled))
    reason = f"{ports} {'is' if len(disabled) == 1 else 'are'} disabled"
    steps = (f"ask who disabled {ports}, and why; then enable it (ibportstate -G GUID PORT enable)",)
    return _report_without_link("disabled", cable, reason, steps, behind)


def _report_without_link(
    kind: DiscrepancyKind, cable: Cable, reason: str, steps: tuple[str, ...], behind: Sequence[Cable]
) -> CablingDiscrepancy:
    summary = f"no link between {cable.a} and {cable.b}: {reason}"
    summary += f"; {describe_cut_off_devices(behind)}" if behind else ""
    return CablingDiscrepancy(kind, (CablePair(cable, None),), summary, steps, cut_off=tuple(behind))


def report_slow_cable(designed: Cable, seen: Cable) -> CablingDiscrepancy:
    """Report a cable in its place that runs with slower or fewer lanes than designed."""
    summary = f"the link between {seen.a} and {seen.b} runs at {seen.rate} instead of {designed.rate}"
    steps = ("clean and reseat both plugs; then replace the cable",)
    return CablingDiscrepancy("degraded", (CablePair(designed, seen),), summary, steps)


def describe_cut_off_devices(behind: Sequence[Cable]) -> str:
    """Return which switches, and how many nodes, are out of reach behind something that is down."""
    ends = [end for cable in behind for end in cable.ends]
    switches = dict.fromkeys(end.device for end in ends if not end.node)
    nodes = len({end.node for end in ends if end.node})
    names = [*list(switches)[:3], *([f"{len(switches) - 3} more switches"] if len(switches) > 3 else [])]
    names += [f"{nodes} node{'s' if nodes > 1 else ''}"] if nodes else []
    return f"what lies behind it is out of reach: {', '.join(names)} ({len(behind)} cables)"


def _make_pair(pair: DesignedAndSeen, resolver: EndResolver) -> CablePair:
    expected, observed = pair
    return CablePair(
        resolver.find_designed_cable(expected[0]) if expected else None,
        resolver.find_observed_cable(*observed) if observed else None,
    )


def _report_unexpected(pairs: list[CablePair]) -> CablingDiscrepancy:
    seen = pairs[0].observed
    assert seen is not None, "a cable that is not designed is seen"
    summary = f"a cable that is not in the design joins {seen.a} and {seen.b}"
    return CablingDiscrepancy("unexpected", tuple(pairs), summary, ("remove it, or add it to the design",))


def _report_moved(pairs: list[DesignedAndSeen], resolver: EndResolver) -> CablingDiscrepancy:
    facts, steps = [], []
    for expected, observed in pairs:
        if expected and observed:
            far, wrong, right = map(resolver.end, _find_plug_move(expected, observed))
            facts.append(f"the cable from {far} is in {wrong} instead of {right}")
            steps.append(f"move the plug from {wrong} to {right}")
        elif expected:
            a, b = map(resolver.end, expected)
            facts.append(f"no link between {a} and {b}")
            steps.append(f"then seat or replace the cable from {a} to {b}")
        elif observed:
            a, b = map(resolver.end, observed)
            facts.append(f"a cable that is not in the design joins {a} and {b}")
            steps.append(f"take out the cable between {a} and {b}")
    cables = tuple(_make_pair(pair, resolver) for pair in pairs)
    return CablingDiscrepancy("moved", cables, "; ".join(facts), ("; ".join(steps),))


def _choose_pairs(steps: Sequence[WalkStep], resolver: EndResolver) -> list[DesignedAndSeen]:
    """Pair each designed cable with the seen one next to it. Of two ways, choose the one with the shortest moves."""
    ways = [_pair_neighbours(steps, 0)]
    if len(steps) > 2 and len(steps) % 2:
        ways.append(_pair_neighbours(steps, 1))
    return min(ways, key=lambda pairs: sum(_rank_distance(pair, resolver) for pair in pairs))


def _pair_neighbours(steps: Sequence[WalkStep], start: int) -> list[DesignedAndSeen]:
    """Pair neighbouring steps from `start` on, in the order of the walk. A step without a neighbour stands alone.

    A designed cable that stands alone comes last: it remains to be done when the plugs are in their ports.
    """
    pairs = [_sort_steps(*two) for two in zip(steps[start::2], steps[start + 1 :: 2], strict=False)]
    used = start + 2 * len(pairs)
    in_order = [*map(_sort_steps, steps[:start]), *pairs, *map(_sort_steps, steps[used:])]
    return in_order[::-1] if len(in_order) > 1 and in_order[0][1] is None else in_order


def _sort_steps(*steps: WalkStep) -> DesignedAndSeen:
    expected = next(((a, b) for is_expected, a, b in steps if is_expected), None)
    observed = next(((a, b) for is_expected, a, b in steps if not is_expected), None)
    return expected, observed


def _rank_distance(pair: DesignedAndSeen, resolver: EndResolver) -> int:
    """Rank how far a plug moved: 0 on one device, 1 in one rack, 2 farther. A cable that stands alone did not move."""
    expected, observed = pair
    if not expected or not observed:
        return 0
    _, wrong, right = map(resolver.end, _find_plug_move(expected, observed))
    return 0 if wrong.guid == right.guid else 1 if wrong.rack and wrong.rack == right.rack else 2


def _find_plug_move(expected: PortPair, observed: PortPair) -> PlugMove:
    far = next(port for port in expected if port in observed)
    right = expected[1] if far == expected[0] else expected[0]
    wrong = observed[1] if far == observed[0] else observed[0]
    return far, wrong, right


def _report_swap(walk: AlternatingWalk, resolver: EndResolver) -> CablingDiscrepancy:
    """Report k exchanged cables."""
    ring = walk.ports[:-1]
    sides = [[resolver.end(port) for port in ring[side::2]] for side in (0, 1)]
    likelier, reason = choose_likelier_side(sides[0], sides[1])
    pairs = list(_list_displaced(ring, likelier))
    facts = []
    for pair in pairs:
        far, wrong, right = map(resolver.end, _find_plug_move(*pair))
        facts.append(f"{far} is cabled to {wrong} instead of {right}")
    corrections = tuple(
        _describe_exchange(list(_list_displaced(ring, side)), resolver) for side in (likelier, 1 - likelier)
    )
    cables = tuple(_make_pair(pair, resolver) for pair in pairs)
    summary = f"{len(pairs)} cables are exchanged: {'; '.join(facts)}"
    return CablingDiscrepancy("swap", cables, summary, corrections, likelier_reason=reason)


def _list_displaced(ring: Sequence[PortId], side: int) -> Iterator[tuple[PortPair, PortPair]]:
    """Yield each cable as designed and as seen, assuming that the plugs of `side` (0 or 1) are in wrong ports."""
    for index in range(0, len(ring), 2):
        a, b = ring[index], ring[index + 1]
        yield (a, b), ((b, ring[(index + 2) % len(ring)]) if side == 0 else (a, ring[index - 1]))


def _describe_exchange(pairs: Sequence[tuple[PortPair, PortPair]], resolver: EndResolver) -> str:
    """Return how to move the plugs: two are exchanged, more go each to the port of the next."""
    moves = [_find_plug_move(*pair) for pair in pairs]
    if len(moves) == 2:
        a, b = (resolver.end(right) for _, _, right in moves)
        return f"exchange the plugs at {a} and {b}"
    return "move the plugs in a round: " + "; ".join(
        f"from {resolver.end(wrong)} to {resolver.end(right)}" for _, wrong, right in moves
    )


def choose_likelier_side(first: Sequence[CableEnd], second: Sequence[CableEnd]) -> tuple[int, str]:
    """Return 0 or 1 for the side whose plugs were likelier exchanged, and the reason.

    People confuse plugs that are close together: neighbouring ports, ports of one device, devices in one rack. If both
    sides are equally close, a switch is likelier than nodes, because its plugs are closer together.
    """
    ranks = [_rank_closeness(first), _rank_closeness(second)]
    likelier = 0 if ranks[0] <= ranks[1] else 1
    if ranks[0][0] != ranks[1][0]:
        return likelier, _describe_closeness([first, second][likelier], ranks[likelier][0])
    if ranks[0] != ranks[1]:
        return likelier, "either side may be it; the first is a switch, where plugs are closer together"
    return likelier, "nothing shows which side it was; begin with the first"


def _rank_closeness(ends: Sequence[CableEnd]) -> tuple[int, bool]:
    """Return how far apart the plugs are, from 0 (neighbouring ports) to 3, and whether they are at nodes."""
    at_nodes = any(end.node for end in ends)
    if len({end.node or end.guid for end in ends}) == 1:
        numbers = sorted(end.port for end in ends)
        are_neighbours = len({end.guid for end in ends}) == 1 and numbers[-1] - numbers[0] == len(numbers) - 1
        return (0 if are_neighbours else 1), at_nodes
    racks = {(end.site, end.rack) for end in ends}
    return (2 if len(racks) == 1 and ends[0].rack else 3), at_nodes


def _describe_closeness(ends: Sequence[CableEnd], rank: int) -> str:
    unit = ends[0].node or ends[0].device
    ports = ", ".join(end.label or str(end.port) for end in ends)
    if rank == 0:
        return f"ports {ports} are neighbours on {unit}"
    if rank == 1:
        return f"all of these plugs are at {unit}"
    return f"all of these plugs are in rack {ends[0].rack}"
