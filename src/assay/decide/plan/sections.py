"""The sections of a plan as lines for people. Text and Markdown each lay them out in their own way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

from assay.decide.plan.change_plan import ChangePlan
from assay.decide.plan.check_reruns import CheckRerun
from assay.decide.plan.drift_response import DriftResponse
from assay.decide.plan.inputs import HistoryReport
from assay.decide.plan.inventory_changes import NodeChange
from assay.decide.plan.policy_changes import ResponseChange, SettingDifference
from assay.decide.plan.setting_routes import SettingWay
from assay.decide.state.node_entry import describe_entry
from assay.model.facts import frozen
from assay.model.specs.policy_response import PolicyResponse
from assay.model.text.lists import fold_names, format_count, format_list, format_nodes


def format_backtest(plan: ChangePlan) -> Iterator[str]:
    """Yield the nodes about which the recorded history would have led to other decisions."""
    test = plan.backtest
    if test is None:
        return
    history = f"{test.days:.3g} days of history: {format_count(test.measurements, 'measurement')} of changed limits"
    lost = f"; of {test.unmapped} nobody can say to which limit they were held" if test.unmapped else ""
    yield f"{history}, {format_count(test.faults, 'fault')}{lost}"
    for acts, title in ((True, "would have acted where the base did not"), (False, "would not have acted")):
        for change in (change for change in test.found if change.acts == acts):
            still = "; it is still so" if change.still else ""
            times = f", {change.times} times" if change.times > 1 else ""
            yield f"{title}: {change.node}: {change.because}: {change.then} → {change.now}{times}{still}"
    if not test.found:
        yield "on no node would anything have been decided otherwise"


def format_history(history: HistoryReport | None) -> Iterator[str]:
    """Yield what the new version would have done otherwise with the stored history."""
    if history is None:
        return
    read = f"{history.days:g} days of history: {format_count(history.documents, 'document')}"
    yield f"{read}, {format_count(history.outcomes, 'outcome')} of the newest runs that differ"
    for each in history.closed:
        healthy = f"{len(each.healthy)} of them proven healthy later" if each.healthy else "none proven healthy later"
        yield f"would have closed {format_nodes(each.nodes)}, {healthy}: {each.fault}: {each.detail}"
    for each in history.lost:
        yield f"no longer seen on {format_nodes(each.nodes)}: {each.fault}: {each.detail}"
    yield from history.missing
    if not history.closed and not history.lost:
        yield "it would have closed the same nodes, and seen the same faults"


def format_recounts(plan: ChangePlan) -> Iterator[str]:
    """Yield the nodes on which a failure begins to count, or stops counting."""
    for change in plan.recounts:
        where = (
            f"fails on {format_nodes(change.nodes)} by its last outcomes"
            if change.nodes
            else "fails on no node as far as known"
        )
        yield f"{change.what} {change.why}; {where}"


def format_drift_responses(plan: ChangePlan) -> Iterator[str]:
    """Yield what the policy will do about nodes that no longer match their spec."""
    for response in plan.follows:
        yield f"{format_nodes(response.nodes)} in {response.state}: {_describe_drift_response(response)}"


def _describe_drift_response(response: DriftResponse) -> str:
    seen = f"seen as {response.fault} by {format_list(map(shorten_test_name, response.checks), 2)}"
    asks = "asks for a technician" if response.answer and response.answer.remedy == "ticket" else "is recorded"
    fails = f"{format_list(map(shorten_test_name, response.checks), 2)} will fail"
    rule = f"[{response.rule}]"
    texts = {
        "rolls": f"{seen}; they wait for their wave, and nobody is asked meanwhile {rule}",
        "at_once": f"{seen}; brought at once, in service; no node moves {rule}",
        "idle": f"{seen}; brought with the next idle moment, under a short cordon {rule}",
        "moves": f"{seen}; {response.answer} {rule}",
        "noted": f"{seen}; the policy {asks} and moves no node {rule}",
        "tracked": f"{seen}; tracked and never acted on, by their profile",
        "fails": f"{fails}, and lead to {response.to} {rule}",
        "stays": f"{fails}; they stay, on a ticket {rule}",
        "ahead": "they take it when they come to the repair",
        "unseen": "no check of this state looks at it",
    }
    return texts[response.what]


def format_policy_answers(plan: ChangePlan) -> Iterator[str]:
    """Yield the answers of the policy to faults that change."""
    for change in plan.answers:
        yield f"{_format_response(change.old)} → {_format_response(change.new)}: {format_list(_cases(change), 6)}"


def _cases(change: ResponseChange) -> Iterator[str]:
    states: dict[tuple[str, bool | None], list[str]] = defaultdict(list)
    for state, fault, in_use in change.cases:
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


@frozen
class PlanSection:
    """A title, and one line for each item; an item may have further lines, indented."""

    title: str
    lines: tuple[str, ...]


def format_headline(plan: ChangePlan) -> str:
    """Return the whole plan in one sentence."""
    if not plan.has_changes:
        return "nothing changes"
    risks = [format_count(len(plan.risks), "risk")] if plan.risks else []
    counts = [*risks, *_node_counts(plan), *_work_counts(plan)]
    return format_list(counts, 12) if counts else "no node changes; what is said about them does"


def _node_counts(plan: ChangePlan) -> Iterator[str]:
    changed = {name for change in plan.nodes.changed for name in change.nodes}
    nodes = plan.nodes
    counts = [("added", len(nodes.added)), ("removed", len(nodes.removed)), ("renamed", len(nodes.renamed))]
    counts.append(("changed", len(changed)))
    yield from (f"{format_count(count, 'node')} {fate}" for fate, count in counts if count)


def _work_counts(plan: ChangePlan) -> Iterator[str]:
    moved = {name for move in plan.firmware for name in move.nodes}
    if moved:
        yield f"firmware on {format_count(len(moved), 'node')}"
    if plan.configuration:
        yield f"{format_count(len(plan.configuration), 'setting')} of specs"
    if plan.limits:
        yield format_count(len(plan.limits), "limit")
    if plan.reruns:
        yield f"checks to run again on {format_count(sum(len(rerun.nodes) for rerun in plan.reruns), 'node')}"
    if plan.cables:
        yield f"{format_count(len(plan.cables), 'job')} of cabling"
    cases = sum(len(answer.cases) for answer in plan.answers)
    if cases:
        yield f"{format_count(cases, 'answer')} of the policy"
    if plan.other:
        yield format_count(len(plan.other), "other change")
    if plan.work.schedule.waves:
        schedule = plan.work.schedule
        waves = f"{format_count(len(schedule.waves), 'wave')} in {format_hours(schedule.hours)}"
        yield f"{waves}, {schedule.node_hours:.0f} node-hours out of service"


def format_hours(count: float) -> str:
    """Return hours for people: `45 min`, `6 h`, `3.5 days`."""
    if count < 2:
        return f"{count * 60:.0f} min"
    return f"{count:.3g} h" if count < 48 else f"{count / 24:.3g} days"


def format_sections(plan: ChangePlan) -> list[PlanSection]:
    """Return the whole plan in sections; empty sections are left out."""
    made = (PlanSection(title, tuple(lines(plan))) for title, lines in SECTION_FORMATTERS)
    return [section for section in made if section.lines]


def _risks(plan: ChangePlan) -> Iterator[str]:
    for risk in plan.risks:
        first, *rest = risk.why.split("\n")
        yield "\n".join([f"{risk.risk} ({risk.where}): {first}", *rest])


def _other(plan: ChangePlan) -> Iterator[str]:
    every = set(find_all_pools(plan))
    for change in plan.other:
        touched = "all pools" if every.issubset(change.pools) else format_list(change.pools, 4) or "no pool"
        first, *rest = change.what.split("\n")
        yield "\n".join([f"{first} ({change.line}); touches {touched}", *rest])


def find_all_pools(plan: ChangePlan) -> list[str]:
    """Return the pools of the fleet after the merge, sorted."""
    return sorted({new.pool for _, new in plan.nodes.kept} | {node.pool for node in plan.nodes.added})


def _nodes(plan: ChangePlan) -> Iterator[str]:
    for kind, some in (("added", plan.nodes.added), ("removed", plan.nodes.removed)):
        pools: dict[tuple[str, str], list[str]] = defaultdict(list)
        for node in some:
            pools[node.pool, f", {describe_entry(node, plan.as_of)}" if kind == "added" else ""].append(node.name)
        yield from (f"{kind}: {format_nodes(names)}, pool {pool}{start}" for (pool, start), names in pools.items())
    if renamed := [f"{old.name} → {new.name}" for old, new in plan.nodes.renamed]:
        yield f"renamed, with state, faults, holds and what is under way: {format_list(renamed, 12)}"
    former = {old.name: old.serial for old, _ in plan.nodes.kept}
    if taken := [new.name for _, new in plan.nodes.kept if former.get(new.name, new.serial) != new.serial]:
        yield f"another machine in its place: {format_nodes(taken)}; one that serves leaves at once (identity.changed)"
    kinds: dict[str, list[NodeChange]] = defaultdict(list)
    for change in plan.nodes.changed:
        kinds[change.what].append(change)
    for kind, changes in kinds.items():
        yield from _changed(kind, changes)


def _changed(kind: str, changes: list[NodeChange], most: int = 6) -> Iterator[str]:
    """Yield one line for each kind of change, or one for all if every node has its own."""
    if len(changes) <= most:
        yield from (f"{kind}: {format_nodes(change.nodes)}: {change.old} → {change.new}" for change in changes)
        return
    names = [name for change in changes for name in change.nodes]
    first = changes[0]
    yield f"{kind}: {format_nodes(names)}, each its own; {first.nodes[0]}: {first.old} → {first.new}"


def _firmware(plan: ChangePlan) -> Iterator[str]:
    for change in plan.firmware:
        move = change.move
        resets = f"resets {move.reset}" if move.reset != "none" else "no reset"
        versions = f"{move.old or 'none'} → {move.new}"
        yield f"{format_nodes(change.nodes)}: {move.component} {versions}, {resets}, order {move.order}"


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
    for wanted in plan.configuration:
        way, rule = SETTING_WAYS[wanted.setting.way], f" [{wanted.setting.rule}]" if wanted.setting.rule else ""
        resets = f", resets {wanted.setting.reset}" if wanted.setting.reset != "none" else ""
        unseen = "proven by the wipe itself" if wanted.setting.way == "next_wipe" else "no check reads it"
        seen = f"seen by {format_list(map(shorten_test_name, wanted.seen_by), 3)}" if wanted.seen_by else unseen
        change = f"{wanted.setting.field} {wanted.setting.old} → {wanted.setting.new}"
        yield f"{format_nodes(wanted.nodes)}, {format_list(wanted.pools, 3)}: {change}: {way}{resets}{rule}; {seen}"


def _limits(plan: ChangePlan) -> Iterator[str]:
    for change in plan.limits:
        bound = change.threshold
        read = format_list(map(shorten_test_name, change.checks), 3) or "no check"
        values = f"{bound.old or 'none'} → {bound.new or 'none'}"
        yield f"{bound.limit} of {change.spec}: {values} ({change.line}), read by {read}"


def _reruns(plan: ChangePlan) -> Iterator[str]:
    merged: dict[tuple[tuple[str, tuple[str, ...]], ...], tuple[list[str], CheckRerun]] = {}
    for rerun in plan.reruns:
        merged.setdefault(tuple(rerun.phases.items()), ([], rerun))[0].extend(rerun.nodes)
    for phases, (names, rerun) in merged.items():
        counts = [f"{phase} {len(checks)}" for phase, checks in phases]
        reasons = list(dict.fromkeys(reasons_text for texts in rerun.because.values() for reasons_text in texts))
        reasons_text = format_list([*reasons, *(["the repair"] if rerun.is_repaired else [])], 4)
        yield f"{format_nodes(names)}: {format_list(counts)} (because of {reasons_text})"
    if plan.checks_gone:
        yield f"no longer judged: {format_list(map(shorten_test_name, plan.checks_gone), 6)}"


def _cables(plan: ChangePlan) -> Iterator[str]:
    for job in plan.cables:
        yield "\n".join([f"{job.fabric}: {job.steps[0]}", *(f"  {step}" for step in job.steps[1:])])


def _policy(plan: ChangePlan) -> Iterator[str]:
    yield from map(_reset, plan.policy)


def _reset(change: SettingDifference) -> str:
    return f"{change.path}: {change.old or 'none'} → {change.new or 'none'} ({change.line})"


def _waves(plan: ChangePlan) -> Iterator[str]:
    for wave in plan.work.schedule.waves:
        kind = "canary" if wave.canary else f"wave {wave.number}"
        pools = format_list(f"{count} of {pool}" for pool, count in wave.pools.items())
        cost = f"{format_hours(wave.hours)}, {wave.node_hours:.0f} node-hours"
        yield f"{kind}: {format_list(fold_names(wave.nodes), 6)} ({pools}), {cost}"


def _routes(plan: ChangePlan) -> Iterator[str]:
    for way in plan.work.ways:
        yield f"{format_hours(way.hours)} out: {' → '.join(way.route.states)}"
        stays = [(stay, "by the policy" if stay.basis == "policy" else stay.basis) for stay in way.stages]
        yield format_list([f"{stay.state} {format_hours(stay.hours)} ({basis})" for stay, basis in stays], 20)
    stages = [stage for way in plan.work.ways for stage in way.stages]
    for source in dict.fromkeys(source for stage in stages if stage.basis == "assumed" for source in stage.sources):
        yield f"assumed, nothing is recorded: {source}"


def _not_in_a_wave(plan: ChangePlan) -> Iterator[str]:
    for waiting in plan.work.schedule.waiting:
        yield f"waits: {format_nodes(waiting.nodes)}: {waiting.why}"
    if plan.work.under_way:
        yield f"on their way already, they take it as they come: {format_nodes(plan.work.under_way)}"
    if plan.facts.needless:
        yield f"keep what they have, as they have not left for the rollout: {format_nodes(plan.facts.needless)}"
    if plan.work.left_alone:
        yield f"left alone, by their profile: {format_nodes(plan.work.left_alone)}"


def _under_way(plan: ChangePlan) -> Iterator[str]:
    """Yield how the rollout is that has not ended, what the merge means for it, and its waves to come."""
    rollout = plan.facts.rollout
    if rollout is None:
        return
    leaves = any((plan.work.routes, plan.work.under_way, plan.work.schedule.waiting, plan.facts.needless))
    state = f"is {rollout.waits_for}" if rollout.waits_for else "is running"
    rest = f"{format_count(len(rollout.unproven), 'node')} of it not proven"
    effect = "replaces it, and its nodes are in the waves of this plan" if leaves else "leaves it as it is"
    yield f"rollout {rollout.id[:8]} of commit {rollout.commit[:12]} {state}, {rest}: the merge {effect}"
    if rollout.leaving:
        yield f"out of service for it, or ordered out: {format_nodes(rollout.leaving)}"
    for number, wave in enumerate(rollout.waves, 1):
        yield f"its wave {number} of {len(rollout.waves)} to come, without the merge: {format_nodes(wave)}"


SECTION_FORMATTERS: tuple[tuple[str, Callable[[ChangePlan], Iterable[str]]], ...] = (
    ("Refused", lambda plan: (f"{refusal.limit} ({refusal.where}): {refusal.why}" for refusal in plan.refused)),
    ("Risks", _risks),
    ("Notes", lambda plan: plan.notes),
    ("Rollout under way", _under_way),
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
    ("Fault classes", lambda plan: map(_reset, plan.faults)),
    ("Profiles", lambda plan: map(_reset, plan.profiles)),
    ("Firmware bundles", lambda plan: map(_reset, plan.bundles)),
    ("Fabrics", lambda plan: map(_reset, plan.fabrics)),
    ("Also changed", _other),
    ("Waves", _waves),
    ("The way of a node", _routes),
    ("Not in a wave", _not_in_a_wave),
    ("Backtest", format_backtest),
    ("History", lambda plan: format_history(plan.history)),
)
