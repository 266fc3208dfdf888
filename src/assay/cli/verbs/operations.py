"""`assay operations`: what was ordered by name, how far it is; `start` orders, `show` follows, `cancel` takes back.

`assay zap NODE` starts the one that most people order by hand.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.act.orders.operations import OperationOrders, WantedOperation, expand_rack, find_operation
from assay.cli.context_line import print_answer
from assay.cli.operator_orders import Reason, Who, Within, identify_operator, parse_within
from assay.cli.options import FleetDir, OutputFormat, argument, complete_racks, nodes_argument, option
from assay.cli.workspace import Workspace, require_known
from assay.decide.state.operation_record import ENDED, OPERATIONS
from assay.ledger.ledger_reader import read_projection
from assay.model.errors import AssayError
from assay.model.facts import fact
from assay.model.specs.policy_sections import OperationName
from assay.model.text.lists import format_nodes
from assay.model.text.safe_text import escape_line
from assay.model.timestamps import format_minute

if TYPE_CHECKING:
    from assay.decide.state.operation_record import OperationRecord


@fact
class OperationsAnswer:
    """The operations that have not ended; with --all, all of them."""

    operations: list[OperationRecord]
    """The operations, the newest first."""


operations_app = typer.Typer(add_completion=False)
OperationId = Annotated[str, argument("OPERATION", "The id of an operation, or how it begins.")]
Now = Annotated[bool, option("--now", "Do not wait for the end of customers' jobs on the node.")]


@operations_app.callback(invoke_without_command=True)
def operations(
    context: typer.Context,
    all_: Annotated[bool, option("--all", "Show those that have ended too.")] = False,
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Show the operations that have not ended, the newest first.

    Exit codes: 0 shown; 2 the ledger or the fleet cannot be read.
    """
    if context.invoked_subcommand:
        return
    workspace = Workspace(fleet.resolve())
    known = read_projection(workspace.ledger_for_reading, OPERATIONS).operations.values()
    records = [record for record in reversed(known) if all_ or not record.is_over]
    lines = [next(_format(record)) for record in records] or ["no operation is under way"]
    print_answer(OperationsAnswer(records), form, lines)


@operations_app.command()
def start(
    operation: Annotated[OperationName, argument("OPERATION", "What to do.")],
    nodes: Annotated[list[str] | None, nodes_argument("One or more nodes, such as n[0001-0099].")] = None,
    reason: Reason = "",
    rack: Annotated[str, option("--rack RACK", "All nodes of this rack.", complete=complete_racks)] = "",
    gpus: Annotated[list[int] | None, option("--gpu SLOT", "Only this GPU, for gpu-reset; repeatable.", min=0)] = None,
    at: Annotated[str, option("--at TIME", "Plan it: it begins then. 2026-12-24T08:00:00Z; with --until.")] = "",
    until: Annotated[str, option("--until TIME", "When planned work should end.")] = "",
    now: Now = False,
    key: Annotated[str, option("--key KEY", "The same key is the same operation. Default: a new one.")] = "",
    within: Within = "",
    who: Who = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Order an operation that the policy declares: it is accepted or refused at once, and the next round decides.

    cordon, uncordon, maintenance, gpu-reset, reboot, power-cycle, power-off, power-on, reimage, zap, wipe, replace,
    retire.

    Exit codes: 0 recorded; 2 refused, and nothing was recorded.
    """
    workspace = Workspace(fleet.resolve())
    operator = identify_operator(workspace, who, reason)
    if bool(nodes) == bool(rack):
        raise AssayError("either nodes or a rack must be named", fix="name nodes, or use --rack")
    names = tuple(dict.fromkeys(expand_rack(workspace.fleet, rack) if rack else nodes or ()))
    if not names:
        raise AssayError(f"there is no rack {rack}, or several sites have one", fix="--rack SITE/RACK")
    known = {state.node: state for state in workspace.read_node_states()}
    require_known(names, known, "node")
    chosen = tuple(sorted(set(gpus or ())))
    if bool(at) != bool(until):
        raise AssayError("planned work has both a beginning and an end", fix="give both --at and --until")
    wish = WantedOperation(
        operation,
        names,
        key or secrets.token_hex(8),
        now,
        within_hours=parse_within(within),
        gpus=chosen,
        starts_at=at,
        ends_at=until,
    )
    orders = OperationOrders(workspace.fleet, workspace.ledger, operator)
    before = read_projection(workspace.ledger, OPERATIONS).operations
    record, _ = orders.begin([known[name] for name in names], wish)
    after = read_projection(workspace.ledger, OPERATIONS).operations
    ended = [after[ident] for ident in before if before[ident].state not in ENDED and after[ident].state in ENDED]
    replaced = [f"it takes the place of {each.operation} {each.id}, which had not begun" for each in ended]
    print_answer(record, form, [*_format(record), *replaced])


def zap(
    nodes: Annotated[list[str], nodes_argument("One or more nodes, such as n[0001-0099].")],
    reason: Reason,
    now: Now = False,
    within: Within = "",
    who: Who = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Order assay to write the firmware and settings that differ from the node's specs, and to read them back.

    It is the operation `zap`: accepted or refused at once, and the next round decides.

    Exit codes: 0 recorded; 2 refused, and nothing was recorded.
    """
    start("zap", nodes, reason, now=now, within=within, who=who, fleet=fleet, form=form)


@operations_app.command()
def show(ident: OperationId, fleet: FleetDir = Path(), form: OutputFormat = "text") -> None:
    """Show an operation: its state on each node, since when, and what it waits for or led to.

    Exit codes: 0 shown; 2 there is no such operation.
    """
    record = find_operation(Workspace(fleet.resolve()).ledger_for_reading, ident)
    print_answer(record, form, _format(record))


@operations_app.command()
def cancel(
    ident: OperationId, reason: Reason, who: Who = "", fleet: FleetDir = Path(), form: OutputFormat = "text"
) -> None:
    """Take an operation back on every node where it has not begun.

    Exit codes: 0 taken back, or was before; 2 it has begun everywhere, or has ended otherwise.
    """
    workspace = Workspace(fleet.resolve())
    orders = OperationOrders(workspace.fleet, workspace.ledger, identify_operator(workspace, who, reason))
    record = orders.cancel(ident)
    print_answer(record, form, _format(record))


@operations_app.command()
def defer(
    ident: OperationId,
    to: Annotated[str, option("--to TIME", "When it begins, such as 2026-12-24T08:00:00Z.")],
    reason: Reason,
    who: Who = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Let planned work begin at another time. It takes as long as before.

    Exit codes: 0 recorded; 2 its time has come, or the new time is too soon.
    """
    workspace = Workspace(fleet.resolve())
    orders = OperationOrders(workspace.fleet, workspace.ledger, identify_operator(workspace, who, reason))
    record = orders.defer(ident, to)
    print_answer(record, form, _format(record))


def _format(record: OperationRecord) -> Iterator[str]:
    """Yield an operation as lines for people: itself, and each of its nodes."""
    names = format_nodes([node.node for node in record.nodes])
    of = "".join(f" gpu{slot}" for slot in record.gpus)
    yield escape_line(f"{record.id}  {record.operation} {names}{of}: {record.state}, by {record.who}: {record.reason}")
    if record.starts_at:
        yield f"  planned from {format_minute(record.starts_at)} to {format_minute(record.ends_at)}"
    for node in record.nodes:
        yield escape_line(f"  {node.node}  {node.state} since {node.at[:16]}{node.text and f': {node.text}'}")
