"""Records what a search with collectives names: faults of nodes and adapters, and the ends of those that proved good.

What could not be told, and what was bad once, becomes no fault and ends none. A named link belongs to no node: see
`act/tickets/collective_link_tickets.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from assay.act.loop.context import ControllerContext
from assay.act.loop.projections import read_node_states
from assay.decide.faults.detection import count_sightings
from assay.decide.faults.recovery import FaultClearance
from assay.decide.state.decision_and_fault_entries import make_cleared_entry, make_fault_entry
from assay.decide.state.node_state import NodeState
from assay.model.faults.sightings import FaultSighting
from assay.model.outcome import read_part
from assay.model.text.lists import format_list
from assay.model.timestamps import format_time
from assay.validate.collectives.fabric_map import FabricPart, find_node
from assay.validate.collectives.judging import PairObservation
from assay.validate.collectives.report import CollectivesReport, NamedPart

SEARCH_SOURCE = "collectives"
ADAPTER_CLASS = "collective.adapter"
NODE_CLASSES: Mapping[str, str] = {
    "wrong": "collective.node.wrong",
    "hung": "collective.node.stuck",
    "died": "collective.node.stuck",
    "slow": "collective.node.slow",
}
"""The fault class of a node by the worst that it did; the worst stands first in the words of its symptom."""
MIN_GOOD = 2
"""So many good pairs end a fault."""
SHOWN_PAIRS = 4


def record_named_parts(
    context: ControllerContext,
    report: CollectivesReport,
    observations: Sequence[PairObservation],
    adapters: Mapping[FabricPart, str],
    results: str,
) -> int:
    """Append the faults of named nodes and adapters, and the ends of faults that the pairs disprove. Return how many.

    `adapters` are the names of adapters as their nodes' specs have them; `results` is the file with all results.
    """
    proven = find_proven_parts(report, observations)
    with context.hold_fault_lock():
        states, now = read_node_states(context.ledger), context.clock.now()
        most, catalog = context.policy.intake.node.open_faults, context.fleet.fault_catalog
        sightings: dict[str, list[FaultSighting]] = {}
        for named in report.named:
            name = find_node(named.part)
            if named.part.kind in ("node", "adapter") and name in states and name in context.fleet.nodes:
                sighting = _make_sighting(named, adapters.get(named.part, ""), format_time(now), results)
                sightings.setdefault(name, []).append(sighting)
        faults = [
            fault
            for name, own in sightings.items()
            for fault in count_sightings(catalog, context.fleet.nodes[name], states[name], own, most)
        ]
        ends = list(_find_ends(states, proven, adapters, report))
        context.ledger.append(
            *(make_fault_entry(fault, now) for fault in faults),
            *(make_cleared_entry(name, end, now) for name, end in ends),
        )
    return len(faults)


def find_proven_parts(report: CollectivesReport, observations: Sequence[PairObservation]) -> dict[FabricPart, int]:
    """Return the parts that the search proves good, with the number of their good pairs: none was bad, none is open."""
    good: dict[FabricPart, int] = {}
    doubtful = {part for pair in observations if pair.is_bad for part in pair.parts}
    doubtful |= {named.part for named in report.named}
    doubtful |= {part for case in report.undecided for part in case.suspects}
    if report.stages.gate:
        doubtful |= {FabricPart("node", name) for name in report.stages.gate.once}
    for pair in observations:
        for part in pair.parts if pair.verdict == "good" else ():
            good[part] = good.get(part, 0) + 1
    return {part: count for part, count in good.items() if count >= MIN_GOOD and part not in doubtful}


def _make_sighting(named: NamedPart, adapter: str, at: str, results: str) -> FaultSighting:
    is_adapter = named.part.kind == "adapter"
    fault_class = ADAPTER_CLASS if is_adapter else NODE_CLASSES[named.symptom.replace(",", " ").split()[0]]
    part = (adapter or named.part.name.partition(" ")[2]) if is_adapter else ""
    runs = format_list([f"{run.round} {run.label}: {run.why}" for run in named.evidence], SHOWN_PAIRS)
    detail = f"{named.symptom}; bad in {len(named.evidence)} of {named.tests} runs ({runs}); {results}"
    return FaultSighting(fault_class, part, at, detail, SEARCH_SOURCE, at)


def _find_ends(
    states: Mapping[str, NodeState],
    proven: Mapping[FabricPart, int],
    adapters: Mapping[FabricPart, str],
    report: CollectivesReport,
) -> Iterator[tuple[str, FaultClearance]]:
    """Yield the ends of open faults whose part was good in this search. A fault that moved its node stays."""
    names = {(find_node(part), adapters.get(part, "") or part.name.partition(" ")[2]): part for part in proven}
    named: Collection[str] = {find_node(culprit.part) for culprit in report.named}
    for (node, adapter), part in names.items():
        for fault in states[node].faults if node in states and node not in named else ():
            is_ours = fault.is_open and fault.response != "acted" and set(fault.marks) == {SEARCH_SOURCE}
            if is_ours and read_part(fault.subject) == (adapter if part.kind == "adapter" else ""):
                reason = f"a search with collectives saw {part.name} good in {proven[part]} runs, and never bad"
                yield node, FaultClearance.of(fault, reason)
