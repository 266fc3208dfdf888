"""Loads one node that nobody uses, and keeps what it answered as its newest evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from assay.controller.context import ControllerContext
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.fleet import Node
from assay.model.reading import parse_reading
from assay.model.specs.schedules import IdleVerificationSpec
from assay.observe.evidence_collector import collect_evidence
from assay.observe.evidence_store import EvidenceStore
from assay.observe.json_command import parse_json_output
from assay.observe.transports.ssh_and_local import build_probe_command
from assay.observe.transports.transport_choice import TransportRegistry, run_remote_probe
from assay.schedulers.scheduler_adapter import SchedulerNodeStatus, format_jobs

LoadOutcome = Literal["loaded", "yielded", "unknown"]


@dataclass(frozen=True, slots=True)
class NodeLoadResult:
    """What came of loading a node: it was, it made room (`why` says for whom), or nobody knows (why not)."""

    node: str
    outcome: LoadOutcome
    why: str = ""


def load_idle_node(
    desk: ControllerContext, node: Node, how: IdleVerificationSpec, standing: SchedulerNodeStatus, store: EvidenceStore
) -> NodeLoadResult:
    """Load a node in its spare time, or, where it is closed to customers, as it is; keep the evidence in `store` too.

    What its probe reads afterwards is part of the evidence, so that it shows what the load brought about.
    """
    try:
        answer = _load_closed_node(desk, node, how) if standing.cordon else _load_in_spare_time(desk, node, how)
    except AssayError as trouble:
        return NodeLoadResult(node.name, "unknown", str(trouble))
    if isinstance(answer, NodeLoadResult):
        return answer
    seen = collect_evidence(desk.fleet, [node.name], clock=desk.clock, store=desk.evidence)[node.name]
    whole = EvidenceDocument(node.name, seen.at, {**seen.channels, "active": answer})
    desk.evidence.store_latest(whole)
    store.store_latest(whole)
    return NodeLoadResult(node.name, "loaded")


def _load_in_spare_time(
    desk: ControllerContext, node: Node, how: IdleVerificationSpec
) -> Mapping[str, Any] | NodeLoadResult:
    words, given = build_probe_command(node, _build_arguments(desk, how))
    spare = desk.workloads(node).run_spare(node.name, words, given, how.within_minutes * 60)
    if spare.preempted_by:
        return NodeLoadResult(node.name, "yielded", spare.preempted_by)
    if spare.exit_code is None:
        said = " ".join(spare.stderr.split())[-200:]
        why = said or f"it did not begin, or not end by itself within {how.within_minutes:g} min"
        return NodeLoadResult(node.name, "unknown", why)
    return _extract_active(node, parse_json_output(spare.output, spare.stderr.encode(), spare.exit_code))


def _load_closed_node(
    desk: ControllerContext, node: Node, how: IdleVerificationSpec
) -> Mapping[str, Any] | NodeLoadResult:
    """Load a node on which nobody can be placed, through its transport; a job that is there all the same goes first."""
    if jobs := desk.workloads(node).list_jobs(node.name):
        return NodeLoadResult(node.name, "yielded", format_jobs(jobs))
    within_s = how.within_minutes * 60
    return _extract_active(
        node, run_remote_probe(node, _build_arguments(desk, how), within_s, TransportRegistry(desk.evidence))
    )


def _build_arguments(desk: ControllerContext, how: IdleVerificationSpec) -> list[str]:
    at = desk.clock.now().isoformat()
    return ["--active", ",".join(how.parts), "--seconds", str(how.seconds), "--at", at]


def _extract_active(node: Node, answer: Mapping[str, Any]) -> Mapping[str, Any] | NodeLoadResult:
    whole = parse_reading(answer)
    active = answer.get("active")
    leaf = whole or (parse_reading(active) if active is not None else None)
    if leaf is not None or not isinstance(active, Mapping):
        return NodeLoadResult(node.name, "unknown", leaf.reason if leaf else "its answer holds nothing of the load")
    return active
