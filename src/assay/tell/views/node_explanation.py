"""The evidence behind a node's state: what `assay explain` and the API answer, and its lines for people.

An outcome or a fault leads by a rule to a decision, and that to effects. Beside these stand what the state still
requires, failures that decide nothing, faults without a decision, and the agent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from assay.act.ingest.silent_nodes import read_reading_times
from assay.act.loop.projections import read_unknown_jobs
from assay.decide.drift.sync_report import NodeSync
from assay.decide.faults.incidents import list_open_incidents
from assay.decide.moves.held_answers import OpenBreaker
from assay.decide.state.asset_history import ASSET_ENTRY_KINDS, describe_returned_part, find_returned_parts
from assay.decide.state.entry_messages import describe_decision
from assay.decide.state.node_state import EffectRecord, NodeState
from assay.decide.state.operation_record import OPERATIONS
from assay.ledger.ledger_reader import read_projection
from assay.model.decision import HAND_OVER, DecisionCause, DecisionTiming
from assay.model.entries.node_entries import DecisionEntry
from assay.model.facts import extend, fact, shown
from assay.model.faults.fault_record import NOT_JUDGED
from assay.model.text.lists import format_count
from assay.model.timestamps import format_ago, format_minute, format_time
from assay.tell.views.expected_return import read_returns
from assay.tell.views.incident_story import NO_STORY, IncidentStory, NodeStory, read_stories
from assay.tell.views.node_status import NodeStatus, make_node_status
from assay.tell.views.node_sync import RolloutOfNode, find_node_rollout, find_node_sync, format_node_rollout
from assay.tell.views.records import RecordSource
from assay.tell.views.sources import JUDGING_HASHES
from assay.tell.views.trust_view import NodeTrust, find_node_trust

if TYPE_CHECKING:
    from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
    from assay.ledger.store import Ledger
    from assay.model.outcome import RecordedOutcome
    from assay.model.specs.fault_catalog import FaultCatalog


@fact
class ExplainedCause:
    """One reason of a decision."""

    kind: str
    """What kind of reason it is, such as fault, outcome, person, limit or rollout."""
    id: str
    """The record that it refers to."""
    text: str
    """The reason in one line."""
    evidence: str = ""
    """The digest of the evidence that its check judged; "" for another reason."""
    evidence_at: str = ""
    """When that evidence was collected: ISO 8601 UTC."""


@fact
class ExplainedDecision:
    """A decision about the node, with its causes and effects."""

    at: str
    """When it was decided: ISO 8601 UTC."""
    decision: str
    """The id of the decision."""
    from_state: str = shown("from")
    """The state before."""
    to_state: str = shown("to")
    """The state after."""
    text: str
    """What was decided, in a line."""
    timing: DecisionTiming
    """Immediate, pending (it waits until the node is idle) or record (it moves nothing)."""
    rule: str
    """The rule of the policy, as `file:line name`."""
    remedy: str
    """What is done; "" if nothing besides the move."""
    blockers: tuple[str, ...]
    """What it waits for, or what held a move back."""
    because: tuple[ExplainedCause, ...]
    """Its reasons."""
    effects: tuple[EffectRecord, ...]
    """What it asked for."""


@fact
class RequiredPhase:
    """A phase of checks that the node's state requires."""

    phase: str
    """The name of the phase."""
    passed: int
    """How many of its checks have passed."""
    excused: int
    """How many failures a known issue excuses."""
    lacks: tuple[str, ...]
    """What has not passed, one text each; the phase has passed if nothing is here."""


@fact
class UndecidedFailure:
    """A failure that decides nothing."""

    check: str
    """The id of the check."""
    subject: str
    """What was judged: the node or a part of it."""
    reason: str
    """Why it fails."""
    why: str
    """Why it decides nothing: it is only observed, or a known issue excuses it."""


@fact
class ExplainAnswer(NodeStatus):
    """Why a node is in its state, with the evidence. Times are ISO 8601 with the offset of UTC."""

    incidents: tuple[IncidentStory, ...]
    """The open incidents of the node, the worst first."""
    back: str
    """When the node should be back in service; "" while it serves and is well."""
    chain: tuple[ExplainedDecision, ...]
    """The last decisions about the node, oldest first."""
    requires: tuple[RequiredPhase, ...]
    """The phases of checks that the node's state requires."""
    undecided: tuple[UndecidedFailure, ...]
    """Failures that decide nothing."""
    recorded: tuple[str, ...]
    """Work that is planned for the node, and what is open and asks for nothing, a line each."""
    agent: str
    """When its agent was last in contact, what it costs, and what it lost, in a line; "" if it has never had one."""
    breaker: OpenBreaker | None
    """The circuit breaker that holds its answer back; null if none does."""
    rollout: RolloutOfNode | None
    """The active rollout with this node; null without one."""
    cost: str
    """Its lemon score, with what it comes from: what it has cost in its life; "" for nothing."""
    trust: NodeTrust | None
    """How far automation may go with it, and what waits for a person; null without one policy."""
    sync: NodeSync | None
    """How it compares with the fleet repository; null if the inventory no longer has it, or no policy says so."""
    judged_with: str
    """Files beside the checks that may have changed the newest run of the node; "" for none."""


def describe_node_status(source: RecordSource, state: NodeState, story: NodeStory) -> NodeStatus:
    """Return a node's status, with the parts in it that were returned before, and since when its jobs are unknown."""
    assets = source.ledger_for_reading.entries(state.node, ASSET_ENTRY_KINDS)
    returned = [describe_returned_part(part) for part in find_returned_parts(assets)]
    read_at = read_reading_times(source.data_dir, [state]).get(state.node, "")
    return make_node_status(state, returned, read_unknown_jobs(source.data_dir).get(state.node), story, read_at)


def explain_node(source: RecordSource, state: NodeState, last: int) -> ExplainAnswer:
    """Return the status of a node, its last decisions with their causes (0: all), and what its state requires."""
    from assay.decide.moves.held_answers import list_open_breakers

    ledger = source.ledger_for_reading
    requires, undecided = judge_requirements(source, state)
    breakers = list_open_breakers(source.read_node_states()) if state.is_held_by_breaker else ()
    story = read_stories(source, [state]).get(state.node, NO_STORY)
    return extend(
        ExplainAnswer,
        describe_node_status(source, state, story),
        incidents=story.incidents,
        back=read_returns(source, [state])[state.node],
        chain=tuple(build_decision_chain(ledger, state, last)),
        requires=requires,
        undecided=undecided,
        recorded=(*_list_planned(ledger, state.node), *_list_recorded(source.fleet.sound_fault_catalog, state)),
        agent=_describe_agent(source, state.node),
        breaker=next((breaker for breaker in breakers if state.node in breaker.nodes), None),
        rollout=find_node_rollout(source, state.node),
        cost=_describe_cost(source, state),
        trust=find_node_trust(source.fleet, state),
        sync=find_node_sync(source, state),
        judged_with=_read_influences(source, state),
    )


def _read_influences(source: RecordSource, state: NodeState) -> str:
    """Return what else judged in the newest run of a node, "" for nothing, and where its file is gone."""
    from assay.ledger.runs.reader import RUN_FILE, StoredRun
    from assay.validate.results.outcome_lines import describe_influences

    run = max((recorded.run for recorded in source.ledger_for_reading.latest(state.node)), default="").partition("+")[0]
    places = (home / "reports/runs" / run / RUN_FILE for home in (source.data_dir, source.fleet.root) if run)
    path = next((place for place in places if place.exists()), None)
    if path is None:
        return ""
    with StoredRun.open(path) as stored:
        return describe_influences(stored)


def build_decision_chain(ledger: Ledger, state: NodeState, last: int) -> Iterator[ExplainedDecision]:
    """Yield the `last` decisions about a node (0: all), oldest first, each with its causes and effects in full."""
    entries = ledger.entries(state.node, kinds=[DecisionEntry.kind])
    for entry in entries[-last:] if last else entries:
        decision = DecisionEntry.read(entry)
        yield extend(
            ExplainedDecision,
            decision,
            at=entry.at,
            text=describe_decision(decision),
            because=tuple(_explain_cause(ledger, state, cause) for cause in decision.causes),
            effects=tuple(effect for effect in state.effects if effect.decision == decision.decision),
        )


def _explain_cause(ledger: Ledger, state: NodeState, cause: DecisionCause) -> ExplainedCause:
    """Return a cause with what its check judged."""
    outcomes = ledger.outcomes(run=cause.id.partition("/")[0], node=state.node) if cause.kind == "outcome" else ()
    recorded = next((recorded for recorded in outcomes if recorded.id == cause.id), None)
    read = (recorded.outcome.evidence, recorded.outcome.evidence_at) if recorded else ()
    return ExplainedCause(cause.kind, cause.id, cause.text, *read)


def judge_requirements(
    source: RecordSource, state: NodeState
) -> tuple[tuple[RequiredPhase, ...], tuple[UndecidedFailure, ...]]:
    """Return the phases that the state requires, and the failures without effect.

    Both are empty for a node that the inventory no longer has, and for a state that the policy no longer has.
    """
    from assay.decide.moves.hand_over import judge_hand_over
    from assay.decide.moves.required_checks import judge_state_requirements

    snapshot = _make_snapshot(source, state)
    if snapshot is None:
        return (), ()
    node = snapshot.nodes[0]
    results = judge_state_requirements(snapshot, node)
    requires = tuple(
        RequiredPhase(result.requirement.phase, len(result.passed), len(result.excused), result.missing)
        for result in results
    )
    if proofs := judge_hand_over(snapshot, node):
        missing = tuple(proof.missing for proof in proofs if proof.missing)
        requires += (RequiredPhase(HAND_OVER, len(proofs) - len(missing), 0, missing),)
    undecided = tuple(
        extend(UndecidedFailure, recorded.outcome, why=reason)
        for recorded in node.latest
        if (reason := _find_excuse(snapshot, node, recorded))
    )
    return requires, undecided


def _make_snapshot(source: RecordSource, state: NodeState) -> FleetSnapshot | None:
    """Return the snapshot of this node alone, without a status from its scheduler."""
    from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
    from assay.validate.runs.subjects import list_declared_outcomes

    fleet = source.fleet
    policy = fleet.policy_of_state.get(state.state)
    node = fleet.nodes.get(state.node)
    if policy is None or node is None:
        return None
    declared = tuple(list_declared_outcomes(fleet, node.name))
    latest = tuple(source.ledger_for_reading.latest(node.name))
    hashes = JUDGING_HASHES.find(fleet).of_node(node.name) if policy.states[state.state].requires else {}
    snapshot = NodeSnapshot(node, fleet.profile_of(node.name), state, declared, latest, None, judging_hashes=hashes)
    known = (fleet.lines, fleet.known_issues, fleet.observed_checks)
    proofs, relations = fleet.repair_proofs, fleet.fault_relations
    return FleetSnapshot(source.clock.now(), policy, (snapshot,), *known, proofs=proofs, relations=relations)


def _find_excuse(snapshot: FleetSnapshot, node: NodeSnapshot, recorded: RecordedOutcome) -> str:
    """Return why a failure decides nothing, "" if it decides."""
    from assay.model.specs.known_issues import find_known_issue

    if recorded.outcome.verdict == "fail" and recorded.outcome.check in snapshot.observing_checks:
        return "observed only"
    issue = find_known_issue(snapshot.known_issues, recorded.outcome, node.node, snapshot.now)
    return issue.annotation if issue else ""


def _list_planned(ledger: Ledger, node: str) -> Iterator[str]:
    for record in read_projection(ledger, OPERATIONS).list_planned():
        if node in {each.node for each in record.nodes}:
            window = f"from {format_minute(record.starts_at)} to {format_minute(record.ends_at)}"
            yield f"{record.operation} is planned {window}: {record.reason}"


def _list_recorded(catalog: FaultCatalog | None, state: NodeState) -> Iterator[str]:
    """Yield what is open and asks for nothing: a fault that is only recorded, and errors that no class has.

    What is a sign of an incident that asks for more is told there.
    """
    opened = list_open_incidents(catalog.fault_relations, state) if catalog else ()
    in_incidents = {sign.id for each in opened if each.severity != "informational" for sign in each.symptoms}
    recorded = (fault for fault in state.faults if fault.is_open and fault.severity == "informational")
    for fault in recorded:
        if fault.id not in in_incidents and not state.is_repaired(fault):
            times = f", {fault.count} times" if fault.count > 1 else ""
            happened = catalog.describe(fault.fault_class) if catalog else fault.fault_class
            if fault.fault_class == NOT_JUDGED:
                yield f"not judged{times}, no class has it: {fault.detail}"
            else:
                yield f"recorded, and asks for nothing: {happened} ({fault.fault_class} on {fault.subject}){times}"


def _describe_agent(source: RecordSource, node: str) -> str:
    from assay.observe.last_seen import CONTACTS_FILE, LastSeen

    last_seen = LastSeen(source.data_dir / CONTACTS_FILE)
    position, contact = last_seen.positions([node]).get(node), last_seen.contacts([node]).get((node, "agent"))
    if position is None or contact is None or contact.last_at is None:
        return ""
    state, when = position.state, format_ago(format_time(contact.last_at), source.clock.now())
    words = [
        f"its agent was last in contact {when} and has delivered {format_count(position.received, 'item')}",
        f"it has used {state['cpu_s']:.1f} CPU s and holds {state['rss_bytes'] / 2**20:.0f} MiB",
    ]
    lost = {**state["dropped"], "overwritten": state["missed"]}
    if losses := [f"{number} {name}" for name, number in lost.items() if number]:
        words.append(f"lost before delivery: {', '.join(losses)}")
    words += [f"no kernel log: {state['log']}"] if state["log"] else []
    words += [f"no GPU events: {state['nvml']}"] if state["nvml"] not in ("", "not asked for") else []
    return "; ".join(words)


def _describe_cost(source: RecordSource, state: NodeState) -> str:
    from assay.decide.state.lemon_score import compute_lemon_score

    policy = source.fleet.policy_of_state.get(state.state)
    score = compute_lemon_score(policy, state) if policy else None
    lemon = "; a lemon: its next fault goes to people" if score and score.is_lemon else ""
    return f"{score}{lemon}" if score and score.points else ""


def format_notes(answer: ExplainAnswer) -> Iterator[str]:
    """Yield the lines of what holds now: failed effects, what else judged, requirements, the rollout, the breaker."""
    last = answer.chain[-1].effects if answer.chain else []
    yield from (f"effect {effect.action} failed: {effect.reason}" for effect in last if effect.standing == "failed")
    if answer.judged_with:
        yield f"its checks were judged with {answer.judged_with}"
    for phase in answer.requires:
        if lacks := phase.lacks:
            more = f" (and {len(lacks) - 1} more)" if len(lacks) > 1 else ""
            yield f"phase {phase.phase} has not passed: {lacks[0]}{more}"
    for failure in answer.undecided:
        yield f"{failure.check.rpartition('::')[2]} fails on {failure.subject}: {failure.reason} ({failure.why})"
    if answer.rollout:
        yield from format_node_rollout(answer.rollout)
    yield from answer.recorded
    if held := answer.breaker:
        count = format_count(len(held.nodes), "node")
        yield f"the breaker of pool {held.pool} holds its answer back, with {count}; to clear it: {held.clear}"
