"""A person's word in the ledger: who said it, about which node, and why."""

from __future__ import annotations

import getpass
import os
import uuid
from typing import TYPE_CHECKING, Annotated

import typer

from assay.model.entry import Entry
from assay.model.errors import Trouble

if TYPE_CHECKING:
    from assay.cli.desk import Desk

NodeName = Annotated[str, typer.Argument(metavar="NODE", help="The node.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; it is shown wherever the node is.")]


def who() -> str:
    """Return who speaks: $ASSAY_WHO, else the user who runs the command. Raises Trouble where neither is known."""
    try:
        return os.environ.get("ASSAY_WHO") or getpass.getuser()
    except (KeyError, OSError):
        raise Trouble("cannot tell who you are", fix="set ASSAY_WHO") from None


def write_down(desk: Desk, kind: str, node: str, reason: str) -> None:
    """Append a person's word about a node. Raises Trouble without a reason."""
    if not reason.strip():
        raise Trouble("a reason is needed: others will read it", fix="--reason 'what for'")
    at = desk.clock.now().isoformat()
    desk.ledger.append(Entry(uuid.uuid4().hex[:16], at, kind, node, {"who": who(), "reason": reason.strip()}))
