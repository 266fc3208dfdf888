"""The first half of a pass: look at the nodes and the fabric, keep what was seen, say what did not answer."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from assay.controller.desk import Desk
from assay.controller.looking.silence import note_answers
from assay.fabric.compare import Comparison
from assay.fabric.scan import judge, scan, subject_name
from assay.lifecycle.requirements import due
from assay.lifecycle.requirements import judge as judge_requirements
from assay.lifecycle.situation import NodeView, Situation
from assay.model.design import FabricDesign
from assay.model.entry import Entry, derived_id
from assay.model.errors import Trouble
from assay.model.evidence import Evidence
from assay.observe.collect import collect
from assay.observe.leaves import unanswered

ACTIVE_PARTS = ("all_reduce", "gpu_burn", "nvme_read", "memory")


def look_at_nodes(desk: Desk, situation: Situation, names: Sequence[str]) -> dict[str, Evidence]:
    """Collect and keep the evidence of `names`; append `observe.failed` for each channel that has fallen silent.

    Nodes that the situation only counts are in service: none of them is loaded.
    """
    before, asked = {name: desk.evidence.latest(name) for name in names}, set(names)
    chosen = [view for view in situation.nodes if view.name in asked]
    active = {view.name: ACTIVE_PARTS for view in chosen if wants_load(situation, view)}
    for name in active:
        desk.progress(f"{name}: loading it with {', '.join(ACTIVE_PARTS)} …")
    desk.progress(f"observing {len(names)} nodes …")
    seen = collect(desk.fleet, names, clock=desk.clock, active=active, store=desk.evidence)
    for evidence in seen.values():
        desk.evidence.put(evidence)
        desk.ledger.append(*_silences(desk, evidence, before[evidence.node]))
    note_answers(desk, seen.values())
    return seen


def wants_load(situation: Situation, view: NodeView) -> bool:
    """Say whether the node's state waits for active checks that may run now: out of service, and nobody's job on it."""
    if situation.state_of(view).in_service or view.jobs != ():
        return False
    wanted = set(due(situation, view))
    unmet = [one.requirement for one in judge_requirements(situation, view) if not one.met]
    return any(requirement.active and requirement.phase in wanted for requirement in unmet)


def look_at_fabrics(desk: Desk, names: Collection[str]) -> dict[str, Comparison]:
    """Scan each fabric that one of `names` is cabled to, keep the discovery, and compare it with its design."""
    for design in _designs(desk, names):
        desk.progress(f"discovering the fabric {design.name} …")
        before = desk.evidence.latest(subject_name(design))
        desk.evidence.put(scan(desk.fleet, design, clock=desk.clock, before=before))
    return compared(desk, names)


def compared(desk: Desk, names: Collection[str]) -> dict[str, Comparison]:
    """Return how each fabric's last discovery compares with its design; one that was never scanned is left out."""
    found: dict[str, Comparison] = {}
    for design in _designs(desk, names):
        if evidence := desk.evidence.latest(subject_name(design)):
            found[design.name] = judge(desk.fleet, design, evidence)
    return found


def _designs(desk: Desk, names: Collection[str]) -> list[FabricDesign]:
    wanted = dict.fromkeys(desk.fleet.nodes[name].variables.get("fabric") for name in names)
    if missing := sorted(str(name) for name in wanted if name and name not in desk.fleet.designs):
        raise Trouble(f"the inventory names a fabric without a design: {', '.join(missing)}")
    return [desk.fleet.designs[str(name)] for name in wanted if name]


def _silences(desk: Desk, evidence: Evidence, before: Evidence | None) -> Iterator[Entry]:
    """Yield one entry for each channel, or branch of one, that answered last time and does not now."""
    known = dict(_unanswered(before)) if before else {}
    for channel, reason in _unanswered(evidence):
        if channel not in known:
            ident = derived_id("observe.failed", evidence.node, channel, evidence.at.isoformat())
            yield Entry(ident, desk.now, "observe.failed", evidence.node, {"channel": channel, "reason": reason})


def _unanswered(evidence: Evidence) -> Iterator[tuple[str, str]]:
    for channel, tree in evidence.channels.items():
        for branch, reason in unanswered(tree).items():
            yield f"{channel}.{branch}" if branch else channel, reason
