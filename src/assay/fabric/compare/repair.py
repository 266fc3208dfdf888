"""One repair: the discrepancies that have one common cause, and so are one ticket, and what they cost meanwhile."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from assay.fabric.compare.discrepancy import IN_PLACE_KINDS, CablingDiscrepancy
from assay.fabric.link_words import parse_rate
from assay.model.facts import frozen
from assay.model.specs.fabric.cable import Cable, rate_to_gbps

Severity = Literal["catastrophic", "degraded", "informational"]
SEVERITIES: tuple[Severity, ...] = ("catastrophic", "degraded", "informational")
MIN_LOST_UPLINKS = 0.5
"""Our own choice: nodes count as hit when their leaf switch loses this part of its bandwidth to other switches."""
MANY_NODES = 8
"""Our own choice: from so many nodes on, a loss hits every large job, and is worked on at once."""
NOWHERE_ELSE: Mapping[str, str] = {}


@frozen
class CablingRepair:
    """The work of one ticket. `cause` identifies what the members have in common, "" for a single discrepancy."""

    members: tuple[CablingDiscrepancy, ...]
    cause: str = ""
    title: str = ""
    likely_cause: str = ""

    @property
    def first(self) -> CablingDiscrepancy:
        """The discrepancy, or the first of several."""
        return self.members[0]


def group_by_key(
    discrepancies: Sequence[CablingDiscrepancy],
    kind: str,
    list_keys: Callable[[CablingDiscrepancy], Iterable[tuple[str, ...]]],
) -> Iterator[tuple[tuple[str, ...], tuple[CablingDiscrepancy, ...]]]:
    """Yield the discrepancies of a kind by what they have in common. One with several keys is in several groups."""
    groups: dict[tuple[str, ...], list[CablingDiscrepancy]] = {}
    for discrepancy in discrepancies:
        if discrepancy.kind == kind:
            for key in dict.fromkeys(list_keys(discrepancy)):
                groups.setdefault(key, []).append(discrepancy)
    yield from ((key, tuple(members)) for key, members in groups.items())


@frozen
class RepairCost:
    """`gbps` that no cable carries between the devices that the design joins, and the `nodes` that lose it.

    `is_parallel`: only parallel cables are exchanged. `misleads`: devices stand in each other's place, so that work on
    one would hit the other.
    """

    gbps: float
    nodes: tuple[str, ...]
    is_parallel: bool = False
    misleads: bool = False

    @property
    def severity(self) -> Severity:
        """How bad it is, by what is lost."""
        if not self.gbps and not self.misleads:
            return "informational"
        return "catastrophic" if len(self.nodes) >= MANY_NODES else "degraded"

    @property
    def rank(self) -> tuple[int, float, int]:
        """A sort key: the severest first, then what costs most bandwidth, then most nodes."""
        return SEVERITIES.index(self.severity), -self.gbps, -len(self.nodes)

    def __str__(self) -> str:
        if self.is_parallel:
            return "it costs nothing: the cables still join the devices that the design joins"
        nodes = f" of {len(self.nodes)} node{'s' if len(self.nodes) > 1 else ''}" if self.nodes else ""
        return f"it costs {self.gbps:g} Gb/s{nodes}" if self.gbps else "it costs no bandwidth"


def measure_cost(discrepancies: Iterable[CablingDiscrepancy]) -> RepairCost:
    """Return the cost of discrepancies. Cables are parallel if they join the same two devices: any of them will do."""
    designed, seen = Counter[frozenset[str]](), Counter[frozenset[str]]()
    nodes_of: dict[frozenset[str], set[str]] = defaultdict(set)
    members = list(discrepancies)
    for member in members:
        own = () if member.gone else member.cables  # the node that is gone loses its bandwidth, the others have theirs
        for cable in (*(pair.expected for pair in own if pair.expected), *member.cut_off, *member.gone):
            designed[_join(cable)] += _gbps(cable)
            nodes_of[_join(cable)] |= {end.node for end in cable.ends if end.node}
        for pair in own:
            if pair.expected and pair.observed and member.kind in IN_PLACE_KINDS:
                seen[_join(pair.expected)] += _gbps(pair.expected)  # a slow cable has a fault of its own
            elif pair.observed:
                seen[_join(pair.observed, member.places)] += _gbps(pair.observed)
    lost = {pair: gbps - seen[pair] for pair, gbps in designed.items() if gbps > seen[pair]}
    uplinks_lost = Counter[str]()
    for ends, gbps in lost.items():
        if not nodes_of[ends]:
            uplinks_lost.update(dict.fromkeys(ends, gbps))
    nodes = {node for pair in lost for node in nodes_of[pair]}
    switches = {switch.guid: switch for member in members for switch in member.switches}
    for guid, switch in switches.items():
        if uplinks_lost[guid] >= MIN_LOST_UPLINKS * switch.gbps > 0:
            nodes.update(switch.nodes)
    return RepairCost(
        sum(lost.values()),
        tuple(sorted(nodes)),
        is_parallel=not lost and all(member.kind in ("swap", "moved") for member in members),
        misleads=any(member.kind == "device-exchanged" for member in members),
    )


def _join(cable: Cable, places: Mapping[str, str] = NOWHERE_ELSE) -> frozenset[str]:
    """Return the two devices at a cable. One in another's place stands for that: it has the cables of the place.

    Each port of a node's adapter counts for itself, since it may be a rail of its own.
    """
    is_rail = not any(end.plane for end in cable.ends)
    return frozenset(
        f"{places.get(end.guid, end.guid)}{f'/{end.port}' if end.node and is_rail else ''}" for end in cable.ends
    )


def _gbps(cable: Cable) -> int:
    return int(rate_to_gbps(cable.rate)) if parse_rate(cable.rate) else 0
