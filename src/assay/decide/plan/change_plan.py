"""Compares two revisions of the fleet: what merging one into the other would do.

It also adds notes. No note refuses the plan, but each tells something that would surprise a person.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from assay.decide.moves.circuit_breaker import can_be_wave
from assay.decide.plan.all_other_changes import list_other_changes
from assay.decide.plan.assumptions import CountingChange
from assay.decide.plan.cable_moves_and_adapter_replacements import CablingJob
from assay.decide.plan.cabling_work_order import find_recabled_nodes
from assay.decide.plan.check_reruns import CheckRerun, StaleCheckFinder, list_check_reruns
from assay.decide.plan.current_fleet_state import FleetFacts, NodeStanding, find_node_standing
from assay.decide.plan.drift_response import DriftGroup, DriftResponse, predict_drift_responses
from assay.decide.plan.file_plan import FilePlan, make_plan_content
from assay.decide.plan.fleet_revision import FleetRevision, check_references
from assay.decide.plan.grouped_spec_changes import (
    ConfigurationChange,
    FirmwareChange,
    LimitChange,
    list_configuration_changes,
    list_firmware_changes,
    list_limit_changes,
)
from assay.decide.plan.inventory_changes import InventoryChanges, compare_inventories
from assay.decide.plan.lemon_changes import note_lemons
from assay.decide.plan.merge_risks import PlanRisk, rank_risks
from assay.decide.plan.other_change import OtherChange
from assay.decide.plan.other_spec_changes import find_shown_specs
from assay.decide.plan.plan_content import NO_CONTENT, PlanContent
from assay.decide.plan.policy_changes import (
    ResponseChange,
    SettingDifference,
    compare_bundles,
    compare_fabric_requirements,
    compare_fault_classes,
    compare_policy_settings,
    compare_profiles,
    compare_responses,
)
from assay.decide.plan.refusals import PlanRefusal, RefusalCase, find_refusals
from assay.decide.plan.rollout_nodes_and_limits import (
    NodeRollout,
    RolloutPlan,
    compute_rollout_capacity,
    note_mixed_racks,
    plan_rollout,
)
from assay.decide.plan.spec_pair_comparison import NodeGroup, compare_spec_pairs, group_nodes
from assay.decide.plan.uncompiled_designs import plan_cables
from assay.decide.state.node_entry import list_lapsed_imports
from assay.model.backtest_report import BacktestReport, PolicyReplayReport
from assay.model.node import Node
from assay.model.text.text_lists import format_count, format_nodes

BRINGING_ACTIONS = ("cordon", "drain", "drain-now", "reboot", "zap", "uncordon")
"""What a node of a rollout goes through."""


def list_plan_notes(
    before: FleetRevision,
    after: FleetRevision,
    standings: Mapping[str, NodeStanding],
    following: Iterable[DriftResponse],
    settings: Iterable[ConfigurationChange],
    planned: RolloutPlan,
    facts: FleetFacts,
) -> tuple[str, ...]:
    """Return the notes, the most important first."""
    return (
        *_note_trust(after, planned),
        *_note_lapsed_imports(after, facts),
        *_note_breaker(after, standings, following),
        *_note_unread_settings(settings),
        *note_mixed_racks(after, planned.schedule),
        *note_lemons(before, after, facts),
    )


def _note_trust(after: FleetRevision, planned: RolloutPlan) -> Iterator[str]:
    """Yield the trust step at which each pool's nodes change, where assay does not simply act."""
    actions = [action for state in after.policy.states.values() for action in state.entry if action in BRINGING_ACTIONS]
    pools = Counter(after.fleet.nodes[name].pool for name in planned.routes if name in after.fleet.nodes)
    for pool, count in sorted(pools.items()):
        setting = after.fleet.trust.find(pool, actions)
        does = {
            "watch": "assay does nothing, and says what it would do",
            "suggest": "each move waits for a person's yes",
        }
        if setting.step in does:
            nodes = format_count(count, "node")
            yield f"{nodes} of pool {pool} change at the trust step {setting}: {does[setting.step]}"


def _note_breaker(
    after: FleetRevision, standings: Mapping[str, NodeStanding], following: Iterable[DriftResponse]
) -> Iterator[str]:
    """Yield a note for each pool whose breaker the change itself will open: all its nodes drift at the next pass."""
    breaker, fleet = after.policy.breaker, after.fleet
    shown = ("moves", "noted", "at_once", "idle")
    hit = {node for one in following if one.what in shown and _is_serious(after, one) for node in one.nodes}
    counting = [node for name, node in fleet.nodes.items() if standings[name].is_meant_to_serve]
    size = Counter(node.pool for node in counting)
    drifting = Counter(node.pool for node in counting if node.name in hit)
    for pool, count in sorted(drifting.items()):
        if count >= breaker.min_nodes and count * 100 >= breaker.percent * size[pool]:
            held = f"for {breaker.window_minutes:g} min no fault takes a node of it out of service"
            wave = f"{count} of {size[pool]} serving nodes will show the change as a fault at the next look"
            yield f"the breaker of pool {pool} will open: {wave}, and {held} ({after.policy_line('breaker')})"


def _is_serious(after: FleetRevision, one: DriftResponse) -> bool:
    return can_be_wave(after.policy.breaker, one.fault, after.catalog.find_treatment(one.fault).severity)


def _note_lapsed_imports(after: FleetRevision, facts: FleetFacts) -> Iterator[str]:
    """Yield a note for each expired import that names nodes which the ledger does not know. It needs a ledger."""
    nodes = after.fleet.nodes.values() if facts.node_states else ()
    for day, names in list_lapsed_imports(nodes, facts.node_states, facts.now).items():
        many = f"{format_nodes(names)}, which assay has not seen yet"
        yield f"the service_import of {many}, expired on {day}: they enter service through proof"


def _note_unread_settings(settings: Iterable[ConfigurationChange]) -> Iterator[str]:
    for one in settings:
        if not one.seen_by and one.setting.way != "next_wipe":
            many = format_count(len(one.nodes), "node")
            yield f"no check reads {one.setting.field} of the spec: nobody will see whether {many} became so"


@dataclass(frozen=True)
class ChangePlan:
    """What merging would do, the most important first. `content` is the part of it that the files alone decide."""

    base: str
    head: str
    nodes: InventoryChanges
    firmware: tuple[FirmwareChange, ...]
    configuration: tuple[ConfigurationChange, ...]
    limits: tuple[LimitChange, ...]
    reruns: tuple[CheckRerun, ...]
    checks_gone: tuple[str, ...]
    recounts: tuple[CountingChange, ...]
    follows: tuple[DriftResponse, ...]
    cables: tuple[CablingJob, ...]
    answers: tuple[ResponseChange, ...]
    policy: tuple[SettingDifference, ...]
    faults: tuple[SettingDifference, ...]
    profiles: tuple[SettingDifference, ...]
    bundles: tuple[SettingDifference, ...]
    fabrics: tuple[SettingDifference, ...]
    work: RolloutPlan
    backtest: BacktestReport | None
    policy_replay: PolicyReplayReport | None
    notes: tuple[str, ...]
    refused: tuple[PlanRefusal, ...]
    as_of: datetime | None = None
    other: tuple[OtherChange, ...] = ()
    risks: tuple[PlanRisk, ...] = ()
    content: PlanContent = NO_CONTENT

    @property
    def has_changes(self) -> bool:
        """Whether merging changes anything for the fleet."""
        nodes = (self.nodes.added, self.nodes.removed, self.nodes.renamed, self.nodes.changed)
        specs = (self.firmware, self.configuration, self.limits, self.reruns, self.checks_gone, self.recounts)
        nodes_or_specs = any((*nodes, *specs, self.cables))
        return nodes_or_specs or any(
            (self.answers, self.policy, self.faults, self.profiles, self.bundles, self.fabrics, self.other, self.risks)
        )


def make_change_plan(before: FleetRevision, after: FleetRevision, facts: FleetFacts) -> ChangePlan:
    """Compare two revisions, with the present state of the fleet. Raises AssayError if one cannot be used."""
    check_references(before)
    check_references(after)
    nodes = compare_inventories(before.fleet, after.fleet)
    before, cables = plan_cables(before, after)
    alike = _group_alike(before, after, nodes, cables)
    standings = dict(_map_standings(before, after, facts, {new.name: old for old, new in nodes.renamed}))
    staleness = StaleCheckFinder(before, after)
    following = predict_drift_responses(after, _group_drifting(after, alike, staleness, facts, standings))
    planned = plan_rollout(
        after.policy,
        facts,
        _list_node_rollouts(after, alike, standings),
        compute_rollout_capacity(after.policy, after.fleet, standings),
    )
    settings = list_configuration_changes(alike, after)
    plan = ChangePlan(
        base=before.name,
        head=after.name,
        nodes=nodes,
        firmware=list_firmware_changes(alike),
        configuration=settings,
        limits=list_limit_changes(alike, after),
        reruns=list_check_reruns(alike, staleness, after, planned.routes),
        checks_gone=staleness.removed_checks,
        recounts=facts.recounts,
        follows=following,
        cables=cables,
        answers=compare_responses(before, after),
        policy=compare_policy_settings(before, after),
        faults=compare_fault_classes(before, after),
        profiles=compare_profiles(before, after),
        bundles=compare_bundles(before, after),
        fabrics=compare_fabric_requirements(before, after),
        work=planned,
        backtest=facts.backtest,
        policy_replay=facts.policy_replay,
        notes=list_plan_notes(before, after, standings, following, settings, planned, facts),
        refused=find_refusals(RefusalCase(before, after, facts, nodes, cables, standings, following)),
        as_of=facts.now,
    )
    other = list_other_changes(before, after, staleness.rewritten, _find_shown_specs(plan, before, after))
    plan = replace(plan, other=other, risks=rank_risks(before, after, nodes, standings, other))
    return replace(plan, content=_make_content(plan, before, after, alike))


def _make_content(
    plan: ChangePlan, before: FleetRevision, after: FleetRevision, alike: tuple[NodeGroup, ...]
) -> PlanContent:
    settings = (*plan.policy, *plan.faults, *plan.profiles, *plan.bundles, *plan.fabrics)
    return make_plan_content(FilePlan(before, after, plan.nodes, alike, plan.cables, settings, plan.other))


def _find_shown_specs(plan: ChangePlan, before: FleetRevision, after: FleetRevision) -> set[str]:
    """Return the specs whose changes the plan shows already."""
    settings = {
        "FirmwareBundle": [one.path for one in plan.bundles],
        "FabricDesign": [one.path for one in plan.fabrics],
        "FaultCatalog": ["answers" for _ in plan.answers[:1]] + [one.path for one in plan.faults],
        "LifecyclePolicy": ["answers" for _ in plan.answers[:1]] + [one.path for one in plan.policy],
    }
    return find_shown_specs(before, after, settings, {job.fabric for job in plan.cables})


def _group_alike(
    before: FleetRevision, after: FleetRevision, nodes: InventoryChanges, cables: tuple[CablingJob, ...]
) -> tuple[NodeGroup, ...]:
    """Return the nodes of both revisions, in groups that change in the same way."""
    recabled = find_recabled_nodes(before.fleet, after.fleet, cables)
    return group_nodes(nodes, compare_spec_pairs(before, after, nodes.kept), recabled)


def _map_standings(
    before: FleetRevision, after: FleetRevision, facts: FleetFacts, old_forms: Mapping[str, Node]
) -> Iterator[tuple[str, NodeStanding]]:
    """Yield the state of every node of either revision; for a removed node, the state under the present policy.

    `old_forms` are the renamed machines, by their new names: such a node stands where its machine stands now.
    """
    for name, node in before.fleet.nodes.items():
        yield name, find_node_standing(before.policy, facts, node)
    for name, node in after.fleet.nodes.items():
        yield name, find_node_standing(after.policy, facts, old_forms.get(name, node))


def _list_node_rollouts(
    after: FleetRevision, alike: tuple[NodeGroup, ...], standings: Mapping[str, NodeStanding]
) -> Iterator[NodeRollout]:
    for group in alike:
        if group.pair.needs_service_exit:
            acts = after.fleet.profiles[group.key[3]].acts_on_faults
            for old, new in group.nodes:
                yield NodeRollout(old, new, group.pair, standings[new.name], acts)


def _group_drifting(
    after: FleetRevision,
    alike: tuple[NodeGroup, ...],
    staleness: StaleCheckFinder,
    facts: FleetFacts,
    standings: Mapping[str, NodeStanding],
) -> Iterator[tuple[DriftGroup, list[str]]]:
    """Yield the nodes that differ from their new spec, grouped by their state."""
    for group in alike:
        if group.pair.has_drift:
            stale = staleness.find(group.key, group.pair, group.changed_fields)
            places: dict[tuple[str, bool], list[str]] = defaultdict(list)
            for name in group.names:
                places[standings[name].state, _is_zapped(facts, name)].append(name)
            for (state, brought), names in places.items():
                serves = state in after.policy.states and after.policy.states[state].in_service
                leaves = serves and group.pair.needs_service_exit
                yield DriftGroup(state, group.key[3], stale, brought, leaves), names


def _is_zapped(facts: FleetFacts, name: str) -> bool:
    """Whether the node was zapped already during its stay in the state where it is."""
    node_state = facts.node_states.get(name)
    effect = node_state.find_effect(node_state.decision, "zap") if node_state else None
    return effect is not None and effect.standing in ("done", "verified")
