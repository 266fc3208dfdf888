"""Stays and failures of parts from the ledger, and when nodes left service and came back."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime

from assay.ledger.interned_texts import split_batches
from assay.ledger.store import Ledger
from assay.lifecycle.assets.part_holders import PartHolder
from assay.lifecycle.burn_in_record import BURN_IN_KINDS
from assay.lifecycle.node_state import NodeState
from assay.lifecycle.node_state_projection import project_node_states
from assay.lifecycle.service_absences import ServiceAbsence, list_absences
from assay.model.entries.burn_in_entries import BurnInEndedEntry
from assay.model.entries.operator_entries import CertifiedEntry
from assay.model.load.burn_in_spec import BurnIn
from assay.model.outcome import read_part
from assay.model.timestamps import NEVER, parse_time
from assay.trends.parts.acceptance_readings import Acceptance, list_acceptances
from assay.trends.parts.part_stays import FailedPart, PartStay, days_of
from assay.trends.parts.service_failures import ABSENCE_KINDS, find_cause
from assay.trends.parts.service_returns import ServiceReturn
from assay.trends.peers.fleet_holders import NODES_AT_ONCE
from assay.trends.peers.fleet_tables import PartFailure

RETURN_KINDS = (*ABSENCE_KINDS, CertifiedEntry.kind)


def make_stays(holders: Iterable[PartHolder]) -> Iterator[PartStay]:
    """Yield the ledger's holders of parts as stays."""
    for one in holders:
        since = days_of(parse_time(one.since))
        until = days_of(parse_time(one.until)) if one.until else math.inf
        traits = (one.kind, one.serial, one.sku, one.batch, one.rack, one.position)
        yield PartStay(one.node, one.place, *traits, since, until)


def make_failures(failures: Iterable[PartFailure]) -> list[FailedPart]:
    """Return the ledger's failures of parts."""
    return [FailedPart(days_of(one.at), one.node, one.place, one.fault) for one in failures]


def read_return_states(ledger: Ledger, as_of: datetime) -> list[NodeState]:
    """Return the states of all nodes at a moment, as far as leaving service and coming back goes."""
    entries = (entry for entry in ledger.entries(kinds=RETURN_KINDS) if parse_time(entry.at) <= as_of)
    return list(project_node_states(entries).values())


def read_acceptances(
    ledger: Ledger, specs: Mapping[str, BurnIn], as_of: datetime, since: datetime = NEVER
) -> Iterator[Acceptance]:
    """Yield what parts read in the burn-ins of the nodes where one ended between two moments.

    `specs`: the burn-ins that the fleet declares.
    """
    ended = ledger.entries(kinds=[BurnInEndedEntry.kind])
    nodes = sorted({entry.node for entry in ended if since <= parse_time(entry.at) <= as_of})
    for names in split_batches(nodes, NODES_AT_ONCE):
        for node, entries in ledger.entries_by_node(names, BURN_IN_KINDS).items():
            yield from list_acceptances(node, [one for one in entries if parse_time(one.at) <= as_of], specs)


def list_returns(states: Iterable[NodeState], in_service: Collection[str]) -> list[ServiceReturn]:
    """Return when nodes came back into a state of `in_service` after a fault of hardware, or certified by a person.

    A node that left for new firmware or settings comes back without a probation.
    """
    found = []
    for state in states:
        for absence, place, repair in _list_repairs(state, in_service):
            if absence.ended_at is not None:
                found.append(ServiceReturn(days_of(absence.ended_at), state.node, place, repair))
    return sorted(found)


def list_outages(states: Iterable[NodeState], in_service: Collection[str]) -> list[FailedPart]:
    """Return when nodes left service because of a fault of hardware."""
    return sorted(
        FailedPart(days_of(absence.began_at), state.node, place, repair)
        for state in states
        for absence, place, repair in _list_repairs(state, in_service)
        if repair != CertifiedEntry.kind
    )


def _list_repairs(state: NodeState, in_service: Collection[str]) -> Iterator[tuple[ServiceAbsence, str, str]]:
    """Yield the absences for a repair, each with the place and class of its fault."""
    back = parse_time(state.enrolled_at)
    for absence in list_absences(state, in_service):
        if fault := find_cause(state, absence, back):
            yield absence, read_part(fault.subject), fault.fault_class
        elif _was_certified(state, absence):
            yield absence, "", CertifiedEntry.kind
        back = absence.ended_at or back


def _was_certified(state: NodeState, absence: ServiceAbsence) -> bool:
    times = (parse_time(one.at) for one in state.repairs if one.kind == CertifiedEntry.kind)
    return any(absence.began_at <= at and (absence.ended_at is None or at <= absence.ended_at) for at in times)
