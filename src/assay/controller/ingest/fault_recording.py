"""Turns what was seen and judged into faults in the ledger, and ends those that a newer pass has proved gone.

Turns what agents deliver into faults in the ledger at once, in the way in which a pass does it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from assay.controller.cache.fleet_state import FleetStateCache
from assay.controller.cache.ledger_cache import read_latest_outcomes
from assay.controller.context import ControllerContext
from assay.controller.controller_locks import hold_fault_lock
from assay.ledger.interned_texts import split_batches
from assay.lifecycle import ledger_entries
from assay.lifecycle.decisions.known_issues import drop_excused_outcomes, select_proving_outcomes
from assay.lifecycle.faults.detection import detect_faults, find_clearances
from assay.lifecycle.faults.recovery import find_measured_recoveries, find_quiet_recoveries
from assay.lifecycle.node_state import NodeState
from assay.lifecycle.node_state_projection import NodeStateProjection
from assay.model.clock import MAX_CLOCK_SKEW
from assay.model.evidence import EvidenceDocument
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import RecordedOutcome
from assay.model.specs.fault_catalog import FaultCatalog
from assay.model.timestamps import parse_time

NODES_PER_TRANSACTION = 200
"""Nodes whose faults are told in one transaction."""


def record_faults(memory: FleetStateCache, seen: Mapping[str, EvidenceDocument]) -> None:
    """Append the faults that this look adds, and the ends of those that passed; telling twice appends nothing.

    Some nodes at a time, so that neither their outcomes nor the turn to add faults is held for long.
    """
    desk, latest_at = memory.context, memory.context.clock.now() + MAX_CLOCK_SKEW
    for name in [name for name, evidence in seen.items() if evidence.at > latest_at]:
        desk.progress(
            f"{name}: its evidence is of {seen[name].at:%Y-%m-%d %H:%M:%S} UTC, which is yet to come: left out"
        )
    for names in split_batches([name for name in seen if seen[name].at <= latest_at], NODES_PER_TRANSACTION):
        latest = read_latest_outcomes(desk.ledger, names)
        with hold_fault_lock(desk.home):
            stories = memory.node_states()
            told = [(stories[name], seen[name], latest[name]) for name in names if name in stories]
            desk.ledger.append(*(entry for one in told for entry in make_fault_entries(desk, *one)))


def make_fault_entries(
    desk: ControllerContext, story: NodeState, evidence: EvidenceDocument, latest: Sequence[RecordedOutcome] = ()
) -> list[LedgerEntry]:
    """Return what this look at a node adds to its story: faults, and the ends of those that passed.

    What a known issue excuses, and what checks find that only observe, is no fault. The story must be told by one at a
    time, up to the ledger's last line.
    """
    node, spec, now = desk.fleet.nodes[story.node], desk.fleet.spec_of(story.node), desk.clock.now()
    known, observed = desk.fleet.known_issues, desk.fleet.observed_checks
    latest = [one for one in latest if parse_time(one.measured_at) <= now + MAX_CLOCK_SKEW]
    counted, proofs = (
        drop_excused_outcomes(latest, node, known, observed, now),
        select_proving_outcomes(latest, observed),
    )
    seen = detect_faults(find_fault_catalog(desk), desk.policy, node, spec, story, evidence, counted)
    entries = [ledger_entries.make_fault_entry(fault, now) for fault in seen]
    catalog = desk.fleet.fault_catalog
    over = [
        *find_clearances(story, proofs),
        *find_quiet_recoveries(catalog, story, evidence),
        *find_measured_recoveries(catalog, story, proofs),
    ]
    again = {fault.id for fault in seen}
    return entries + [
        ledger_entries.make_cleared_entry(story.node, ended, now) for ended in over if ended.fault not in again
    ]


def find_fault_catalog(desk: ControllerContext) -> FaultCatalog:
    """Return what the fleet's fault catalogues say together. Raises Trouble where there is none."""
    return desk.fleet.fault_catalog


class AgentFaultRecorder:
    """Adds to the stories of a ledger that it keeps up with. For one thread."""

    def __init__(self, desk: ControllerContext) -> None:
        self.desk, self._chronicle = desk, NodeStateProjection()

    def record(self, delivered: Sequence[EvidenceDocument]) -> list[LedgerEntry]:
        """Append the faults that these documents add and return them. What was told before adds nothing.

        One transaction, and one lock, for as many nodes as there are; a node's documents go in one after the other.
        Raises Trouble when the ledger cannot be written: then nothing was taken.
        """
        added: list[LedgerEntry] = []
        for some in _split_by_node(delivered):
            with hold_fault_lock(self.desk.home):
                self._chronicle.apply(self.desk.ledger.entries(after=self._chronicle.seq))
                entries = [entry for evidence in some for entry in self._make_entries(evidence)]
                self.desk.ledger.append(*entries)
            added += entries
        return added

    def _make_entries(self, evidence: EvidenceDocument) -> list[LedgerEntry]:
        story = self._chronicle.node_state(evidence.node)
        return make_fault_entries(self.desk, story, evidence) if story else []


def _split_by_node(delivered: Sequence[EvidenceDocument]) -> Iterator[list[EvidenceDocument]]:
    """Yield the documents in groups, in order, each with at most one of a node."""
    rounds: dict[int, list[EvidenceDocument]] = defaultdict(list)
    taken: dict[str, int] = defaultdict(int)
    for evidence in delivered:
        rounds[taken[evidence.node]].append(evidence)
        taken[evidence.node] += 1
    yield from rounds.values()
