"""What a person may order, and what follows: hold, release, move, certify for a node; pause, resume for a rollout.

Also a yes or no to what waits for a person, and a technician's word that a ticket is done, which asks for the proof and
closes nothing. Orders that would change something are refused where assay only watches.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from assay.decide.moves.manual_moves import describe_reachable_states, find_next_step, refuse_unreachable_states
from assay.decide.moves.remedy_ladder import is_left_to_people
from assay.decide.rollouts.rollout_history import Rollout, shorten_id
from assay.decide.state.node_state import NodeState, OperatorNote
from assay.decide.trust.gate import TrustWait, find_move_trust, list_trust_waits
from assay.declare.stand_ins import find_refused_settings
from assay.model.decision import WIPE
from assay.model.entries.entry_content import EntryContent
from assay.model.entries.node_entries import (
    ApprovedEntry,
    CertifiedEntry,
    DecisionWithdrawnEntry,
    DeclinedEntry,
    HoldEntry,
    MoveEntry,
    OrderedOperation,
    ReleaseEntry,
    ZapRequestedEntry,
)
from assay.model.entries.rollouts import RolloutPausedEntry, RolloutResumedEntry
from assay.model.entries.tickets import TicketDoneEntry
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.trust_rules import TrustSetting
from assay.model.text.lists import suggest_nearest
from assay.model.ticket import TicketRecord
from assay.model.timestamps import format_duration, parse_duration, parse_time

if TYPE_CHECKING:
    from assay.ledger.store import Ledger


def parse_hold_end(until: str, duration: str, start: datetime, now: datetime) -> str:
    """Return the end (ISO 8601 UTC) of a hold that began at `start`, "" if neither a time nor a duration is given.

    Raises AssayError for both at once, for an invalid time or duration, and for an end that is not after `now`.
    """
    if until and duration:
        raise AssayError("--until and --for are both given", fix="give one of them")
    end = _parse_time(until) if until else start + parse_duration(duration, "--for") if duration else None
    if end is None:
        return ""
    if end <= now:
        raise AssayError(
            f"the end {until or duration} is in the past: it is {now:%Y-%m-%d %H:%M} UTC", fix="give a later end"
        )
    return end.astimezone(UTC).isoformat(timespec="seconds")


def is_hold_expired(hold: OperatorNote, now: datetime) -> bool:
    """Return whether a hold has ended, even if no round of reconcile has recorded that yet."""
    return bool(hold.until) and parse_time(hold.until) <= now


def format_hold_end(until: str, now: datetime) -> str:
    """Return the end of a hold for people, "until released" if it has none."""
    if not until:
        return "until released"
    end = parse_time(until)
    remaining = f"in {format_duration(end - now)}" if end > now else "which is over: the next round releases it"
    return f"until {end:%Y-%m-%d %H:%M} UTC, {remaining}"


def _parse_time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise AssayError(
            f"{text!r} is not a time", fix="use --until 2026-12-01 or 2026-12-01T18:00+01:00, or --for 3d"
        ) from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


@frozen
class OperatorOrder:
    """The result of an order for one node: a message, and the ledger entry to write (None: nothing to write)."""

    node: str
    message: str
    entry: LedgerEntry | None = None


@frozen
class OperatorIdentity:
    """Who gives an order, why, and when (ISO 8601 UTC)."""

    who: str
    reason: str
    at: str


def strip_to_one_line(text: str) -> str:
    """Return typed text as one line, without control characters."""
    return " ".join("".join(char for char in text if char.isprintable() or char.isspace()).split())


def find_active_rollout(rollouts: Iterable[Rollout], ident: str) -> Rollout:
    """Return the rollout for an order. Raises AssayError unless exactly one begins so and has not ended."""
    rollout = find_rollout(rollouts, ident)
    if not rollout.is_active:
        raise AssayError(f"rollout {shorten_id(rollout.id)} has ended: {rollout.end_reason}")
    return rollout


def find_rollout(rollouts: Iterable[Rollout], ident: str) -> Rollout:
    """Return the rollout whose id begins so. Raises AssayError unless there is exactly one."""
    fitting = [rollout for rollout in rollouts if ident and rollout.id.startswith(ident)]
    if len(fitting) != 1:
        count = "there is no rollout" if not fitting else f"{len(fitting)} rollouts begin with"
        raise AssayError(f"{count} {ident}", fix="`assay rollout` lists them")
    return fitting[0]


def pause_rollout(rollout: Rollout, operator: OperatorIdentity) -> LedgerEntry:
    """Return the entry that pauses a rollout. Raises AssayError if it is paused already, unless by the same words."""
    pause = rollout.pause if rollout.status == "paused" else None
    if pause and (pause.who, pause.reason) != (operator.who, operator.reason):
        raise AssayError(f"it is paused already, by {pause.who}: {pause.reason}")
    entry = RolloutPausedEntry(rollout.id, operator.who, operator.reason)
    return entry.make_entry(derive_id(entry.kind, rollout.id, str(rollout.pauses - bool(pause))), operator.at)


def resume_rollout(rollout: Rollout, operator: OperatorIdentity) -> LedgerEntry:
    """Return the entry that resumes a rollout, a known one if it goes on. Raises AssayError if it was never paused."""
    if not rollout.pauses:
        raise AssayError("it is not paused", fix=f"assay rollout show {shorten_id(rollout.id)}")
    entry = RolloutResumedEntry(rollout.id, operator.who, operator.reason)
    return entry.make_entry(derive_id(entry.kind, rollout.id, str(rollout.pauses)), operator.at)


def find_ticket(records: Iterable[TicketRecord], ident: str) -> TicketRecord:
    """Return the ticket whose id begins so. Raises AssayError unless there is exactly one."""
    fitting = [record for record in records if ident and record.ticket.id.startswith(ident)]
    if len(fitting) != 1:
        count = "there is no ticket" if not fitting else f"{len(fitting)} tickets begin with"
        raise AssayError(f"{count} {ident}", fix="`assay tickets` lists them")
    return fitting[0]


def record_done(
    fleet: Fleet, ledger: Ledger, record: TicketRecord, operator: OperatorIdentity, state: NodeState | None
) -> tuple[bool, str]:
    """Record that the work of a ticket is done, and the certificate of its node (`state`) where it asks for that.

    Return whether anything is new, and what comes next. Raises AssayError if the ticket is closed.
    """
    report, certified = report_done(record, operator), None
    if state and record.ticket.asks_for_certificate:
        try:
            certified = certify_node(fleet, operator, state)
        except AssayError as error:
            certified = OperatorOrder(state.node, f"not certified: {error.what}")
    orders = [report, *([certified] if certified else [])]
    recorded = ledger.append(*filter(None, [order.entry for order in orders]))
    return any(recorded), ". ".join(order.message for order in orders)


def report_done(record: TicketRecord, operator: OperatorIdentity) -> OperatorOrder:
    """Say that the work of a ticket is done. Raises AssayError if the ticket is closed."""
    ticket = record.ticket
    if record.closed_at:
        message = f"ticket {ticket.id[:8]} is closed already, by {record.by}"
        raise AssayError(message, fix="`assay tickets --all` shows it")
    if record.done and (record.done.who, record.done.note) == (operator.who, operator.reason):
        return OperatorOrder(ticket.node, f"you have said so before. {describe_wait(record)}")
    ident = derive_id(TicketDoneEntry.kind, ticket.id, str(len(record.history)))
    entry = TicketDoneEntry(ticket.id, ticket.title, operator.who, operator.reason)
    text = f"{ticket.title}: noted, and looked at now. {describe_wait(record)}"
    return OperatorOrder(ticket.node, text, entry.make_entry(ident, operator.at, ticket.node))


def describe_wait(record: TicketRecord) -> str:
    """Return what closes a ticket now, in words."""
    checks = record.ticket.verify.splitlines()
    if not checks:
        return "The ticket closes when its node goes on."
    if record.ticket.asks_for_certificate:
        return f"“Done, check it” certifies {record.ticket.node}: assay goes on with it, and the ticket closes."
    proof = checks[0] if len(checks) == 1 else f"each of {len(checks)} checks"
    return f"The ticket closes as soon as {proof} has passed."


def refuse_watched(fleet: Fleet, node: str, *actions: str) -> None:
    """Raise AssayError if assay only watches a node, so that it must not do this to it."""
    _refuse(fleet, node, fleet.find_trust(node, actions))


def refuse_watched_move(fleet: Fleet, state: NodeState, to: str) -> None:
    """Raise AssayError if assay only watches a node, and a move to this state is more than bookkeeping."""
    setting = find_move_trust(fleet.trust, fleet.policy, state.pool, state.state, to)
    if setting:
        _refuse(fleet, state.node, setting)


def _refuse(fleet: Fleet, node: str, setting: TrustSetting) -> None:
    if setting.step == "watch":
        pool = fleet.nodes[node].pool if node in fleet.nodes else "?"
        message = f"assay changes nothing on {node}, pool {pool}: its trust step is watch"
        raise AssayError(message, where=setting.where or setting.path, fix="set suggest or act there (docs/trust.md)")


def list_fleet_waits(fleet: Fleet, states: Iterable[NodeState]) -> list[TrustWait]:
    """Return what waits for a person, or is only watched, on all nodes of the inventory."""
    policy, trust = fleet.policy, fleet.trust
    known = [state for state in states if state.node in fleet.nodes and state.state in policy.states]
    waits = (wait for state in known for wait in list_trust_waits(policy, trust, state))
    return [replace(wait, undo=_describe_undo(wait)) for wait in waits]


def find_wait(waits: Iterable[TrustWait], ident: str) -> TrustWait:
    """Return what waits under an id that begins so. Raises AssayError unless there is exactly one that takes a yes."""
    fitting = [wait for wait in waits if ident and wait.id.startswith(ident)]
    if len(fitting) != 1:
        message = f"nothing that waits for a person begins with {ident!r}" if not fitting else f"{ident} is not unique"
        raise AssayError(message, fix="`assay status` lists what waits")
    if fitting[0].kind == "would":
        raise AssayError(f"{fitting[0].node}: {fitting[0].text}", fix="raise its trust step (docs/trust.md)")
    return fitting[0]


def answer_wait(
    wait: TrustWait, state: NodeState, operator: OperatorIdentity, *, is_yes: bool, within_hours: float = 0
) -> OperatorOrder:
    """Return a person's yes or no; a no takes back an order that has outlived its time.

    The same word twice is recorded once, unless the first one was for another time.
    """
    last = state.trust.find_consent(wait.id)
    if (
        last
        and (last.is_yes, last.who, last.reason) == (is_yes, operator.who, operator.reason)
        and wait.kind != "order"
    ):
        return OperatorOrder(wait.node, f"you have said so before: {wait.said}")
    kind = ApprovedEntry if is_yes else DeclinedEntry
    entry: EntryContent = kind(wait.id, operator.who, operator.reason, within_hours)
    if not is_yes and wait.kind == "order" and state.trust.find_outlived(wait.id):  # else it would be asked for ever
        entry = DecisionWithdrawnEntry(wait.id, operator.reason, who=operator.who)
    ident = derive_id(entry.kind, wait.node, wait.id, last.id if last else "")
    word = "approved" if is_yes else "declined"
    text = f"{wait.node}: {word} by {operator.who}: {', '.join(wait.actions) or 'it'}; {wait.undo}"
    return OperatorOrder(wait.node, text, entry.make_entry(ident, operator.at, wait.node))


def _describe_undo(wait: TrustWait) -> str:
    """Return what undoes what would be done, for people."""
    from assay.act.actions.action import ACTION_NAMES, load_action  # loads what talks to BMCs

    undo = {action: load_action(action).undone_by for action in wait.actions if action in ACTION_NAMES}
    texts = [f"{action} is undone by {by}" if by else f"nothing undoes {action}" for action, by in undo.items()]
    if "drain-now" in undo:
        texts.append("jobs that drain-now ends do not come back")
    begins = "the order begins then, as it was given"
    return ", ".join(texts) or (begins if wait.kind == "order" else "it changes nothing outside")


def hold_node(
    ledger: Ledger, operator: OperatorIdentity, state: NodeState, until: str = "", duration: str = ""
) -> OperatorOrder:
    """Hold a node, without an end or until one. Raises AssayError if somebody else holds it, or for a wrong end."""
    node, now = state.node, parse_time(operator.at)
    current = state.hold if state.hold and not is_hold_expired(state.hold, now) else None
    if current and (current.who, current.reason) != (operator.who, operator.reason):
        text = f"{node} is already held by {current.who} {format_hold_end(current.until, now)}: {current.reason}"
        raise AssayError(text, fix=f"assay release {node} --reason …")
    end = parse_hold_end(until, duration, parse_time(current.at) if current else now, now)
    end_text = format_hold_end(end, now)
    if current and parse_time(current.until) == parse_time(end):
        return OperatorOrder(node, f"{node} is already held by you, {end_text}: {current.reason}")
    earlier = ledger.entries(node, kinds=[HoldEntry.kind, ReleaseEntry.kind])
    ident = derive_id("hold", node, earlier[-1].id if earlier else "")  # unique for each hold
    entry = HoldEntry(operator.who, operator.reason, end).make_entry(ident, operator.at, node)
    return OperatorOrder(node, f"{node} is held by {operator.who} {end_text}: {operator.reason}", entry)


def release_node(operator: OperatorIdentity, state: NodeState) -> OperatorOrder:
    """End a node's hold; of one that nobody holds, nothing is recorded."""
    node, current = state.node, state.hold
    if current is None:
        return OperatorOrder(node, f"{node} is not held")
    ident = derive_id("release", node, current.id)
    entry = ReleaseEntry(operator.who, operator.reason).make_entry(ident, operator.at, node)
    return OperatorOrder(node, f"{node} is released; {current.who} held it: {current.reason}", entry)


def certify_node(fleet: Fleet, operator: OperatorIdentity, state: NodeState) -> OperatorOrder:
    """Certify that a node was inspected. Raises AssayError if neither its state nor its flapping waits for that."""
    node, name = state.node, state.state
    states = [policy.states[name] for policy in fleet.policies.values() if name in policy.states]
    to = next((state.certified_to for state in states if state.certified_to), None)
    if to is None and is_left_to_people(state):
        to = name
    if to is None:
        raise AssayError(f"{node} is in {name}, which needs no certification", fix=f"assay explain {node}")
    refuse_watched_move(fleet, state, to)
    if earlier := state.certified:
        return OperatorOrder(node, f"{node} is already certified in {name}, by {earlier.who}: {earlier.reason}")
    ident = derive_id(CertifiedEntry.kind, node, state.stay_id)
    entry = CertifiedEntry(operator.who, operator.reason).make_entry(ident, operator.at, node)
    goes = f"goes to {to}" if to != name else "is opened again"
    text = f"{node} is certified in {name} by {operator.who}, and {goes}: {operator.reason}"
    return OperatorOrder(node, text, entry)


def list_node_orders(fleet: Fleet, state: NodeState) -> list[str]:
    """Return the names of the orders for a node."""
    waits = state.node in fleet.nodes and fleet.policy.states[state.state].certified_to and not state.certified
    asks = any(wait.kind != "would" for wait in list_fleet_waits(fleet, [state]))
    words = ["approve", "decline"] if asks else []
    certify = ["certify"] if waits or is_left_to_people(state) else []
    return ["release" if state.hold else "hold", *certify, *words]


def list_rollout_orders(rollout: Rollout) -> list[str]:
    """Return the names of the orders for a rollout; one that has ended takes none."""
    return [] if rollout.ended_at else ["resume" if rollout.pause else "pause"]


@frozen
class WantedMove:
    """The state that somebody wants; `now`: without waiting for jobs; for how many hours, 0 as the policy says.

    `operation`: what the order is part of, None for a move alone.
    """

    to: str
    now: bool = False
    within_hours: float = 0.0
    operation: OrderedOperation | None = None


def make_move_order(
    fleet: Fleet, ledger: Ledger, operator: OperatorIdentity, state: NodeState, wish: WantedMove
) -> OperatorOrder:
    """Return the order to go to a state. The node's present state withdraws an earlier order.

    Raises AssayError, with the possible states, if the policy does not allow it or the node is held.
    """
    node, earlier, to = state.node, state.move_request, wish.to
    if state.state == to and not earlier:
        return OperatorOrder(node, f"{node} is already in {to}: {state.reason}")
    refuse_impossible_move(fleet, operator, state, to)
    if earlier and (earlier.to, earlier.now) == (to, wish.now) and not state.trust.find_outlived(earlier.id):
        text = f"{node} is already ordered to {to}, by {earlier.who}: {earlier.reason}"
        return OperatorOrder(node, f"{text}; `assay explain {node}` shows what it waits for")
    if wish.operation:
        ident = derive_id("operation", wish.operation.id, node)
    else:
        orders = ledger.entries(node, kinds=[MoveEntry.kind, ZapRequestedEntry.kind])
        ident = derive_id(MoveEntry.kind, node, state.stay_id, to, orders[-1].id if orders else "")
    move = MoveEntry(to, operator.who, operator.reason, wish.now, "", wish.within_hours, wish.operation)
    entry = move.make_entry(ident, operator.at, node)
    if earlier and to == state.state:
        return OperatorOrder(node, f"{node} stays in {to}; the order to go to {earlier.to} is withdrawn", entry)
    waits = find_policy_of_state(fleet, state).states[state.state].in_service
    when = " at once" if wish.now else " when no job is on it" if waits else ""
    text = f"{node} is ordered from {state.state} to {to}{when}, by {operator.who}: {operator.reason}"
    return OperatorOrder(node, text, entry)


def refuse_impossible_move(fleet: Fleet, operator: OperatorIdentity, state: NodeState, to: str) -> None:
    """Raise AssayError if a node is held, or the policy has no way to this state, or assay only watches it."""
    policy, hold, now = find_policy_of_state(fleet, state), state.hold, parse_time(operator.at)
    if hold and not is_hold_expired(hold, now):
        text = f"{state.node} is held by {hold.who} {format_hold_end(hold.until, now)}: {hold.reason}"
        raise AssayError(text, fix=f"assay release {state.node} --reason …")
    if to not in policy.states:
        near, reachable = suggest_nearest(to, policy.states), describe_reachable_states(policy, state.state)
        raise AssayError(f"the policy has no state {to!r}", fix=f"{near} {reachable}".strip())
    if to != state.state:
        refuse_unreachable_states(policy, state, [to])
        for step in (find_next_step(policy, state.state, to), to):
            refuse_watched_move(fleet, state, step)
    spec, entry = fleet.spec_of(state.node), policy.states[to].entry
    if WIPE in entry and "dossier" not in entry:  # one with a dossier is for nodes that leave
        from assay.act.actions.action import require_effect  # loads what talks to BMCs

        if spec.wipe is None:
            text = f"{state.node}: its spec {spec.name} declares no wipe"
            raise AssayError(text, fix=f"add `wipe` to specs/nodes/{spec.name}")
        require_effect(fleet, state.node, "wipe", "its local drives would be erased")
    if "zap" in entry and (refusal := find_refused_settings(fleet).get(state.node)):
        raise AssayError(refusal, fix="write your own value: `assay check` lists what stands in for it")


def find_policy_of_state(fleet: Fleet, state: NodeState) -> LifecyclePolicy:
    """Return the policy that has the node's state. Raises AssayError if none has it."""
    policy = fleet.policy_of_state.get(state.state)
    if policy is None:
        raise AssayError(f"{state.node} is in {state.state}, which no policy has", fix="assay check")
    return policy
