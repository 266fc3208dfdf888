"""How a node stands to what its state asks of checks: what still lacks a pass, and what fails and decides nothing.

The chain behind a node's state: outcome or fault → rule → decision → effects → verification, as plain data.

What is known of a node since the last pass: faults that no decision has looked at, and how its agent is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from assay.cli.node_lookup import format_ago
from assay.cli.workspace import Workspace
from assay.model.text_lists import format_count

if TYPE_CHECKING:
    from assay.ledger.store import Ledger
    from assay.lifecycle.node_state import NodeState
    from assay.model.outcome import RecordedOutcome

DecisionLink = dict[str, Any]


def build_decision_chain(ledger: Ledger, story: NodeState, last: int) -> list[DecisionLink]:
    """Return the `last` decisions about a node (0: all), oldest first, each with its causes and effects spelled out."""
    entries = ledger.entries(story.node, kinds=["decision"])
    links = []
    for entry in entries[-last:] if last else entries:
        body = entry.body
        links.append(
            {
                "at": entry.at,
                **{name: body[name] for name in ("decision", "from", "to", "timing", "rule", "remedy", "blockers")},
                "because": [_resolve_cause(ledger, story, cause) for cause in body["because"]],
                "effects": _effects(story, body["decision"]),
            }
        )
    return links


def _resolve_cause(ledger: Ledger, story: NodeState, cause: Mapping[str, str]) -> DecisionLink:
    if cause["kind"] == "fault":
        return {**cause, **_fault(story, cause["id"])}
    if cause["kind"] == "outcome":
        return {**cause, **_outcome(ledger, story, cause["id"])}
    return dict(cause)


def _fault(story: NodeState, fault: str) -> DecisionLink:
    for known in story.faults:
        if known.id == fault:
            names = ("fault_class", "subject", "severity", "blame", "count", "first_seen", "last_seen", "detail")
            return {name.removeprefix("fault_"): getattr(known, name) for name in names}
    return {}


def _outcome(ledger: Ledger, story: NodeState, cause: str) -> DecisionLink:
    """Return the outcome behind a cause; a whole phase that passed is spelled out as its checks."""
    run, _, what = cause.partition("/")
    recorded = ledger.outcomes(run=run, node=story.node)
    for one in recorded:
        if one.id == cause:
            return _outcome_as_json(one)
    return {"run": run, "checks": [_outcome_as_json(one) for one in recorded if what in one.outcome.phases]}


def _outcome_as_json(one: RecordedOutcome) -> DecisionLink:
    outcome = one.outcome
    names = ("check", "subject", "verdict", "reason", "evidence", "evidence_at")
    return {"run": one.run, **{name: getattr(outcome, name) for name in names}}


def _effects(story: NodeState, decision: str) -> list[DecisionLink]:
    names = ("id", "action", "standing", "at", "reason")
    return [{name: getattr(effect, name) for name in names} for effect in story.effects if effect.decision == decision]


if TYPE_CHECKING:
    from assay.lifecycle.node_state import NodeState

RecentNews = dict[str, Any]
MIB = 1024 * 1024


def describe_recent_news(desk: Workspace, story: NodeState) -> RecentNews:
    """Return `told` (open faults that no decision names yet) and `agent` (None where none was ever heard)."""
    return {"told": list(_undecided_faults(desk, story)), "agent": _agent_status(desk, story.node)}


def format_recent_news(desk: Workspace, said: RecentNews) -> Iterator[str]:
    """Yield what `describe_recent_news` says, one line each."""
    for fault in said["told"]:
        times = f", {fault['count']} times" if fault["count"] > 1 else ""
        yield f"{fault['severity']} fault {fault['class']} on {fault['subject']}{times}: the next pass decides on it"
    if agent := said["agent"]:
        yield "; ".join(_format_agent(agent, format_ago(agent["heard"], desk.clock.now())))


def _undecided_faults(desk: Workspace, story: NodeState) -> Iterator[RecentNews]:
    decisions = desk.ledger.entries(story.node, kinds=["decision"])
    named = {cause["id"] for decision in decisions for cause in decision.body.get("because", ())}
    for fault in story.faults:
        if fault.is_open and fault.id not in named and fault.last_seen > story.repaired_at:
            names = ("severity", "subject", "count", "first_seen", "last_seen", "detail")
            yield {"class": fault.fault_class, **{name: getattr(fault, name) for name in names}}


def _agent_status(desk: Workspace, node: str) -> RecentNews | None:
    from assay.observe.last_seen import LastSeen

    path = desk.data_dir / "heard.sqlite"
    if not path.exists():
        return None
    heard = LastSeen(path)
    position, word = heard.positions().get(node), heard.contacts().get((node, "agent"))
    if position is None or word is None or word.last_at is None:
        return None
    return {"heard": word.last_at.isoformat(), "received": position.received, **position.state}


def _format_agent(agent: RecentNews, when: str) -> Iterator[str]:
    yield f"its agent was heard {when} and has brought {format_count(agent['received'], 'item')}"
    yield f"it has cost {agent['cpu_s']:.1f} CPU s and holds {agent['rss_bytes'] / MIB:.0f} MiB"
    lost = {**agent["dropped"], "overwritten": agent["missed"]}
    if gone := [f"{number} {name}" for name, number in lost.items() if number]:
        yield f"lost before they could be delivered: {', '.join(gone)}"
    if agent["log"]:
        yield f"no kernel log: {agent['log']}"
    if agent["nvml"] and agent["nvml"] != "not asked for":
        yield f"no events of GPUs: {agent['nvml']}"


if TYPE_CHECKING:
    from assay.lifecycle.decisions.requirements import RequirementResult
    from assay.lifecycle.fleet_snapshot import FleetSnapshot, NodeSnapshot
    from assay.lifecycle.node_state import NodeState
    from assay.model.outcome import RecordedOutcome

RequirementReport = dict[str, Any]


def describe_requirements(desk: Workspace, story: NodeState) -> RequirementReport:
    """Return `requires` (one entry a phase that the state requires) and `undecided` (failures that decide nothing).

    A node that the inventory no longer has, or a state that the policy no longer has, is asked nothing.
    """
    from assay.lifecycle.decisions.requirements import judge_state_requirements

    situation = _snapshot_of_node(desk, story)
    if situation is None:
        return {"requires": [], "undecided": []}
    view = situation.nodes[0]
    requires = [_requirement_as_json(judgement) for judgement in judge_state_requirements(situation, view)]
    return {"requires": requires, "undecided": list(_undecided_failures(situation, view))}


def format_requirements(told: RequirementReport) -> Iterator[str]:
    """Yield what `describe_requirements` says, one line each."""
    for one in told["requires"]:
        if one["lacks"]:
            more = f" (and {len(one['lacks']) - 1} more)" if len(one["lacks"]) > 1 else ""
            yield f"phase {one['phase']} is not passed: {one['lacks'][0]}{more}"
    for one in told["undecided"]:
        yield f"{one['check'].rpartition('::')[2]} fails on {one['subject']}: {one['reason']} ({one['why']})"


def _snapshot_of_node(desk: Workspace, story: NodeState) -> FleetSnapshot | None:
    """Return the situation of this node alone, without asking its scheduler."""
    from assay.harness.selection.declared_checks import list_declared_outcomes
    from assay.lifecycle.fleet_snapshot import FleetSnapshot, NodeSnapshot

    fleet = desk.fleet
    policy = next((policy for policy in fleet.policies.values() if story.state in policy.states), None)
    node = fleet.nodes.get(story.node)
    if policy is None or node is None:
        return None
    latest = tuple(desk.ledger.latest(node.name))
    view = NodeSnapshot(
        node, fleet.profile_of(node.name), story, tuple(list_declared_outcomes(fleet, node.name)), latest, None
    )
    return FleetSnapshot(desk.clock.now(), policy, (view,), fleet.lines, fleet.known_issues, fleet.observed_checks)


def _requirement_as_json(judgement: RequirementResult) -> RequirementReport:
    return {
        "phase": judgement.requirement.phase,
        "passed": len(judgement.passed),
        "excused": len(judgement.excused),
        "lacks": list(judgement.missing),
    }


def _undecided_failures(situation: FleetSnapshot, view: NodeSnapshot) -> Iterator[RequirementReport]:
    for one in view.latest:
        if why := _reason_undecided(situation, view, one):
            names = ("check", "subject", "reason")
            yield {**{name: getattr(one.outcome, name) for name in names}, "run": one.run, "why": why}


def _reason_undecided(situation: FleetSnapshot, view: NodeSnapshot, one: RecordedOutcome) -> str:
    """Return why a failure decides nothing, "" where it decides."""
    from assay.lifecycle.decisions.known_issues import find_known_issue

    if one.outcome.verdict == "fail" and one.outcome.check in situation.observing_checks:
        return "observed only"
    issue = find_known_issue(situation.known_issues, view.node, one.outcome, situation.now)
    return issue.annotation if issue else ""
