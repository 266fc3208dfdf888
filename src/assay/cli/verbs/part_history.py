"""The answer of `assay history --serial`: every place where a part, or a node, was, and what happened there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import typer

from assay.cli.context_line import format_answer
from assay.cli.workspace import Workspace
from assay.decide.state.asset_history import list_serial_stays
from assay.decide.state.entry_messages import EntryFormatter
from assay.model.entries.asset_entries import PartReplacedEntry, PartReturnedEntry, PartsSeenEntry
from assay.model.entries.effect_entries import EffectIntentEntry
from assay.model.entries.fault_entries import FaultClearedEntry, FaultEntry
from assay.model.entries.node_entries import TransitionEntry
from assay.model.entries.operator_entries import CertifiedEntry, HoldEntry, MoveEntry, ReleaseEntry, ZapRequestedEntry
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry
from assay.model.timestamps import format_minute, format_second, parse_time

if TYPE_CHECKING:
    from assay.cli.answers.history_answers import PartHistoryAnswer, PlaceOfPart

PART_ENTRY_KINDS = (FaultEntry.kind, FaultClearedEntry.kind, PartReturnedEntry.kind)
NODE_ENTRY_KINDS = (
    *PART_ENTRY_KINDS,
    *(TransitionEntry.kind, PartReplacedEntry.kind),
    *(HoldEntry.kind, ReleaseEntry.kind, CertifiedEntry.kind, MoveEntry.kind, ZapRequestedEntry.kind),
)


def show_part_history(workspace: Workspace, serial: str, form: str) -> None:
    """Print where a serial number was, oldest first. Raises AssayError for one that was never seen."""
    stays = list_serial_stays(
        workspace.ledger_for_reading.entries(kinds=[PartsSeenEntry.kind, PartReplacedEntry.kind]), serial
    )
    if not stays:
        fix = "write it as the part reports it; `assay history NODE` lists the parts of a node"
        raise AssayError(f"no part with the serial number {serial} was ever seen", fix=fix)
    for stay in stays:
        stay["happened"] = _list_events(workspace, stay, serial)
    if form == "json":
        answer: PartHistoryAnswer = {"serial": serial, "stays": [cast("PlaceOfPart", stay) for stay in stays]}
        typer.echo(format_answer(answer, indent=1, ensure_ascii=False))
        return
    for stay in stays:
        until = f"until {format_minute(stay['until'])}" if stay["until"] else "until today"
        place = f"{stay['node']} {stay['place']}".strip()
        typer.echo(f"{stay['kind']} in {place}, seen since {format_minute(stay['since'])}, {until}")
        for event in stay["happened"]:
            typer.echo(f"  {format_second(event['at'])}  {event['text']}")


def _list_events(workspace: Workspace, stay: dict[str, Any], serial: str) -> list[dict[str, Any]]:
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
            events.append({"at": entry.at, "kind": entry.kind, "text": text})
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
