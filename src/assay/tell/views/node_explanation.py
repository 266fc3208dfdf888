"""The evidence behind a node's state, as plain data and as lines: the answer of `assay explain`.

`build_decision_chain`: outcome or fault → rule → decision → effects, with what their codes mean.
`describe_requirements`: what the state still requires, and failures that decide nothing. `describe_recent_news`:
faults without a decision, and the agent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from assay.decide.moves.held_answers import OpenBreaker
from assay.model.entries.node_entries import DecisionEntry
from assay.model.facts import extend
from assay.model.specs.nvlink_codes import decode_nvlink_xid
from assay.model.text.lists import format_count
from assay.model.timestamps import format_ago
from assay.tell.views.node_sync import LemonStatus
from assay.tell.views.records import RecordSource
from assay.tell.views.sources import JUDGING_HASHES

if TYPE_CHECKING:
    from assay.decide.moves.required_checks import RequirementResult
    from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
    from assay.decide.state.node_state import NodeState
    from assay.ledger.store import Ledger
    from assay.model.outcome import RecordedOutcome
    from assay.model.specs.fault_catalog import FaultCatalog


MIB = 1024 * 1024


def add_code_meanings(catalog: FaultCatalog | None, items: Iterable[JsonObject]) -> None:
    """Add `meaning`, `investigate` and `sub_code` to the JSON of faults (key `class`) and outcomes (key `fault`).

    "" where the catalogue has none. Other items, and all items without a catalogue, stay as they are.
    """
    for item in items:
        fault = catalog.find_class(item.get("class") or item.get("fault") or "") if catalog else None
        if fault:
            code = decode_nvlink_xid(item.get("detail") or "", fault.units) if fault.units else None
            item["meaning"], item["investigate"] = fault.summary, fault.investigate
            item["sub_code"] = str(code) if code and code.info is not None else ""


def format_code_meaning(item: Mapping[str, Any]) -> str:
    """Return the meaning in one line, "" if there is none. A sub-code that the item's text has is not repeated."""
    if not item.get("meaning"):
        return ""
    text = item.get("text") or item.get("detail") or ""
    code = f"; sub-code: {item['sub_code']}" if item["sub_code"] and item["sub_code"] not in text else ""
    look = f"; look at: {item['investigate']}" if item["investigate"] else ""
    return f"{item['meaning'].rstrip('.')}{code}{look}"


JsonObject = dict[str, Any]


def build_decision_chain(ledger: Ledger, state: NodeState, last: int) -> list[JsonObject]:
    """Return the `last` decisions about a node (0: all), oldest first, each with its causes and effects in full."""
    entries = ledger.entries(state.node, kinds=[DecisionEntry.kind])
    decisions = [(entry.at, DecisionEntry.read(entry).to_body()) for entry in (entries[-last:] if last else entries)]
    names = ("decision", "from", "to", "timing", "rule", "remedy", "blockers")
    of_effects = ("id", "action", "standing", "at", "reason")
    chain = []
    for at, decision in decisions:
        answer = {"at": at, **{name: decision[name] for name in names}}
        answer["because"] = [_resolve_cause(ledger, state, cause) for cause in decision["because"]]
        effects = [effect for effect in state.effects if effect.decision == decision["decision"]]
        answer["effects"] = [{name: getattr(effect, name) for name in of_effects} for effect in effects]
        chain.append(answer)
    return chain


def _resolve_cause(ledger: Ledger, state: NodeState, cause: Mapping[str, str]) -> JsonObject:
    if cause["kind"] == "fault":
        return {**cause, **_fault_as_json(state, cause["id"])}
    if cause["kind"] == "outcome":
        return {**cause, **_find_outcome(ledger, state, cause["id"])}
    return dict(cause)


def _fault_as_json(state: NodeState, ident: str) -> JsonObject:
    names = ("fault_class", "subject", "severity", "blame", "count", "first_seen", "last_seen", "detail")
    for fault in state.faults:
        if fault.id == ident:
            return {name.removeprefix("fault_"): getattr(fault, name) for name in names}
    return {}


def _find_outcome(ledger: Ledger, state: NodeState, cause: str) -> JsonObject:
    """Return the outcome with the id `cause`. If it names a passed phase of a run, return the phase's checks."""
    run, _, phase = cause.partition("/")
    recorded = ledger.outcomes(run=run, node=state.node)
    for outcome in recorded:
        if outcome.id == cause:
            return _outcome_as_json(outcome)
    return {
        "run": run,
        "checks": [_outcome_as_json(outcome) for outcome in recorded if phase in outcome.outcome.phases],
    }


def _outcome_as_json(recorded: RecordedOutcome) -> JsonObject:
    names = ("check", "subject", "verdict", "reason", "fault", "evidence", "evidence_at")
    return {"run": recorded.run, **{name: getattr(recorded.outcome, name) for name in names}}


def describe_requirements(source: RecordSource, state: NodeState) -> JsonObject:
    """Return `requires` (an object for each phase that the state requires) and `undecided` (failures without effect).

    Both are empty for a node that the inventory no longer has, and for a state that the policy no longer has.
    """
    from assay.decide.moves.required_checks import judge_state_requirements

    snapshot = _make_snapshot(source, state)
    if snapshot is None:
        return {"requires": [], "undecided": []}
    node = snapshot.nodes[0]
    requires = [_requirement_as_json(result) for result in judge_state_requirements(snapshot, node)]
    return {"requires": requires, "undecided": list(_list_undecided_failures(snapshot, node))}


def format_requirements(requirements: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines for the answer of `describe_requirements`."""
    for phase in requirements["requires"]:
        if lacks := phase["lacks"]:
            more = f" (and {len(lacks) - 1} more)" if len(lacks) > 1 else ""
            yield f"phase {phase['phase']} has not passed: {lacks[0]}{more}"
    for failure in requirements["undecided"]:
        check = failure["check"].rpartition("::")[2]
        meaning = f": {text}" if (text := format_code_meaning(failure)) else ""
        yield f"{check} fails on {failure['subject']}: {failure['reason']} ({failure['why']}){meaning}"


def _make_snapshot(source: RecordSource, state: NodeState) -> FleetSnapshot | None:
    """Return the snapshot of this node alone, without a status from its scheduler."""
    from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
    from assay.validate.runs.subjects import list_declared_outcomes

    fleet = source.fleet
    policy = next((policy for policy in fleet.policies.values() if state.state in policy.states), None)
    node = fleet.nodes.get(state.node)
    if policy is None or node is None:
        return None
    declared = tuple(list_declared_outcomes(fleet, node.name))
    latest = tuple(source.ledger_for_reading.latest(node.name))
    hashes = JUDGING_HASHES.find(fleet).of_node(node.name) if policy.states[state.state].requires else {}
    snapshot = NodeSnapshot(node, fleet.profile_of(node.name), state, declared, latest, None, judging_hashes=hashes)
    known = (fleet.lines, fleet.known_issues, fleet.observed_checks)
    return FleetSnapshot(source.clock.now(), policy, (snapshot,), *known, proofs=fleet.repair_proofs)


def _requirement_as_json(result: RequirementResult) -> JsonObject:
    return {
        "phase": result.requirement.phase,
        "passed": len(result.passed),
        "excused": len(result.excused),
        "lacks": list(result.missing),
    }


def _list_undecided_failures(snapshot: FleetSnapshot, node: NodeSnapshot) -> Iterator[JsonObject]:
    for recorded in node.latest:
        if reason := _reason_undecided(snapshot, node, recorded):
            names = ("check", "subject", "reason", "fault")
            outcome = {name: getattr(recorded.outcome, name) for name in names}
            yield {**outcome, "run": recorded.run, "why": reason}


def _reason_undecided(snapshot: FleetSnapshot, node: NodeSnapshot, recorded: RecordedOutcome) -> str:
    """Return why a failure decides nothing, "" if it decides."""
    from assay.model.specs.known_issues import find_known_issue

    if recorded.outcome.verdict == "fail" and recorded.outcome.check in snapshot.observing_checks:
        return "observed only"
    issue = find_known_issue(snapshot.known_issues, recorded.outcome, node.node, snapshot.now)
    return issue.annotation if issue else ""


def describe_recent_news(source: RecordSource, state: NodeState) -> JsonObject:
    """Return `told`, `agent` and `breaker`.

    These are open faults that no decision names yet, the node's agent (None if it has never had one), and the breaker
    that holds its answer back (None if none does).
    """
    return {
        "told": list(_list_undecided_faults(source, state)),
        "agent": _read_agent_status(source, state.node),
        "breaker": _find_open_breaker(source, state),
    }


def _find_open_breaker(source: RecordSource, state: NodeState) -> OpenBreaker | None:
    from assay.decide.moves.held_answers import list_open_breakers

    if not state.is_held_by_breaker:
        return None
    return next(
        (breaker for breaker in list_open_breakers(source.read_node_states()) if state.node in breaker.nodes),
        None,
    )


def format_recent_news(source: RecordSource, news: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines for the answer of `describe_recent_news`."""
    for fault in news["told"]:
        times = f", {fault['count']} times" if fault["count"] > 1 else ""
        meaning = f" ({text})" if (text := format_code_meaning(fault)) else ""
        name = f"{fault['class']} on {fault['subject']}"
        yield f"{fault['severity']} fault {name}{times}: the next round decides on it{meaning}"
    if held := news["breaker"]:
        count = format_count(len(held["nodes"]), "node")
        yield f"the breaker of pool {held['pool']} holds its answer back, with {count}; to clear it: {held['clear']}"
    if agent := news["agent"]:
        yield "; ".join(_format_agent(agent, format_ago(agent["heard"], source.clock.now())))


def _list_undecided_faults(source: RecordSource, state: NodeState) -> Iterator[JsonObject]:
    decisions = source.ledger_for_reading.entries(state.node, kinds=["decision"])
    causes = [cause for decision in decisions for cause in DecisionEntry.read(decision).causes]
    decided = {fault for cause in causes for fault in cause.fault_ids}
    for fault in state.faults:
        if fault.is_open and fault.id not in decided and not state.is_repaired(fault):
            names = ("severity", "subject", "count", "first_seen", "last_seen", "detail")
            yield {"class": fault.fault_class, **{name: getattr(fault, name) for name in names}}


def _read_agent_status(source: RecordSource, node: str) -> JsonObject | None:
    from assay.observe.last_seen import LastSeen

    path = source.data_dir / "heard.sqlite"
    if not path.exists():
        return None
    last_seen = LastSeen(path)
    position, contact = last_seen.positions().get(node), last_seen.contacts().get((node, "agent"))
    if position is None or contact is None or contact.last_at is None:
        return None
    return {"heard": contact.last_at.isoformat(), "received": position.received, **position.state}


def _format_agent(agent: JsonObject, when: str) -> Iterator[str]:
    yield f"its agent was last in contact {when} and has delivered {format_count(agent['received'], 'item')}"
    yield f"it has used {agent['cpu_s']:.1f} CPU s and holds {agent['rss_bytes'] / MIB:.0f} MiB"
    lost = {**agent["dropped"], "overwritten": agent["missed"]}
    if losses := [f"{number} {name}" for name, number in lost.items() if number]:
        yield f"lost before delivery: {', '.join(losses)}"
    if agent["log"]:
        yield f"no kernel log: {agent['log']}"
    if agent["nvml"] and agent["nvml"] != "not asked for":
        yield f"no GPU events: {agent['nvml']}"


def describe_lemon_score(source: RecordSource, state: NodeState) -> LemonStatus | None:
    """Return the lemon score with all its reasons; None if no policy has the node's state, or it has no score."""
    from assay.decide.state.lemon_score import compute_lemon_score

    policy = next((policy for policy in source.fleet.policies.values() if state.state in policy.states), None)
    score = compute_lemon_score(policy, state) if policy else None
    return extend(LemonStatus, score, summary=str(score)) if score else None
