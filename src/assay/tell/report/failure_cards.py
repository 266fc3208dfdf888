"""What fails and what cannot be judged, one card for each cause: by incident, as pages and tickets tell it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from assay.decide.faults.incidents import Symptom, group_symptoms, make_symptom
from assay.decide.moves.circuit_breaker import describe_shared_traits
from assay.decide.state.fleet_snapshot import NodeTraits
from assay.decide.state.node_state import NodeState
from assay.model.facts import frozen
from assay.model.faults.fault_record import FaultRecord
from assay.model.fleet import Fleet
from assay.model.page import format_quantity
from assay.model.specs.fault_catalog import FaultCatalog
from assay.model.specs.fault_relations import UNRELATED
from assay.model.timestamps import format_time
from assay.tell.report.latest_outcomes import FAILING, HolderStatus
from assay.tell.report.status_changes import StatusChange
from assay.tell.views.incident_groups import IncidentMember, group_incidents

LINES_SHOWN = 3
SHARING = 3
"""Of so many nodes, what they share is told: of two it is mostly chance."""


@frozen
class FailureCard:
    """One cause: what happened, on how many nodes and where, what was read of it (`more` lines are left out).

    `shared`: what of several nodes only these have, such as a leaf, a batch or a firmware; "" if nothing is known.
    """

    title: str
    reach: str
    lines: tuple[str, ...]
    more: int
    holders: tuple[str, ...]
    shared: str = ""


def find_incidents(
    catalog: FaultCatalog | None,
    holder: HolderStatus,
    state: NodeState | None = None,
    left_out: Collection[tuple[str, str]] = (),
) -> list[IncidentMember]:
    """Return the incidents of a holder: its failures but for those `left_out`, and the open faults that logs told."""
    at = format_time(datetime.fromtimestamp(holder.measured, UTC))
    symptoms = [
        Symptom(
            id=name_outcome(outcome.check, outcome.subject),
            fault_class=outcome.fault or shorten_check(outcome.check),
            subject=outcome.subject,
            severity=catalog.find_treatment(outcome.fault).severity if catalog and outcome.fault else "informational",
            blame="hardware",
            detail=outcome.reason,
            first_seen=at,
            last_seen=at,
            ended_at="",
            recorded_at=at,
        )
        for outcome in holder.abnormal
        if outcome.status == FAILING and (outcome.check, outcome.subject) not in left_out
    ]
    symptoms += map(make_symptom, list_faults_of_logs(state))
    relations = catalog.fault_relations if catalog else UNRELATED
    groups = group_symptoms(relations, symptoms)
    parts = {cause.fault_class: cause.named_part for cause, *_ in groups if cause.named_part}
    by_cause: dict[tuple[str, str], list[Symptom]] = defaultdict(list)
    for group in groups:  # several checks of a class judge one part, or the node for it
        by_cause[group[0].fault_class, group[0].named_part or parts.get(group[0].fault_class, "")] += group
    return [IncidentMember(holder.name, tuple(group)) for group in by_cause.values()]


def list_faults_of_logs(state: NodeState | None) -> list[FaultRecord]:
    """Return the open faults of a node, by its logs, that are more than information."""
    faults = [fault for fault in (state.faults if state else ()) if fault.is_open and {*fault.marks} - {"check"}]
    return [fault for fault in faults if fault.severity != "informational"]


def make_incident_cards(
    fleet: Fleet, incidents: Iterable[IncidentMember], traits: Mapping[str, NodeTraits]
) -> Iterator[FailureCard]:
    """Yield a card for each kind of incident, the widest first."""
    for group in group_incidents(fleet.sound_fault_catalog, incidents):
        symptoms = (symptom for member in group.members for symptom in member.symptoms)
        card = _make_card(fleet, group.title, map(_describe_symptom, symptoms), group.holders)
        nodes = [name for name in group.holders if name in traits]
        yield replace(card, shared=describe_shared_traits(traits, nodes)) if len(nodes) >= SHARING else card


def make_unknown_cards(fleet: Fleet, changes: Iterable[StatusChange]) -> list[FailureCard]:
    """Return a card for each reason why something cannot be judged, whatever names and numbers it has; widest first."""
    by_cause: dict[Hashable, list[StatusChange]] = defaultdict(list)
    for change in changes:
        by_cause[change.cause].append(change)
    cards = [
        _make_card(
            fleet,
            alike[0].reason,
            [f"{format_quantity(len({change.check for change in alike}), 'check')} cannot be judged"],
            tuple(dict.fromkeys(change.holder for change in alike)),
        )
        for alike in by_cause.values()
    ]
    return sorted(cards, key=lambda card: (-len(card.holders), card.title))


def name_outcome(check: str, subject: str) -> str:
    """Return the name of an outcome: that of its check on its subject."""
    return f"{check}[{subject}]"


def shorten_check(check: str) -> str:
    """Return the name of a check's function without `test_`."""
    return check.rpartition("::")[2].removeprefix("test_")


def _describe_symptom(symptom: Symptom) -> str:
    check = shorten_check(symptom.id.partition("[")[0]) if "::" in symptom.id else symptom.fault_class
    return f"{check}: {symptom.detail}"


def _make_card(fleet: Fleet, title: str, lines: Iterable[str], holders: tuple[str, ...]) -> FailureCard:
    distinct = list(dict.fromkeys(lines))
    more = max(0, len(distinct) - LINES_SHOWN)
    return FailureCard(title, _describe_reach(fleet, holders), tuple(distinct[:LINES_SHOWN]), more, holders)


def _describe_reach(fleet: Fleet, holders: Collection[str]) -> str:
    """Return how many nodes it is, of how many, and where."""
    nodes = [fleet.nodes[name] for name in holders if name in fleet.nodes]
    if not nodes:
        return format_quantity(len(holders), "place")
    racks, pools = {(node.site, node.rack) for node in nodes}, {node.pool for node in nodes}
    around = [node for node in fleet.nodes.values() if node.pool in pools]
    if len(racks) > 1:
        return f"{len(nodes)} of {format_quantity(len(around), 'node')}, in {len(racks)} racks"
    size = sum((node.site, node.rack) in racks for node in around)
    return f"{len(nodes)} of {format_quantity(size, 'node')} of rack {nodes[0].rack}"
