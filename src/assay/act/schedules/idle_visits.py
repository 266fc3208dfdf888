"""Which idle nodes are tested, which first, what a visit runs there, and how a node is loaded.

A node with an open warning of trends comes first, then those that were covered longest ago. What earlier visits covered
is read from the ledger, and written after each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from assay.act.ingest.collection import NeighbourBatteries, add_fleet, identify_machine
from assay.act.loop.context import ControllerContext
from assay.act.schedules.due_slots import SlotTask
from assay.adapters.scheduler import VERIFY_UNDRAIN, SchedulerNodeStatus, format_jobs
from assay.decide.state.load_coverage import COVERAGE, UNIT_PART, GpuCoverage, VisitPlan, name_gpus, plan_visit
from assay.decide.state.node_state import NodeState
from assay.decide.trends.warning_record import TREND_ENTRY_KINDS, read_warning_history
from assay.ledger.ledger_reader import read_projection
from assay.model.cordon_ownership import is_our_reason
from assay.model.decision import LOAD
from assay.model.entries.schedule_entries import NodeLoadedEntry
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.facts import frozen
from assay.model.faults.sightings import map_parts_by_pci
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.node import Node
from assay.model.reading import failed, parse_reading
from assay.model.specs.load_parts import select_possible
from assay.model.specs.schedules import IdleVerificationSpec
from assay.model.timestamps import format_time
from assay.observe.evidence_collector import collect_evidence
from assay.observe.evidence_contents import find_part_serials
from assay.observe.evidence_store import EvidenceStore
from assay.observe.json_command import parse_json_output
from assay.observe.relayed_load import read_relayed_load
from assay.observe.transports.command import build_probe_command
from assay.observe.transports.transport import TransportRegistry, run_remote_probe
from assay.observe.transports.transport_protocol import TransportContext


def order_idle_nodes(context: ControllerContext, nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes in the order in which they are tested."""
    urgency: dict[str, float] = {}
    for warning in read_warning_history(context.ledger.entries(kinds=TREND_ENTRY_KINDS)).open:
        if warning.content.stage == "record":
            chance = 0.5 if warning.content.p is None else warning.content.p  # that the warning is right
            urgency[warning.node] = max(urgency.get(warning.node, 0.0), chance)
    covered: dict[str, str] = {}
    for gpu in read_projection(context.ledger, COVERAGE).values():
        oldest = min((part.covered_at for part in gpu.parts.values()), default="")
        covered[gpu.node] = min(covered.get(gpu.node, oldest), oldest)
    return sorted(nodes, key=lambda node: (-urgency.get(node.name, 0.0), covered.get(node.name, "")))


OUTCOME_WORDS = {
    "passed": "passed",
    "failed": "failed",
    "unjudged": "could not be judged",
    "yielded": "made room",
    "busy": "in use",
    "unknown": "could not be loaded",
    "skipped": "left out",
}
"""The outcomes for a node, in the order in which the summary lists them."""


@frozen
class IdleNodeResult:
    """How a visit to one node ended: a key of OUTCOME_WORDS, or `loaded` until it is judged; and why.

    `active` is what the load found, if it did not end by itself: until then. `gone_ms`: how many milliseconds at most a
    customer waited until its load was gone, if one came.
    """

    node: str
    outcome: str
    reason: str = ""
    active: Mapping[str, Any] = field(default_factory=dict)
    gone_ms: int | None = None


def is_in_service(context: ControllerContext, node_state: NodeState | None) -> bool:
    """Say whether a node is in a state that serves jobs."""
    states = context.policy.states
    return node_state is not None and node_state.state in states and states[node_state.state].in_service


def find_exclusion(
    context: ControllerContext, node_state: NodeState, status: SchedulerNodeStatus | None
) -> IdleNodeResult | None:
    """Return why a node is not verified now, None where it is."""
    name = node_state.node
    if node_state.hold:
        return IdleNodeResult(name, "skipped", f"held by {node_state.hold.who}: {node_state.hold.reason}")
    if context.fleet.is_watched(name, LOAD):
        return IdleNodeResult(name, "skipped", f"assay only watches: {context.fleet.find_trust(name, [LOAD])}")
    if not context.fleet.profile_of(name).acts_on_faults:
        return IdleNodeResult(name, "skipped", f"profile {context.fleet.nodes[name].profile}: faults are not acted on")
    if node_state.burn_in and node_state.burn_in.is_running:
        return IdleNodeResult(name, "skipped", node_state.burn_in.describe())
    if node_state.pending or node_state.unsettled_effects:
        return IdleNodeResult(name, "skipped", "a decision or an effect about it is pending")
    if status is None:
        return IdleNodeResult(name, "unknown", "its scheduler cannot tell whether it is in use")
    if status.jobs:
        return IdleNodeResult(name, "busy", format_jobs(status.jobs))
    if status.cordon and not (VERIFY_UNDRAIN in status.cordon or is_our_reason(status.cordon)):
        return IdleNodeResult(name, "skipped", f"cordoned: {status.cordon}")
    return None


def plan_visits(context: ControllerContext, how: IdleVerificationSpec, nodes: Sequence[Node]) -> dict[str, VisitPlan]:
    """Return the plan of the next visit to each of these nodes."""
    budget_s = None if how.budget_minutes is None else how.budget_minutes * 60
    names = {node.name: name_gpus(node.name, find_gpu_serials(context, node)) for node in nodes}
    covered = read_projection(context.ledger, COVERAGE)
    known = {name: [covered.get(gpu) or GpuCoverage(gpu) for gpu in own] for name, own in names.items()}
    plans = {}
    for name, gpus in known.items():
        possible = select_possible(how.parts, context.fleet.parts_of(name))
        plans[name] = plan_visit({part: how.seconds_by_part[part] for part in possible}, budget_s, gpus, how.seeds)
    return plans


def find_gpu_serials(context: ControllerContext, node: Node) -> list[str]:
    """Return the serial numbers of a node's GPUs as its newest evidence has them, in order of their places."""
    return list(_read_gpu_serials(context, node).values())


def find_gpu_slots(context: ControllerContext, node: Node) -> dict[str, str]:
    """Return each GPU slot of the node's spec with the name under which its GPU is covered."""
    serials, spec = _read_gpu_serials(context, node), context.fleet.spec_of(node.name)
    (unknown,) = name_gpus(node.name, ())
    return {f"gpu{index}": serials.get(f"gpu{index}", unknown) for index in range(spec.gpus.count)}


def _read_gpu_serials(context: ControllerContext, node: Node) -> dict[str, str]:
    """Return the serial numbers of a node's GPUs by place."""
    evidence = context.evidence.latest(node.name)
    parts = find_part_serials(evidence, map_parts_by_pci(context.fleet.spec_of(node.name))) if evidence else []
    return {part.place: part.serial for part in sorted(parts, key=lambda part: part.place) if part.kind == "gpu"}


def make_visit_entry(
    context: ControllerContext,
    task: SlotTask,
    visit: NodeVisit,
    active: Mapping[str, Any],
    reason: str,
    gone_ms: int | None,
) -> LedgerEntry:
    """Return the entry of a visit. `active`: what it found; `reason`: who took the node in the middle."""
    node = visit.node
    serials = tuple(find_gpu_serials(context, node))
    without = context.fleet.spec_of(node.name).gpus.count - len(serials) if serials else 0
    lacks = {"without": without} if without else {}
    parts = {part: {**describe_part(branch), **lacks} for part, branch in active.items()}
    if (battery := parts.get(UNIT_PART)) and battery.get("units"):
        battery |= {"after": visit.plan.after_unit, "seeds": visit.how.seeds}
    loaded = NodeLoadedEntry(task.line.name, format_time(task.slot), serials, parts, reason, gone_ms)
    ident = derive_id(loaded.kind, task.line.name, node.name, format_time(task.slot), context.now)
    return loaded.make_entry(ident, context.now, node.name)


def describe_part(branch: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a part ended, and what it computed where it counts in units."""
    leaf = parse_reading(branch)
    if leaf is not None:
        is_cut = leaf.kind == "failed" and leaf.reason.startswith("killed")
        return {"ended": "cut" if is_cut else "lacking"}
    ended = parse_reading(branch.get("ended"))
    described: dict[str, Any] = {"ended": "cut" if ended is not None and ended.kind != "value" else "done"}
    units = parse_reading(branch.get("units"))
    if units is None or not isinstance(units.value, Mapping):
        return described
    tests = {test: len(seeds) for test, seeds in units.value.items()}
    last = parse_reading(branch.get("last_unit"))
    named = {"last_unit": str(last.value)} if last is not None and last.kind == "value" else {}
    return {**described, "units": sum(tests.values()), "tests": tests, **named}


def list_parts(active: Mapping[str, Any]) -> frozenset[str]:
    """Return the parts of a load that gave readings: those that were cut short only if they computed units."""
    described = {part: describe_part(branch) for part, branch in active.items()}
    return frozenset(part for part, reading in described.items() if reading["ended"] == "done" or reading.get("units"))


def list_checks_to_leave_out(context: ControllerContext, parts: Iterable[str], *, cut: bool) -> list[str]:
    """Return the active checks that cannot be judged by these parts of a load.

    With `cut`, the load did not end: then those too that judge the load as a whole, or a part that did not run.
    """
    ran = set(parts)
    checks = [check for catalog in context.fleet.check_catalogs.values() for check in catalog.checks if check.active]
    if cut:
        return [check.id for check in checks if not check.parts or not ran.issuperset(check.parts)]
    return [check.id for check in checks if check.parts and ran.isdisjoint(check.parts)]


@frozen
class NodeVisit:
    """A visit to an idle node: how the schedule loads nodes, what it runs there, and how the scheduler saw the node."""

    node: Node
    how: IdleVerificationSpec
    plan: VisitPlan
    status: SchedulerNodeStatus


def load_idle_node(context: ControllerContext, visit: NodeVisit, store: EvidenceStore) -> IdleNodeResult:
    """Load a node in its spare time, or through its transport where it is cordoned; keep the evidence in `store` too.

    The evidence includes a reading of the node after its load, which shows what the load caused.
    """
    head, node = context.ledger.head(), visit.node
    try:
        answer = _load_cordoned_node(context, visit) if visit.status.cordon else _load_in_spare_time(context, visit)
    except AssayError as error:
        return IdleNodeResult(node.name, "unknown", str(error))
    if isinstance(answer, IdleNodeResult):
        return answer
    after = collect_evidence(context.fleet, [node.name], clock=context.clock, store=context.evidence)[node.name]
    loaded = EvidenceDocument(node.name, after.at, {**after.channels, **answer}, head)
    evidence = identify_machine(context, add_fleet(context, loaded, NeighbourBatteries(context)))
    context.evidence.store_latest(evidence)
    store.store_latest(evidence)
    return IdleNodeResult(node.name, "loaded", active=answer["active"])


def _load_in_spare_time(context: ControllerContext, visit: NodeVisit) -> Mapping[str, Any] | IdleNodeResult:
    """Load a node as a job of the lowest priority, which its scheduler ends for any customer's job."""
    node, how = visit.node, visit.how
    command, stdin = build_probe_command(node, [*_build_arguments(context, visit), "--relay"])
    run = context.workloads(node).run_spare(node.name, command, stdin, how.within_minutes * 60)
    relayed = read_relayed_load(run.output)
    if run.preempted_by:
        active = relayed.build_active(f"made room for {run.preempted_by}")
        return IdleNodeResult(node.name, "yielded", run.preempted_by, active, run.gone_ms)
    if run.exit_code is None:
        stderr = " ".join(run.stderr.split())[-200:]
        reason = stderr or f"it did not start, or did not end by itself, within {how.within_minutes:g} min"
        return IdleNodeResult(node.name, "unknown", reason, relayed.build_active(reason))
    printed = relayed.document or (b"" if relayed.before else run.output)
    load = _extract_load(node, parse_json_output(printed, run.stderr.encode(), run.exit_code))
    return load if isinstance(load, IdleNodeResult) else {**load, "active": relayed.restore_lost(load["active"])}


def _load_cordoned_node(context: ControllerContext, visit: NodeVisit) -> Mapping[str, Any] | IdleNodeResult:
    """Load a node on which no job can start. A job that still runs there goes first."""
    node = visit.node
    if jobs := context.workloads(node).list_jobs(node.name):
        return IdleNodeResult(node.name, "yielded", format_jobs(jobs))
    transports = TransportRegistry(TransportContext(context.evidence))
    arguments = _build_arguments(context, visit)
    return _extract_load(node, run_remote_probe(node, arguments, visit.how.within_minutes * 60, transports))


def _build_arguments(context: ControllerContext, visit: NodeVisit) -> list[str]:
    how, plan, at = visit.how, visit.plan, context.clock.now().isoformat()
    times = [f"{part}={how.part_seconds[part]}" for part in how.parts if part in how.part_seconds]
    arguments = ["--active", ",".join(plan.parts), "--seconds", str(how.seconds), "--at", at]
    arguments += ["--part-seconds", ",".join(times)] if times else []
    return [*arguments, *(["--after-unit", plan.after_unit] if plan.after_unit else [])]


def _extract_load(node: Node, answer: Mapping[str, Any]) -> Mapping[str, Any] | IdleNodeResult:
    """Return the channels `before` and `active` of an answer."""
    whole = parse_reading(answer)
    active = answer.get("active")
    reading = whole or (parse_reading(active) if active is not None else None)
    if reading is not None or not isinstance(active, Mapping):
        return IdleNodeResult(node.name, "unknown", reading.reason if reading else "its answer has no load in it")
    return {"before": answer.get("before", failed("its answer does not say how the node was before")), "active": active}
