"""Nodes that lack what all checks of a phase need: nobody judges them there, and others go on."""

from __future__ import annotations

from dataclasses import replace

from assay.act.ingest.suite_runs import run_due_suites
from assay.act.loop.context import ControllerContext
from assay.act.loop.projections import read_node_states
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.act.schedules.idle_verification import judge_coverage
from assay.decide.state.decision_and_fault_entries import make_enrolled_entry
from assay.model.evidence import EvidenceDocument
from assay.model.node import Node
from tests.act.schedules.by_hand import in_production

NODE = "n0001"


def with_node(desk: ControllerContext, node: Node) -> ControllerContext:
    """Return the desk of a fleet of one node, which has been read before."""
    desk.evidence.store_latest(EvidenceDocument(node.name, desk.clock.now(), {}))
    return replace(desk, fleet=replace(desk.fleet, nodes={node.name: node}))


def test_the_coverage_of_gpus_that_no_load_covers_is_not_judged(desk: ControllerContext) -> None:
    node = desk.fleet.nodes[NODE]
    of_amd = with_node(desk, replace(node, spec="mi300x"))
    in_production(of_amd)
    nodes, states = [of_amd.fleet.nodes[NODE]], read_node_states(desk.ledger)
    judge_coverage(of_amd, ["memory"], nodes, {NODE}, states, desk.home / "idle")
    assert desk.ledger.latest(NODE) == []


def test_a_state_whose_checks_need_a_bmc_judges_no_node_without_one(desk: ControllerContext) -> None:
    context = with_node(desk, replace(desk.fleet.nodes[NODE], bmc_address=""))
    desk.ledger.append(make_enrolled_entry(NODE, "h100-a", "discovered", desk.clock.now()))
    assert run_due_suites(FleetSnapshotCache(context), [NODE]) == []
