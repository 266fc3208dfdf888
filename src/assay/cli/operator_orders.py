"""A person's word in the ledger: who said it, about which nodes, and why. Said twice, it is there once."""

from __future__ import annotations

import getpass
import json
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry

if TYPE_CHECKING:
    from assay.cli.workspace import Workspace
    from assay.lifecycle.node_state import NodeState

NodeNames = Annotated[list[str], typer.Argument(metavar="NODE", help="The node, or several.", show_default=False)]
Reason = Annotated[str, typer.Option("--reason", help="Why; it is shown wherever the node is.", show_default=False)]
Who = Annotated[
    str, typer.Option("--who", envvar="ASSAY_WHO", help="Who says so; by default the user who runs the command.")
]


@dataclass(frozen=True, slots=True)
class OperatorOrder:
    """What a person's word comes to for one node: what is `told` them, and the line to write (None: it stands)."""

    node: str
    message: str
    entry: LedgerEntry | None = None


@dataclass(frozen=True, slots=True)
class OperatorIdentity:
    """Who speaks, why, and when (ISO 8601 UTC)."""

    who: str
    reason: str
    at: str

    def make_entry(self, ident: str, kind: str, node: str, **more: Any) -> LedgerEntry:
        """Return the line of a word."""
        return LedgerEntry(ident, self.at, kind, node, {**more, "who": self.who, "reason": self.reason})


def identify_operator(desk: Workspace, who: str, reason: str) -> OperatorIdentity:
    """Return who speaks. Raises Trouble without a reason, or where nobody knows who it is."""
    said = strip_to_one_line(reason)
    if not said:
        raise AssayError("a reason is needed: others will read it", fix="--reason 'what for'")
    return OperatorIdentity(find_operator_name(who), said, desk.clock.now().isoformat())


def strip_to_one_line(text: str) -> str:
    """Return what a person typed as one line, without what a terminal would act on."""
    return " ".join("".join(one for one in text if one.isprintable() or one.isspace()).split())


def record_orders(desk: Workspace, nodes: Sequence[str], word: Callable[[NodeState], OperatorOrder], form: str) -> None:
    """Write down a word about each of the nodes, all or none, and say what was written.

    Raises Trouble with every node that it cannot be said of, and why.
    """
    words, refused = list[OperatorOrder](), list[AssayError]()
    for story in _load_states(desk, nodes):
        try:
            words.append(word(story))
        except AssayError as trouble:
            refused.append(trouble)
    if refused:
        raise _combine_refusals(refused, len(words))
    written = [one for one in words if one.entry]
    new = desk.ledger.append(*(one.entry for one in written if one.entry))
    _print_orders(words, {one.node for one, fresh in zip(written, new, strict=True) if fresh}, form)


def _load_states(desk: Workspace, nodes: Sequence[str]) -> list[NodeState]:
    from assay.cli.node_lookup import find_node_state, load_node_states

    known = {story.node: story for story in load_node_states(desk)}
    return [known.get(name) or find_node_state(desk, name) for name in dict.fromkeys(nodes)]


def _combine_refusals(refused: Sequence[AssayError], others: int) -> AssayError:
    if len(refused) == 1 and not others:
        return refused[0]
    lines = "\n".join(f"  {one}" for one in refused)
    left = f"; of the other {others} nothing was written either" if others else ""
    return AssayError(f"this cannot be said of {len(refused)} of {len(refused) + others} nodes{left}:\n{lines}")


def _print_orders(words: Sequence[OperatorOrder], new: Collection[str], form: str) -> None:
    if form == "json":
        typer.echo(json.dumps({"words": [_order_as_json(one, new) for one in words]}, ensure_ascii=False))
        return
    for one in words:
        late = "  (somebody said so just now: nothing was added)" if one.entry and one.node not in new else ""
        typer.echo(f"{one.message}{late}")


def _order_as_json(one: OperatorOrder, new: Collection[str]) -> dict[str, Any]:
    entry = one.entry
    said = {"id": entry.id, "kind": entry.kind, "at": entry.at, **entry.body} if entry else {}
    return {"node": one.node, "new": one.node in new, "told": one.message, **said}


def find_operator_name(who: str) -> str:
    """Return who types: as they say, else the user. Raises Trouble where nobody knows."""
    try:
        return strip_to_one_line(who) or strip_to_one_line(os.environ.get("ASSAY_WHO", "")) or getpass.getuser()
    except (KeyError, OSError):
        raise AssayError("cannot tell who you are", fix="--who NAME, or set ASSAY_WHO") from None
