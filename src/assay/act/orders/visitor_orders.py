"""Orders that a visitor gives in a browser or by the API: each acts once, however often the request is sent.

The order names the position of the ledger that the visitor had seen. If somebody has given an order since, it is either
this very order, which came before, or another one, of which the visitor could not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from assay.act.loop.context import ControllerContext
from assay.act.loop.projections import read_node_states
from assay.act.orders.orders import (
    OperatorIdentity,
    OperatorOrder,
    answer_wait,
    certify_node,
    find_active_rollout,
    find_ticket,
    find_wait,
    hold_node,
    list_fleet_waits,
    pause_rollout,
    record_done,
    release_node,
    resume_rollout,
    strip_to_one_line,
)
from assay.decide.rollouts.rollout_history import Rollout, shorten_id
from assay.decide.state.node_state import NodeState
from assay.model.entries.node_entries import (
    ApprovedEntry,
    CertifiedEntry,
    DeclinedEntry,
    HoldEntry,
    MoveEntry,
    ReleaseEntry,
)
from assay.model.entries.registry import decode_entry
from assay.model.entries.rollouts import RolloutAbortedEntry, RolloutPausedEntry, RolloutResumedEntry
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.ticket import TicketRecord

NodeOrderName = Literal["hold", "release", "certify", "approve", "decline"]
RolloutOrderName = Literal["pause", "resume"]
TicketOrderName = Literal["done"]
NodeOrderEntry = HoldEntry | ReleaseEntry | CertifiedEntry | MoveEntry | ApprovedEntry | DeclinedEntry
RolloutOrderEntry = RolloutPausedEntry | RolloutResumedEntry | RolloutAbortedEntry
KIND_OF_ORDER = {
    "hold": HoldEntry.kind,
    "release": ReleaseEntry.kind,
    "certify": CertifiedEntry.kind,
    "approve": ApprovedEntry.kind,
    "decline": DeclinedEntry.kind,
    "pause": RolloutPausedEntry.kind,
    "resume": RolloutResumedEntry.kind,
}
NODE_ORDERS = tuple(entry.kind for entry in get_args(NodeOrderEntry))
ROLLOUT_ORDERS = tuple(entry.kind for entry in get_args(RolloutOrderEntry))


class OrderRefused(AssayError):
    """An order that cannot be given now, and why."""


@frozen
class OrderResult:
    """What became of an order."""

    recorded: bool
    """Whether it was recorded now."""
    message: str
    """What comes next."""


@frozen
class VisitorOrder:
    """What a visitor orders, and why. `after`: the position of the ledger that the visitor had seen.

    `decision`: the id of what is approved or declined.
    """

    order: str
    who: str
    reason: str
    after: int
    duration: str = ""
    decision: str = ""


def order_for_node(context: ControllerContext, state: NodeState, order: VisitorOrder) -> OrderResult:
    """Record an order for a node. Raises OrderRefused, or AssayError if the ledger cannot be written."""
    operator = _identify(context, order)
    later = map(decode_entry, context.ledger.entries(state.node, NODE_ORDERS, order.after))
    if repeated := _find_repeated(order, [entry for entry in later if isinstance(entry, NodeOrderEntry)]):
        return repeated
    try:
        made = _make_node_order(context, state, order, operator)
    except AssayError as error:
        raise OrderRefused(error.what) from None
    recorded = bool(made.entry) and all(context.ledger.append(*filter(None, [made.entry])))
    return OrderResult(recorded, made.message)


def order_for_rollout(
    context: ControllerContext, rollouts: Iterable[Rollout], ident: str, order: VisitorOrder
) -> OrderResult:
    """Record an order for a rollout. Raises OrderRefused, or AssayError if the ledger cannot be written."""
    operator = _identify(context, order)
    try:
        rollout = find_active_rollout(rollouts, ident)
        later = map(decode_entry, context.ledger.entries(kinds=ROLLOUT_ORDERS, after=order.after))
        orders = [entry for entry in later if isinstance(entry, RolloutOrderEntry) and entry.rollout == rollout.id]
        if repeated := _find_repeated(order, orders):
            return repeated
        entry = pause_rollout(rollout, operator) if order.order == "pause" else resume_rollout(rollout, operator)
    except OrderRefused:
        raise
    except AssayError as error:
        raise OrderRefused(error.what) from None
    [recorded] = context.ledger.append(entry)
    return OrderResult(
        recorded, f"rollout {shorten_id(rollout.id)}: {order.order}, by {operator.who}: {operator.reason}"
    )


def order_for_ticket(
    context: ControllerContext, records: Iterable[TicketRecord], ident: str, order: VisitorOrder
) -> OrderResult:
    """Record an order for a ticket. Raises OrderRefused, or AssayError if the ledger cannot be written."""
    operator = _identify(context, order)
    try:
        record = find_ticket(records, ident)
        state = read_node_states(context.ledger).get(record.ticket.node)
        return OrderResult(*record_done(context.fleet, context.ledger, record, operator, state))
    except AssayError as error:
        raise OrderRefused(error.what) from None


def _identify(context: ControllerContext, order: VisitorOrder) -> OperatorIdentity:
    reason = strip_to_one_line(order.reason)
    if not reason:
        raise OrderRefused("a reason is missing: others will read it")
    return OperatorIdentity(order.who, reason, context.now)


def _find_repeated(order: VisitorOrder, later: Sequence[NodeOrderEntry | RolloutOrderEntry]) -> OrderResult | None:
    """Return the result if this very order is the newest one. Raises OrderRefused if somebody gave another one."""
    if not later:
        return None
    newest = later[-1]
    this = KIND_OF_ORDER[order.order], order.who, strip_to_one_line(order.reason)
    if (newest.kind, newest.who, newest.reason) == this:
        return OrderResult(recorded=False, message="this order was recorded before: nothing was added")
    raise OrderRefused(f"{newest.who} gave an order since you looked ({newest.kind}: {newest.reason}); look again")


def _make_node_order(
    context: ControllerContext, state: NodeState, order: VisitorOrder, operator: OperatorIdentity
) -> OperatorOrder:
    match order.order:
        case "hold":
            return hold_node(context.ledger, operator, state, duration=order.duration)
        case "release":
            return release_node(operator, state)
        case "certify":
            return certify_node(context.fleet, operator, state)
        case "approve" | "decline":
            wait = find_wait(list_fleet_waits(context.fleet, [state]), order.decision)
            return answer_wait(wait, state, operator, is_yes=order.order == "approve")
    raise OrderRefused(f"there is no order {order.order}")
