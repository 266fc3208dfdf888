"""The first half of a pass: look at the nodes and the fabric, keep what was seen, say what did not answer."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from assay.controller.context import ControllerContext
from assay.controller.ingest.silent_nodes import record_answers
from assay.fabric.comparison.compare import FabricComparison
from assay.fabric.scan import format_fabric_subject, judge_scan, run_fabric_scan
from assay.lifecycle.decisions.requirements import judge_state_requirements as judge_requirements
from assay.lifecycle.decisions.requirements import list_due_phases
from assay.lifecycle.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.fabric.fabric_design import FabricDesign
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.observe.evidence_collector import collect_evidence
from assay.observe.unanswered_channels import find_unanswered_branches

ACTIVE_PARTS = ("all_reduce", "gpu_burn", "nvme_read", "memory")


def collect_node_evidence(
    desk: ControllerContext, situation: FleetSnapshot, names: Sequence[str]
) -> dict[str, EvidenceDocument]:
    """Collect and keep the evidence of `names`; append `observe.failed` for each channel that has fallen silent.

    Nodes that the situation only counts are in service: none of them is loaded.
    """
    before, asked = {name: desk.evidence.latest(name) for name in names}, set(names)
    chosen = [view for view in situation.nodes if view.name in asked]
    active = {view.name: ACTIVE_PARTS for view in chosen if needs_active_checks(situation, view)}
    for name in active:
        desk.progress(f"{name}: loading it with {', '.join(ACTIVE_PARTS)} …")
    desk.progress(f"observing {len(names)} nodes …")
    seen = collect_evidence(desk.fleet, names, clock=desk.clock, active=active, store=desk.evidence)
    for evidence in seen.values():
        desk.evidence.store_latest(evidence)
        desk.ledger.append(*_make_silence_entries(desk, evidence, before[evidence.node]))
    record_answers(desk, seen.values())
    return seen


def needs_active_checks(situation: FleetSnapshot, view: NodeSnapshot) -> bool:
    """Say whether the node's state waits for active checks that may run now: out of service, and nobody's job on it."""
    if situation.policy_state_of(view).in_service or view.jobs != ():
        return False
    wanted = set(list_due_phases(situation, view))
    unmet = [one.requirement for one in judge_requirements(situation, view) if not one.is_met]
    return any(requirement.active and requirement.phase in wanted for requirement in unmet)


def scan_fabrics(desk: ControllerContext, names: Collection[str]) -> dict[str, FabricComparison]:
    """Scan each fabric that one of `names` is cabled to, keep the discovery, and compare it with its design."""
    for design in _find_designs(desk, names):
        desk.progress(f"discovering the fabric {design.name} …")
        before = desk.evidence.latest(format_fabric_subject(design))
        desk.evidence.store_latest(run_fabric_scan(desk.fleet, design, clock=desk.clock, before=before))
    return compare_fabrics(desk, names)


def compare_fabrics(desk: ControllerContext, names: Collection[str]) -> dict[str, FabricComparison]:
    """Return how each fabric's last discovery compares with its design; one that was never scanned is left out."""
    found: dict[str, FabricComparison] = {}
    for design in _find_designs(desk, names):
        if evidence := desk.evidence.latest(format_fabric_subject(design)):
            found[design.name] = judge_scan(desk.fleet, design, evidence)
    return found


def _find_designs(desk: ControllerContext, names: Collection[str]) -> list[FabricDesign]:
    wanted = dict.fromkeys(desk.fleet.nodes[name].variables.get("fabric") for name in names)
    if missing := sorted(str(name) for name in wanted if name and name not in desk.fleet.designs):
        raise AssayError(f"the inventory names a fabric without a design: {', '.join(missing)}")
    return [desk.fleet.designs[str(name)] for name in wanted if name]


def _make_silence_entries(
    desk: ControllerContext, evidence: EvidenceDocument, before: EvidenceDocument | None
) -> Iterator[LedgerEntry]:
    """Yield one entry for each channel, or branch of one, that answered last time and does not now."""
    known = dict(_list_unanswered(before)) if before else {}
    for channel, reason in _list_unanswered(evidence):
        if channel not in known:
            ident = derive_id("observe.failed", evidence.node, channel, evidence.at.isoformat())
            yield LedgerEntry(ident, desk.now, "observe.failed", evidence.node, {"channel": channel, "reason": reason})


def _list_unanswered(evidence: EvidenceDocument) -> Iterator[tuple[str, str]]:
    for channel, tree in evidence.channels.items():
        for branch, reason in find_unanswered_branches(tree).items():
            yield f"{channel}.{branch}" if branch else channel, reason
