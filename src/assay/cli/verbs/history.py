"""`assay history NODE`: everything that the ledger has about a node, in order; or what all runs said of it.

`assay history --serial S`: every place where a part, or a node, was, and what happened there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.node_lookup import find_node_state
from assay.cli.workspace import FleetDir, OutputFormat, Workspace
from assay.lifecycle.asset_history import list_serial_stays
from assay.lifecycle.entry_messages import EntryFormatter
from assay.model.errors import AssayError
from assay.model.timestamps import parse_time

if TYPE_CHECKING:
    from assay.lifecycle.node_state import NodeState
    from assay.model.ledger_entry import LedgerEntry

history_app = typer.Typer(add_completion=False, help="Show how a node got there.")

MOVE_KINDS = frozenset(
    ("node.enrolled", "transition", "hold", "release", "certified", "move", "zap.asked", "part.replaced")
)  # fmt: skip

Node = Annotated[
    str, typer.Argument(metavar="[NODE]", help="The node; with --outcomes, all pools where none is named.")
]
Outcomes = Annotated[
    bool, typer.Option("--outcomes", help="Show when which check failed and recovered, and what flaps.")
]
Measurements = Annotated[
    bool, typer.Option("--measurements", help="Show what was measured, beside what it usually is.")
]
Days = Annotated[int, typer.Option("--days", min=0, help="With those: of so many days, and today.")]
Moves = Annotated[bool, typer.Option("--moves", help="Only where it went, and what people said of it.")]
Serial = Annotated[str, typer.Option("--serial", metavar="S", help="Where the part with this serial number was.")]
Check = Annotated[str, typer.Option("--check", metavar="GLOB", help="With those: only checks such as '*ecc*'.")]


@history_app.command()
def history(
    node: Node = "",
    moves: Moves = False,
    serial: Serial = "",
    outcomes: Outcomes = False,
    measurements: Measurements = False,
    days: Days = 90,
    check: Check = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Show everything that was seen of a node, decided about it and done to it, oldest first."""
    desk = Workspace(fleet.resolve())
    if outcomes or measurements:
        from assay.cli.render import outcome_history

        show = (
            outcome_history.show_node_measurements
            if measurements
            else outcome_history.show_node_outcomes
            if node
            else outcome_history.show_pool_rates
        )
        show(desk, node, days, check, form)
        return
    if serial:
        show_part_history(desk, serial, form)
        return
    if not node:
        raise AssayError("no node is named", fix="name one; of the whole fleet: assay history --outcomes")
    story = find_node_state(desk, node)
    entries = _describe_entries(desk.ledger.entries(node), moves=moves)
    if form == "json":
        typer.echo(json.dumps(_history_as_json(story, entries), indent=1, ensure_ascii=False))
        return
    for entry, text in entries:
        _print_entry(entry, text)
    typer.echo(f"\n{node} is in {story.state}: {story.reason}")


def _describe_entries(entries: list[LedgerEntry], *, moves: bool) -> list[tuple[LedgerEntry, str]]:
    """Return each entry with its words; with `moves` only where the node went and what people said of it."""
    from assay.lifecycle.entry_messages import EntryFormatter

    teller = EntryFormatter()
    told = [(entry, teller.format(entry)) for entry in entries]
    return [one for one in told if not moves or one[0].kind in MOVE_KINDS]


def _history_as_json(story: NodeState, entries: list[tuple[LedgerEntry, str]]) -> dict[str, object]:
    lines = [
        {"seq": entry.seq, "at": entry.at, "kind": entry.kind, "text": text, "body": entry.body}
        for entry, text in entries
    ]
    return {"node": story.node, "pool": story.pool, "state": story.state, "entries": lines}


def _print_entry(entry: LedgerEntry, text: str) -> None:
    colour = {"fault": "red", "transition": "green", "hold": "yellow", "effect.failed": "red"}.get(entry.kind)
    at = typer.style(entry.at[:19].replace("T", " "), dim=True)
    typer.echo(f"{at}  {typer.style(f'{entry.kind:16}', fg=colour)}  {text}")


if TYPE_CHECKING:
    from assay.cli.workspace import Workspace
    from assay.model.ledger_entry import LedgerEntry

PART_ENTRY_KINDS = ("fault", "fault.cleared", "part.returned")
NODE_ENTRY_KINDS = (
    *PART_ENTRY_KINDS,
    "transition",
    "part.replaced",
    "hold",
    "release",
    "certified",
    "move",
    "zap.asked",
)
RMA_ENTRY_KIND = "effect.intent"


def show_part_history(desk: Workspace, serial: str, form: str) -> None:
    """Show where a serial number was, oldest first. Raises Trouble for one that was never seen."""
    stays = list_serial_stays(desk.ledger.entries(kinds=["parts.seen", "part.replaced"]), serial)
    if not stays:
        fix = "it is written as the part itself says it; `assay history NODE` names the parts of a node"
        raise AssayError(f"nothing with the serial number {serial} was ever seen", fix=fix)
    for stay in stays:
        stay["happened"] = _entries_during_stay(desk, stay, serial)
    if form == "json":
        typer.echo(json.dumps({"serial": serial, "stays": stays}, indent=1, ensure_ascii=False))
        return
    for stay in stays:
        _print_stay(stay)


def _entries_during_stay(desk: Workspace, stay: dict[str, Any], serial: str) -> list[dict[str, Any]]:
    """Return what the ledger has of this place while the part was there; of a node, where it went as well."""
    kinds = PART_ENTRY_KINDS if stay["place"] else NODE_ENTRY_KINDS
    teller, found, ours = EntryFormatter(), [], set[str]()
    for entry in desk.ledger.entries(stay["node"]):
        text = teller.format(entry)
        if entry.kind == "fault" and entry.body["subject"].endswith(f"/{stay['place'] or stay['node']}"):
            ours.add(entry.body["fault"])
        inside = parse_time(stay["since"]) <= parse_time(entry.at) and (not stay["until"] or entry.at <= stay["until"])
        if inside and (_concerns_part(entry, kinds, ours, serial) or _is_rma_of_part(entry, serial)):
            told = "sent back, with a dossier" if entry.kind == RMA_ENTRY_KIND else text
            found.append({"at": entry.at, "kind": entry.kind, "text": told})
    return found


def _concerns_part(entry: LedgerEntry, kinds: tuple[str, ...], ours: set[str], serial: str) -> bool:
    if entry.kind not in kinds:
        return False
    if entry.kind in ("fault", "fault.cleared") and kinds == PART_ENTRY_KINDS:
        return entry.body["fault"] in ours
    return entry.kind != "part.returned" or bool(entry.body["serial"] == serial)


def _is_rma_of_part(entry: LedgerEntry, serial: str) -> bool:
    suspects = entry.body.get("before", {}).get("suspects", ()) if entry.kind == RMA_ENTRY_KIND else ()
    return any(one["serial"] == serial for one in suspects)


def _print_stay(stay: dict[str, Any]) -> None:
    until = f"until {stay['until'][:16].replace('T', ' ')}" if stay["until"] else "to this day"
    where = f"{stay['node']} {stay['place']}".strip()
    typer.echo(f"{stay['kind']} in {where}, seen since {stay['since'][:16].replace('T', ' ')}, {until}")
    for one in stay["happened"]:
        typer.echo(f"  {one['at'][:19].replace('T', ' ')}  {one['text']}")
