"""Compares two revisions of the fleet: what merging one into the other would do, with notes on what may surprise.

The content of a plan is what a reviewer approves: what the revisions say, the waves, and the nodes that are in none.
Without the fleet's facts, its waves are those of a fleet in which every node serves, so that the order of the canaries
and the limits are part of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from assay.decide.moves.circuit_breaker import can_be_wave
from assay.decide.plan.cable_moves import CablingJob, find_recabled_nodes, plan_cables
from assay.decide.plan.check_reruns import CheckRerun, StaleCheckFinder, list_check_reruns
from assay.decide.plan.drift_response import DriftGroup, DriftResponse, predict_drift_responses
from assay.decide.plan.inputs import (
    BacktestReport,
    CountingChange,
    FleetFacts,
    FleetRevision,
    HistoryReport,
    NodeStanding,
    RunningRollout,
    check_references,
    find_node_standing,
)
from assay.decide.plan.inventory_changes import InventoryChanges, compare_inventories
from assay.decide.plan.other_changes import list_other_changes
from assay.decide.plan.other_spec_changes import OtherChange, find_shown_specs
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
from assay.decide.plan.refusals import PlanRefusal, PlanRisk, RefusalCase, find_refusals, rank_risks
from assay.decide.plan.review import NEEDS_NOTHING, NO_CONTENT, PlanContent
from assay.decide.plan.rollout_nodes import (
    NodeRollout,
    RolloutPlan,
    compute_rollout_capacity,
    find_repair_route,
    note_mixed_racks,
    plan_rollout,
)
from assay.decide.plan.spec_pair_comparison import (
    ConfigurationChange,
    FirmwareChange,
    LimitChange,
    NodeGroup,
    SpecPair,
    compare_spec_pairs,
    group_nodes,
    list_configuration_changes,
    list_firmware_changes,
    list_limit_changes,
    spec_pair_key,
)
from assay.decide.rollouts.rollout_waves import (
    RolloutCandidate,
    make_schedule,
    measure_capacity,
    rack_key,
    schedule_waves,
)
from assay.decide.state.lemon_score import LemonScore, find_lemon
from assay.decide.state.node_entry import list_lapsed_imports
from assay.declare.stand_ins import list_refused_zaps
from assay.model.facts import fact, frozen, internal
from assay.model.node import Node
from assay.model.text.lists import format_count, format_list, format_nodes
from assay.model.timestamps import format_minute


def _list_notes(before: FleetRevision, after: FleetRevision, facts: FleetFacts) -> Iterator[str]:
    if before.policy.lemon == after.policy.lemon:
        return
    states = [state for name, state in sorted(facts.node_states.items()) if name in after.fleet.nodes]
    lemons = [
        (node_state.node, find_lemon(before.policy, node_state), find_lemon(after.policy, node_state))
        for node_state in states
    ]
    line = after.policy_line("lemon")
    if new := [_format(node, score) for node, old, score in lemons if score and not old]:
        yield f"by the new score, a lemon: {format_list(new, 6)} ({line})"
    if gone := [_format(node, old) for node, old, score in lemons if old and not score]:
        yield f"by the new score, no lemon any more: {format_list(gone, 6)} ({line})"


def _format(node: str, score: LemonScore) -> str:
    return f"{node} with {score.points:g} of {score.threshold:g}"


@frozen
class FilePlan:
    """What the files of two revisions say, compared. `alike` are the nodes of both, in groups that change alike."""

    before: FleetRevision
    after: FleetRevision
    nodes: InventoryChanges
    alike: tuple[NodeGroup, ...]
    cables: tuple[CablingJob, ...]
    settings: tuple[SettingDifference, ...]
    other: tuple[OtherChange, ...]


def make_plan_content(files: FilePlan, facts: FleetFacts, work: RolloutPlan, held: Mapping[str, str]) -> PlanContent:
    """Return the content of a plan. `held` says how each node stands that needs the change and is in no wave."""
    nodes: dict[str, list[str]] = defaultdict(list)
    for name, change in (*_list_inventory_changes(files.nodes), *_list_spec_changes(files)):
        nodes[name].append(change)
    serving = NodeStanding(files.after.policy.service_state, True, False)
    standings = {name: serving for revision in (files.before, files.after) for name in revision.fleet.nodes}
    return PlanContent(
        {name: tuple(changes) for name, changes in nodes.items()},
        tuple(_list_waves(files)) if facts.missing else tuple(wave.nodes for wave in work.schedule.waves),
        tuple(_list_other_changes(files)),
        tuple(
            f"{risk.risk}: {risk.why}"
            for risk in rank_risks(files.before, files.after, files.nodes, standings, files.other)
        ),
        None if facts.missing else held,
    )


def _list_inventory_changes(changes: InventoryChanges) -> Iterator[tuple[str, str]]:
    for node in changes.added:
        yield node.name, f"added: {_describe_node(node)}"
    for node in changes.removed:
        yield node.name, f"removed: {_describe_node(node)}"
    for old, new in changes.renamed:
        yield new.name, f"renamed from {old.name}"
    for change in changes.changed:
        yield from ((name, f"{change.what} {change.old} → {change.new}") for name in change.nodes)


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
        yield from ((name, change) for name in group.names for change in changes)


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
    yield from (f"{setting.path}: {setting.old or 'none'} → {setting.new or 'none'}" for setting in files.settings)
    yield from (f"{job.fabric}: {'; '.join(job.steps)}" for job in files.cables)
    yield from (f"no longer judged: {check}" for check in files.before.checks if check not in files.after.checks)
    yield from (f"{other.topic}: {other.what}" for other in files.other)


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
        *_note_facts(after, planned, facts),
        *_note_trust(after, planned),
        *_note_lapsed_imports(after, facts),
        *_note_breaker(after, standings, following),
        *_note_unread_settings(settings),
        *note_mixed_racks(after, planned.schedule),
        *_list_notes(before, after, facts),
    )


def _note_facts(after: FleetRevision, planned: RolloutPlan, facts: FleetFacts) -> Iterator[str]:
    """Yield what the plan does not know, and what else is under way in the fleet."""
    if facts.missing:
        effect = "this plan has no waves and no hours, and takes every node as serving"
        yield f"the facts of the fleet are missing ({facts.missing}): {effect}"
        return
    if facts.history_missing:
        yield facts.history_missing
    touched = sorted({*planned.routes, *planned.under_way} & after.fleet.nodes.keys())
    if touched and facts.evidence_at:
        seen = [(facts.evidence_at[name], name) for name in touched if name in facts.evidence_at]
        unseen = [name for name in touched if name not in facts.evidence_at]
        oldest = [f"the oldest is {min(seen)[1]}'s of {format_minute(min(seen)[0])}"] if seen else []
        none = [f"{format_nodes(unseen)} has none"] if unseen else []
        yield f"evidence of the nodes to change: {'; '.join([*oldest, *none])}"


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


def _note_examples(after: FleetRevision, changing: Iterable[NodeRollout]) -> Iterator[str]:
    """Yield what real machines will refuse when the change comes to them: an example stands in a site's own place."""
    pushed = {change.new.name: bool(change.pair.moves) for change in changing if change.acts}
    nodes: dict[str, list[str]] = defaultdict(list)
    for name, reason in list_refused_zaps(after.fleet, pushed, {name for name, moves in pushed.items() if moves}):
        nodes[reason].append(name)
    yield from (f"a zap of {format_nodes(names)} will be refused: {reason}" for reason, names in nodes.items())


def _note_breaker(
    after: FleetRevision, standings: Mapping[str, NodeStanding], following: Iterable[DriftResponse]
) -> Iterator[str]:
    """Yield a note for each pool whose breaker the change itself will open: all its nodes drift at the next pass."""
    breaker, fleet = after.policy.breaker, after.fleet
    shown = ("moves", "noted", "at_once", "idle")
    serious = [
        response
        for response in following
        if response.what in shown
        and can_be_wave(breaker, response.fault, after.catalog.find_treatment(response.fault).severity)
    ]
    hit = {node for response in serious for node in response.nodes}
    counting = [node for name, node in fleet.nodes.items() if standings[name].is_meant_to_serve]
    size = Counter(node.pool for node in counting)
    drifting = Counter(node.pool for node in counting if node.name in hit)
    for pool, count in sorted(drifting.items()):
        if count >= breaker.min_nodes and count * 100 >= breaker.percent * size[pool]:
            held = f"for {breaker.window_minutes:g} min no fault takes a node of it out of service"
            wave = f"{count} of {size[pool]} serving nodes will show the change as a fault at the next look"
            yield f"the breaker of pool {pool} will open: {wave}, and {held} ({after.policy_line('breaker')})"


def _note_lapsed_imports(after: FleetRevision, facts: FleetFacts) -> Iterator[str]:
    """Yield a note for each expired import that names nodes which the ledger does not know. It needs a ledger."""
    nodes = after.fleet.nodes.values() if facts.node_states else ()
    for day, names in list_lapsed_imports(nodes, facts.node_states, facts.now).items():
        many = f"{format_nodes(names)}, which assay has not seen yet"
        yield f"the service_import of {many}, expired on {day}: they enter service through proof"


def _note_unread_settings(settings: Iterable[ConfigurationChange]) -> Iterator[str]:
    for setting in settings:
        if not setting.seen_by and setting.setting.way != "next_wipe":
            many = format_count(len(setting.nodes), "node")
            yield f"no check reads {setting.setting.field} of the spec: nobody will see whether {many} became so"


@fact
class PlanFacts:
    """What the plan knows of the fleet beside the files."""

    missing: str = ""
    """Why it knows nothing: then it has no waves and no hours, and takes every node as serving; "" if it does."""
    position: int = 0
    """The number of the ledger's newest entry that it knows."""
    rollout: RunningRollout | None = None
    """The rollout that a merge would replace; null without one."""
    needless: tuple[str, ...] = ()
    """The nodes that have not left for it, and that need nothing after the merge: they keep what they have."""


@fact
class ChangePlan:
    """What merging a change would do to the fleet."""

    base: str
    """The revision before the change."""
    head: str
    """The revision with the change."""
    nodes: InventoryChanges = internal()
    firmware: tuple[FirmwareChange, ...]
    """The firmware that changes."""
    configuration: tuple[ConfigurationChange, ...]
    """The settings that change."""
    limits: tuple[LimitChange, ...]
    """The limits that change."""
    reruns: tuple[CheckRerun, ...]
    """The checks whose passes no longer count."""
    checks_gone: tuple[str, ...]
    """The checks that are gone."""
    recounts: tuple[CountingChange, ...]
    """The failures that begin or stop to count."""
    follows: tuple[DriftResponse, ...]
    """What the policy does with nodes that differ from their spec after the merge."""
    cables: tuple[CablingJob, ...]
    """The work on cables."""
    answers: tuple[ResponseChange, ...]
    """The faults that the policy answers in another way."""
    policy: tuple[SettingDifference, ...]
    """The settings of the policy that change."""
    faults: tuple[SettingDifference, ...]
    """The settings of fault catalogues that change."""
    profiles: tuple[SettingDifference, ...]
    """The settings of management profiles that change."""
    bundles: tuple[SettingDifference, ...]
    """The settings of firmware bundles that change."""
    fabrics: tuple[SettingDifference, ...]
    """The settings of fabric designs that change."""
    work: RolloutPlan
    """How nodes leave service for the change."""
    backtest: BacktestReport | None
    """What recorded history says about the change; null if there is none to ask, or nothing to ask it."""
    history: HistoryReport | None
    """The stored history judged by both revisions; null if they judge alike, or there is no ledger to ask."""
    notes: tuple[str, ...]
    """What else to know."""
    refused: tuple[PlanRefusal, ...]
    """The limits of the policy that it would break; with any, the exit code is 1."""
    as_of: datetime | None = internal(default=None)
    other: tuple[OtherChange, ...] = ()
    """What else changes."""
    risks: tuple[PlanRisk, ...] = ()
    """What deserves a second look."""
    content: PlanContent = internal(default=NO_CONTENT)
    """What a reviewer approves."""
    facts: PlanFacts = PlanFacts()
    """What it knows of the fleet beside the files."""
    bundle_pools: tuple[str, ...] = internal(default=())

    @property
    def has_changes(self) -> bool:
        """Whether merging changes anything for the fleet."""
        nodes = (self.nodes.added, self.nodes.removed, self.nodes.renamed, self.nodes.changed)
        specs = (self.firmware, self.configuration, self.limits, self.reruns, self.checks_gone, self.recounts)
        nodes_or_specs = any((*nodes, *specs, self.cables))
        return nodes_or_specs or any(
            (self.answers, self.policy, self.faults, self.profiles, self.bundles, self.fabrics, self.other, self.risks)
        )


def make_change_plan(
    before: FleetRevision, after: FleetRevision, facts: FleetFacts, earlier: Mapping[str, FleetRevision] = {}
) -> ChangePlan:
    """Compare two revisions, with the present state of the fleet. Raises AssayError if one cannot be used.

    `earlier`: what nodes of the rollout that is under way had before, by the commits that its facts name.
    """
    check_references(before)
    check_references(after)
    nodes = compare_inventories(before.fleet, after.fleet)
    before, cables = plan_cables(before, after)
    recabled = find_recabled_nodes(before.fleet, after.fleet, cables)
    alike = group_nodes(nodes, compare_spec_pairs(before, after, nodes.kept), recabled)
    standings = dict(_map_standings(before, after, facts, {new.name: old for old, new in nodes.renamed}))
    staleness = StaleCheckFinder(before, after)
    following = predict_drift_responses(after, _group_drifting(after, alike, staleness, facts, standings))
    changing = list(_list_node_rollouts(after, alike, standings))
    needed = list(_count_from_earlier(changing, after, facts.rollout, earlier, standings))
    room = compute_rollout_capacity(after.policy, after.fleet, standings)
    planned = plan_rollout(after.policy, facts, needed, room)
    needless = {change.new.name for change in changing} - {change.new.name for change in needed}
    if facts.missing:
        planned = replace(planned, schedule=make_schedule((), ()), ways=())
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
        history=facts.history,
        notes=(
            *list_plan_notes(before, after, standings, following, settings, planned, facts),
            *_note_examples(after, changing),
        ),
        refused=find_refusals(RefusalCase(before, after, facts, nodes, cables, standings, following)),
        as_of=facts.now,
        facts=PlanFacts(facts.missing, facts.position, facts.rollout, tuple(sorted(needless))),
    )
    plan = replace(plan, bundle_pools=tuple(sorted(_find_bundle_pools(after, plan.bundles))))
    other = list_other_changes(before, after, staleness.rewritten, _find_shown_specs(plan, before, after))
    plan = replace(plan, other=other, risks=rank_risks(before, after, nodes, standings, other))
    changed = (*plan.policy, *plan.faults, *plan.profiles, *plan.bundles, *plan.fabrics)
    files = FilePlan(before, after, plan.nodes, alike, plan.cables, changed, plan.other)
    held = {**dict.fromkeys(needless, NEEDS_NOTHING), **dict(_describe_held(needed, planned))}
    return replace(plan, content=make_plan_content(files, facts, planned, held))


def _find_bundle_pools(after: FleetRevision, changes: Iterable[SettingDifference]) -> set[str]:
    """Return the pools whose nodes have a firmware bundle that changes."""
    specs = after.fleet.node_specs
    bundles = {(node.pool, specs[node.spec].firmware) for node in after.fleet.nodes.values() if node.spec in specs}
    changed = [change.path for change in changes]
    return {pool for pool, bundle in bundles if any(path.startswith(f"{bundle}.") for path in changed)}


def _describe_held(changing: Iterable[NodeRollout], planned: RolloutPlan) -> Iterator[tuple[str, str]]:
    """Yield how each node stands that would leave service for the change, and is in no wave."""
    states = {change.new.name: change.standing.state for change in changing}
    yield from ((name, f"in {states[name]}") for name in planned.under_way)
    for waiting in planned.schedule.waiting:
        yield from ((name, waiting.why) for name in waiting.nodes)


def _find_shown_specs(plan: ChangePlan, before: FleetRevision, after: FleetRevision) -> set[str]:
    """Return the specs whose changes the plan shows already."""
    settings = {
        "FirmwareBundle": [change.path for change in plan.bundles],
        "FabricDesign": [change.path for change in plan.fabrics],
        "FaultCatalog": ["answers" for _ in plan.answers[:1]] + [change.path for change in plan.faults],
        "LifecyclePolicy": ["answers" for _ in plan.answers[:1]] + [change.path for change in plan.policy],
    }
    return find_shown_specs(before, after, settings, {job.fabric for job in plan.cables})


def _map_standings(
    before: FleetRevision, after: FleetRevision, facts: FleetFacts, old_forms: Mapping[str, Node]
) -> Iterator[tuple[str, NodeStanding]]:
    """Yield the state of every node of either revision; for a removed node, the state under the present policy.

    `old_forms` are the renamed machines, by their new names: such a node stands where its machine stands now.
    """
    for name, node in before.fleet.nodes.items():
        yield name, find_node_standing(before.policy, facts, node)
    for name, node in after.fleet.nodes.items():
        is_new = name not in before.fleet.nodes and name not in old_forms
        known = replace(facts, missing="") if is_new else facts  # where a new node starts, the inventory says
        yield name, find_node_standing(after.policy, known, old_forms.get(name, node))


def _list_node_rollouts(
    after: FleetRevision, alike: tuple[NodeGroup, ...], standings: Mapping[str, NodeStanding]
) -> Iterator[NodeRollout]:
    for group in alike:
        if group.pair.needs_service_exit:
            acts = after.fleet.profiles[group.key[3]].acts_on_faults
            for old, new in group.nodes:
                yield NodeRollout(old, new, group.pair, standings[new.name], acts)


def _count_from_earlier(
    changing: Sequence[NodeRollout],
    after: FleetRevision,
    rollout: RunningRollout | None,
    earlier: Mapping[str, FleetRevision],
    standings: Mapping[str, NodeStanding],
) -> Iterator[NodeRollout]:
    """Yield the nodes of the rollout that the merge starts: what has not left for the present one folds in.

    As in `commit_adoption.group_rollout_nodes`: such a node counts from the commit that it had before.
    """
    stays = rollout.stays if rollout and any(change.acts for change in changing) else {}
    bases = {name: base for base, names in stays.items() if base in earlier for name in names}
    yield from (change for change in changing if change.new.name not in bases)
    for base in sorted(set(bases.values())):
        every = compare_inventories(earlier[base].fleet, after.fleet).kept
        kept = [(old, new) for old, new in every if bases.get(new.name) == base]
        pairs = compare_spec_pairs(earlier[base], after, kept)
        for old, new in kept:
            pair, acts = pairs[spec_pair_key(old, new)], after.fleet.profiles[new.profile].acts_on_faults
            if pair.needs_service_exit:
                yield NodeRollout(old, new, pair, standings[new.name], acts)


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
            stale = staleness.find(group)
            places: dict[tuple[str, bool], list[str]] = defaultdict(list)
            for name in group.names:
                node_state = facts.node_states.get(name)
                zap = node_state.find_entry_effect("zap") if node_state else None
                is_zapped = zap is not None and zap.standing in ("done", "verified")  # in its present stay
                places[standings[name].state, is_zapped].append(name)
            for (state, brought), names in places.items():
                serves = state in after.policy.states and after.policy.states[state].in_service
                leaves = serves and group.pair.needs_service_exit
                yield DriftGroup(state, group.key[3], stale, brought, leaves), names
