"""Records a person's order in the ledger: who gave it, for which nodes, and why. A repeated order is recorded once."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

from assay.act.orders.orders import OperatorIdentity, OperatorOrder, strip_to_one_line
from assay.cli.context_line import print_answer
from assay.cli.options import nodes_argument, option
from assay.model.errors import AssayError
from assay.model.facts import extend, fact, shown
from assay.model.timestamps import parse_duration

if TYPE_CHECKING:
    from assay.cli.workspace import Workspace
    from assay.decide.state.node_state import NodeState
    from assay.model.ledger_entry import LedgerEntry

NodeNames = Annotated[list[str], nodes_argument("One or more nodes, such as n[0001-0099].")]
Reason = Annotated[str, option("--reason TEXT", "Why. It is shown wherever the node is shown.", show_default=False)]
Who = Annotated[str, option("--who NAME", "Who gives the order. Default: the current user.", envvar="ASSAY_WHO")]

Within = Annotated[
    str,
    option(
        "--within DURATION",
        "How long this is meant: 30m, 4h. What has not begun by then waits for a person.",
        show_default=False,
    ),
]


@fact
class OrderInAnswer:
    """What became of an order for one node."""

    node: str
    """The name of the node."""
    new: bool
    """Whether the order was recorded now; false if somebody gave the same order just before, or nothing had to be."""
    message: str
    """What comes next."""
    entry: LedgerEntry | None = shown(omit=True, default=None)
    """The order in the ledger: its `body` says who gave it and why; missing if nothing had to be recorded."""

    def __str__(self) -> str:
        note = "  (somebody gave the same order just now: nothing was added)" if self.entry and not self.new else ""
        return f"{self.message}{note}"


@fact
class OrdersAnswer:
    """What became of an order, for each node that it names."""

    words: list[OrderInAnswer]
    """The order for each node."""


def parse_within(within: str) -> float:
    """Return the hours of `--within`, 0 for as long as the policy says. Raises AssayError for what is no duration."""
    return parse_duration(within, "--within").total_seconds() / 3600 if within else 0.0


def identify_operator(workspace: Workspace, who: str, reason: str) -> OperatorIdentity:
    """Return who gives the order. Raises AssayError without a reason, or if the user is unknown."""
    text = strip_to_one_line(reason)
    if not text:
        raise AssayError("a reason is missing: others will read it", fix="--reason 'what for'")
    return OperatorIdentity(find_operator_name(who), text, workspace.clock.now().isoformat())


def find_operator_name(who: str) -> str:
    """Return `who`, else $ASSAY_WHO, else the current user. Raises AssayError if none is known."""
    try:
        return strip_to_one_line(who) or strip_to_one_line(os.environ.get("ASSAY_WHO", "")) or getpass.getuser()
    except (KeyError, OSError):
        raise AssayError("the current user has no name", fix="use --who NAME, or set ASSAY_WHO") from None


def record_orders(
    workspace: Workspace, nodes: Sequence[str], make_order: Callable[[NodeState], OperatorOrder], form: str
) -> None:
    """Record an order for each of the nodes, for all or none, and print the results.

    Raises AssayError with every node that refuses the order, and why.
    """
    orders, refusals = list[OperatorOrder](), list[AssayError]()
    for state in _load_states(workspace, nodes):
        try:
            orders.append(make_order(state))
        except AssayError as refusal:
            refusals.append(refusal)
    if refusals:
        raise _combine_refusals(refusals, len(orders))
    to_write = [order for order in orders if order.entry]
    appended = workspace.ledger.append(*(order.entry for order in to_write if order.entry))
    new = {order.node for order, is_new in zip(to_write, appended, strict=True) if is_new}
    words = [extend(OrderInAnswer, order, new=order.node in new) for order in orders]
    print_answer(OrdersAnswer(words), form, map(str, words))


def _load_states(workspace: Workspace, nodes: Sequence[str]) -> list[NodeState]:
    from assay.cli.workspace import find_node_state

    known = {state.node: state for state in workspace.read_node_states()}
    return [known.get(name) or find_node_state(workspace, name) for name in dict.fromkeys(nodes)]


def _combine_refusals(refusals: Sequence[AssayError], others: int) -> AssayError:
    if len(refusals) == 1 and not others:
        return refusals[0]
    lines = "\n".join(f"  {refusal}" for refusal in refusals)
    rest = f"; nothing was recorded for the other {others} either" if others else ""
    return AssayError(f"{len(refusals)} of {len(refusals) + others} nodes refuse this order{rest}:\n{lines}")
