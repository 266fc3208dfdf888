"""From the ports that differ to the fewest discrepancies that are true: boxes first, then what is dead, then cables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace

from assay.fabric.comparison.absent_devices import AbsentDevices, explain_absent_devices
from assay.fabric.comparison.alternating_walks import AlternatingWalk, find_alternating_walks
from assay.fabric.comparison.cable_diagnosis import (
    EndResolver,
    diagnose_cables,
    report_disabled_port,
    report_missing_cable,
    report_slow_cable,
)
from assay.fabric.comparison.device_diagnosis import report_dead_device, report_misplaced_devices, report_unknown_device
from assay.fabric.comparison.device_identity import (
    PortPair,
    find_device_permutations,
    find_residual_diff,
    map_devices_to_places,
)
from assay.fabric.comparison.discrepancy import CablePair, CablingDiscrepancy
from assay.fabric.comparison.port_diff import PortDiff
from assay.fabric.discovery import FabricDiscovery
from assay.fabric.topology.blast_radius import find_device_tiers, find_links_sharing_transceiver
from assay.fabric.topology.compiled_topology import CompiledTopology
from assay.model.fabric.ports_and_cables import Cable, PortId

ABSENCE_KINDS = {"missing", "device-missing", "device-replaced"}


class DiffExplanation:
    """All that differs, explained. Of a partial discovery, only what does not rest on something's absence."""

    def __init__(self, plan: CompiledTopology, discovery: FabricDiscovery, diff: PortDiff) -> None:
        self.plan, self.discovery, self.diff = plan, discovery, diff
        self.rounds = [
            one for one in find_device_permutations(plan, diff, discovery.devices) if one.closed or not diff.problems
        ]
        self.places = map_devices_to_places(self.rounds)
        self.settled = find_residual_diff(plan, diff, self.places)
        self.look = EndResolver(plan, discovery, self.settled.rates, {place: box for box, place in self.places.items()})
        self.components = find_alternating_walks(self.settled.expected, self.settled.actual)
        self.without = {one.ports[0]: one.ports[1] for one in self.components if _without_link(one)}
        self.empty = self._empty()
        self.absent = self._absent()

    @property
    def problems(self) -> list[str]:
        """Say which part of the fabric the discovery cannot have seen."""
        unreached = {self.plan.devices[port.guid].name for edge in self.absent.unreached for port in edge}
        if not unreached:
            return []
        few = ", ".join(sorted(unreached)[:3])
        return [f"{len(unreached)} devices ({few} …) hang on nothing that was discovered: discover that part too"]

    @property
    def discrepancies(self) -> tuple[CablingDiscrepancy, ...]:
        """Every difference in exactly one."""
        every = [*self._elsewhere(), *self._causes(), *self._cables(), *self._slow()]
        partial = self.diff.problems or self.absent.unreached
        kept = (one for one in every if not partial or self._seen_whole(one))
        return tuple(
            replace(one, links_sharing_transceiver=find_links_sharing_transceiver(self.plan, one)) for one in kept
        )

    def _empty(self) -> dict[int, list[PortPair]]:
        """Take out the cables of places that a known box left for the place of one that is gone."""
        found = {}
        for number, one in enumerate(self.rounds):
            left = [guid for guid in one.places if guid in self.plan.devices and guid not in self.places.values()]
            edges = [(port, far) for port, far in self.without.items() for end in (port, far) if end.guid in left]
            if left and not one.closed:
                found[number] = edges
                self.without = {port: far for port, far in self.without.items() if (port, far) not in edges}
        return found

    def _absent(self) -> AbsentDevices:
        standing = {self.places.get(f"0x{digits}", f"0x{digits}") for digits, rows in self.diff.rows.items() if rows}
        both = {**self.without, **{far: port for port, far in self.without.items()}}
        return explain_absent_devices(self.plan, both, {port for port in both if self._is_off(port)}, standing)

    def _is_off(self, port: PortId) -> bool:
        facts = self.discovery.facts.get(PortId(self.look.boxes.get(port.guid, port.guid), port.number))
        return facts is not None and "disabled" in (facts.state, facts.physical)

    def _elsewhere(self) -> list[CablingDiscrepancy]:
        """Tell of each cable with the round that has the fewest of its own: a new adapter has but one."""
        of = {place: number for number, one in enumerate(self.rounds) for place in one.places.values()}
        among = [(edge, [of[port.guid] for port in edge if port.guid in of]) for edge in self.settled.explained]
        many = Counter(number for _, numbers in among for number in set(numbers))
        explained: dict[int, list[PortPair]] = defaultdict(list)
        for edge, numbers in among:
            explained[min(numbers, key=lambda number: (many[number], number))].append(edge)
        return report_misplaced_devices(self.rounds, explained, self.empty, self.look)

    def _causes(self) -> Iterator[CablingDiscrepancy]:
        level = find_device_tiers(self.plan) if any(cause.unit for cause in self.absent.causes) else {}
        for cause in self.absent.causes:
            behind = [self.look.find_designed_cable(a) for a, _ in cause.cut_off]
            if cause.unit:
                yield report_dead_device(cause, self.look, level)
            elif cause.disabled:
                off = [self.look.end(port) for port in cause.cables[0] if self._is_off(port)]
                yield report_disabled_port(self.look.find_designed_cable(cause.cables[0][0]), off, behind)
            else:
                yield report_missing_cable(self.look.find_designed_cable(cause.cables[0][0]), behind)
        for a, _ in self.absent.single:
            yield report_missing_cable(self.look.find_designed_cable(a))

    def _cables(self) -> Iterator[CablingDiscrepancy]:
        """Yield what became of cables, and then the devices that the design does not know."""
        strangers: dict[str, list[Cable]] = defaultdict(list)
        for component in self.components:
            if _without_link(component):
                continue
            if stranger := self._stranger(component):
                strangers[stranger].append(self.look.find_observed_cable(*component.ports))
            else:
                yield diagnose_cables(component, self.look)
        for guid, cables in strangers.items():
            yield report_unknown_device(guid, cables)

    def _stranger(self, component: AlternatingWalk) -> str:
        """Return the GUID of the one end of an undesigned cable that the design does not know, "" for others."""
        if component.first_expected or len(component.ports) != 2:
            return ""
        guids = {port.guid for port in component.ports if port.guid not in self.plan.devices}
        return guids.pop() if len(guids) == 1 else ""

    def _slow(self) -> Iterator[CablingDiscrepancy]:
        for a, _, rate in (*self.diff.slow, *self.settled.slow):
            designed = self.look.find_designed_cable(a)
            ends = (designed.a, designed.b)
            yield report_slow_cable(designed, Cable(*ends, rate))

    def _seen_whole(self, one: CablingDiscrepancy) -> bool:
        """Say whether a discrepancy holds whatever else there is that was not discovered."""
        if one.kind in ABSENCE_KINDS:
            return False
        return one.kind == "disabled" or all(map(self._in_its_own_right, one.cables))

    def _in_its_own_right(self, pair: CablePair) -> bool:
        """Say whether a cable was seen, and with no device that may have taken the place of an absent one."""
        seen = pair.observed
        return seen is not None and (not pair.expected or all(end.guid in self.plan.devices for end in seen.ends))


def _without_link(component: AlternatingWalk) -> bool:
    return component.first_expected and len(component.ports) == 2
