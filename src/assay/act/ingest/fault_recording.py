"""Turns evidence and outcomes into faults in the ledger, and clears faults that newer evidence proves gone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from assay.act.loop.context import ControllerContext
from assay.act.loop.projections import read_latest_outcomes, read_node_states
from assay.decide.faults.detection import count_sightings, make_flood_sighting
from assay.decide.state.asset_history import ASSET_ENTRY_KINDS, GPU, project_node_assets
from assay.decide.state.decision_and_fault_entries import make_fault_entries, make_fault_entry
from assay.ledger.newest.interned_texts import split_batches
from assay.model.clock import MAX_CLOCK_SKEW
from assay.model.evidence import EvidenceDocument
from assay.model.faults.bmc_events import lacks_host_serials
from assay.model.faults.sightings import FaultSighting
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import RecordedOutcome
from assay.model.timestamps import format_time

NODES_PER_TRANSACTION = 50


def record_faults(context: ControllerContext, evidence: Mapping[str, EvidenceDocument]) -> None:
    """Append the faults that newly collected evidence shows, and the ends of those that it proves gone.

    `evidence` is by node. The same evidence again appends nothing. Works on a batch of nodes at a time, so that
    neither documents nor outcomes nor the fault lock are held for long.
    """
    for names in split_batches(evidence, NODES_PER_TRANSACTION):
        documents = _leave_out_future(context, [evidence[name] for name in names])
        latest = read_latest_outcomes(context.ledger, [document.node for document in documents])
        gpus = _read_last_gpus(context, documents)
        with context.hold_fault_lock():
            states, now = read_node_states(context.ledger), context.clock.now()
            context.ledger.append(
                *(
                    entry
                    for document in documents
                    if (name := document.node) in states
                    for entry in make_fault_entries(
                        context.fleet,
                        states[name],
                        now,
                        document,
                        latest[name],
                        last_gpus=gpus.get(name),
                        read_outcomes=partial(context.ledger.outcomes, None, name),
                    )
                )
            )


def _read_last_gpus(context: ControllerContext, documents: Iterable[EvidenceDocument]) -> dict[str, dict[str, str]]:
    """Return, of each node whose BMC tells more serial numbers than its host, in which GPU each was seen last."""
    nodes = [document.node for document in documents if lacks_host_serials(document)]
    known = context.ledger.entries_by_node(nodes, ASSET_ENTRY_KINDS) if nodes else {}
    return {
        node: {part.serial: place for place, part in project_node_assets(entries).parts.items() if part.kind == GPU}
        for node, entries in known.items()
    }


def _leave_out_future(context: ControllerContext, documents: Iterable[EvidenceDocument]) -> list[EvidenceDocument]:
    """Return the documents that are not of the future; name the others in the progress."""
    latest_at = context.clock.now() + MAX_CLOCK_SKEW
    current: list[EvidenceDocument] = []
    for document in documents:
        if document.at <= latest_at:
            current.append(document)
            continue
        when = f"{document.at:%Y-%m-%d %H:%M:%S} UTC"
        context.progress(f"{document.node}: its evidence is of {when}, in the future: left out")
    return current


def record_outcome_faults(context: ControllerContext, outcomes: Sequence[RecordedOutcome]) -> None:
    """Append the faults in the outcomes of a scheduled run over nodes in service, and the ends that they prove.

    A node that has left service meanwhile is judged by what its state requires.
    """
    names = list(dict.fromkeys(recorded.outcome.node for recorded in outcomes))
    latest = read_latest_outcomes(context.ledger, names)
    with context.hold_fault_lock():
        states, now = read_node_states(context.ledger), context.clock.now()
        for name in names:
            if name in states and context.policy.states[states[name].state].in_service:
                judged = [recorded for recorded in outcomes if recorded.outcome.node == name]
                own = partial(context.ledger.outcomes, None, name)
                context.ledger.append(
                    *make_fault_entries(
                        context.fleet, states[name], now, latest=latest[name], scheduled=judged, read_outcomes=own
                    )
                )


def record_agent_faults(context: ControllerContext, documents: Sequence[EvidenceDocument]) -> list[LedgerEntry]:
    """Append the faults in what agents or alerts deliver, and return their entries. The same again appends nothing.

    Takes any number of nodes in one transaction; the documents of one node go in one after the other. Raises
    AssayError when the ledger cannot be written: then nothing of that transaction is recorded.
    """
    added: list[LedgerEntry] = []
    for group in _split_by_node(documents):
        with context.hold_fault_lock():
            states, now = read_node_states(context.ledger), context.clock.now()
            entries = [
                entry
                for document in group
                if document.node in states
                for entry in make_fault_entries(context.fleet, states[document.node], now, document)
            ]
            context.ledger.append(*entries)
        added += entries
    return added


def record_flood(context: ControllerContext, node: str, reason: str) -> None:
    """Append the fault that a node delivers more than it may."""
    with context.hold_fault_lock():
        sighting = make_flood_sighting(reason, format_time(context.clock.now()))
        context.ledger.append(*make_sighting_entries(context, node, sighting))


def make_sighting_entries(context: ControllerContext, node: str, sighting: FaultSighting) -> list[LedgerEntry]:
    """Return the entries of a fault that assay itself saw; none for an unknown node. Hold the fault lock."""
    states, now = read_node_states(context.ledger), context.clock.now()
    if node not in states:
        return []
    catalog, most = context.fleet.fault_catalog, context.policy.intake.node.open_faults
    faults = count_sightings(catalog, context.fleet.nodes[node], states[node], [sighting], most)
    return [make_fault_entry(fault, now) for fault in faults]


def _split_by_node(documents: Sequence[EvidenceDocument]) -> Iterator[list[EvidenceDocument]]:
    """Yield the documents in groups, in order, each with at most one of a node."""
    groups: dict[int, list[EvidenceDocument]] = defaultdict(list)
    counts: dict[str, int] = defaultdict(int)
    for document in documents:
        groups[counts[document.node]].append(document)
        counts[document.node] += 1
    yield from groups.values()
