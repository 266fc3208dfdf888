"""Judges stored history by two versions of the specs: the faults that each sees, and the nodes that each would close.

Both versions read the same documents, one after the other, with the same code that records faults. What the ledger
recorded of a log is such a document too: the lines may be in no other one any more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime

from assay.decide.faults.detection import FaultObservation, count_sightings, detect_faults
from assay.decide.faults.identity import mark_stranger
from assay.decide.moves.fault_remedies import find_leads
from assay.decide.plan.backtest import StateTimeline, react_to_fault
from assay.decide.plan.inputs import FleetRevision, JudgedOtherwise
from assay.decide.state.node_state import NodeState
from assay.model.evidence import EvidenceDocument
from assay.model.faults.fault_record import NOT_JUDGED, NUMBERED_SOURCES, SEVERITIES, FaultRecord
from assay.model.faults.sightings import find_check_sightings
from assay.model.outcome import RecordedOutcome
from assay.model.reading import value
from assay.model.timestamps import parse_time

FaultKey = tuple[str, str, str]
"""The node, the class and the subject of a fault."""
HealthProof = Callable[[str, str], bool]
"""Whether a node was proven healthy after a time."""


class HistoryReplay:
    """Reads documents and outcomes by two revisions. `node_states` are those of now, `states` those of any time."""

    def __init__(
        self,
        before: FleetRevision,
        after: FleetRevision,
        node_states: Mapping[str, NodeState],
        states: StateTimeline,
    ) -> None:
        self._sides = (before, after)
        self._node_states, self._states = node_states, states
        self._seen: tuple[dict[str, NodeState], dict[str, NodeState]] = ({}, {})

    def read_document(self, document: EvidenceDocument) -> None:
        """Let both revisions detect the faults in a document. It may come again, and after later ones."""
        for side, revision in enumerate(self._sides):
            if known := self._begin(side, document.node, document.at.isoformat()):
                node, fleet = revision.fleet.nodes[known.node], revision.fleet
                own = mark_stranger(fleet, known, document)
                spec = fleet.spec_of(known.node)
                self._add(side, known, detect_faults(revision.catalog, revision.policy, node, spec, known, own))

    def read_outcomes(self, name: str, judged: tuple[Sequence[RecordedOutcome], Sequence[RecordedOutcome]]) -> None:
        """Let each revision detect the faults in what its own suites say of a node, where its state watches them."""
        for side, revision in enumerate(self._sides):
            known = self._begin(side, name, judged[side][-1].measured_at) if judged[side] else None
            if known:
                watched = {*revision.policy.states[known.state].watch}
                counting = [each for each in judged[side] if watched & {*each.outcome.phases}]
                sightings = find_check_sightings(revision.catalog, counting)
                most = revision.policy.intake.node.open_faults
                faults = count_sightings(revision.catalog, revision.fleet.nodes[name], known, sightings, most)
                self._add(side, known, faults)

    def _begin(self, side: int, name: str, at: str) -> NodeState | None:
        """Return a node with the faults that a revision has seen so far, None if it is not of the fleet."""
        revision, then = self._sides[side], self._states.state_at(name, at)
        if name not in self._node_states or then not in revision.policy.states or name not in revision.fleet.nodes:
            return None
        return replace(self._seen[side].get(name) or replace(self._node_states[name], faults=()), state=then)

    def _add(self, side: int, known: NodeState, seen: Sequence[FaultObservation]) -> None:
        faults = {fault.id: fault for fault in known.faults}
        faults |= {each.id: FaultRecord(**{name: getattr(each, name) for name in _FIELDS}) for each in seen}
        self._seen[side][known.node] = replace(known, faults=tuple(faults.values()))

    def compare(self, is_healthy: HealthProof) -> tuple[tuple[JudgedOtherwise, ...], tuple[JudgedOtherwise, ...]]:
        """Return what closes nodes by the new revision only, and the faults that only the old one sees."""
        closing = [dict(self._list_closing(side)) for side in (0, 1)]
        new = {key: fault for key, fault in closing[1].items() if key[0] not in {old[0] for old in closing[0]}}
        lost = {key: fault for key, fault in self._list_faults(0) if self._is_lost(key, fault)}
        return tuple(_group(new, is_healthy)), tuple(_group(lost, is_healthy))

    def _list_faults(self, side: int) -> Iterator[tuple[FaultKey, FaultRecord]]:
        for name, state in self._seen[side].items():
            for fault in state.faults:
                if fault.fault_class != NOT_JUDGED:
                    yield (name, fault.fault_class, fault.subject), fault

    def _list_closing(self, side: int) -> Iterator[tuple[FaultKey, FaultRecord]]:
        """Yield the faults that would have moved their node; of an incident, what decides about it."""
        revision = self._sides[side]
        leads = {name: find_leads(revision.catalog.fault_relations, state) for name, state in self._seen[side].items()}
        for key, fault in self._list_faults(side):
            then = self._states.state_at(key[0], fault.last_seen)
            is_led = fault.id in leads[key[0]]
            if not is_led and react_to_fault(revision, key[0], then, fault.fault_class, fault.severity).moves:
                yield key, fault

    def _is_lost(self, key: FaultKey, fault: FaultRecord) -> bool:
        """Whether the new revision has neither this fault, nor another one of the node, as serious, in its place."""
        old, new = (self._seen[side].get(key[0]) for side in (0, 1))
        known = {(each.fault_class, each.subject) for each in old.faults} if old else set()
        rank = SEVERITIES.index(fault.severity)
        return not any(
            (each.fault_class, each.subject) == key[1:]
            or ((each.fault_class, each.subject) not in known and SEVERITIES.index(each.severity) <= rank)
            for each in (new.faults if new else ())
            if each.fault_class != NOT_JUDGED
        )


_FIELDS = [each.name for each in fields(FaultObservation) if each.name != "node"]


def make_recorded_documents(node_state: NodeState, since: datetime) -> Iterator[EvidenceDocument]:
    """Yield a document for each boot with the lines by which recorded faults were told since a time."""
    lines: dict[str, list[dict[str, object]]] = defaultdict(list)
    for fault in node_state.faults:
        source = next((name for name in NUMBERED_SOURCES if name in fault.marks), "")
        if not source or parse_time(fault.last_seen) < since:
            continue
        boot, _, last = fault.marks[source].rpartition(":")
        times = fault.times or (fault.last_seen,)
        for back, at in enumerate(reversed(times)):
            line = {"seq": max(0, int(last) - back), "t_s": 0.0, "text": fault.detail, "at": at, "source": source}
            lines[boot].append(line | ({"level": 0} if fault.fault_class == NOT_JUDGED else {}))
    for boot, some in lines.items():
        last_at = max(parse_time(str(line["at"])) for line in some)
        log = {"host": {"boot_id": value(boot)}, "kernel_log": {"lines": value(some)}}
        yield EvidenceDocument(node_state.node, last_at, {"probe": log})


def _group(faults: Mapping[FaultKey, FaultRecord], is_healthy: HealthProof) -> Iterator[JudgedOtherwise]:
    """Yield the nodes of each class, most nodes first."""
    by_class: dict[str, dict[str, FaultRecord]] = defaultdict(dict)
    for (node, name, _), fault in faults.items():
        latest = by_class[name].setdefault(node, fault)
        by_class[name][node] = max(latest, fault, key=lambda each: each.last_seen)
    for name, nodes in sorted(by_class.items(), key=lambda item: (-len(item[1]), item[0])):
        healthy = tuple(sorted(node for node, fault in nodes.items() if is_healthy(node, fault.last_seen)))
        yield JudgedOtherwise(name, tuple(sorted(nodes)), healthy, next(iter(nodes.values())).detail)
