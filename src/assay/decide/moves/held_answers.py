"""Cordons the nodes whose answer the breaker, a limit or the trust step holds back; says what each breaker holds.

No new job starts on a broken node meanwhile. The breaker's cordons take at most half of the room that limits leave, so
that other faults are still answered. A node that finds no room is cordoned when there is some.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from assay.decide.moves.blast_radius_limits import LimitCapacity, is_only_held
from assay.decide.moves.fault_remedies import is_for_people, make_fault_cause, make_fault_keys, shorten_fault_causes
from assay.decide.moves.proposals import Proposal, grant_proposal
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.node_state import NodeState
from assay.decide.trust.record import TRUST_CAUSE
from assay.model.decision import HELD_RULE, Decision, DecisionCause
from assay.model.facts import fact

BREAKER_CAUSE = "breaker"
"""The kind of the cause that says that the breaker holds a move back."""


@fact
class OpenBreaker:
    """A circuit breaker that holds nodes back."""

    pool: str
    """The pool whose breaker it is."""
    series: str
    """What a series is of: pool/class, with /trait where its nodes share one; "" for a wave of the pool."""
    reason: str
    """Why it is open."""
    since: str
    """Since when it holds nodes back: ISO 8601 with the offset of UTC."""
    nodes: tuple[str, ...]
    """The nodes whose repair it holds back; of a series also those whose fault has ended since."""
    cordoned: tuple[str, ...]
    """Those of them that are cordoned meanwhile, so that no new job starts there."""
    clear: str
    """The command that clears it."""


def list_open_breakers(node_states: Iterable[NodeState]) -> list[OpenBreaker]:
    """Return the breakers that hold nodes back, by pool: its wave, then each series. A wider series takes in others."""
    held: dict[tuple[str, str], list[tuple[str, str, NodeState]]] = defaultdict(list)
    for state in node_states:
        if state.deadline_held_at:
            held[state.pool, ""].append((state.deadline_held_at, state.deadline_held_at, state))
        held_faults = state.faults_held_by_breaker
        for fault in state.faults:
            if fault.open_series or fault in held_faults:
                held[state.pool, fault.series].append((fault.arrived_at, fault.responded_at, state))
    for pool, series in sorted(held):
        if (whole := (pool, "/".join(series.split("/")[:2]))) != (pool, series) and whole in held:
            held[whole] += held.pop((pool, series))
    return [_describe_open_breaker(pool, series, members) for (pool, series), members in sorted(held.items())]


def _describe_open_breaker(pool: str, series: str, members: list[tuple[str, str, NodeState]]) -> OpenBreaker:
    states, newest = {state.node: state for *_, state in members}, max(members, key=lambda member: member[0])[2]
    one_class = f"--class {series.split('/')[1]} " if series else ""
    texts = [cause.text for each in newest.decisions.values() for cause in each.causes if cause.id == (series or pool)]
    return OpenBreaker(
        pool=pool,
        series=series,
        reason=texts[-1] if texts else newest.breaker_reason,
        since=min(held_at for _, held_at, _ in members),
        nodes=tuple(sorted(states)),
        cordoned=tuple(sorted(node for node, state in states.items() if is_only_held(state))),
        clear=f"assay breaker clear {pool} {one_class}--reason '…'",
    )


def find_nodes_to_clear(node_states: Iterable[NodeState], pool: str, since: str) -> list[NodeState]:
    """Return the nodes of a pool that count for a wave: held deadlines, open faults, and faults newer than `since`."""
    return [
        state
        for state in node_states
        if state.pool == pool
        and (
            state.deadline_held_at or state.open_series or any(f.is_open or f.arrived_at > since for f in state.faults)
        )
    ]


def cordon_refused_node(
    snapshot: FleetSnapshot, view: NodeSnapshot, proposal: Proposal, refusal: Decision, capacity: LimitCapacity
) -> Decision | None:
    """Return the cordon of a node whose move was just held back; None if nothing holds it so, or there is no room."""
    cause = refusal.causes[0]
    is_slowed = cause.kind == "limit" and cause.id.startswith("reboots_per_hour")
    is_held = cause.kind in (BREAKER_CAUSE, TRUST_CAUSE) or is_slowed
    if not (is_held and proposal.takes_out and proposal.identity_keys):
        return None
    return _cordon(snapshot, view, replace(proposal, causes=(cause, *proposal.causes)), capacity)


def cordon_held_node(snapshot: FleetSnapshot, view: NodeSnapshot, capacity: LimitCapacity) -> Decision | None:
    """Return the cordon of a node that found no room when the breaker held it; None if there still is none."""
    node_state = view.node_state
    withdrawn = node_state.withdrawn
    faults = [fault for fault in node_state.faults_held_by_breaker if not is_for_people(snapshot, view, fault)]
    is_opened_by_hand = withdrawn is not None and withdrawn.by not in node_state.decisions
    if not faults or node_state.hold or is_opened_by_hand or not view.profile.acts_on_faults:
        return None
    cause = DecisionCause(BREAKER_CAUSE, view.node.pool, node_state.breaker_reason)
    causes = (cause, *shorten_fault_causes([make_fault_cause(fault) for fault in faults]))
    keys = tuple(key for fault in faults for key in make_fault_keys(fault))
    return _cordon(snapshot, view, Proposal(node_state.state, "pending", "", HELD_RULE, causes, keys), capacity)


def _cordon(
    snapshot: FleetSnapshot, view: NodeSnapshot, proposal: Proposal, capacity: LimitCapacity
) -> Decision | None:
    """Return the cordon of a node that serves, where it is; the first cause of the proposal says what holds it back."""
    cause, state = proposal.causes[0], view.node_state.state
    is_open = snapshot.policy.states[state].in_service and view.node_state.pending is None
    if not is_open or "cordon" not in view.profile.actions or capacity.find_refusal(view, state):
        return None
    if snapshot.trust.find(view.node.pool, ("cordon",)).step != "act":
        return None
    if cause.kind == BREAKER_CAUSE and not capacity.has_room_to_hold(view):
        return None
    capacity.reserve(view, state, is_only_held=True)
    held = replace(proposal, to=state, timing="pending", policy_path="breaker", rule_name=HELD_RULE, remedy="cordon")
    return grant_proposal(snapshot, view, held, (cause.text,))
