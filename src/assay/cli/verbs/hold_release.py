"""`assay hold NODE…`: freeze a node.

`assay release NODE…`: end a hold.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.hold_expiry import format_hold_end, is_hold_expired, parse_hold_end
from assay.cli.operator_orders import (
    NodeNames,
    OperatorIdentity,
    OperatorOrder,
    Reason,
    Who,
    identify_operator,
    record_orders,
)
from assay.cli.workspace import FleetDir, OutputFormat, Workspace
from assay.model.errors import AssayError
from assay.model.ledger_entry import derive_id
from assay.model.timestamps import parse_time

if TYPE_CHECKING:
    from assay.lifecycle.node_state import NodeState

hold_app = typer.Typer(add_completion=False, help="Freeze a node: automation looks and reports, but never acts.")

Until = Annotated[str, typer.Option("--until", metavar="TIME", help="It ends then, by itself: 2026-12-01T18:00 (UTC).")]
Lasting = Annotated[
    str, typer.Option("--for", metavar="SPAN", help="It ends by itself so long after it began: 90m, 12h, 3d, 2w.")
]


@hold_app.command()
def hold(
    nodes: NodeNames,
    reason: Reason,
    until: Until = "",
    lasting: Lasting = "",
    who: Who = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Freeze a node: automation goes on looking and reports what it would do, but does nothing.

    Without an end it lasts until `assay release`, and is brought to mind again and again.

    To move its end, hold it again with the same reason and another end.
    """
    desk = Workspace(fleet.resolve())
    said = identify_operator(desk, who, reason)
    record_orders(desk, nodes, lambda story: _hold_node(desk, said, story, until, lasting), form)


def _hold_node(desk: Workspace, said: OperatorIdentity, story: NodeState, until: str, lasting: str) -> OperatorOrder:
    node, now = story.node, parse_time(said.at)
    held = story.hold if story.hold and not is_hold_expired(story.hold, now) else None
    if held and (held.who, held.reason) != (said.who, said.reason):
        told = f"{node} is already held by {held.who} {format_hold_end(held.until, now)}: {held.reason}"
        raise AssayError(told, fix=f"assay release {node} --reason …")
    end = parse_hold_end(until, lasting, parse_time(held.at) if held else now, now)
    lasts = format_hold_end(end, now)
    if held and parse_time(held.until) == parse_time(end):
        return OperatorOrder(node, f"{node} is held by you already, {lasts}: {held.reason}")
    more = {"until": end} if end else {}
    entry = said.make_entry(derive_id("hold", node, _last_hold_or_release(desk, story)), "hold", node, **more)
    return OperatorOrder(node, f"{node} is held by {said.who} {lasts}: {said.reason}", entry)


def _last_hold_or_release(desk: Workspace, story: NodeState) -> str:
    """Return the id of the last hold or release of the node: a hold follows that one only once."""
    words = desk.ledger.entries(story.node, kinds=["hold", "release"])
    return words[-1].id if words else ""


if TYPE_CHECKING:
    from assay.lifecycle.node_state import NodeState

release_app = typer.Typer(add_completion=False, help="End a hold.")


@release_app.command()
def release(
    nodes: NodeNames, reason: Reason, who: Who = "", fleet: FleetDir = Path(), form: OutputFormat = "text"
) -> None:
    """End a hold; at the next look automation does what the evidence asks for."""
    desk = Workspace(fleet.resolve())
    said = identify_operator(desk, who, reason)
    record_orders(desk, nodes, lambda story: _release_node(said, story), form)


def _release_node(said: OperatorIdentity, story: NodeState) -> OperatorOrder:
    node, held = story.node, story.hold
    if held is None:
        raise AssayError(f"{node} is not held by anybody")
    entry = said.make_entry(derive_id("release", node, held.id), "release", node)
    return OperatorOrder(node, f"{node} is released; {held.who} held it: {held.reason}", entry)
