"""How far each node of a rollout is: waiting, leaving, out, proven, failed, held, or left alone; and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from assay.decide.moves.evidence_validity import is_newer_than_repair
from assay.decide.moves.excused_failures import drop_excused_outcomes
from assay.decide.moves.manual_moves import find_next_step
from assay.decide.rollouts.rollout_history import Rollout, RolloutMember
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.node_state import NodeState
from assay.model.facts import frozen
from assay.model.outcome import Outcome
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.text.lists import format_list
from assay.model.timestamps import format_minute, parse_time

ProgressKind = Literal["waiting", "leaving", "out", "proven", "failed", "held", "left alone"]
PROGRESS_KINDS: tuple[ProgressKind, ...] = ("proven", "out", "leaving", "waiting", "held", "failed", "left alone")
SETTLED: frozenset[ProgressKind] = frozenset({"proven", "failed", "left alone"})
"""A rollout has nothing more to do for such a node."""


@frozen
class NodeProgress:
    """One node of a rollout. `why` is one line for people.

    - `waiting`: it serves, and has no order yet. `leaving`: it has its order, and waits for room or for a job's end.
    - `out`: on its way through the states, or back and not yet proven. `proven`: it serves with the change.
    - `failed`: only people get it further, or a check fails on it. `held`: a person holds it, or has deferred it.
    - `left alone`: nothing of this rollout is done to it.

    `order_due`: it gets its order without a wave, because an earlier rollout had taken it out.
    """

    member: RolloutMember
    kind: ProgressKind
    why: str = ""
    order_due: bool = False

    @property
    def node(self) -> str:
        """The node's name."""
        return self.member.node


def judge_progress(snapshot: FleetSnapshot, rollout: Rollout) -> list[NodeProgress]:
    """Return the progress of every node. Outcomes are needed only for nodes that `list_returned_nodes` names."""
    views = {view.name: view for view in snapshot.nodes}
    return [
        NodeProgress(member, *_judge_member(snapshot, rollout, member, views.get(name)))
        for name, member in rollout.members.items()
    ]


def list_returned_nodes(policy: LifecyclePolicy, rollout: Rollout, states: Mapping[str, NodeState]) -> Iterator[str]:
    """Yield the nodes that serve after a repair for this rollout, and that nothing proves yet."""
    for name, member in rollout.members.items():
        state = states.get(name)
        if member.proof or state is None or not policy.is_in_service(state.state):
            continue
        if _is_repaired(policy, rollout, member, state):
            yield name


def is_on_way_back(policy: LifecyclePolicy, state: str) -> bool:
    """Whether automation alone brings a node from this state back into service, if everything passes."""
    seen = set[str]()
    current: str | None = state
    while current in policy.states and current not in seen:
        if policy.states[current].in_service:
            return True
        seen.add(current)
        current = policy.states[current].pass_to
    return False


Judgement = tuple[ProgressKind, str] | tuple[ProgressKind, str, bool]


def _judge_member(
    snapshot: FleetSnapshot, rollout: Rollout, member: RolloutMember, view: NodeSnapshot | None
) -> Judgement:
    if member.proof:
        return "proven", member.proof
    if view is None:
        return "left alone", "the inventory no longer has it"
    policy, node_state = snapshot.policy, view.node_state
    if node_state.state not in policy.states or policy.states[node_state.state].final:
        return "left alone", f"it is {node_state.state}"
    if not view.profile.acts_on_faults:
        return "left alone", f"profile {view.profile.name} lets automation take no node out of service"
    if node_state.hold:
        return "held", f"held by {node_state.hold.who}: {node_state.hold.reason}"
    if policy.is_in_service(node_state.state):
        return _judge_serving(snapshot, rollout, member, view)
    return _judge_absent(policy, member, node_state)


def _judge_serving(
    snapshot: FleetSnapshot, rollout: Rollout, member: RolloutMember, view: NodeSnapshot
) -> tuple[ProgressKind, str]:
    policy, node_state = snapshot.policy, view.node_state
    request = node_state.move_request
    if request and request.rollout == rollout.id:
        if pending := node_state.pending:
            return "leaving", f"waits for {', '.join(pending.blockers) or 'its turn'}"
        return "leaving", node_state.note or "its order is given"
    if _is_repaired(policy, rollout, member, node_state):
        return _judge_proof(snapshot, view, member.to)
    if member.order:
        return "left alone", "somebody withdrew its order, and it serves as before"
    if member.to not in policy.states:
        return "left alone", f"the policy has no state {member.to or 'that brings the change'}"
    if not find_next_step(policy, node_state.state, member.to):
        return "left alone", f"the policy draws no way from {node_state.state} to {member.to}"
    if missing := sorted(set(policy.states[member.to].entry) - set(view.profile.actions)):
        return "left alone", f"profile {view.profile.name} does not allow: {', '.join(missing)}"
    if member.deferred_to and snapshot.now < parse_time(member.deferred_to):
        return "held", f"deferred to {format_minute(member.deferred_to)}"
    return "waiting", "waits for its wave"


def _judge_absent(policy: LifecyclePolicy, member: RolloutMember, node_state: NodeState) -> Judgement:
    """Return the progress of a node that does not serve."""
    state, request = node_state.state, node_state.move_request
    reason = f"in {state}: {node_state.reason}" if node_state.reason else f"in {state}"
    is_ordered = request is not None and bool(request.rollout) and request.to == member.to
    if is_ordered or is_on_way_back(policy, state):
        is_due = member.is_under_way and not member.order and request is None and state != member.to
        return "out", reason, is_due and bool(find_next_step(policy, state, member.to))
    if member.order:
        return "failed", reason
    if request is None and _failed_by_rollout(policy, member, node_state) and find_next_step(policy, state, member.to):
        return "out", f"{reason}; that was another change, and this one is tried", True
    return "left alone", f"{reason}; it takes the change on its way back into service"


def _failed_by_rollout(policy: LifecyclePolicy, member: RolloutMember, node_state: NodeState) -> bool:
    """Whether the node only failed to take an earlier rollout's change: nothing else has happened to it since."""
    last = node_state.transitions[-1] if node_state.transitions else None
    target = policy.states.get(member.to)
    if not member.is_under_way or last is None or target is None or last.is_order or node_state.certified:
        return False
    return last.origin == member.to and last.target in (target.fail_to, target.effect_failed_to)


def _judge_proof(snapshot: FleetSnapshot, view: NodeSnapshot, target: str) -> tuple[ProgressKind, str]:
    """Return whether checks that are newer than the repair, and judged by today's spec, prove the node.

    One pass is not enough: every check of drift that the node's way from `target` into service runs must have passed.
    """
    counting = drop_excused_outcomes(
        view.latest, view.node, snapshot.known_issues, snapshot.observing_checks, snapshot.now
    )
    hashes = view.judging_hashes
    newer = [
        recorded
        for recorded in counting
        if is_newer_than_repair(view.node_state, recorded)
        and hashes.get(recorded.outcome.check, recorded.outcome.judged_by) == recorded.outcome.judged_by
    ]
    failed = sorted(
        {recorded.outcome.check.rpartition("::")[2] for recorded in newer if recorded.outcome.verdict == "fail"}
    )
    passed = [recorded for recorded in newer if recorded.outcome.verdict == "pass" and not recorded.is_dated_ahead]
    if failed:
        return "failed", f"back in {view.node_state.state}, and fails: {', '.join(failed)}"
    if not passed:
        return "out", f"back in {view.node_state.state}; no check has passed since the repair"
    drift = {
        recorded.outcome.check for recorded in counting if _shows_drift(snapshot.policy, view, target, recorded.outcome)
    }
    if unproved := sorted(
        check.rpartition("::")[2] for check in drift - {recorded.outcome.check for recorded in passed}
    ):
        return "out", f"back in {view.node_state.state}; not passed since the repair: {format_list(unproved, 3)}"
    repair = view.node_state.repairs[-1].kind
    return "proven", f"{len(passed)} checks passed by today's spec, on evidence newer than its {repair}"


def _shows_drift(policy: LifecyclePolicy, view: NodeSnapshot, target: str, outcome: Outcome) -> bool:
    """Whether a check shows drift, and is run in the state that brings the change or while the node serves."""
    phases = {*policy.states[view.node_state.state].watch, *(want.phase for want in policy.states[target].requires)}
    is_declared = outcome.check in view.judging_hashes
    return is_declared and outcome.fault in policy.breaker.drift and not phases.isdisjoint(outcome.phases)


def is_brought(policy: LifecyclePolicy, node_state: NodeState, to: str) -> bool:
    """Whether a node out of service has just got what state `to` brings: it is there yet, or in the next state."""
    target, last = policy.states.get(to), node_state.transitions[-1:]
    if target is None or policy.is_in_service(node_state.state):
        return False
    if node_state.state == to:
        return any(repair.kind in target.entry and repair.seq > node_state.stay_seq for repair in node_state.repairs)
    return node_state.state == target.pass_to and any(move.origin == to for move in last)


def _is_repaired(policy: LifecyclePolicy, rollout: Rollout, member: RolloutMember, node_state: NodeState) -> bool:
    """Whether what the node's target state does was verified on it, since its order or else since the rollout began."""
    target = policy.states.get(member.to)
    since = member.order_seq or rollout.started_seq
    return target is not None and any(
        repair.kind in target.entry and repair.seq > since for repair in node_state.repairs
    )
