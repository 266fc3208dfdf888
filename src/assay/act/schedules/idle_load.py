"""Loads one idle node and keeps the answers as its newest evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from assay.act.ingest.fleet_speeds import read_fleet_speeds
from assay.act.loop.context import ControllerContext
from assay.adapters.scheduler_adapter import SchedulerNodeStatus, format_jobs
from assay.decide.state.visit_plan import VisitPlan
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.node import Node
from assay.model.reading import failed, parse_reading
from assay.model.specs.schedules import IdleVerificationSpec
from assay.observe.evidence_collector import collect_evidence
from assay.observe.evidence_store import EvidenceStore
from assay.observe.json_command import parse_json_output
from assay.observe.relayed_load import read_relayed_load
from assay.observe.transports.command_transport import build_probe_command
from assay.observe.transports.transport_choice import TransportRegistry, run_remote_probe
from assay.observe.transports.transport_protocol import TransportContext

LoadOutcome = Literal["loaded", "yielded", "unknown"]


@dataclass(frozen=True, slots=True)
class NodeLoadResult:
    """How loading a node ended: `loaded`, `yielded` to the jobs in `reason`, or `unknown` for the `reason`.

    `active` is what the load found, if it did not end by itself: until then. `gone_ms`: how long at most the customer
    waited for its end, in milliseconds.
    """

    node: str
    outcome: LoadOutcome
    reason: str = ""
    active: Mapping[str, Any] = field(default_factory=dict)
    gone_ms: int | None = None


@dataclass(frozen=True, slots=True)
class NodeVisit:
    """A visit to an idle node: how the schedule loads nodes, what it runs there, and how the scheduler saw the node."""

    node: Node
    how: IdleVerificationSpec
    plan: VisitPlan
    status: SchedulerNodeStatus


def load_idle_node(context: ControllerContext, visit: NodeVisit, store: EvidenceStore) -> NodeLoadResult:
    """Load a node in its spare time, or through its transport where it is cordoned; keep the evidence in `store` too.

    The evidence includes a reading of the node after its load, which shows what the load caused.
    """
    head, node = context.ledger.head(), visit.node
    try:
        answer = _load_cordoned_node(context, visit) if visit.status.cordon else _load_in_spare_time(context, visit)
    except AssayError as error:
        return NodeLoadResult(node.name, "unknown", str(error))
    if isinstance(answer, NodeLoadResult):
        return answer
    after = collect_evidence(context.fleet, [node.name], clock=context.clock, store=context.evidence)[node.name]
    channels = {**after.channels, **answer, "fleet": read_fleet_speeds(context, node)}
    evidence = EvidenceDocument(node.name, after.at, channels, head)
    context.evidence.store_latest(evidence)
    store.store_latest(evidence)
    return NodeLoadResult(node.name, "loaded", active=answer["active"])


def _load_in_spare_time(context: ControllerContext, visit: NodeVisit) -> Mapping[str, Any] | NodeLoadResult:
    """Load a node as a job of the lowest priority, which its scheduler ends for any customer's job."""
    node, how = visit.node, visit.how
    command, stdin = build_probe_command(node, [*_build_arguments(context, visit), "--relay"])
    run = context.workloads(node).run_spare(node.name, command, stdin, how.within_minutes * 60)
    relayed = read_relayed_load(run.output)
    if run.preempted_by:
        active = relayed.build_active(f"made room for {run.preempted_by}")
        return NodeLoadResult(node.name, "yielded", run.preempted_by, active, run.gone_ms)
    if run.exit_code is None:
        stderr = " ".join(run.stderr.split())[-200:]
        reason = stderr or f"it did not start, or did not end by itself, within {how.within_minutes:g} min"
        return NodeLoadResult(node.name, "unknown", reason, relayed.build_active(reason))
    printed = relayed.document or (b"" if relayed.before else run.output)
    found = _extract_load(node, parse_json_output(printed, run.stderr.encode(), run.exit_code))
    return found if isinstance(found, NodeLoadResult) else {**found, "active": relayed.restore_lost(found["active"])}


def _load_cordoned_node(context: ControllerContext, visit: NodeVisit) -> Mapping[str, Any] | NodeLoadResult:
    """Load a node on which no job can start. A job that still runs there goes first."""
    node = visit.node
    if jobs := context.workloads(node).list_jobs(node.name):
        return NodeLoadResult(node.name, "yielded", format_jobs(jobs))
    transports = TransportRegistry(TransportContext(context.evidence))
    arguments = _build_arguments(context, visit)
    return _extract_load(node, run_remote_probe(node, arguments, visit.how.within_minutes * 60, transports))


def _build_arguments(context: ControllerContext, visit: NodeVisit) -> list[str]:
    how, plan, at = visit.how, visit.plan, context.clock.now().isoformat()
    times = [f"{part}={how.part_seconds[part]}" for part in how.parts if part in how.part_seconds]
    arguments = ["--active", ",".join(plan.parts), "--seconds", str(how.seconds), "--at", at]
    arguments += ["--part-seconds", ",".join(times)] if times else []
    return [*arguments, *(["--after-unit", plan.after_unit] if plan.after_unit else [])]


def _extract_load(node: Node, answer: Mapping[str, Any]) -> Mapping[str, Any] | NodeLoadResult:
    """Return the channels `before` and `active` of an answer."""
    whole = parse_reading(answer)
    active = answer.get("active")
    reading = whole or (parse_reading(active) if active is not None else None)
    if reading is not None or not isinstance(active, Mapping):
        return NodeLoadResult(node.name, "unknown", reading.reason if reading else "its answer has no load in it")
    return {"before": answer.get("before", failed("its answer does not say how the node was before")), "active": active}
