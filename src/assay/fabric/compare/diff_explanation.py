"""Explains all differing ports by the fewest true discrepancies: misplaced devices, then dead ones, then cables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from assay.fabric.compare.cable_discrepancies import (
    EndResolver,
    diagnose_cables,
    report_disabled_port,
    report_missing_cable,
    report_missing_link_in_box,
    report_missing_nvlink,
    report_slow_cable,
)
from assay.fabric.compare.device_discrepancies import (
    AbsentDevices,
    explain_absent_devices,
    report_dead_device,
    report_misplaced_devices,
    report_unknown_device,
)
from assay.fabric.compare.device_names import AnnouncedNames, list_untold_devices, tell_new_devices
from assay.fabric.compare.discrepancy import BoxPart, CablingDiscrepancy, SwitchLinks
from assay.fabric.compare.misplaced_devices import find_device_permutations
from assay.fabric.compare.port_diff import (
    AlternatingWalk,
    PortDiff,
    PortPair,
    find_alternating_walks,
    find_residual_diff,
    map_devices_to_places,
)
from assay.fabric.compare.shared_plugs import LOST_KINDS
from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.design.devices import DesignedDevice
from assay.fabric.design.tiers import find_device_tiers, find_links_sharing_transceiver
from assay.fabric.discovery import FabricDiscovery, find_doubtful_devices
from assay.model.specs.fabric.cable import Cable, PortId, rate_to_gbps
from assay.model.specs.fabric.nvlink_domain import find_nvlink_place

ABSENCE_KINDS = {"missing", "device-missing", "device-replaced"}
"""The kinds of discrepancy that rest on the absence of something. A partial discovery proves no absence."""


class DiffExplanation:
    """The explanation of a PortDiff. Its properties give the discrepancies, and the parts that were not discovered."""

    def __init__(self, topology: CompiledTopology, discovery: FabricDiscovery, diff: PortDiff) -> None:
        self.topology, self.discovery = topology, discovery
        self.not_found = diff.expected
        doubtful = find_doubtful_devices(diff.problems)
        self.is_all_in_doubt = doubtful is None
        self.diff = diff = self._leave_out_unknown(diff, doubtful) if diff.problems and doubtful is not None else diff
        names = AnnouncedNames(topology, {} if self.is_all_in_doubt else discovery.devices)
        permutations = find_device_permutations(topology, diff, discovery.devices, names)
        self.permutations = [each for each in permutations if each.closed or not self.is_all_in_doubt]
        self.places = map_devices_to_places(self.permutations)
        self.residual = find_residual_diff(topology, diff, self.places)
        guid_at_place = {place: guid for guid, place in self.places.items()}
        renewed = {new: old for each in self.permutations for new, old in each.renewed.items()}
        self.resolver = EndResolver(topology, discovery, self.residual.rates, guid_at_place, renewed)
        self.walks = find_alternating_walks(self.residual.expected, self.residual.actual)
        self.without_link = {walk.ports[0]: walk.ports[1] for walk in self.walks if _is_cable_without_link(walk)}
        self.empty_places = self._take_cables_of_empty_places()
        self.explained = self._assign_explained()
        self.absent = self._explain_absent()

    @property
    def problems(self) -> list[str]:
        """The part of the fabric that the discovery cannot have reached, in one line; none if it reached all."""
        unreached = {self.topology.devices[port.guid].name for pair in self.absent.unreached for port in pair}
        if not unreached:
            return []
        few = ", ".join(sorted(unreached)[:3])
        return [
            f"{len(unreached)} devices ({few} …) have no designed path to anything discovered: discover that part too"
        ]

    @property
    def discrepancies(self) -> tuple[CablingDiscrepancy, ...]:
        """Every known difference, each in exactly one discrepancy. If all is in doubt, only those that hold anyway."""
        every = [
            *report_misplaced_devices(self.permutations, self.explained, self.empty_places, self.resolver),
            *self._report_absent(),
            *self._report_cables(),
            *self._report_slow(),
        ]
        certain = (each for each in every if not self.is_all_in_doubt or self._is_certain(each))
        switches = SwitchLinksFinder(self.topology)
        whole = []
        for each in certain:
            sharing = find_links_sharing_transceiver(self.topology, each)
            guids = {end.guid for end in each.ends} if self.places else ()
            places = {guid: self.places[guid] for guid in guids if guid in self.places}
            whole.append(switches.add_switches(replace(each, links_sharing_transceiver=sharing, places=places)))
        return tuple(whole)

    def list_unknown_cables(self, discrepancies: Iterable[CablingDiscrepancy]) -> list[Cable]:
        """Return the designed cables that were not found, and that none of the discrepancies explains."""
        cables = (pair.expected for discrepancy in discrepancies for pair in discrepancy.cables if pair.expected)
        cut_off = (cable for discrepancy in discrepancies for cable in discrepancy.cut_off)
        explained = {end.port_id for cable in (*cables, *cut_off) for end in cable.ends}
        return self.topology.list_cables_at(port for port in self.not_found if port not in explained)

    def _leave_out_unknown(self, diff: PortDiff, doubtful: Container[str]) -> PortDiff:
        """Leave out the designed cables whose absence nothing shows.

        A port without link is known if its device was read as a whole, or if the port was seen with another cable. To
        know one end of a cable is enough.
        """
        whole = {guid for guid in self.discovery.devices if guid not in doubtful}
        known = {port for port in diff.expected if port.guid in whole or port in diff.actual}
        return replace(
            diff, expected={port: far for port, far in diff.expected.items() if port in known or far in known}
        )

    def _take_cables_of_empty_places(self) -> dict[int, list[PortPair]]:
        """Take the cables out of `without_link` whose device moved to the place of a device that is gone.

        Return them by the index of the permutation that moved the device.
        """
        cables_of = {}
        for index, permutation in enumerate(self.permutations):
            designed, taken = self.topology.devices, self.places.values()
            emptied = {guid for guid in permutation.devices if guid in designed and guid not in taken}
            pairs = [pair for pair in self.without_link.items() for port in pair if port.guid in emptied]
            if emptied and not permutation.closed:
                cables_of[index] = pairs
                self.without_link = {port: far for port, far in self.without_link.items() if (port, far) not in pairs}
        return cables_of

    def _explain_absent(self) -> AbsentDevices:
        guids = {f"0x{digits}" for digits, rows in self.diff.rows.items() if rows}
        if self.diff.problems:  # a device may be named at the other end of a cable only
            guids |= {f"0x{row[1]}" for rows in self.diff.rows.values() for row in rows}
        present = {self.places.get(guid, guid) for guid in guids}
        missing = {**self.without_link, **{far: port for port, far in self.without_link.items()}}
        disabled = {port for port in missing if self._is_disabled(port)}
        return explain_absent_devices(self.topology, missing, disabled, present)

    def _is_disabled(self, port: PortId) -> bool:
        facts = self.discovery.facts.get(PortId(self.resolver.guid_at_place.get(port.guid, port.guid), port.number))
        return facts is not None and "disabled" in (facts.state, facts.physical)

    def _assign_explained(self) -> dict[int, list[PortPair]]:
        """Assign each explained cable to one permutation: one to each of them, the others to that with the fewest.

        A new adapter has but one cable. A new spine may have none that does not lead to a new leaf.
        """
        index_of_place = {
            place: index for index, permutation in enumerate(self.permutations) for place in permutation.places.values()
        }
        candidates = [
            (pair, [index_of_place[port.guid] for port in pair if port.guid in index_of_place])
            for pair in self.residual.explained
        ]
        count = Counter(index for _, indexes in candidates for index in set(indexes))
        first = _choose_one_each(candidates, count)
        explained: dict[int, list[PortPair]] = defaultdict(list)
        for pair, indexes in candidates:
            explained[first.get(pair, min(indexes, key=lambda index: (count[index], index)))].append(pair)
        return explained

    def _report_absent(self) -> Iterator[CablingDiscrepancy]:
        tiers = find_device_tiers(self.topology) if any(cause.unit for cause in self.absent.causes) else {}
        for cause in self.absent.causes:
            behind = [self.resolver.find_designed_cable(a) for a, _ in cause.cut_off]
            cable = self.resolver.find_designed_cable(cause.cables[0][0])
            if cause.unit:
                yield report_dead_device(cause, self.resolver, tiers)
            elif cause.disabled:
                disabled = [self.resolver.end(port) for port in cause.cables[0] if self._is_disabled(port)]
                yield report_disabled_port(cable, disabled, behind)
            else:
                yield self._report_missing(cable, behind)
        for a, _ in self.absent.single:
            yield self._report_missing(self.resolver.find_designed_cable(a))

    def _report_missing(self, cable: Cable, behind: Sequence[Cable] = ()) -> CablingDiscrepancy:
        if find_nvlink_place(cable.a.guid):
            return report_missing_nvlink(cable, behind)
        box = self.topology.find_box(cable.a.port_id, cable.b.port_id)
        return report_missing_link_in_box(cable, box, behind) if box else report_missing_cable(cable, behind)

    def _report_cables(self) -> Iterator[CablingDiscrepancy]:
        """Yield the discrepancies of cables, then those of the devices that the design lacks."""
        untold = list_untold_devices(self.permutations, self.explained, self.resolver)
        cables_of_unknown: dict[str, list[Cable]] = defaultdict(list)
        for walk in self.walks:
            if _is_cable_without_link(walk):
                continue
            if guid := self._find_unknown_end(walk):
                cables_of_unknown[guid].append(self.resolver.find_observed_cable(*walk.ports))
            else:
                yield tell_new_devices(diagnose_cables(walk, self.resolver), untold)
        for guid, cables in cables_of_unknown.items():
            yield report_unknown_device(guid, cables)

    def _find_unknown_end(self, walk: AlternatingWalk) -> str:
        """Return the GUID of the only end of an undesigned cable that the design lacks, "" in all other cases."""
        if walk.first_expected or len(walk.ports) != 2:
            return ""
        unknown = {port.guid for port in walk.ports if port.guid not in self.topology.devices}
        return unknown.pop() if len(unknown) == 1 else ""

    def _report_slow(self) -> Iterator[CablingDiscrepancy]:
        for a, _, rate in self.diff.slow:
            designed = self.resolver.find_designed_cable(a)
            yield self._tell_end_rates(report_slow_cable(designed, Cable(designed.a, designed.b, rate)))
        for a, b, _ in self.residual.slow:
            seen = self.resolver.find_observed_cable(a, b)
            yield self._tell_end_rates(report_slow_cable(self.resolver.find_designed_cable(a), seen))

    def _tell_end_rates(self, slow: CablingDiscrepancy) -> CablingDiscrepancy:
        """Say which end reports which rate, if they differ. The slower one counts."""
        rates = {
            end: self._find_reported_rate(end.port_id)
            for pair in slow.cables
            if pair.observed
            for end in pair.observed.ends
        }
        if len(set(rates.values()) | {""}) < 3:
            return slow
        reports = ", ".join(f"{end} reports {rate}" for end, rate in rates.items())
        return replace(
            slow, summary=f"{slow.summary}; {reports}: the link may have been coming up, so scan again first"
        )

    def _find_reported_rate(self, port: PortId) -> str:
        """Return the rate that a port itself reports, "" if the tool does not tell it."""
        here = PortId(self.resolver.guid_at_place.get(port.guid, port.guid), port.number)
        if (facts := self.discovery.facts.get(here)) and facts.rate:
            return facts.rate
        return next((row[3] for row in self.diff.rows.get(here.guid[2:], ()) if row[0] == str(here.number)), "")

    def _is_certain(self, discrepancy: CablingDiscrepancy) -> bool:
        """Return whether a discrepancy holds, whatever else there is that was not discovered.

        Its cables were seen, and not at a device that may stand in the place of an absent one.
        """
        if discrepancy.kind in ABSENCE_KINDS:
            return False
        if discrepancy.kind == "disabled":
            return True
        return all(
            pair.observed
            and (not pair.expected or all(end.guid in self.topology.devices for end in pair.observed.ends))
            for pair in discrepancy.cables
        )


def _choose_one_each(
    candidates: Sequence[tuple[PortPair, Sequence[int]]], count: Mapping[int, int]
) -> dict[PortPair, int]:
    """Choose one cable for each index, those with the fewest cables first: a cable that few others could have."""
    cables: dict[int, list[tuple[int, PortPair]]] = defaultdict(list)
    for pair, indexes in candidates:
        for index in indexes:
            cables[index].append((len(set(indexes)), pair))
    chosen: dict[PortPair, int] = {}
    for index in sorted(cables, key=lambda index: (count[index], index)):
        free = min(((many, pair) for many, pair in cables[index] if pair not in chosen), default=None)
        if free:
            chosen[free[1]] = index
    return chosen


def _is_cable_without_link(walk: AlternatingWalk) -> bool:
    return walk.first_expected and len(walk.ports) == 2


class SwitchLinksFinder:
    """Finds the switches at lost cables: their cables, the nodes below them, and the boxes that they are parts of."""

    def __init__(self, topology: CompiledTopology) -> None:
        self.topology = topology
        self.known: dict[str, SwitchLinks | None] = {}

    def add_switches(self, discrepancy: CablingDiscrepancy) -> CablingDiscrepancy:
        """Return the discrepancy with the switches at its designed cables."""
        cables = (*(pair.expected for pair in discrepancy.cables if pair.expected), *discrepancy.cut_off)
        guids = dict.fromkeys(end.guid for cable in cables for end in cable.ends)
        switches = tuple(switch for guid in guids if (switch := self._find(guid)))
        whole = replace(discrepancy, switches=switches) if switches else discrepancy
        return self._add_counts(whole) if discrepancy.kind in (*LOST_KINDS, "swap") else whole

    def _add_counts(self, discrepancy: CablingDiscrepancy) -> CablingDiscrepancy:
        """Add how many cables there are beside the first one: between its two switches, or at its node."""
        cable = discrepancy.cables[0].expected
        if not cable:
            return discrepancy
        if node := cable.a.node or cable.b.node:
            return replace(discrepancy, node_cables=self._cables_of_node[node])
        beside = self.topology.rows.get(cable.a.guid[2:], ())
        return replace(discrepancy, bundle=sum(row[1] == cable.b.guid[2:] for row in beside))

    @cached_property
    def _cables_of_node(self) -> Mapping[str, int]:
        count = Counter[str]()
        for device in self.topology:
            if device.node:
                count[device.node] += len(self.topology.rows.get(device.guid[2:], ()))
        return count

    def _find(self, guid: str) -> SwitchLinks | None:
        if guid not in self.known:
            device = self.topology.devices.get(guid)
            self.known[guid] = self._measure(device) if device and device.kind != "hca" else None
        return self.known[guid]

    def _measure(self, device: DesignedDevice) -> SwitchLinks:
        gbps = 0
        trunks = 0
        nodes = set[str]()
        rows = self.topology.rows.get(device.guid[2:], ())
        for _, far, _, rate in rows:
            other = self.topology.devices[f"0x{far}"]
            if other.kind != "hca":
                gbps, trunks = gbps + int(rate_to_gbps(rate)), trunks + 1
            elif other.node:
                nodes.add(other.node)
        parts = tuple(self._list_parts(device)) if device.box else ()
        return SwitchLinks(device.guid, device.name, gbps, tuple(sorted(nodes)), trunks, len(rows), parts)

    def _list_parts(self, device: DesignedDevice) -> Iterator[BoxPart]:
        """Yield what a chip is a part of, if that has other chips: its box, its card, its plane in all boxes."""
        box, card = device.box, f"{device.box} {device.module}"
        for key, name in (("box", box), ("card", card if device.module else ""), ("plane", str(device.plane or ""))):
            chips = self._chips_of[key, name] if name else []
            if len(chips) > 1:
                far = [f"0x{row[1]}" for guid in chips for row in self.topology.rows.get(guid[2:], ())]
                own = set(chips)  # a cable between two of them counts once
                yield BoxPart(key, name, len(chips), len(far) - sum(guid in own for guid in far) // 2)

    @cached_property
    def _chips_of(self) -> dict[tuple[str, str], list[str]]:
        chips: dict[tuple[str, str], list[str]] = defaultdict(list)
        for chip in (device for device in self.topology.devices.values() if device.box and device.kind != "hca"):
            chips["box", chip.box].append(chip.guid)
            chips["card", f"{chip.box} {chip.module}"].append(chip.guid)
            chips["plane", str(chip.plane)].append(chip.guid)
        return chips
