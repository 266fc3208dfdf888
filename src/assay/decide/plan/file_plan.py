"""Puts together the content of a plan from what the two revisions say, without what the ledger knows.

The waves are those of a fleet in which every node serves and none is out. So the order of the canaries, and the limits
of the policy, are part of the content; where the nodes are at present is not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from assay.decide.plan.cable_moves_and_adapter_replacements import CablingJob
from assay.decide.plan.current_fleet_state import NodeStanding
from assay.decide.plan.fleet_revision import FleetRevision
from assay.decide.plan.inventory_changes import InventoryChanges
from assay.decide.plan.merge_risks import rank_risks
from assay.decide.plan.other_change import OtherChange
from assay.decide.plan.plan_content import PlanContent
from assay.decide.plan.policy_changes import SettingDifference
from assay.decide.plan.repair_routes import find_repair_route
from assay.decide.plan.spec_pair_comparison import NodeGroup, SpecPair
from assay.decide.rollouts.rollout_waves import RolloutCandidate, measure_capacity, rack_key, schedule_waves
from assay.model.node import Node


@dataclass(frozen=True, slots=True)
class FilePlan:
    """What the files of two revisions say, compared. `alike` are the nodes of both, in groups that change alike."""

    before: FleetRevision
    after: FleetRevision
    nodes: InventoryChanges
    alike: tuple[NodeGroup, ...]
    cables: tuple[CablingJob, ...]
    settings: tuple[SettingDifference, ...]
    other: tuple[OtherChange, ...]


def make_plan_content(files: FilePlan) -> PlanContent:
    """Return the content of a plan."""
    nodes: dict[str, list[str]] = defaultdict(list)
    for name, what in (*_list_inventory_changes(files.nodes), *_list_spec_changes(files)):
        nodes[name].append(what)
    serving = NodeStanding(files.after.policy.service_state, True, False)
    standings = {name: serving for one in (files.before, files.after) for name in one.fleet.nodes}
    return PlanContent(
        {name: tuple(what) for name, what in nodes.items()},
        tuple(_list_waves(files)),
        tuple(_list_other_changes(files)),
        tuple(
            f"{one.risk}: {one.why}"
            for one in rank_risks(files.before, files.after, files.nodes, standings, files.other)
        ),
    )


def _list_inventory_changes(changes: InventoryChanges) -> Iterator[tuple[str, str]]:
    for node in changes.added:
        yield node.name, f"added: {_describe_node(node)}"
    for node in changes.removed:
        yield node.name, f"removed: {_describe_node(node)}"
    for old, new in changes.renamed:
        yield new.name, f"renamed from {old.name}"
    for one in changes.changed:
        yield from ((name, f"{one.what} {one.old} → {one.new}") for name in one.nodes)


def _describe_node(node: Node) -> str:
    place = f"{node.site}/{node.rack}/{node.u}"
    start = node.settings.lifecycle_start
    return f"pool {node.pool}, spec {node.spec}, profile {node.profile}, at {place}{f', {start}' if start else ''}"


def _list_spec_changes(files: FilePlan) -> Iterator[tuple[str, str]]:
    for group in files.alike:
        changes = [*_describe_pair(group.pair)]
        if _takes_out(files.after, group):
            repair = find_repair_route(files.after.policy, files.after.policy.service_state, group.pair).repair
            changes.append(f"leaves service through {repair or 'no state of the policy'}")
        yield from ((name, what) for name in group.names for what in changes)


def _describe_pair(pair: SpecPair) -> Iterator[str]:
    for move in pair.moves:
        yield f"{move.component} {move.old or 'none'} → {move.new}"
    for setting in pair.settings:
        yield f"{setting.field} {setting.old} → {setting.new}"
    for bound in pair.thresholds:
        yield f"limit {bound.limit} {bound.old or 'none'} → {bound.new or 'none'}"


def _takes_out(after: FleetRevision, group: NodeGroup) -> bool:
    return group.pair.needs_service_exit and after.fleet.profiles[group.key[3]].acts_on_faults


def _list_waves(files: FilePlan) -> Iterable[tuple[str, ...]]:
    policy, every = files.after.policy, files.after.fleet.nodes.values()
    leaving = {name for group in files.alike if _takes_out(files.after, group) for name in group.names}
    candidates = [
        RolloutCandidate(node.name, node.pool, rack_key(node), node.spec, 0.0) for node in every if node.name in leaving
    ]
    room = measure_capacity(policy.limits, every, every, ())
    return (wave.nodes for wave in schedule_waves(candidates, room, policy.rollouts.canaries).waves)


def _list_other_changes(files: FilePlan) -> Iterator[str]:
    yield from (f"{one.path}: {one.old or 'none'} → {one.new or 'none'}" for one in files.settings)
    yield from (f"{job.fabric}: {'; '.join(job.steps)}" for job in files.cables)
    yield from (f"no longer judged: {check}" for check in files.before.checks if check not in files.after.checks)
    yield from (f"{one.topic}: {one.what}" for one in files.other)
