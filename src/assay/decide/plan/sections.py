"""The sections of a plan as lines for people. Text and Markdown each lay them out in their own way.

Sections of a plan about what will follow: the policy's answers, the backtest, failures that come to count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from assay.decide.plan.change_plan import ChangePlan
from assay.decide.plan.check_reruns import CheckRerun
from assay.decide.plan.drift_response import DriftResponse
from assay.decide.plan.inventory_changes import NodeChange
from assay.decide.plan.policy_changes import ResponseChange, SettingDifference
from assay.decide.plan.repair_routes import StayEstimate
from assay.decide.plan.setting_routes import SettingWay
from assay.decide.rollouts.rollout_waves import WaveSchedule
from assay.decide.state.node_entry import describe_entry
from assay.model.backtest_report import PolicyCostPoint
from assay.model.specs.policy_response import PolicyResponse
from assay.model.text.lists import fold_names, format_count, format_list, format_nodes


def format_backtest(plan: ChangePlan) -> Iterator[str]:
    """Yield the nodes about which the recorded history would have led to other decisions."""
    test = plan.backtest
    if test is None:
        return
    said = f"{test.days:.3g} days of history: {format_count(test.measurements, 'measurement')} of changed limits"
    lost = f"; of {test.unmapped} nobody can say to which limit they were held" if test.unmapped else ""
    yield f"{said}, {format_count(test.faults, 'fault')}{lost}"
    for acts, title in ((True, "would have acted, and does not now"), (False, "acts now, and would not have")):
        for one in (one for one in test.found if one.acts == acts):
            still = "; it is still so" if one.still else ""
            times = f", {one.times} times" if one.times > 1 else ""
            yield f"{title}: {one.node}: {one.because}: {one.then} → {one.now}{times}{still}"
    if not test.found:
        yield "on no node would anything have been decided otherwise"


POLICY_COSTS = {
    "node-hours out or cordoned while idle": ("out_node_hours", "cordoned_idle_node_hours"),
    "node-hours served with an open fault": ("catastrophic_node_hours", "degraded_node_hours"),
    "jobs that met a fault": ("catastrophic_jobs", "degraded_jobs"),
    "jobs that automation ended": ("jobs_ended",),
    "hours of people": ("person_hours",),
}
"""What a plan says of the costs of a policy; the JSON has each of them."""


def format_policy_replay(plan: ChangePlan) -> Iterator[str]:
    """Yield what both policies cost on recorded faults, and where old and new value of each number lie."""
    found = plan.policy_replay
    if found is None:
        return
    faults = f"{format_count(found.faults, 'fault')} on {format_count(found.nodes, 'node')}"
    yield f"replay of the last {found.days:g} days, {faults}: {found.note}"
    if found.old_costs:
        yield "\n".join(["old policy → new policy:", *_compare_costs(found.old_costs, found.new_costs)])
    for curve in found.curves:
        points = (f"  {point.value:g}{_mark(point)}: {_format_costs(point.costs)}" for point in curve.points)
        yield "\n".join([f"{curve.path}, with nothing else changed:", *points])


def _compare_costs(old: Mapping[str, float], new: Mapping[str, float]) -> Iterator[str]:
    for title, names in POLICY_COSTS.items():
        was, will = (sum(costs[name] for name in names) for costs in (old, new))
        said = "the same" if was == will else "lower" if will < was else "higher"
        yield f"  {title}: {was:,.1f} → {will:,.1f}, {said}"


def _mark(point: PolicyCostPoint) -> str:
    return f" ({point.revision})" if point.revision else ""


def _format_costs(costs: Mapping[str, float]) -> str:
    return ", ".join(f"{sum(costs[name] for name in names):,.1f} {title}" for title, names in POLICY_COSTS.items())


def format_recounts(plan: ChangePlan) -> Iterator[str]:
    """Yield the nodes on which a failure begins to count, or stops counting."""
    for one in plan.recounts:
        where = (
            f"fails on {format_nodes(one.nodes)} by its last outcomes"
            if one.nodes
            else "fails on no node as far as known"
        )
        yield f"{one.what} {one.why}; {where}"


def format_drift_responses(plan: ChangePlan) -> Iterator[str]:
    """Yield what the policy will do about nodes that no longer match their spec."""
    for one in plan.follows:
        yield f"{format_nodes(one.nodes)} in {one.state}: {_describe_drift_response(one)}"


def _describe_drift_response(one: DriftResponse) -> str:
    seen = f"seen as {one.fault} by {format_list(map(shorten_test_name, one.checks), 2)}"
    said = {
        "rolls": f"{seen}; they wait for their wave, and nobody is asked meanwhile [{one.rule}]",
        "at_once": f"{seen}; brought at once, in service; no node moves [{one.rule}]",
        "idle": f"{seen}; brought with the next idle moment, under a short cordon [{one.rule}]",
        "moves": f"{seen}; {one.answer} [{one.rule}]",
        "noted": f"{seen}; {_noted(one.answer)} [{one.rule}]",
        "tracked": f"{seen}; tracked and never acted on, by their profile",
        "fails": f"{format_list(map(shorten_test_name, one.checks), 2)} will fail, and lead to {one.to} [{one.rule}]",
        "stays": f"{format_list(map(shorten_test_name, one.checks), 2)} will fail; they stay, on a ticket [{one.rule}]",
        "ahead": "they take it when they come to the repair",
        "unseen": "no check of this state looks at it",
    }
    return said[one.what]


def _noted(answer: PolicyResponse | None) -> str:
    asks = "asks for a technician" if answer and answer.remedy == "ticket" else "is recorded"
    return f"the policy {asks} and moves no node"


def format_policy_answers(plan: ChangePlan) -> Iterator[str]:
    """Yield the answers of the policy to faults that change."""
    for one in plan.answers:
        yield f"{_format_response(one.old)} → {_format_response(one.new)}: {format_list(_cases(one), 6)}"


def _cases(one: ResponseChange) -> Iterator[str]:
    states: dict[tuple[str, bool | None], list[str]] = defaultdict(list)
    for state, fault, in_use in one.cases:
        states[fault, in_use].append(state)
    grouped: dict[tuple[tuple[str, ...], bool | None], list[str]] = defaultdict(list)
    for (fault, in_use), some in states.items():
        grouped[tuple(some), in_use].append(fault)
    for (places, in_use), faults in grouped.items():
        use = {None: "", True: ", in use", False: ", idle"}[in_use]
        yield f"{format_list(faults, 5)} in {format_list(places, 4)}{use}"


def _format_response(answer: PolicyResponse | None) -> str:
    return f"{answer} [{answer.rule}]" if answer else "not there"


def shorten_test_name(check: str) -> str:
    """Return the function's name of a check."""
    return check.rpartition("::")[2]


@dataclass(frozen=True, slots=True)
class PlanSection:
    """A title, and one line for each item; an item may have further lines, indented."""

    title: str
    lines: tuple[str, ...]


def format_headline(plan: ChangePlan) -> str:
    """Return the whole plan in one sentence."""
    if not plan.has_changes:
        return "nothing changes"
    risks = [format_count(len(plan.risks), "risk")] if plan.risks else []
    said = [*risks, *_node_counts(plan), *_work_counts(plan)]
    return format_list(said, 12) if said else "no node changes; what is said about them does"


def _node_counts(plan: ChangePlan) -> Iterator[str]:
    changed = {name for change in plan.nodes.changed for name in change.nodes}
    nodes = plan.nodes
    counts = [("added", len(nodes.added)), ("removed", len(nodes.removed)), ("renamed", len(nodes.renamed))]
    counts.append(("changed", len(changed)))
    yield from (f"{format_count(count, 'node')} {what}" for what, count in counts if count)


def _work_counts(plan: ChangePlan) -> Iterator[str]:
    moved = {name for move in plan.firmware for name in move.nodes}
    if moved:
        yield f"firmware on {format_count(len(moved), 'node')}"
    if plan.configuration:
        yield f"{format_count(len(plan.configuration), 'setting')} of specs"
    if plan.limits:
        yield format_count(len(plan.limits), "limit")
    if plan.reruns:
        yield f"checks to run again on {format_count(sum(len(one.nodes) for one in plan.reruns), 'node')}"
    if plan.cables:
        yield f"{format_count(len(plan.cables), 'job')} of cabling"
    cases = sum(len(one.cases) for one in plan.answers)
    if cases:
        yield f"{format_count(cases, 'answer')} of the policy"
    if plan.other:
        yield format_count(len(plan.other), "other change")
    if plan.work.schedule.waves:
        yield format_schedule_cost(plan.work.schedule)


def format_schedule_cost(schedule: WaveSchedule) -> str:
    """Return the cost of the waves, as part of a sentence."""
    waves = format_count(len(schedule.waves), "wave")
    return f"{waves} in {format_hours(schedule.hours)}, {schedule.node_hours:.0f} node-hours out of service"


def format_hours(count: float) -> str:
    """Return hours for people: `45 min`, `6 h`, `3.5 days`."""
    if count < 2:
        return f"{count * 60:.0f} min"
    return f"{count:.3g} h" if count < 48 else f"{count / 24:.3g} days"


def format_sections(plan: ChangePlan) -> list[PlanSection]:
    """Return the whole plan in sections; empty sections are left out."""
    made = (PlanSection(title, tuple(lines(plan))) for title, lines in SECTION_FORMATTERS)
    return [section for section in made if section.lines]


def _refused(plan: ChangePlan) -> Iterator[str]:
    for one in plan.refused:
        yield f"{one.limit} ({one.where}): {one.why}"


def _risks(plan: ChangePlan) -> Iterator[str]:
    for one in plan.risks:
        first, *rest = one.why.split("\n")
        yield "\n".join([f"{one.risk} ({one.where}): {first}", *rest])


def _other(plan: ChangePlan) -> Iterator[str]:
    every = set(find_all_pools(plan))
    for one in plan.other:
        touched = "all pools" if every.issubset(one.pools) else format_list(one.pools, 4) or "no pool"
        first, *rest = one.what.split("\n")
        yield "\n".join([f"{first} ({one.line}); touches {touched}", *rest])


def find_all_pools(plan: ChangePlan) -> list[str]:
    """Return the pools of the fleet after the merge, sorted."""
    return sorted({new.pool for _, new in plan.nodes.kept} | {node.pool for node in plan.nodes.added})


def _nodes(plan: ChangePlan) -> Iterator[str]:
    for what, some in (("added", plan.nodes.added), ("removed", plan.nodes.removed)):
        pools: dict[tuple[str, str], list[str]] = defaultdict(list)
        for node in some:
            pools[node.pool, f", {describe_entry(node, plan.as_of)}" if what == "added" else ""].append(node.name)
        yield from (f"{what}: {format_nodes(names)}, pool {pool}{start}" for (pool, start), names in pools.items())
    if renamed := [f"{old.name} → {new.name}" for old, new in plan.nodes.renamed]:
        yield f"renamed, with state, faults, holds and what is under way: {format_list(renamed, 12)}"
    kinds: dict[str, list[NodeChange]] = defaultdict(list)
    for change in plan.nodes.changed:
        kinds[change.what].append(change)
    for what, changes in kinds.items():
        yield from _changed(what, changes)


def _changed(what: str, changes: list[NodeChange], most: int = 6) -> Iterator[str]:
    """Yield one line for each kind of change, or one for all if every node has its own."""
    if len(changes) <= most:
        yield from (f"{what}: {format_nodes(one.nodes)}: {one.old} → {one.new}" for one in changes)
        return
    names = [name for one in changes for name in one.nodes]
    first = changes[0]
    yield f"{what}: {format_nodes(names)}, each its own; {first.nodes[0]}: {first.old} → {first.new}"


def _firmware(plan: ChangePlan) -> Iterator[str]:
    for one in plan.firmware:
        move = one.move
        resets = f"resets {move.reset}" if move.reset != "none" else "no reset"
        versions = f"{move.old or 'none'} → {move.new}"
        yield f"{format_nodes(one.nodes)}: {move.component} {versions}, {resets}, order {move.order}"


SETTING_WAYS: Mapping[SettingWay, str] = {
    "at_once": "brought at once in service",
    "idle": "brought in service with the next idle moment",
    "rollout": "brought by the rollout",
    "ticket": "a ticket asks people to bring it",
    "noted": "the difference is only recorded",
    "moves": "the fault moves the node",
    "tracked": "left to people, by the profile",
    "unseen": "not brought in service: no check of that state reads it",
    "next_wipe": "counts from the next wipe on",
    "": "re-judged, nothing is applied",
}


def _configuration(plan: ChangePlan) -> Iterator[str]:
    for one in plan.configuration:
        way, rule = SETTING_WAYS[one.setting.way], f" [{one.setting.rule}]" if one.setting.rule else ""
        resets = f", resets {one.setting.reset}" if one.setting.reset != "none" else ""
        unseen = "proven by the wipe itself" if one.setting.way == "next_wipe" else "no check reads it"
        seen = f"seen by {format_list(map(shorten_test_name, one.seen_by), 3)}" if one.seen_by else unseen
        change = f"{one.setting.field} {one.setting.old} → {one.setting.new}"
        yield f"{format_nodes(one.nodes)}, {format_list(one.pools, 3)}: {change}: {way}{resets}{rule}; {seen}"


def _limits(plan: ChangePlan) -> Iterator[str]:
    for one in plan.limits:
        bound = one.threshold
        read = format_list(map(shorten_test_name, one.checks), 3) or "no check"
        yield f"{bound.limit} of {one.spec}: {bound.old or 'none'} → {bound.new or 'none'} ({one.line}), read by {read}"


def _reruns(plan: ChangePlan) -> Iterator[str]:
    merged: dict[tuple[tuple[str, tuple[str, ...]], ...], tuple[list[str], CheckRerun]] = {}
    for one in plan.reruns:
        merged.setdefault(tuple(one.phases.items()), ([], one))[0].extend(one.nodes)
    for phases, (names, one) in merged.items():
        counts = [f"{phase} {len(checks)}" for phase, checks in phases]
        reasons = list(dict.fromkeys(why for stale in one.stale for why in stale.because))
        why = format_list([*reasons, *(["the repair"] if one.repair else [])], 4)
        yield f"{format_nodes(names)}: {format_list(counts)} (because of {why})"
    if plan.checks_gone:
        yield f"no longer judged: {format_list(map(shorten_test_name, plan.checks_gone), 6)}"


def _cables(plan: ChangePlan) -> Iterator[str]:
    for job in plan.cables:
        yield "\n".join([f"{job.fabric}: {job.steps[0]}", *(f"  {step}" for step in job.steps[1:])])


def _policy(plan: ChangePlan) -> Iterator[str]:
    yield from map(_reset, plan.policy)
    yield from format_policy_replay(plan)


def _faults(plan: ChangePlan) -> Iterator[str]:
    yield from map(_reset, plan.faults)


def _profiles(plan: ChangePlan) -> Iterator[str]:
    yield from map(_reset, plan.profiles)


def _bundles(plan: ChangePlan) -> Iterator[str]:
    yield from map(_reset, plan.bundles)


def _fabrics(plan: ChangePlan) -> Iterator[str]:
    yield from map(_reset, plan.fabrics)


def _reset(one: SettingDifference) -> str:
    return f"{one.path}: {one.old or 'none'} → {one.new or 'none'} ({one.line})"


def _waves(plan: ChangePlan) -> Iterator[str]:
    for wave in plan.work.schedule.waves:
        kind = "canary" if wave.canary else f"wave {wave.number}"
        pools = format_list(f"{count} of {pool}" for pool, count in wave.pools.items())
        cost = f"{format_hours(wave.hours)}, {wave.node_hours:.0f} node-hours"
        yield f"{kind}: {format_list(fold_names(wave.nodes), 6)} ({pools}), {cost}"


def _routes(plan: ChangePlan) -> Iterator[str]:
    for way in plan.work.rollout_routes:
        yield f"{format_hours(way.hours)} out: {' → '.join(way.route.states)}"
        yield format_list(map(_stage, way.stages), 20)
    stages = [stage for way in plan.work.rollout_routes for stage in way.stages]
    for source in dict.fromkeys(source for stage in stages if stage.basis == "assumed" for source in stage.sources):
        yield f"assumed, nothing is recorded: {source}"


def _not_in_a_wave(plan: ChangePlan) -> Iterator[str]:
    for waiting in plan.work.schedule.waiting:
        yield f"waits: {format_nodes(waiting.nodes)}: {waiting.why}"
    if plan.work.under_way:
        yield f"on their way already, they take it as they come: {format_nodes(plan.work.under_way)}"
    if plan.work.left_alone:
        yield f"left alone, by their profile: {format_nodes(plan.work.left_alone)}"


def _stage(stage: StayEstimate) -> str:
    basis = {"policy": "by the policy"}.get(stage.basis, stage.basis)
    return f"{stage.state} {format_hours(stage.hours)} ({basis})"


def _notes(plan: ChangePlan) -> Iterable[str]:
    return plan.notes


SECTION_FORMATTERS: tuple[tuple[str, Callable[[ChangePlan], Iterable[str]]], ...] = (
    ("Refused", _refused),
    ("Risks", _risks),
    ("Notes", _notes),
    ("Nodes", _nodes),
    ("Firmware", _firmware),
    ("Configuration", _configuration),
    ("Limits", _limits),
    ("Checks to run again", _reruns),
    ("What counts otherwise", format_recounts),
    ("What follows", format_drift_responses),
    ("Cables to move", _cables),
    ("Answers of the policy", format_policy_answers),
    ("Settings of the policy", _policy),
    ("Fault classes", _faults),
    ("Profiles", _profiles),
    ("Firmware bundles", _bundles),
    ("Fabrics", _fabrics),
    ("Also changed", _other),
    ("Waves", _waves),
    ("The way of a node", _routes),
    ("Not in a wave", _not_in_a_wave),
    ("Backtest", format_backtest),
)
