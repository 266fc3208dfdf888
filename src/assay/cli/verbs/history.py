"""`assay history`: what is recorded of a node, of a part by its serial number, or the results of all runs."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.context_line import print_answer
from assay.cli.options import FleetDir, OutputFormat, argument, complete_checks, complete_nodes, option
from assay.cli.workspace import Workspace, find_node_state
from assay.decide.state.asset_history import list_serial_stays
from assay.decide.state.entry_messages import EntryFormatter
from assay.model.entries.assets import PartReplacedEntry, PartReturnedEntry, PartsSeenEntry
from assay.model.entries.effects import EffectIntentEntry
from assay.model.entries.faults import FaultClearedEntry, FaultEntry
from assay.model.entries.node_entries import (
    CertifiedEntry,
    HoldEntry,
    MoveEntry,
    ReleaseEntry,
    TransitionEntry,
    ZapRequestedEntry,
)
from assay.model.errors import AssayError
from assay.model.facts import fact, inline
from assay.model.ledger_entry import LedgerEntry
from assay.model.text.safe_text import escape_line
from assay.model.timestamps import format_minute, format_second, parse_time

if TYPE_CHECKING:
    from assay.ledger.copies.archive import ArchivedHistory


MOVE_KINDS = frozenset(
    (
        "node.enrolled",
        "node.renamed",
        "node.left",
        "transition",
        "hold",
        "release",
        "certified",
        "move",
        "zap.asked",
        "part.replaced",
        "breaker.cleared",
        "rollout.proven",
    )
)
_RESULTS = "Results of all runs"
PART_ENTRY_KINDS = (FaultEntry.kind, FaultClearedEntry.kind, PartReturnedEntry.kind)
NODE_ENTRY_KINDS = (
    *PART_ENTRY_KINDS,
    *(TransitionEntry.kind, PartReplacedEntry.kind),
    *(HoldEntry.kind, ReleaseEntry.kind, CertifiedEntry.kind, MoveEntry.kind, ZapRequestedEntry.kind),
)


@fact
class HistoryEntry:
    """An entry of the ledger about a node."""

    entry: LedgerEntry = inline()
    text: str
    """What it says, for people."""


@fact
class NodeHistoryAnswer:
    """Everything recorded about a node, oldest first."""

    node: str
    """The name of the node."""
    pool: str
    """The pool that it is in."""
    state: str
    """The state that it is in."""
    entries: list[HistoryEntry]
    """The entries; with --moves, only transitions and people's orders."""
    archived: list[ArchivedHistory]
    """Older entries, which archives hold."""


@fact
class PartEvent:
    """What happened to a part while it was in one place."""

    at: str
    """When: ISO 8601 with the offset of UTC."""
    kind: str
    """The kind of the ledger's entry."""
    text: str
    """What it says, for people."""


@fact
class PlaceOfPart:
    """A place where a part, or a node, was."""

    node: str
    """The node."""
    place: str
    """The place in the node; "" for the node itself."""
    kind: str
    """The kind of the part; node for the node itself."""
    since: str
    """When it was first seen there: ISO 8601 with the offset of UTC."""
    until: str
    """When something else was seen there; "" if it is still there."""
    happened: list[PartEvent]
    """What happened there meanwhile."""


@fact
class PartHistoryAnswer:
    """Every place where a part was, and what happened there."""

    serial: str
    """The serial number."""
    stays: list[PlaceOfPart]
    """The places, oldest first."""


Node = Annotated[
    str, argument("NODE", "The node. With --outcomes it is optional: all nodes then.", complete=complete_nodes)
]
Moves = Annotated[bool, option("--moves", "Show only transitions and people's orders.")]
Serial = Annotated[str, option("--serial S", "Instead of a node: show where the part with this serial number was.")]
Outcomes = Annotated[
    bool, option("--outcomes", "Show when each check failed and recovered, and which checks are flaky.", group=_RESULTS)
]
Days = Annotated[int, option("--days N", "Show the last N days and today.", group=_RESULTS, min=0)]
Check = Annotated[
    str, option("--check GLOB", "Only these checks, such as '*ecc*'.", group=_RESULTS, complete=complete_checks)
]


def history(
    node: Node = "",
    moves: Moves = False,
    serial: Serial = "",
    outcomes: Outcomes = False,
    days: Days = 90,
    check: Check = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Show everything recorded about a node, oldest first: evidence, faults, decisions, effects and orders.

    `--outcomes` reads the stored runs and needs no ledger.

    Exit codes: 0 shown; 2 the node or the part is unknown, or the ledger cannot be read.
    """
    workspace = Workspace(fleet.resolve())
    if outcomes:
        from assay.cli.verbs import history_outcomes

        if node:
            history_outcomes.show_node_outcomes(workspace, node, days, check, form)
        else:
            history_outcomes.show_flaky_checks(workspace, days, check, form)
    elif serial:
        show_part_history(workspace, serial, form)
    elif node:
        _show_node(workspace, node, moves, form)
    else:
        raise AssayError("no node is given", fix="give one; for flaky checks of the fleet: assay history --outcomes")


def _show_node(workspace: Workspace, node: str, moves: bool, form: str) -> None:
    from assay.ledger.copies.archive import find_archived_history

    state = find_node_state(workspace, node)
    catalog = None
    with suppress(AssayError):  # a ledger is read also where the fleet of the folder cannot be
        catalog = workspace.fleet.sound_fault_catalog
    formatter = EntryFormatter(catalog)
    described = [HistoryEntry(entry, formatter.format(entry)) for entry in workspace.ledger_for_reading.entries(node)]
    described.sort(key=lambda line: parse_time(line.entry.at))  # some are recorded after what came later
    lines = [line for line in described if not moves or line.entry.kind in MOVE_KINDS]
    archived = find_archived_history(workspace.ledger_location, node)
    if form == "json":
        print_answer(NodeHistoryAnswer(state.node, state.pool, state.state, lines, archived), form, ())
        return
    for archive in archived:
        stand = "entry stands" if archive.entries == 1 else "entries stand"
        until = format_second(archive.until)
        typer.echo(f"{archive.entries:,} older {stand} in the archive {archive.file}, until {until}")
    for line in lines:
        entry = line.entry
        colour = {"fault": "red", "hold": "yellow", "effect.failed": "red"}.get(entry.kind)
        at = typer.style(format_second(entry.at), dim=True)
        typer.echo(f"{at}  {typer.style(f'{entry.kind:16}', fg=colour)}  {line.text}")
    typer.echo(f"\n{node} is in {state.state}: {escape_line(state.reason)}")
    workspace.print_page(form, "nodes", node)


def show_part_history(workspace: Workspace, serial: str, form: str) -> None:
    """Print where a serial number was, oldest first. Raises AssayError for one that was never seen."""
    stays = list_serial_stays(
        workspace.ledger_for_reading.entries(kinds=[PartsSeenEntry.kind, PartReplacedEntry.kind]), serial
    )
    if not stays:
        fix = "write it as the part reports it; `assay history NODE` lists the parts of a node"
        raise AssayError(f"no part with the serial number {serial} was ever seen", fix=fix)
    places = [PlaceOfPart(**stay, happened=_list_events(workspace, stay, serial)) for stay in stays]
    lines = []
    for place in places:
        until = f"until {format_minute(place.until)}" if place.until else "until today"
        where = f"{place.node} {place.place}".strip()
        lines.append(f"{place.kind} in {where}, seen since {format_minute(place.since)}, {until}")
        lines += [f"  {format_second(event.at)}  {event.text}" for event in place.happened]
    print_answer(PartHistoryAnswer(serial, places), form, lines)


def _list_events(workspace: Workspace, stay: dict[str, Any], serial: str) -> list[PartEvent]:
    """Return the ledger's events about a place while the part was there; for a whole node also its transitions."""
    kinds = PART_ENTRY_KINDS if stay["place"] else NODE_ENTRY_KINDS
    formatter, events, faults = EntryFormatter(), [], set[str]()
    for entry in workspace.ledger_for_reading.entries(stay["node"]):
        text = formatter.format(entry)
        if entry.kind == FaultEntry.kind:
            fault = FaultEntry.read(entry)
            if fault.subject.endswith(f"/{stay['place'] or stay['node']}"):
                faults.add(fault.fault)
        inside = parse_time(stay["since"]) <= parse_time(entry.at) and (not stay["until"] or entry.at <= stay["until"])
        if inside and (_concerns_part(entry, kinds, faults, serial) or _is_rma_of_part(entry, serial)):
            text = "sent back, with a dossier" if entry.kind == EffectIntentEntry.kind else text
            events.append(PartEvent(at=entry.at, kind=entry.kind, text=text))
    return events


def _concerns_part(entry: LedgerEntry, kinds: tuple[str, ...], faults: set[str], serial: str) -> bool:
    if entry.kind not in kinds:
        return False
    if kinds == PART_ENTRY_KINDS and entry.kind == FaultEntry.kind:
        return FaultEntry.read(entry).fault in faults
    if kinds == PART_ENTRY_KINDS and entry.kind == FaultClearedEntry.kind:
        return FaultClearedEntry.read(entry).fault in faults
    return entry.kind != PartReturnedEntry.kind or PartReturnedEntry.read(entry).serial == serial


def _is_rma_of_part(entry: LedgerEntry, serial: str) -> bool:
    if entry.kind != EffectIntentEntry.kind:
        return False
    return any(suspect["serial"] == serial for suspect in EffectIntentEntry.read(entry).before.get("suspects", ()))
