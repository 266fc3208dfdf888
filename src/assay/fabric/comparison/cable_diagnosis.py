"""What a path or cycle of cables means to a technician.

Which plugs of exchanged cables were likelier put into each other's ports.

Turns ports into ends and cables that a person can find: the design's words where it knows the device.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from assay.fabric.comparison.alternating_walks import AlternatingWalk
from assay.fabric.comparison.discrepancy import CablePair, CablingDiscrepancy
from assay.fabric.discovery import FabricDiscovery
from assay.fabric.topology.compiled_topology import CompiledTopology
from assay.model.fabric.ports_and_cables import Cable, CableEnd, PortId


def choose_likelier_side(one: Sequence[CableEnd], other: Sequence[CableEnd]) -> tuple[int, str]:
    """Return 0 or 1 for the side whose plugs were likelier exchanged, and why.

    Hands mistake what is close together: neighbouring ports, ports of one device, devices in one rack. Of sides that
    are equally close, a switch's is the likelier, where plugs stand in dozens.
    """
    ranks = [_rank(one), _rank(other)]
    first = 0 if ranks[0] <= ranks[1] else 1
    if ranks[0][0] == ranks[1][0]:
        why = "either side may be it; the first is a switch, where plugs stand closer" if ranks[0] != ranks[1] else ""
        return first, why or "nothing tells which side it was; begin with the first"
    return first, _words([one, other][first], ranks[first][0])


def _rank(ends: Sequence[CableEnd]) -> tuple[int, bool]:
    """Return how far apart the plugs are, 0 to 3, and whether nodes have them."""
    at_nodes = any(end.node for end in ends)
    if len({end.node or end.guid for end in ends}) == 1:
        return (0 if _neighbours(ends) else 1), at_nodes
    racks = {(end.site, end.rack) for end in ends}
    return (2 if len(racks) == 1 and ends[0].rack else 3), at_nodes


def _neighbours(ends: Sequence[CableEnd]) -> bool:
    """Say whether all plugs of one device are in ports that follow each other."""
    numbers = sorted(end.port for end in ends)
    return len({end.guid for end in ends}) == 1 and numbers[-1] - numbers[0] == len(numbers) - 1


def _words(ends: Sequence[CableEnd], rank: int) -> str:
    unit = ends[0].node or ends[0].device
    ports = ", ".join(end.label or str(end.port) for end in ends)
    if rank == 0:
        return f"ports {ports} are neighbours on {unit}"
    if rank == 1:
        return f"all of these plugs are at {unit}"
    return f"all of these plugs are in rack {ends[0].rack}"


class EndResolver:
    """`boxes` has, by place, the GUID of the box that stands there instead of its own; `rates` what was seen."""

    def __init__(
        self,
        plan: CompiledTopology,
        discovery: FabricDiscovery,
        rates: Mapping[PortId, str],
        boxes: Mapping[str, str] | None = None,
    ) -> None:
        self.plan, self.discovery, self.rates = plan, discovery, rates
        self.boxes = boxes or {}

    def end(self, port: PortId) -> CableEnd:
        """Return a port as designed; of a device that is not, by the name that it announces."""
        known = self.plan.end(port)
        if known:
            return known
        device = self.discovery.devices.get(port.guid)
        return CableEnd(device.name if device else port.guid, port.guid, port.number)

    def find_designed_cable(self, port: PortId) -> Cable:
        """Return the designed cable at a port, its ends in the design's order."""
        return self.plan.cables[self.plan.cable_numbers[port]]

    def find_observed_cable(self, a: PortId, b: PortId) -> Cable:
        """Return a cable that was seen between two places."""
        return Cable(self._seen(a), self._seen(b), self.rates[a])

    def find_cable_by_guid(self, a: PortId, b: PortId) -> Cable:
        """Return a cable that was seen between two places, its ends by what the GUIDs that answer there are called."""
        here, there = (self.end(PortId(self.boxes.get(port.guid, port.guid), port.number)) for port in (a, b))
        return Cable(here, there, self.rates[a])

    def _seen(self, port: PortId) -> CableEnd:
        """Return a port of a place, with the GUID of the box that stands there."""
        end = self.end(port)
        return replace(end, guid=self.boxes[port.guid]) if port.guid in self.boxes else end


WalkStep = tuple[bool, PortId, PortId]
DesignedAndSeen = tuple[tuple[PortId, PortId] | None, tuple[PortId, PortId] | None]
"""A cable as designed and as seen, by its ports."""


def diagnose_cables(component: AlternatingWalk, look: EndResolver) -> CablingDiscrepancy:
    """Name one component that is more than a cable without link: swap, moved or unexpected."""
    if component.is_cycle:
        return _swap(component, look)
    pairs = _best_pairs(component.steps, look)
    if all(expected is None for expected, _ in pairs):
        return _unexpected([_pair(one, look) for one in pairs])
    return _moved(pairs, look)


def report_missing_cable(cable: Cable, behind: Sequence[Cable] = ()) -> CablingDiscrepancy:
    """Name one cable that is designed and not seen."""
    said = f"no link between {cable.a} and {cable.b}: the cable is unplugged or broken, or the port at one end is down"
    said += f"; {describe_cut_off_devices(behind)}" if behind else ""
    steps = (f"seat or replace the cable from {cable.a} to {cable.b}",)
    return CablingDiscrepancy("missing", (CablePair(cable, None),), said, steps, cut_off=tuple(behind))


def report_disabled_port(cable: Cable, off: Sequence[CableEnd], behind: Sequence[Cable] = ()) -> CablingDiscrepancy:
    """Name one cable without link of which a port was switched off by somebody."""
    ports = " and ".join(map(str, off))
    said = f"no link between {cable.a} and {cable.b}: {ports} {'is' if len(off) == 1 else 'are'} disabled"
    said += f"; {describe_cut_off_devices(behind)}" if behind else ""
    steps = (f"ask who disabled {ports}, and why; then enable it (ibportstate -G GUID PORT enable)",)
    return CablingDiscrepancy("disabled", (CablePair(cable, None),), said, steps, cut_off=tuple(behind))


def report_slow_cable(designed: Cable, seen: Cable) -> CablingDiscrepancy:
    """Name one cable in its right place that runs slower or narrower than designed."""
    said = f"the link between {seen.a} and {seen.b} runs at {seen.rate} instead of {designed.rate}"
    steps = ("clean and reseat both plugs; then replace the cable",)
    return CablingDiscrepancy("degraded", (CablePair(designed, seen),), said, steps)


def describe_cut_off_devices(behind: Sequence[Cable]) -> str:
    """Say what lies behind something that is out, of which nothing can be told."""
    ends = [end for cable in behind for end in cable.ends]
    switches = dict.fromkeys(end.device for end in ends if not end.node)
    nodes = len({end.node for end in ends if end.node})
    what = [*list(switches)[:3], *([f"{len(switches) - 3} more switches"] if len(switches) > 3 else [])]
    what += [f"{nodes} node{'s' if nodes > 1 else ''}"] if nodes else []
    return f"what lies behind it is out of reach: {', '.join(what)} ({len(behind)} cables)"


def _pair(edges: DesignedAndSeen, look: EndResolver) -> CablePair:
    expected, observed = edges
    return CablePair(
        look.find_designed_cable(expected[0]) if expected else None,
        look.find_observed_cable(*observed) if observed else None,
    )


def _unexpected(pairs: list[CablePair]) -> CablingDiscrepancy:
    seen = pairs[0].observed
    assert seen is not None, "a cable that is not designed is seen"
    said = f"a cable that is not in the design joins {seen.a} and {seen.b}"
    return CablingDiscrepancy("unexpected", tuple(pairs), said, ("take it out, or add it to the design",))


def _moved(pairs: list[DesignedAndSeen], look: EndResolver) -> CablingDiscrepancy:
    said, steps = [], []
    for expected, observed in pairs:
        if expected and observed:
            kept, wrong, right = (look.end(port) for port in _shift(expected, observed))
            said.append(f"the cable from {kept} is in {wrong} instead of {right}")
            steps.append(f"move the plug from {wrong} to {right}")
        elif expected:
            said.append("no link between {} and {}".format(*map(look.end, expected)))
            steps.append("then seat or replace the cable from {} to {}".format(*map(look.end, expected)))
        elif observed:
            said.append("a cable that is not in the design joins {} and {}".format(*map(look.end, observed)))
            steps.append("take out the cable between {} and {}".format(*map(look.end, observed)))
    return CablingDiscrepancy("moved", tuple(_pair(one, look) for one in pairs), "; ".join(said), ("; ".join(steps),))


def _best_pairs(steps: Sequence[WalkStep], look: EndResolver) -> list[DesignedAndSeen]:
    """Pair each designed cable with the seen one next to it; of two ways, the one whose plugs moved the least."""
    ways = [_paired(steps, 0)]
    if len(steps) > 2 and len(steps) % 2:
        ways.append(_paired(steps, 1))
    return min(ways, key=lambda pairs: sum(_walk(one, look) for one in pairs))


def _paired(steps: Sequence[WalkStep], start: int) -> list[DesignedAndSeen]:
    """Pair neighbours from `start` on, in the order of the walk; what is left over at either end stands alone.

    A designed cable that is left over comes last: it is what remains to do when the plugs are in their ports.
    """
    pairs = [_edges(*two) for two in zip(steps[start::2], steps[start + 1 :: 2], strict=False)]
    used = start + 2 * len(pairs)
    found = [*map(_edges, steps[:start]), *pairs, *map(_edges, steps[used:])]
    return found[::-1] if len(found) > 1 and found[0][1] is None else found


def _edges(*steps: WalkStep) -> DesignedAndSeen:
    expected = next(((a, b) for kind, a, b in steps if kind), None)
    return expected, next(((a, b) for kind, a, b in steps if not kind), None)


def _walk(edges: DesignedAndSeen, look: EndResolver) -> int:
    """Rank how far a plug went: on one device, in one rack, further. A cable for itself went nowhere."""
    expected, observed = edges
    if not expected or not observed:
        return 0
    _, wrong, right = (look.end(port) for port in _shift(expected, observed))
    return 0 if wrong.guid == right.guid else 1 if wrong.rack and wrong.rack == right.rack else 2


def _shift(expected: tuple[PortId, PortId], observed: tuple[PortId, PortId]) -> tuple[PortId, PortId, PortId]:
    """Return the port that both cables share, where the other plug is, and where it belongs."""
    kept = next(port for port in expected if port in observed)
    right = expected[1] if kept == expected[0] else expected[0]
    wrong = observed[1] if kept == observed[0] else observed[0]
    return kept, wrong, right


def _swap(component: AlternatingWalk, look: EndResolver) -> CablingDiscrepancy:
    """Name k permuted cables. Which plugs were exchanged is not in the data, so the likelier side comes first."""
    ring = component.ports[:-1]
    sides = [[look.end(port) for port in ring[side::2]] for side in (0, 1)]
    first, because = choose_likelier_side(sides[0], sides[1])
    pairs = list(_displaced(ring, first))
    shifts = [_shift(*one) for one in pairs]
    said = "; ".join("{} is cabled to {} instead of {}".format(*map(look.end, shift)) for shift in shifts)
    corrections = tuple(_exchange(list(_displaced(ring, side)), look) for side in (first, 1 - first))
    cables = tuple(_pair(one, look) for one in pairs)
    return CablingDiscrepancy(
        "swap", cables, f"{len(pairs)} cables are exchanged: {said}", corrections, likelier_reason=because
    )


def _displaced(ring: Sequence[PortId], side: int) -> Iterator[tuple[tuple[PortId, PortId], tuple[PortId, PortId]]]:
    """Yield each cable as designed and as seen, taking it that the plugs of `side` are in the wrong ports."""
    for index in range(0, len(ring), 2):
        a, b = ring[index], ring[index + 1]
        yield (a, b), ((b, ring[(index + 2) % len(ring)]) if side == 0 else (a, ring[index - 1]))


def _exchange(pairs: Sequence[tuple[tuple[PortId, PortId], tuple[PortId, PortId]]], look: EndResolver) -> str:
    """Say how plugs go round: two are exchanged, more go each to the next one's port."""
    shifts = [_shift(*one) for one in pairs]
    if len(shifts) == 2:
        return "exchange the plugs at {} and {}".format(*(look.end(right) for _, _, right in shifts))
    moves = "; ".join(f"from {look.end(wrong)} to {look.end(right)}" for _, wrong, right in shifts)
    return f"move the plugs in a round: {moves}"
