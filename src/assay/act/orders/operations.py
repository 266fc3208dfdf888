"""Operations by name: accepted or refused at once, recorded once for a caller's key, and followed by their record.

An operation is an order for each of its nodes to go to the state that the policy names for it. All that holds for
orders holds for it: limits, breakers, trust, the node's hold, and a proof by reading again. Nobody decides while one is
recorded or taken back: what is cancelled never begins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from assay.act.loop.rack_leases import DECIDING
from assay.act.orders.orders import OperatorIdentity, WantedMove, find_policy_of_state, make_move_order
from assay.act.orders.visitor_orders import OrderRefused
from assay.decide.state.node_state import NodeState
from assay.decide.state.operation_record import ENDED, OPERATIONS, OperationHistory, OperationRecord
from assay.ledger.ledger_reader import read_projection
from assay.ledger.store import Ledger
from assay.model.decision import GPU_RESET, PAPERWORK
from assay.model.entries.node_entries import DecisionWithdrawnEntry, OrderedOperation
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.specs.policy_sections import OperationName, OperationRule

MAX_NODES = 512
CUSTOMER = "customer"


@dataclass(frozen=True, slots=True)
class WantedOperation:
    """What somebody wants done: the operation, its nodes, and the caller's key.

    `now`: without waiting for jobs. `role`: the role of who asks, "" on the command line. `within_hours`: how long it
    is meant, 0 for as long as the policy says. `gpus`: the slots that a reset is for; none: all.
    """

    name: OperationName
    nodes: tuple[str, ...]
    key: str
    now: bool = False
    role: str = ""
    within_hours: float = 0.0
    gpus: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
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

    def _make_entry(
        self,
        state: NodeState,
        wish: WantedOperation,
        rule: OperationRule,
        asked: OrderedOperation,
        history: OperationHistory,
    ) -> LedgerEntry:
        policy, profile = find_policy_of_state(self.fleet, state), self.fleet.profile_of(state.node)
        if rule.origins and state.state not in rule.origins:
            raise AssayError(f"{state.node} is in {state.state}: {wish.name} is for nodes in {', '.join(rule.origins)}")
        known = history.open.get(state.node)
        if known and known.arrival is not None:
            raise AssayError(f"{state.node} is under operation {known.operation}, which has begun")
        count = self.fleet.spec_of(state.node).gpus.count
        if none := sorted(slot for slot in wish.gpus if slot >= count):
            raise AssayError(f"{state.node} has {count} GPUs, and no gpu{none[0]}")
        actions = [action for action in policy.states[rule.to].entry if action not in PAPERWORK]
        if missing := sorted(set(actions) - set(profile.actions)):
            raise AssayError(f"{state.node}: its profile {profile.name} does not allow {', '.join(missing)}")
        of_node = replace(asked, actions=tuple(actions))
        move = WantedMove(rule.to, wish.now or rule.now, wish.within_hours, of_node)
        order = make_move_order(self.fleet, self.ledger, self.operator, state, move)
        if order.entry is None:
            raise AssayError(order.message)
        return order.entry


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
    asked = (wish.name, set(wish.nodes), operator.reason, set(wish.gpus))
    if (known.operation, nodes, known.reason, set(known.gpus)) != asked or (wish.now and not known.now):
        raise OrderRefused(f"the key {wish.key} is that of another operation: {known.operation}, {known.id}")
    return known


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
