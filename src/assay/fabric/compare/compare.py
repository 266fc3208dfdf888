"""Compares the discovered cabling with the designed cabling. `compare_cabling` is where a comparison starts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from assay.fabric.compare.device_names import find_wrong_names
from assay.fabric.compare.discrepancy import IN_PLACE_KINDS, CablingDiscrepancy
from assay.fabric.compare.port_diff import PortDiff, diff_ports
from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.discovery import FabricDiscovery
from assay.fabric.fabric_answers import CablePairAnswer, CablingFault, DiscrepancyAnswer, FabricComparisonAnswer
from assay.model.facts import extend
from assay.model.specs.fabric.cable import Cable, PortId

FabricVerdict = Literal["match", "mismatch", "partial"]


@dataclass(frozen=True)
class FabricComparison:
    """How a discovery differs from a design. `expected`, `found` and `matching` count cables.

    A cable is matching if it is in its place, and not below the designed rate as far as the rate was read. With
    `problems`, which name what the discovery lacks, the verdict is `partial`. Then `unknown` has the designed cables of
    which nothing can be told, `unrated` the ports whose rate was not read, and everything else is judged as ever: the
    `discrepancies` hold whatever else was not discovered. `notes` name foreign lines in the discovery, and nodes with
    another node's name. They change no verdict.
    """

    design: str
    verdict: FabricVerdict
    expected: int
    found: int
    matching: int
    discrepancies: tuple[CablingDiscrepancy, ...] = ()
    problems: tuple[str, ...] = ()
    unknown: Sequence[Cable] = ()
    unrated: frozenset[PortId] = frozenset()
    notes: tuple[str, ...] = ()

    @cached_property
    def unknown_ports(self) -> frozenset[PortId]:
        """The ports of the designed cables of which nothing can be told."""
        return frozenset(end.port_id for cable in self.unknown for end in cable.ends)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What could not be told, and what was foreign in the discovery, a line each."""
        problems = (f"could not tell: {problem}" for problem in self.problems)
        return (*problems, *(f"note: {note}" for note in self.notes))

    @property
    def summary(self) -> str:
        """The comparison in one line."""
        counts = f"{self.matching} of {self.expected} cables as designed, {self.found} found"
        by_kind = Counter(discrepancy.kind for discrepancy in self.discrepancies)
        kinds = "".join(f", {count} {kind}" for kind, count in by_kind.items())
        unknown = f", {len(self.unknown)} unknown" if self.unknown else ""
        return f"fabric {self.design}: {self.verdict} ({counts}{kinds}{unknown})"

    def list_faults(self) -> list[CablingFault]:
        """Return what has one cause together, the most costly first. `members` are indexes of `discrepancies`."""
        from assay.fabric.compare.common_causes import group_by_common_cause
        from assay.fabric.compare.repair import measure_cost

        index = {id(discrepancy): number for number, discrepancy in enumerate(self.discrepancies)}
        repairs = group_by_common_cause(self.discrepancies)
        costs = [measure_cost(repair.members) for repair in repairs]
        return [
            CablingFault(
                title=repair.title or repair.first.summary,
                severity=cost.severity,
                gbps=int(cost.gbps),
                nodes=list(cost.nodes),
                members=[index[id(member)] for member in repair.members],
            )
            for repair, cost in zip(repairs, costs, strict=True)
        ]

    def make_answer(self) -> FabricComparisonAnswer:
        """Return all that a comparison says."""
        return extend(
            FabricComparisonAnswer,
            self,
            discrepancies=[describe_discrepancy(discrepancy) for discrepancy in self.discrepancies],
            faults=self.list_faults(),
            unknown=[cable.ends for cable in self.unknown],
        )


def describe_discrepancy(discrepancy: CablingDiscrepancy) -> DiscrepancyAnswer:
    """Return what is told of a discrepancy."""
    return extend(
        DiscrepancyAnswer,
        discrepancy,
        cables=[
            CablePairAnswer(*(cable.ends if cable else None for cable in (pair.expected, pair.observed)))
            for pair in discrepancy.cables
        ],
        likelier=discrepancy.corrections[0] if discrepancy.likelier_reason else "",
        because=discrepancy.likelier_reason,
        module=discrepancy.module if discrepancy.box else "",
        plane=discrepancy.plane if discrepancy.box else 0,
        costs=discrepancy.capacity_loss,
        beside=discrepancy.links_sharing_transceiver,
        cut_off=tuple(cable.ends for cable in discrepancy.cut_off),
    )


def compare_cabling(topology: CompiledTopology, discovery: FabricDiscovery) -> FabricComparison:
    """Compare a compiled design with a discovery. If nothing differs, `DiffExplanation` is not even imported."""
    if discovery.port_guids:
        from assay.fabric.compare.device_names import resolve_designed_adapters

        discovery = resolve_designed_adapters(topology, discovery)
    elif discovery.names_devices:
        from assay.fabric.compare.named_devices import resolve_named_devices

        discovery = resolve_named_devices(topology, discovery)
    diff = diff_ports(topology, discovery)
    problems: list[str] = list(diff.problems)
    discrepancies: tuple[CablingDiscrepancy, ...] = ()
    unknown: Sequence[Cable] = ()
    if diff.has_differences:
        try:
            discrepancies, unknown = _explain(topology, discovery, diff, problems)
        except Exception as error:  # a defect of ours must not hide the fabric
            problems.append(f"assay could not explain what differs ({type(error).__name__}: {error}): please report it")
            unknown = topology.list_cables_at(diff.expected)
    exchanged, borrowed = find_wrong_names(topology, discovery)
    if exchanged:
        from assay.fabric.compare.device_discrepancies import report_exchanged_names

        discrepancies += tuple(report_exchanged_names(exchanged, topology, diff, discrepancies))
    misplaced = (
        {node for discrepancy in discrepancies if discrepancy.kind in IN_PLACE_KINDS for node in discrepancy.nodes}
        if borrowed
        else set()
    )
    names = (f"{node} announces the name {other}" for node, other in borrowed.items() if node not in misplaced)
    verdict: FabricVerdict = "partial" if problems else "mismatch" if discrepancies else "match"
    size = len(topology.cables)
    matching = size - len(diff.expected) // 2 - len(diff.slow)
    return FabricComparison(
        topology.name,
        verdict,
        size,
        diff.cable_count,
        matching,
        discrepancies,
        tuple(problems),
        unknown,
        diff.unrated,
        (*discovery.notes, *names),
    )


def _explain(
    topology: CompiledTopology, discovery: FabricDiscovery, diff: PortDiff, problems: list[str]
) -> tuple[tuple[CablingDiscrepancy, ...], Sequence[Cable]]:
    from assay.fabric.compare.diff_explanation import DiffExplanation

    explanation = DiffExplanation(topology, discovery, diff)
    discrepancies = tuple(
        discrepancy
        for discrepancy in explanation.discrepancies
        if discrepancy.kind != "unexpected"
        or not all(  # a design need not have the links between the planes of a box
            topology.joins_planes(pair.observed.a.guid, pair.observed.b.guid)
            for pair in discrepancy.cables
            if pair.observed
        )
    )
    problems += explanation.problems
    return discrepancies, explanation.list_unknown_cables(discrepancies) if problems else ()
