"""Operations by name: accepted or refused at once, recorded once for a caller's key, and followed by their record.

An operation is an order for each of its nodes to go to the state that the policy names for it. All that holds for
orders holds for it: limits, breakers, trust, the node's hold, and a proof by reading again. Nobody decides while one is
recorded or taken back: what is cancelled never begins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import cast

from assay.act.actions.action import ActionContext
from assay.act.loop.rack_leases import DECIDING
from assay.act.orders.orders import OperatorIdentity, WantedMove, find_policy_of_state, make_move_order
from assay.act.orders.visitor_orders import OrderRefused
from assay.adapters.scheduler import PlannedWindow, ReservesWindows, group_by_scheduler
from assay.decide.rollouts.decide_rollouts import find_begin
from assay.decide.rollouts.rollout_history import ROLLOUTS, Rollout
from assay.decide.state.node_state import NodeState
from assay.decide.state.operation_record import CUSTOMER, ENDED, OPERATIONS, OperationHistory, OperationRecord
from assay.ledger.ledger_reader import read_projection
from assay.ledger.store import Ledger
from assay.model.decision import FREE_ACTIONS, GPU_RESET, ActionName
from assay.model.entries.node_entries import (
    DecisionWithdrawnEntry,
    OperationDeferredEntry,
    OperationDroppedEntry,
    OperationPlannedEntry,
    OperationReservedEntry,
    OrderedOperation,
)
from assay.model.errors import AssayError, describe_error
from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.specs.policy_sections import OperationName, OperationRule
from assay.model.timestamps import format_minute, format_time, hours, parse_time

MAX_NODES = 512
RESERVED = "its scheduler starts no job that would run into the window"


@frozen
class WantedOperation:
    """What somebody wants done: the operation, its nodes, and the caller's key.

    `now`: without waiting for jobs. `role`: the role of who asks, "" on the command line. `within_hours`: how long it
    is meant, 0 for as long as the policy says. `gpus`: the slots that a reset is for; none: all. `starts_at`: when it
    begins, and `ends_at`: when it should end (ISO 8601); "" for at once.
    """

    name: OperationName
    nodes: tuple[str, ...]
    key: str
    now: bool = False
    role: str = ""
    within_hours: float = 0.0
    gpus: tuple[int, ...] = ()
    starts_at: str = ""
    ends_at: str = ""


@frozen
class OperationOrders:
    """Makes the operations of one person: what is there, and who asks, why and when."""

    fleet: Fleet
    ledger: Ledger
    operator: OperatorIdentity

    def begin(self, states: Collection[NodeState], wish: WantedOperation) -> tuple[OperationRecord, bool]:
        """Record an operation, for all of its nodes or none; return it, and whether it is new.

        `states` are those of its nodes. Raises OrderRefused with the first reasons.
        """
        ident = derive_id("operation", self.operator.who, wish.key)
        with self.ledger.exclusive_section(DECIDING):
            history = read_projection(self.ledger, OPERATIONS)
            if known := history.operations.get(ident):
                return _require_same(known, wish, self.operator), False
            rule = _find_rule(self.fleet, wish)
            if wish.role == CUSTOMER:
                _refuse_too_many(self.fleet, rule, wish, history.operations.values())
            if wish.starts_at:
                plan = self._plan(ident, states, wish, rule, history)
                self.ledger.append(plan.make_entry(derive_id("operation.planned", ident), self.operator.at))
                return read_projection(self.ledger, OPERATIONS).operations[ident], True
            asked = OrderedOperation(ident, wish.name, wish.key, role=wish.role, gpus=wish.gpus)
            entries, refusals = list[LedgerEntry](), list[AssayError]()
            for state in states:
                try:
                    entries.append(self._make_entry(state, wish, rule, asked, history))
                except AssayError as refusal:  # who holds a node, and why, is not for customers
                    plain = AssayError(f"{state.node} cannot have {wish.name} now")
                    refusals.append(plain if wish.role == CUSTOMER else refusal)
            if refusals:
                rest = f"; and {len(refusals) - 3} more" if len(refusals) > 3 else ""
                text = "; ".join(refusal.what for refusal in refusals[:3])
                raise OrderRefused(text + rest, where=refusals[0].where, fix=refusals[0].fix)
            self.ledger.append(*entries)
            return read_projection(self.ledger, OPERATIONS).operations[ident], True

    def cancel(self, ident: str) -> OperationRecord:
        """Take an operation back on every node where it has not reached its state. A second time changes nothing.

        Raises OrderRefused if it has ended otherwise, or has begun everywhere: a restart cannot be taken back.
        """
        with self.ledger.exclusive_section(DECIDING):
            history = read_projection(self.ledger, OPERATIONS)
            record, entries = find_operation(self.ledger, ident), list[LedgerEntry]()
            if record.state == "planned":
                dropped = OperationDroppedEntry(record.id, self.operator.who, self.operator.reason)
                self.ledger.append(dropped.make_entry(derive_id("operation.dropped", record.id), self.operator.at))
                return find_operation(self.ledger, record.id)
            waiting = [
                each
                for each in record.nodes
                if (known := history.open.get(each.node)) and known.order == each.order and known.arrival is None
            ]
            if not waiting:
                if any(each.state == "cancelled" for each in record.nodes):
                    return record
                standing = f"has {record.state}" if record.is_over else "has begun on each of its nodes"
                raise OrderRefused(f"{record.operation} {standing}: there is nothing left to take back")
            for each in waiting:
                entry = DecisionWithdrawnEntry(each.order, self.operator.reason, who=self.operator.who)
                ident = derive_id("operation.cancel", each.order)
                entries.append(entry.make_entry(ident, self.operator.at, each.node))
            self.ledger.append(*entries)
            return find_operation(self.ledger, record.id)

    def defer(self, ident: str, starts_at: str, role: str = "") -> OperationRecord:
        """Let a planned operation begin at another time; it takes as long as before. A second time changes nothing.

        Raises OrderRefused if it is not planned any more, too soon, or later than the policy lets customers have it.
        """
        with self.ledger.exclusive_section(DECIDING):
            record, at = find_operation(self.ledger, ident), _parse_moment(starts_at)
            if record.state != "planned":
                raise OrderRefused(f"{record.operation} is not planned any more: it has {record.state}")
            rule, before = _find_declared(self.fleet, record), parse_time(record.starts_at)
            if at == before:
                return record
            later = (at - before).total_seconds() / 3600
            if role == CUSTOMER and not 0 < later <= rule.defer_hours - record.deferred_hours:
                left = max(0.0, rule.defer_hours - record.deferred_hours)
                raise OrderRefused(f"customers may defer it by {left:g} hours more, and to no earlier time")
            self._require_lead(rule, at)
            end = format_time(parse_time(record.ends_at) + (at - before))
            deferral = OperationDeferredEntry(
                record.id, self.operator.who, self.operator.reason, format_time(at), end, role
            )
            ident = derive_id("operation.deferred", record.id, record.starts_at, format_time(at))
            self.ledger.append(deferral.make_entry(ident, self.operator.at))
            return find_operation(self.ledger, record.id)

    def defer_rollout(self, ident: str, nodes: Collection[str], starts_at: str, role: str = "") -> None:
        """Let those of `nodes` that wait for a rollout leave service no sooner. A second time changes nothing.

        Raises OrderRefused if none waits, or if the policy does not let customers have it so late.
        """
        with self.ledger.exclusive_section(DECIDING):
            rollout, at = read_projection(self.ledger, ROLLOUTS).rollouts[ident], _parse_moment(starts_at)
            members = [rollout.members[name] for name in sorted(rollout.members.keys() & nodes)]
            waiting = [member for member in members if not member.is_ordered_out and not member.proof]
            if not rollout.is_active or rollout.takes_back or not waiting:
                raise OrderRefused("no node waits for it, or it takes back what does harm")
            latest = find_begin(self.fleet.policy, rollout) + hours(self.fleet.policy.rollouts.defer_hours)
            if role == CUSTOMER and at > latest:
                raise OrderRefused(f"customers may defer it to {format_minute(format_time(latest))}, and no longer")
            deferral = OperationDeferredEntry(
                ident, self.operator.who, self.operator.reason, format_time(at), role=role
            )
            for member in waiting:
                if member.deferred_to != deferral.starts_at:
                    key = derive_id(deferral.kind, ident, member.node, str(member.deferrals))
                    self.ledger.append(deferral.make_entry(key, self.operator.at, member.node))

    def begin_planned(self, record: OperationRecord, states: Mapping[str, NodeState]) -> Iterator[LedgerEntry]:
        """Yield what begins a planned operation whose time has come: an order for each node, or why there is none."""
        names = tuple(each.node for each in record.nodes)
        name = cast(OperationName, record.operation)
        wish = WantedOperation(name, names, record.key, record.now, record.role, gpus=record.gpus)
        history = read_projection(self.ledger, OPERATIONS)
        asked = OrderedOperation(record.id, record.operation, record.key, role=record.role, gpus=record.gpus)
        for each in record.nodes:
            try:
                if each.node not in states or each.node not in self.fleet.nodes:
                    raise AssayError(f"{each.node} is not there any more")
                if record.ends_at <= self.operator.at:  # customers were told of this window, and of no later one
                    raise AssayError(f"its window was over at {record.ends_at} when a controller came to it")
                yield self._make_entry(states[each.node], wish, _find_rule(self.fleet, wish), asked, history)
            except AssayError as refusal:
                dropped = OperationDroppedEntry(record.id, "", refusal.what)
                yield dropped.make_entry(
                    derive_id("operation.dropped", record.id, each.node), self.operator.at, each.node
                )

    def _plan(
        self,
        ident: str,
        states: Collection[NodeState],
        wish: WantedOperation,
        rule: OperationRule,
        history: OperationHistory,
    ) -> OperationPlannedEntry:
        """Return the plan of an operation. Whether each node can have it is asked again when its time has come."""
        start, end = _parse_moment(wish.starts_at), _parse_moment(wish.ends_at)
        self._require_lead(rule, start)
        if end <= start:
            raise OrderRefused("it must end after it begins")
        for record in history.list_planned():
            taken = {each.node for each in record.nodes} & {state.node for state in states}
            if taken and start < parse_time(record.ends_at) and parse_time(record.starts_at) < end:
                raise OrderRefused(f"{min(taken)} has {record.operation} planned in that time: {record.id}")
        for state in states:
            self._list_actions(state, wish, rule)
        return OperationPlannedEntry(
            operation=ident,
            name=wish.name,
            key=wish.key,
            to=rule.to,
            who=self.operator.who,
            reason=self.operator.reason,
            nodes=tuple(state.node for state in states),
            starts_at=format_time(start),
            ends_at=format_time(end),
            role=wish.role,
            now=wish.now or rule.now,
            gpus=wish.gpus,
        )

    def _require_lead(self, rule: OperationRule, start: datetime) -> None:
        if start < (now := parse_time(self.operator.at)):
            text = f"{start:%Y-%m-%d %H:%M} UTC is in the past: it is {now:%Y-%m-%d %H:%M} UTC"
            raise OrderRefused(text, fix="give a later time; what cannot wait begins at once, without a time")
        if start < now + hours(rule.lead_hours):
            text = f"customers hear of planned work {rule.lead_hours:g} hours before"
            raise OrderRefused(text, fix="plan it for later; what cannot wait begins at once, without a time")

    def _make_entry(
        self,
        state: NodeState,
        wish: WantedOperation,
        rule: OperationRule,
        asked: OrderedOperation,
        history: OperationHistory,
    ) -> LedgerEntry:
        if rule.origins and state.state not in rule.origins:
            raise AssayError(f"{state.node} is in {state.state}: {wish.name} is for nodes in {', '.join(rule.origins)}")
        known = history.open.get(state.node)
        if known and known.arrival is not None:
            raise AssayError(f"{state.node} is under operation {known.operation}, which has begun")
        of_node = replace(asked, actions=tuple(self._list_actions(state, wish, rule)))
        move = WantedMove(rule.to, wish.now or rule.now, wish.within_hours, of_node)
        order = make_move_order(self.fleet, self.ledger, self.operator, state, move)
        if order.entry is None:
            raise AssayError(order.message)
        return order.entry

    def _list_actions(self, state: NodeState, wish: WantedOperation, rule: OperationRule) -> list[ActionName]:
        """Return the actions that prove it on a node. Raises AssayError if the node cannot have them."""
        policy, profile = find_policy_of_state(self.fleet, state), self.fleet.profile_of(state.node)
        count = self.fleet.spec_of(state.node).gpus.count
        if none := sorted(slot for slot in wish.gpus if slot >= count):
            raise AssayError(f"{state.node} has {count} GPUs, and no gpu{none[0]}")
        actions = [action for action in policy.states[rule.to].entry if action not in FREE_ACTIONS]
        if missing := sorted(set(actions) - set(profile.actions)):
            raise AssayError(f"{state.node}: its profile {profile.name} does not allow {', '.join(missing)}")
        return actions


def begin_due_operations(fleet: Fleet, ledger: Ledger, states: Mapping[str, NodeState], now: datetime) -> None:
    """Order what was planned, and whose time has come. After a kill, the same is ordered once."""
    due = [
        record for record in read_projection(ledger, OPERATIONS).list_planned() if parse_time(record.starts_at) <= now
    ]
    for record in due:
        orders = OperationOrders(fleet, ledger, OperatorIdentity(record.who, record.reason, format_time(now)))
        with ledger.exclusive_section(DECIDING):
            if find_operation(ledger, record.id).state == "planned":  # nobody else has begun or deferred it
                ledger.append(*orders.begin_planned(record, states))


def reserve_windows(context: ActionContext, waves: Collection[tuple[Rollout, PlannedWindow]] = ()) -> None:
    """Let schedulers start no job that would run into planned work. What a killed process left is corrected.

    `waves`: when the first waves of rollouts leave.
    """
    fleet, now = context.fleet, context.clock.now()
    known = read_projection(context.ledger, OPERATIONS).operations.values()
    records = [record for record in known if record.starts_at and parse_time(record.ends_at) > now]
    work = [(set(rollout.members), rollout.id, window) for rollout, window in waves]
    for record in records:
        waiting = sorted(each.node for each in record.nodes if each.state not in ("running", *ENDED))
        times = (int(parse_time(at).timestamp()) for at in (record.starts_at, record.ends_at))
        work.append(({each.node for each in record.nodes}, record.id, PlannedWindow(tuple(waiting), *times)))
    names = {name for of_work, *_ in work for name in of_work if name in fleet.nodes}
    nodes = [fleet.nodes[name] for name in sorted(names) if not fleet.is_watched(name)]
    for scheduler, ours in group_by_scheduler(nodes, context.workloads).nodes.items():
        if not isinstance(scheduler, ReservesWindows):
            continue
        windows = {
            ident: replace(window, nodes=tuple(name for name in window.nodes if name in ours))
            for of_work, ident, window in work
            if not of_work.isdisjoint(ours)
        }
        try:
            problems = scheduler.reserve_windows(windows)
        except Exception as error:  # whatever it is, the other schedulers go on
            problems = dict.fromkeys(windows, describe_error(error).partition(" → ")[0])
        texts = {
            (record.id, each.node): each.text for record in records for each in record.nodes if each.state == "planned"
        }
        texts |= {
            (rollout.id, name): rollout.members[name].reserved for rollout, window in waves for name in window.nodes
        }
        for (ident, name), text in texts.items():
            answer = OperationReservedEntry(ident, problems.get(ident, RESERVED))
            if name in ours and text != answer.reason:
                entry = derive_id(answer.kind, ident, name, answer.reason, format_time(now))
                context.ledger.append(answer.make_entry(entry, format_time(now), name))


def find_operation(ledger: Ledger, ident: str) -> OperationRecord:
    """Return the operation whose id begins so. Raises AssayError unless there is exactly one."""
    operations = read_projection(ledger, OPERATIONS).operations
    fitting = [record for name, record in operations.items() if ident and name.startswith(ident)]
    if len(fitting) != 1:
        count = "there is no operation" if not fitting else f"{len(fitting)} operations begin with"
        raise AssayError(f"{count} {ident}", fix="`assay operations` lists them")
    return fitting[0]


def expand_rack(fleet: Fleet, rack: str) -> Sequence[str]:
    """Return the nodes of a rack, named `RACK` or `SITE/RACK`; none if no rack, or several, have this name."""
    nodes = [node for node in fleet.nodes.values() if rack in (node.rack, f"{node.site}/{node.rack}")]
    return [node.name for node in nodes] if len({node.site for node in nodes}) == 1 else []


def _require_same(known: OperationRecord, wish: WantedOperation, operator: OperatorIdentity) -> OperationRecord:
    """Return the record under this key. Raises OrderRefused if the key stands for something else."""
    nodes = {each.node for each in known.nodes}
    asked = (wish.name, set(wish.nodes), operator.reason, set(wish.gpus), bool(wish.starts_at))
    there = (known.operation, nodes, known.reason, set(known.gpus), bool(known.starts_at))
    if there != asked or (wish.now and not known.now):
        raise OrderRefused(f"the key {wish.key} is that of another operation: {known.operation}, {known.id}")
    return known


def _find_declared(fleet: Fleet, record: OperationRecord) -> OperationRule:
    rule = fleet.policy.operations.get(cast(OperationName, record.operation))
    if rule is None:
        raise OrderRefused(f"the policy has no operation {record.operation} any more")
    return rule


def _find_rule(fleet: Fleet, wish: WantedOperation) -> OperationRule:
    rule = fleet.policy.operations.get(wish.name)
    if rule is None:
        fix = "declare it in `operations` of the policy; `assay upgrade` brings those of the starter"
        raise OrderRefused(f"the policy has no operation {wish.name}", fix=fix)
    if wish.gpus and wish.name != GPU_RESET:
        raise OrderRefused(f"{wish.name} is for whole nodes: only {GPU_RESET} is for single GPUs")
    if wish.role == CUSTOMER and not rule.customers_at_once:
        raise OrderRefused(f"the policy leaves {wish.name} to operators")
    if not 1 <= len(wish.nodes) <= MAX_NODES:
        raise OrderRefused(f"an operation is for one node at least, and for {MAX_NODES} at most")
    return rule


def _parse_moment(text: str) -> datetime:
    """Return a time that somebody gave. Raises OrderRefused for one that is none, or that has no zone."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise OrderRefused(f"{text!r} is no time", fix="ISO 8601 with a zone, such as 2026-12-24T08:00:00Z")
    return at


def _refuse_too_many(
    fleet: Fleet, rule: OperationRule, wish: WantedOperation, known: Iterable[OperationRecord]
) -> None:
    """Raise OrderRefused if customers would have more nodes of a pool under this operation than they may."""
    theirs = [record for record in known if record.role == CUSTOMER and record.operation == wish.name]
    open_nodes = [each.node for record in theirs for each in record.nodes if each.state not in ENDED]
    pools = Counter(fleet.nodes[node].pool for node in (*open_nodes, *wish.nodes) if node in fleet.nodes)
    if max(pools[fleet.nodes[node].pool] for node in wish.nodes) > rule.customers_at_once:
        allowed = f"customers may have {rule.customers_at_once} nodes of a pool under it at the same time"
        raise OrderRefused(f"too many nodes for {wish.name}: {allowed}")
