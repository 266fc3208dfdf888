"""Finds the plugs to move when a fabric's structure changes, and the adapters that are replaced on their cables.

The old design is compared as if a scan had discovered it. A chain alternates between cables as they are and as they
will be, and neighbours share the port that keeps its plug. A cable can be paired with the one before it or with the one
after it: the way with the least walking is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from assay.fabric.compare.compare import compare_cabling
from assay.fabric.compare.discrepancy import CablePair, CablingDiscrepancy
from assay.fabric.compare.shared_plugs import drop_other_planes, find_plugs
from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice, FabricDiscovery
from assay.model.facts import fact, internal
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.fabric.cable import Cable, CableEnd, PortId
from assay.model.specs.fabric.design_parts import ExplicitCable
from assay.model.specs.fabric.fabric_design import FabricDesign

CablingJobKind = Literal["swap", "move", "lay", "take-out", "device-moves", "device-changes", "rate", "length"]


@fact
class CablingJob:
    """One piece of work on cables."""

    fabric: str
    """The fabric."""
    what: CablingJobKind
    """What kind of work it is."""
    steps: tuple[str, ...]
    """What technicians do, in order."""
    nodes: tuple[str, ...]
    """The nodes that lose links meanwhile."""
    place: tuple[str, int] = internal(default=("", 0))
    """What sorts the jobs."""


def nodes_losing_links(jobs: Iterable[CablingJob]) -> set[str]:
    """Return the nodes that lose links during the work."""
    return {node for job in jobs for node in job.nodes}


_CableStep = tuple[bool, Cable]
"""Whether it is the cable as it will be, and the cable."""


def choose_plug_moves(pairs: Sequence[CablePair]) -> list[CablePair]:
    """Return the pairs that reuse the most cables; if several do, those whose plugs move least."""
    if len(pairs) < 2:
        return list(pairs)
    chain = _chain(pairs)
    return min((_pair_neighbours(chain, 0), _pair_neighbours(chain, 1)), key=_walking_cost)


def find_moved_plug(expected: Cable, observed: Cable) -> tuple[CableEnd, CableEnd, CableEnd]:
    """Return the end that both cables share, where the other plug is, and where it belongs."""
    seen = {end.port_id for end in observed.ends}
    kept = next(end for end in expected.ends if end.port_id in seen)
    right = next(end for end in expected.ends if end.port_id != kept.port_id)
    wrong = next(end for end in observed.ends if end.port_id != kept.port_id)
    return kept, wrong, right


def _chain(pairs: Sequence[CablePair]) -> list[_CableStep]:
    """Return the cables of the pairs as a chain: each shares a port with the next."""
    following = {end.port_id for cable in (pairs[1].expected, pairs[1].observed) if cable for end in cable.ends}
    expected_last = any(end.port_id in following for end in (pairs[0].expected.ends if pairs[0].expected else ()))
    chain: list[_CableStep] = []
    for pair in pairs:
        both = [(True, pair.expected), (False, pair.observed)]
        chain += [(kind, cable) for kind, cable in (reversed(both) if expected_last else both) if cable]
    return chain


def _pair_neighbours(chain: list[_CableStep], start: int) -> list[CablePair]:
    """Pair neighbours from `start` on; a cable left over at either end stays alone."""
    paired = [_pair_one(step) for step in chain[:start]]
    rest = chain[start:]
    for (is_expected, cable), (_, other) in zip(rest[::2], rest[1::2], strict=False):
        paired.append(CablePair(cable, other) if is_expected else CablePair(other, cable))
    return [*paired, *([_pair_one(rest[-1])] if len(rest) % 2 else [])]


def _pair_one(step: _CableStep) -> CablePair:
    return CablePair(step[1], None) if step[0] else CablePair(None, step[1])


def _walking_cost(pairs: list[CablePair]) -> tuple[int, int]:
    moved = [find_moved_plug(pair.expected, pair.observed) for pair in pairs if pair.expected and pair.observed]
    return -len(moved), sum(_distance(wrong, right) for _, wrong, right in moved)


def _distance(wrong: CableEnd, right: CableEnd) -> int:
    """Rank the distance of a plug's move: on one device, in one rack, or further."""
    if wrong.guid == right.guid:
        return 0
    return 1 if wrong.rack and wrong.rack == right.rack else 2


def plan_cable_moves(name: str, old: CompiledTopology, new: CompiledTopology) -> list[CablingJob]:
    """Return the work that turns the cables of one design into those of another."""
    return _FabricChange(name, old, new).jobs()


class _FabricChange:
    """One fabric, before and after."""

    def __init__(self, name: str, old: CompiledTopology, new: CompiledTopology) -> None:
        self.name = name
        self.old = old
        self.new = new
        self.lengths = {_cable_ports(cable): cable.length_m for cable in new.cables}
        self.ends: dict[PortId, CableEnd] = {}

    def jobs(self) -> list[CablingJob]:
        discrepancies = compare_cabling(self.new, _as_discovery(self.old, self.new)).discrepancies
        return [self._job(discrepancy) for discrepancy in drop_other_planes(discrepancies)]

    def _job(self, discrepancy: CablingDiscrepancy) -> CablingJob:
        kind, steps = self._work(discrepancy)
        ends = [self._resolve_end(end) for end in discrepancy.ends]
        nodes = tuple(sorted({end.node for end in ends} - {""}))
        place = min(((end.rack, end.u) for end in ends), default=("", 0))
        return CablingJob(self.name, kind, steps, nodes, place)

    def _work(self, discrepancy: CablingDiscrepancy) -> tuple[CablingJobKind, tuple[str, ...]]:
        if discrepancy.kind == "swap":
            return "swap", (discrepancy.corrections[0], *(self._swap_step(pair) for pair in discrepancy.cables))
        if discrepancy.kind == "device-replaced":
            new = next(end for end in discrepancy.ends if end.device == discrepancy.device)
            old = next(end for end in discrepancy.ends if end.guid not in self.new.devices)
            switch = f"replace the switch {new.device} ({new.rack} U{new.u}): {old.guid} by {new.guid}"
            return "device-changes", (switch, "its cables stay")
        # Of each plug one pair of old and new cable. Only moved plugs leave a choice.
        of_plugs = {find_plugs(pair): pair for pair in reversed(discrepancy.cables)}
        pairs: Sequence[CablePair] = tuple(of_plugs.values())[::-1]
        if discrepancy.kind == "moved":
            pairs = choose_plug_moves(pairs)
        steps = tuple(step for pair in pairs for step in self._steps(pair))
        if all(pair.observed is None for pair in discrepancy.cables):
            return "lay", steps
        if all(pair.expected is None for pair in discrepancy.cables):
            return "take-out", steps
        return "move", steps

    def _steps(self, pair: CablePair) -> Iterator[str]:
        """Return the steps for one cable: lay it, remove it, or move one of its plugs."""
        if pair.expected and pair.observed:
            kept, wrong, right = find_moved_plug(pair.expected, pair.observed)
            yield f"move the plug from {self._end(wrong)} to {self._end(right)}{self._length(pair.expected)}"
            yield f"the other plug stays in {self._end(kept)}"
        elif pair.expected:
            ends = " to ".join(self._end(end) for end in pair.expected.ends)
            yield f"lay a cable from {ends}{self._length(pair.expected)}"
        elif pair.observed:
            ends = " and ".join(self._end(end) for end in pair.observed.ends)
            yield f"take out the cable between {ends}"

    def _swap_step(self, pair: CablePair) -> str:
        cable = pair.expected
        assert cable is not None, "a swap exchanges designed cables"
        return f"then {self._end(cable.a)} leads to {self._end(cable.b)}{self._length(cable)}"

    def _end(self, end: CableEnd) -> str:
        return str(self._resolve_end(end))

    def _resolve_end(self, end: CableEnd) -> CableEnd:
        """Return an end with its rack: of the new design, or of the old one for a device that is removed."""
        port = end.port_id
        if port not in self.ends:
            self.ends[port] = self.new.end(port) or self.old.end(port) or end
        return self.ends[port]

    def _length(self, cable: Cable) -> str:
        metres = self.lengths.get(_cable_ports(cable), 0)
        return f", {metres:g} m" if metres else ""


def _cable_ports(cable: Cable) -> frozenset[PortId]:
    return frozenset((cable.a.port_id, cable.b.port_id))


def _as_discovery(old: CompiledTopology, new: CompiledTopology) -> FabricDiscovery:
    """Return a design as if a scan had found it, at the new rates: one line reports changed rates for all cables."""
    cables = []
    for cable in old.cables:
        now = new.cable_at(cable.a.port_id) or new.cable_at(cable.b.port_id) or cable
        cables.append(DiscoveredCable(cable.a.port_id, cable.b.port_id, now.rate))
    devices = [
        DiscoveredDevice(device.guid, device.kind, device.ports, device.description) for device in old.devices.values()
    ]
    return FabricDiscovery(cables, {device.guid: device for device in devices})


def find_adapter_nodes(cables: Iterable[ExplicitCable]) -> set[str]:
    """Return the node of each adapter that listed cables may name: `n0001 mlx5_0` is one of n0001."""
    return {end.device.partition(" ")[0] for cable in cables for _, end in cable.ends}


def find_adapter_replacements(before: Fleet, after: Fleet) -> tuple[list[CablingJob], Fleet]:
    """Return the replacements, and the old fleet with the new adapters in it.

    If a GUID is known at another place too, that is a move and no replacement; the cables report it.
    """
    kept = [node for name, node in after.nodes.items() if name in before.nodes]
    touched = [node for node in kept if node.hca_guids != before.nodes[node.name].hca_guids]
    if not touched:
        return [], before
    old, new = _guids(before), _guids(after)
    nodes, jobs = dict(before.nodes), []
    designs = {
        name: design
        for design in after.designs.values()
        for name in (*find_adapter_nodes(design.cables), *design.node_names())
    }
    for node in touched:
        pairs = zip(before.nodes[node.name].hca_guids, node.hca_guids, strict=False)
        fresh = {rail: two for rail, two in enumerate(pairs) if two[0] not in new and two[1] not in old}
        old_node = before.nodes[node.name]
        guids = [fresh[rail][1] if rail in fresh else guid for rail, guid in enumerate(old_node.hca_guids)]
        nodes[node.name] = replace(old_node, hca_guids=tuple(guids))
        if fresh and node.name in designs:
            jobs.append(_job(designs[node.name], after, node, fresh))
    return jobs, replace(before, nodes=nodes)


def _guids(fleet: Fleet) -> set[str]:
    return {guid for node in fleet.nodes.values() for guid in node.hca_guids}


def _job(design: FabricDesign, fleet: Fleet, node: Node, fresh: dict[int, tuple[str, str]]) -> CablingJob:
    steps = (f"{node.name} ({node.rack} U{node.u}): replace", *_steps(design, fleet, node, fresh), "their cables stay")
    return CablingJob(design.name, "device-changes", steps, (node.name,), (node.rack, node.u))


def _steps(design: FabricDesign, fleet: Fleet, node: Node, fresh: dict[int, tuple[str, str]]) -> Iterator[str]:
    names = {hca.rail: hca.name for hca in fleet.spec_of(node.name).hcas}
    for rail, (was, will) in fresh.items():
        label = design.label_rail(rail)
        yield f"{names.get(rail, f'rail {rail}')}{f', port {label}' if label else ''}: {was} by {will}"
