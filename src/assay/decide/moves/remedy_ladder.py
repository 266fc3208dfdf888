"""Climbs the ladder of remedies, by what has been tried for a fault's part in each of the policy's windows of time.

Faults that come and go while a cordoned node waits for its job (flapping) must stay away for longer each time before it
opens. After the policy's number of times, the node is left to people, on a ticket, and leaves service when idle.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from assay.decide.moves.proposals import Proposal
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.node_state import FlapRecord, NodeState, PendingDecision, is_before
from assay.model.decision import FLAPPING_RULE, HELD_RULE, DecisionCause
from assay.model.faults.fault_record import FaultRecord
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.repeated_faults import LadderRung, LadderWindow, RemedyLadder
from assay.model.timestamps import hours, parse_time

LADDER_RESETS = frozenset({"certified", "replaced"})
"""After these the ladder starts again: a person certified the node, or another part is in its place."""


class _Try(NamedTuple):
    """An earlier move by the ladder: when, by which remedy, and for which parts; no parts if none is known."""

    at: datetime
    remedy: str
    parts: frozenset[str]


def find_rung(
    ladder: RemedyLadder, node_state: NodeState, fault: FaultRecord, remedy: str, now: datetime
) -> tuple[str, LadderRung] | None:
    """Return the first rung from `remedy` upwards that is not used up for a fault; None if `remedy` is no rung.

    Only tries for the fault's own part count, unless a window of the policy counts those of the whole node. The last
    rung is never used up. Moves before the ladder's last reset do not count.
    """
    rungs = {str(name): rung for name, rung in ladder.rungs.items()}
    tries = list(_list_tries(node_state))
    while rung := rungs.get(remedy):
        if rung.then is None or not _is_used_up(ladder, fault, remedy, rung, tries, now):
            return remedy, rung
        remedy = rung.then
    return None


def is_at_or_above(ladder: RemedyLadder, remedy: str, start: str) -> bool:
    """Whether the ladder leads from the rung `start` to `remedy`, or they are the same."""
    rungs = {str(name): rung for name, rung in ladder.rungs.items()}
    current: str | None = start
    while current is not None and current != remedy:
        current = rungs[current].then if current in rungs else None
    return current == remedy


def has_recurred(ladder: RemedyLadder, node_state: NodeState, fault: FaultRecord, now: datetime) -> bool:
    """Whether a fault of this class was repaired on this part, within the part's longest window, and came back."""
    windows = [window.hours for window in ladder.windows if window.of == "part" and _bounds(window, fault)]
    start = max(now - hours(max([ladder.window_hours, *windows])), find_last_reset(node_state, fault.subject))
    repairs = [
        repair for repair in node_state.repairs if repair.kind not in LADDER_RESETS and parse_time(repair.at) > start
    ]
    key = (fault.fault_class, fault.subject)
    earlier = [
        known for known in node_state.faults if (known.fault_class, known.subject) == key and known.id != fault.id
    ]
    return any(is_before(known, repair) and not is_before(fault, repair) for known in earlier for repair in repairs)


def find_last_reset(node_state: NodeState, subject: str = "") -> datetime:
    """Return when the ladder last started again, of a part also by its exchange; the earliest time if it never did."""
    resets = [repair.at for repair in node_state.repairs if repair.kind in LADDER_RESETS]
    return parse_time(max([*resets, node_state.exchanged.get(subject.rpartition("/")[2], "")]))


def _list_tries(node_state: NodeState) -> Iterator[_Try]:
    """Yield the moves by a rung since the ladder's last reset; what was done for a former part names no present one."""
    since, parts = find_last_reset(node_state), {fault.id: fault.subject for fault in node_state.faults}
    for move in node_state.transitions:
        if move.remedy and (at := parse_time(move.at)) > since:
            subjects = [parts[ident] for ident in move.faults if ident in parts]
            present = [subject for subject in subjects if at > find_last_reset(node_state, subject)]
            yield _Try(at, move.remedy, frozenset(present or ["former parts"] * bool(subjects)))


def _is_used_up(
    ladder: RemedyLadder, fault: FaultRecord, remedy: str, rung: LadderRung, tries: list[_Try], now: datetime
) -> bool:
    of_part = [attempt for attempt in tries if fault.subject in attempt.parts or not attempt.parts]
    since = now - hours(ladder.window_hours)
    if sum(attempt.remedy == remedy and attempt.at > since for attempt in of_part) >= rung.times:
        return True
    for window in ladder.windows:
        # A window counts all its remedies together, or one remedy if it names none.
        counted = window.remedies or (remedy,)
        if remedy in counted and _bounds(window, fault):
            since = now - hours(window.hours)
            attempts = of_part if window.of == "part" else tries
            if sum(attempt.remedy in counted and attempt.at > since for attempt in attempts) >= window.times:
                return True
    return False


def _bounds(window: LadderWindow, fault: FaultRecord) -> bool:
    return window.matches(fault.fault_class, fault.severity, fault.blame)


FLAPPING_CAUSE = "flapping"
"""The kind of the cause that says how often a fault came and went."""


def is_left_to_people(node_state: NodeState) -> bool:
    """Whether the node waits to leave service because it flaps. Only a person opens it again."""
    return node_state.pending is not None and node_state.pending.rule_name == FLAPPING_RULE


def is_flapping(policy: LifecyclePolicy, node_state: NodeState, now: datetime) -> bool:
    """Whether the node waits, and its faults came and went so often that only a person opens it again."""
    pending = node_state.pending
    if pending is None or pending.rule_name not in (FLAPPING_RULE, HELD_RULE, *policy.faults):
        return False
    return is_left_to_people(node_state) or len(list_recent_flaps(policy, node_state, now)) >= policy.flapping.times


def list_recent_flaps(policy: LifecyclePolicy, node_state: NodeState, now: datetime) -> list[FlapRecord]:
    """Return the times that count: within the window, and since the ladder last started again."""
    since = max(now - hours(policy.flapping.window_hours), find_last_reset(node_state))
    return [flap for flap in node_state.flaps if parse_time(flap.at) > since]


def list_present_causes(node_state: NodeState, pending: PendingDecision) -> list[FaultRecord]:
    """Return the open faults for which a decision waits: those it names, and the same again on the same part."""
    return [fault for fault in _list_causes(node_state, pending) if fault.is_open]


def is_wait_over(policy: LifecyclePolicy, node_state: NodeState, pending: PendingDecision, now: datetime) -> bool:
    """Whether the faults for which a decision waits were repaired or excused, or have stayed away for long enough."""
    if not any(cause.fault_ids for cause in pending.because):
        return False
    until = find_end_of_wait(policy, node_state, now)
    return not _list_causes(node_state, pending) or (until is not None and until <= now)


def find_end_of_wait(policy: LifecyclePolicy, node_state: NodeState, now: datetime) -> datetime | None:
    """Return when a wait ends if its faults stay away. None if they are here, nothing waits, or only people end it."""
    causes = _list_causes(node_state, node_state.pending) if node_state.pending else []
    if not causes or node_state.pending is None or any(fault.is_open for fault in causes):
        return None
    return _find_end(policy, node_state, node_state.pending, causes, now)


def propose_flapping_escalation(snapshot: FleetSnapshot, view: NodeSnapshot) -> Iterator[Proposal]:
    """Yield the ticket for a node whose faults came and went too often, and its way out of service when it is idle."""
    policy, pending = snapshot.policy, view.node_state.pending
    if pending is None or pending.rule_name not in (HELD_RULE, *policy.faults):
        return
    flaps = list_recent_flaps(policy, view.node_state, snapshot.now)
    faults = _list_causes(view.node_state, pending) if len(flaps) >= policy.flapping.times else []
    if not faults:
        return
    state = view.node_state.state
    because = _describe(policy, flaps, pending, faults)
    keys = (pending.decision,)
    start = policy.flapping.then
    rung = find_rung(policy.ladder, view.node_state, faults[-1], start, snapshot.now) if start else None
    leaves = rung is not None and policy.has_edge(state, rung[1].to)
    if view.jobs != () or not leaves:  # else it goes to a state with a ticket of its own
        yield Proposal(state, "record", FLAPPING_RULE, FLAPPING_RULE, because, keys, "ticket")
    if rung and leaves:
        yield Proposal(rung[1].to, "pending", FLAPPING_RULE, FLAPPING_RULE, because, keys, rung[0], takes_out=True)


def _describe(
    policy: LifecyclePolicy, flaps: list[FlapRecord], pending: PendingDecision, faults: list[FaultRecord]
) -> tuple[DecisionCause, ...]:
    names = ", ".join(dict.fromkeys(f"{fault.fault_class} on {fault.subject}" for fault in faults))
    text = f"{names} came and went {len(flaps)} times in {policy.flapping.window_hours:g} h while the node waited"
    causes = (cause for cause in pending.because if cause.fault_ids)
    return (DecisionCause(FLAPPING_CAUSE, pending.decision, text), *causes)


def _list_causes(node_state: NodeState, pending: PendingDecision) -> list[FaultRecord]:
    """Return the faults of a decision and the same again, open or not, but those that a repair has answered."""
    named = {ident for cause in pending.because for ident in cause.fault_ids}
    keys = {(fault.fault_class, fault.subject) for fault in node_state.faults if fault.id in named}
    same = [fault for fault in node_state.faults if (fault.fault_class, fault.subject) in keys] if keys else []
    return [fault for fault in same if not node_state.is_repaired(fault)]


def _find_end(
    policy: LifecyclePolicy, node_state: NodeState, pending: PendingDecision, away: list[FaultRecord], now: datetime
) -> datetime | None:
    """Return when faults that are away have been so for long enough, None if only a person may open the node."""
    if pending.rule_name == FLAPPING_RULE:
        return None
    times = len(list_recent_flaps(policy, node_state, now))
    gone_at = max(parse_time(fault.cleared_at) for fault in away)
    if times >= policy.flapping.times:
        return None
    return gone_at + timedelta(minutes=policy.flapping.find_clean_minutes(times) if times else 0)
