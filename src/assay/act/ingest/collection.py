"""Collects the evidence of nodes and fabrics, keeps it, and records which channels no longer answer.

A loaded node gets the channel `fleet` too: what other nodes of its kind reached, and computed. It is stored with the
evidence, so a check that compares with the fleet can be judged again on the same numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from statistics import median, quantiles
from types import MappingProxyType

from assay.act.ingest.burn_ins import WRONG_FAULT, RunningBurnIn
from assay.act.ingest.right_clock import require_right_clock
from assay.act.ingest.silent_nodes import record_answers
from assay.act.loop.context import ControllerContext
from assay.act.loop.projections import read_node_states
from assay.decide.faults.identity import mark_stranger, select_own
from assay.decide.moves.required_checks import judge_state_requirements, list_due_phases
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.node_state import NodeState
from assay.fabric.compare.compare import FabricComparison
from assay.fabric.scan import format_fabric_subject, judge_scan, run_fabric_scan
from assay.ledger.newest.interned_texts import split_batches
from assay.model.decision import LOAD
from assay.model.entries.faults import ObservationFailedEntry
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.node import Node
from assay.model.outcome import RecordedOutcome
from assay.model.reading import ReadingTree, unsupported, value
from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.model.specs.fabric.nvlink_domain import MAX_TRAYS
from assay.model.specs.load_parts import LOAD_PARTS, LoadPart, select_possible
from assay.model.text.lists import format_count
from assay.model.timestamps import parse_time
from assay.observe.evidence_collector import stream_evidence
from assay.observe.evidence_contents import find_unanswered_branches
from assay.observe.evidence_store import StoredDocuments
from assay.validate.active.burn_in_windows import find_burn_in
from assay.validate.active.golden import (
    FLEET_CHANNEL,
    NEIGHBOURS,
    NodeVotes,
    find_start,
    is_sound,
    make_golden_key,
    read_battery,
)
from assay.validate.active.unit_results import LoadRun
from assay.validate.collectives.fabric_map import find_nvlink_domains

RECENT = timedelta(days=30)
LEAST_GPUS = 40
"""Fewer say little of a distribution; five nodes of eight GPUs, as for the drift of a burn-in."""
TWENTIETHS = 20
LEAST_NODES = TWENTIETHS
"""For what is measured of a whole node: with fewer, none of twenty is below `low`."""
LEAST = {"gpu": LEAST_GPUS, "node": LEAST_NODES}


def read_fleet_speeds(
    context: ControllerContext, node: Node, parts: Collection[str] = frozenset(LOAD_PARTS)
) -> ReadingTree:
    """Return, by measurement of the checks of these parts, what other nodes with the same spec, or their GPUs, reached.

    A measurement has `median`, `low` (which one in twenty is below), and how many `gpus` or `nodes` it was measured on.
    With too few of them, it is unsupported.
    """
    speeds, states = dict[tuple[str, str], list[float]](), read_node_states(context.ledger)
    checks = [check for catalog in context.fleet.check_catalogs.values() for check in catalog.checks]
    for check in checks:
        if not check.parts or check.subject not in LEAST or {*check.parts} - {*parts}:
            continue
        for recorded in context.ledger.newest_passes(check.id):
            if _is_peer(context, states, node, recorded):
                for measurement in recorded.outcome.measurements:
                    speeds.setdefault((measurement.name, check.subject), []).append(measurement.value)
    return {name: _describe(name, subject, seen) for (name, subject), seen in sorted(speeds.items())}


def _is_peer(context: ControllerContext, states: Mapping[str, NodeState], node: Node, passed: RecordedOutcome) -> bool:
    other = context.fleet.nodes.get(passed.outcome.node)
    if other is None or other.name == node.name or other.spec != node.spec or not passed.seen_at:
        return False
    is_recent = parse_time(context.now) - parse_time(passed.seen_at) <= RECENT
    return is_recent and bool(select_own(other, [passed], states.get(other.name)))


def _describe(name: str, subject: str, seen: list[float]) -> ReadingTree:
    if len(seen) < LEAST[subject]:
        noun = "GPUs" if subject == "gpu" else "nodes"
        return unsupported(f"{len(seen)} {noun} of this kind have passed with {name}; {LEAST[subject]} are needed")
    low = quantiles(seen, n=TWENTIETHS)[0]
    return {"median": value(round(median(seen), 3)), "low": value(round(low, 3)), f"{subject}s": value(len(seen))}


MOST_NEIGHBOURS = 3
MOST_DOCUMENTS = 36
"""So many documents of others, those of its rack first, are looked through: those of two racks of NVL72."""


class NeighbourBatteries:
    """The batteries of the nodes near a node, each read once.

    In a rack that is one machine, these are all other trays: as they are loaded now, else as they passed. Elsewhere, a
    few sound nodes of the same spec that passed.
    """

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._domains, self._states = find_nvlink_domains(context.fleet), read_node_states(context.ledger)
        self._runs: dict[str, LoadRun | None] = {}
        """By node as it is loaded now, and by evidence with which it passed."""

    def add(self, batch: Sequence[EvidenceDocument]) -> None:
        """Add what is loaded now, but nothing of another machine."""
        self._runs |= {evidence.node: read_battery(evidence) for evidence in batch if not evidence.stranger}

    @cached_property
    def _passed(self) -> Mapping[str, RecordedOutcome]:
        """The last pass of each node with its battery."""
        checks = [check for catalog in self._context.fleet.check_catalogs.values() for check in catalog.checks]
        asked = [check.id for check in checks if {*check.parts} == {"battery"} and check.fault == WRONG_FAULT]
        passes = (recorded for check in asked for recorded in self._context.ledger.newest_passes(check))
        return {recorded.outcome.node: recorded for recorded in passes}

    def find(self, node: Node) -> dict[str, list[LoadRun]]:
        """Return the batteries near a node, of the nearest nodes first."""
        nodes, domain, states = self._context.fleet.nodes, self._domains.get(node.name), self._states
        trays = [name for name, other in self._domains.items() if other == domain and name != node.name]
        loaded = {name: run for name in trays if (run := self._runs.get(name))}
        passed = [name for name, each in self._passed.items() if _is_peer(self._context, states, node, each)]
        passed = [name for name in passed if name not in loaded and (not domain or name in trays)]
        near = sorted(passed, key=lambda name: (nodes[name].rack != node.rack, name))[:MOST_DOCUMENTS]
        runs = {name: [run] for name, run in loaded.items()}
        for name in near:
            if len(runs) < (MAX_TRAYS["gpu"] if domain else MOST_NEIGHBOURS) and (run := self._read_pass(name)):
                runs[name] = [run]
        return runs

    def _read_pass(self, name: str) -> LoadRun | None:
        """Return the sound battery with which a node passed; the evidence may have been deleted since."""
        digest = self._passed[name].outcome.evidence
        if digest not in self._runs:
            self._runs[digest] = None
            with suppress(AssayError):
                run = read_battery(self._context.evidence.get(digest))
                self._runs[digest] = run if run and is_sound(run) else None
        return self._runs[digest]

    def describe_others(self, node: Node, evidence: EvidenceDocument) -> ReadingTree:
        """Return the readings of what other nodes computed of a document's battery, {} for none.

        Outside of whole racks, nobody is asked where a node's own GPUs agree on all that they computed.
        """
        run = read_battery(evidence)
        if run is None or (node.name not in self._domains and is_sound(run)):
            return {}
        return {NEIGHBOURS: value(NodeVotes(self.find(node)).count_others(node.name, run))}


def find_starts(
    context: ControllerContext, active: Mapping[str, Collection[str]], neighbours: NeighbourBatteries
) -> dict[str, str]:
    """Return, by node, after which unit its battery goes on: without golden digests, where a neighbour's began."""
    starts = {}
    for node in (context.fleet.nodes[name] for name, parts in active.items() if "battery" in parts):
        golden_keys = [golden.computed_by for golden in context.fleet.list_golden(node.spec)]
        near = neighbours.find(node).items()
        starts[node.name] = find_start(
            {name: runs for name, runs in near if make_golden_key(runs[0]) not in golden_keys}
        )
    return starts


NODES_AT_ONCE = 50
"""A document of a node with eight GPUs takes about a megabyte of memory."""


def collect_node_evidence(
    context: ControllerContext,
    snapshot: FleetSnapshot,
    names: Sequence[str],
    burning: Mapping[str, RunningBurnIn] = MappingProxyType({}),
) -> StoredDocuments:
    """Collect and keep the evidence of the nodes `names`; append `observe.failed` for channels that stopped answering.

    Nodes whose state waits for active checks run their load first. Nodes that the snapshot only counts are in
    service, and run none. `burning`: nodes that a burn-in loads, which run no other load. Raises WrongClock, and keeps
    nothing of what was read by a wrong clock.
    """
    selected = set(names)
    views = [view for view in snapshot.nodes if view.name in selected]
    views = [view for view in views if view.name not in burning and not context.fleet.is_watched(view.name, LOAD)]
    due = {view.name: find_due_parts(snapshot, view) for view in views}
    possible = {name: select_possible(parts, context.fleet.parts_of(name)) for name, parts in due.items()}
    active = {name: tuple(parts) for name, parts in possible.items() if parts}
    for name, parts in active.items():
        context.progress(f"{name}: loading it with {', '.join(parts)} …")
    context.progress(f"observing {format_count(len(names), 'node')} …")
    digests: dict[str, str] = {}
    neighbours = NeighbourBatteries(context)
    documents = stream_evidence(
        context.fleet,
        names,
        clock=context.clock,
        active=active,
        after_units=find_starts(context, active, neighbours),
        store=context.evidence,
        after_entry=context.ledger.head(),
        bmc_sessions=context.bmc_sessions,
    )
    with closing(documents):
        for read in split_batches(documents, NODES_AT_ONCE):
            require_right_clock(context, read)
            states = read_node_states(context.ledger)
            batch = [mark_stranger(context.fleet, states.get(evidence.node), evidence) for evidence in read]
            neighbours.add([evidence for evidence in batch if evidence.node in active])
            before = {evidence.node: context.evidence.latest(evidence.node) for evidence in batch}
            complete = [
                add_fleet(context, evidence, neighbours)
                if evidence.node in active
                else add_burn_in(context, burning[evidence.node], evidence, before[evidence.node])
                if evidence.node in burning
                else evidence
                for evidence in batch
            ]
            for evidence in complete:
                digests[evidence.node] = context.evidence.store_latest(evidence)
                context.ledger.append(*_make_failure_entries(context, evidence, before[evidence.node]))
            record_answers(context, complete)
    return StoredDocuments(context.evidence, {name: digests[name] for name in dict.fromkeys(names)})


def identify_machine(context: ControllerContext, evidence: EvidenceDocument) -> EvidenceDocument:
    """Return a node's evidence, with how the machine that it was read from differs from the node's."""
    return mark_stranger(context.fleet, read_node_states(context.ledger).get(evidence.node), evidence)


def add_fleet(
    context: ControllerContext, evidence: EvidenceDocument, neighbours: NeighbourBatteries
) -> EvidenceDocument:
    """Return the evidence of a loaded node with the channel `fleet`: the speeds of others, and what they computed."""
    node = context.fleet.nodes[evidence.node]
    fleet = {**read_fleet_speeds(context, node), **neighbours.describe_others(node, evidence)}
    return replace(evidence, channels={**evidence.channels, FLEET_CHANNEL: fleet})


def add_burn_in(
    context: ControllerContext, running: RunningBurnIn, evidence: EvidenceDocument, before: EvidenceDocument | None
) -> EvidenceDocument:
    """Return the evidence with what a burn-in found, and the speeds of others in parts that never run beside others."""
    complete, spec = running.add_to(evidence, before), find_burn_in(context.fleet, evidence.node)
    phases = spec.phases if spec else ()
    busy = {part for phase in phases if phase.beside for part in (*phase.parts, *phase.beside)}
    lone = {part for phase in phases for part in phase.parts if part in running.results} - busy
    speeds = read_fleet_speeds(context, context.fleet.nodes[evidence.node], lone) if lone else {}
    fleet = {**running.others, **speeds}
    return replace(complete, channels={**complete.channels, FLEET_CHANNEL: fleet}) if fleet else complete


def find_due_parts(snapshot: FleetSnapshot, view: NodeSnapshot) -> tuple[LoadPart, ...]:
    """Return the parts of the load that the node's state waits for and that may run now, in the order to run them.

    There are none for a node that is in service or has a job.
    """
    if snapshot.policy_state_of(view).in_service or view.jobs != ():
        return ()
    due = set(list_due_phases(snapshot, view))
    unmet = [judged.requirement for judged in judge_state_requirements(snapshot, view) if not judged.is_met]
    asked = [
        part for requirement in unmet if requirement.active and requirement.phase in due for part in requirement.parts
    ]
    return tuple(dict.fromkeys(asked))


def _make_failure_entries(
    context: ControllerContext, evidence: EvidenceDocument, before: EvidenceDocument | None
) -> Iterator[LedgerEntry]:
    """Yield an entry for each channel, or branch of one, that answered last time and does not now."""
    known = dict(_list_unanswered(before)) if before else {}
    for channel, reason in _list_unanswered(evidence):
        if channel not in known:
            ident = derive_id("observe.failed", evidence.node, channel, evidence.at.isoformat())
            yield ObservationFailedEntry(channel, reason).make_entry(ident, context.now, evidence.node)


def _list_unanswered(evidence: EvidenceDocument) -> Iterator[tuple[str, str]]:
    for channel, tree in evidence.channels.items():
        for branch, reason in find_unanswered_branches(tree).items():
            yield f"{channel}.{branch}" if branch else channel, reason


def scan_fabrics(context: ControllerContext, names: Collection[str]) -> dict[str, FabricComparison]:
    """Scan each fabric of the nodes `names`, keep the discovery, and return how it compares with its design."""
    for design in _find_designs(context, names):
        context.progress(f"discovering the fabric {design.name} …")
        before, head = context.evidence.latest(format_fabric_subject(design)), context.ledger.head()
        discovery = run_fabric_scan(context.fleet, design, clock=context.clock, before=before)
        context.evidence.store_latest(replace(discovery, after_entry=head))
    return compare_fabrics(context, names)


def compare_fabrics(context: ControllerContext, names: Collection[str]) -> dict[str, FabricComparison]:
    """Return how the last discovery of each fabric compares with its design. Fabrics never scanned are left out."""
    compared: dict[str, FabricComparison] = {}
    for design in _find_designs(context, names):
        if evidence := context.evidence.latest(format_fabric_subject(design)):
            compared[design.name] = judge_scan(context.fleet, design, evidence)
    return compared


def _find_designs(context: ControllerContext, names: Collection[str]) -> list[FabricDesign]:
    fabrics = dict.fromkeys(context.fleet.nodes[name].settings.fabric for name in names)
    if missing := sorted(str(name) for name in fabrics if name and name not in context.fleet.designs):
        raise AssayError(f"the inventory names a fabric without a design: {', '.join(missing)}")
    return [context.fleet.designs[str(name)] for name in fabrics if name]
