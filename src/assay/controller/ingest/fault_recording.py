"""Turns evidence and outcomes into faults in the ledger, and clears faults that newer evidence proves gone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from assay.controller.cache.ledger_cache import read_latest_outcomes, read_node_states
from assay.controller.context import ControllerContext
from assay.ledger.interned_texts import split_batches
from assay.lifecycle import ledger_entries
from assay.lifecycle.decisions.known_issues import drop_excused_outcomes, select_proving_outcomes
from assay.lifecycle.faults.detection import count_sightings, detect_faults, find_clearances
from assay.lifecycle.faults.recovery import find_measured_recoveries, find_quiet_recoveries
from assay.lifecycle.faults.sightings import find_check_sightings
from assay.lifecycle.node_state import NodeState
from assay.model.clock import MAX_CLOCK_SKEW
from assay.model.evidence import EvidenceDocument
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import RecordedOutcome
from assay.model.timestamps import parse_time

NODES_PER_TRANSACTION = 200


def record_faults(context: ControllerContext, evidence: Mapping[str, EvidenceDocument]) -> None:
    """Append the faults that newly collected evidence shows, and the ends of those that it proves gone.

    `evidence` is by node. The same evidence again appends nothing. Works on a batch of nodes at a time, so that
    neither outcomes nor the fault lock are held for long.
    """
    latest_at = context.clock.now() + MAX_CLOCK_SKEW
    for name, document in evidence.items():
        if document.at > latest_at:
            context.progress(f"{name}: its evidence is of {document.at:%Y-%m-%d %H:%M:%S} UTC, in the future: left out")
    current = [name for name, document in evidence.items() if document.at <= latest_at]
    for names in split_batches(current, NODES_PER_TRANSACTION):
        latest = read_latest_outcomes(context.ledger, names)
        with context.hold_fault_lock():
            states = read_node_states(context.ledger)
            context.ledger.append(
                *(
                    entry
                    for name in names
                    if name in states
                    for entry in make_fault_entries(context, states[name], evidence[name], latest[name])
                )
            )


def record_outcome_faults(context: ControllerContext, outcomes: Sequence[RecordedOutcome]) -> None:
    """Append the faults in the outcomes of a scheduled run over nodes in service, and the ends that they prove.

    A node that has left service meanwhile is judged by what its state requires.
    """
    names = list(dict.fromkeys(one.outcome.node for one in outcomes))
    latest = read_latest_outcomes(context.ledger, names)
    with context.hold_fault_lock():
        states = read_node_states(context.ledger)
        for name in names:
            if name in states and context.policy.states[states[name].state].in_service:
                judged = [one for one in outcomes if one.outcome.node == name]
                context.ledger.append(
                    *make_fault_entries(context, states[name], latest=latest[name], scheduled=judged),
                )


def record_agent_faults(context: ControllerContext, documents: Sequence[EvidenceDocument]) -> list[LedgerEntry]:
    """Append the faults in what agents or alerts deliver, and return their entries. The same again appends nothing.

    Takes any number of nodes in one transaction; the documents of one node go in one after the other. Raises
    AssayError when the ledger cannot be written: then nothing of that transaction is recorded.
    """
    added: list[LedgerEntry] = []
    for group in _split_by_node(documents):
        with context.hold_fault_lock():
            states = read_node_states(context.ledger)
            entries = [
                entry
                for document in group
                if document.node in states
                for entry in make_fault_entries(context, states[document.node], document)
            ]
            context.ledger.append(*entries)
        added += entries
    return added


def _split_by_node(documents: Sequence[EvidenceDocument]) -> Iterator[list[EvidenceDocument]]:
    """Yield the documents in groups, in order, each with at most one of a node."""
    groups: dict[int, list[EvidenceDocument]] = defaultdict(list)
    counts: dict[str, int] = defaultdict(int)
    for document in documents:
        groups[counts[document.node]].append(document)
        counts[document.node] += 1
    yield from groups.values()


def make_fault_entries(
    context: ControllerContext,
    node_state: NodeState,
    evidence: EvidenceDocument | None = None,
    latest: Sequence[RecordedOutcome] = (),
    scheduled: Sequence[RecordedOutcome] | None = None,
) -> list[LedgerEntry]:
    """Return the faults that evidence and outcomes add to a node, and the ends of those that passed.

    `latest` are the node's newest outcomes; they count in states that watch their phase. The outcomes of a
    `scheduled` run count in any state instead. What a known issue excuses, and what checks find that only observe, is
    no fault; evidence dated in the future is left out. Call it inside the fault lock, with the newest `node_state`.
    """
    fleet, now = context.fleet, context.clock.now()
    node, catalog = fleet.nodes[node_state.node], fleet.fault_catalog

    def select_counting(outcomes: Sequence[RecordedOutcome]) -> list[RecordedOutcome]:
        return drop_excused_outcomes(outcomes, node, fleet.known_issues, fleet.observed_checks, now)

    latest = [one for one in latest if parse_time(one.measured_at) <= now + MAX_CLOCK_SKEW]
    if scheduled is None:
        spec = fleet.spec_of(node.name)
        counting = select_counting(latest)
        faults = detect_faults(catalog, context.policy, node, spec, node_state, evidence, counting)
    else:
        current = [one for one in scheduled if parse_time(one.measured_at) <= now + MAX_CLOCK_SKEW]
        faults = count_sightings(catalog, node, node_state, find_check_sightings(catalog, select_counting(current)))
    proofs = select_proving_outcomes(latest, fleet.observed_checks)
    ended = [*find_clearances(node_state, proofs), *find_measured_recoveries(catalog, node_state, proofs)]
    if evidence is not None:
        ended += find_quiet_recoveries(catalog, node_state, evidence)
    seen_again = {fault.id for fault in faults}
    return [ledger_entries.make_fault_entry(fault, now) for fault in faults] + [
        ledger_entries.make_cleared_entry(node.name, end, now) for end in ended if end.fault not in seen_again
    ]
