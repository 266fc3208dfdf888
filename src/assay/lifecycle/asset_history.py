"""Which serial number was where, and when: a place keeps its history, a part takes its own along. Pure.

The ledger says it in three kinds of entries, each written only when something has changed:

- `parts.seen`: what sits at the places of a node, and who reads which serial number of the node itself,
- `part.replaced`: another node stands in this one's place,
- `part.returned`: a part that was sent back with a dossier is there again.

Parts that were sent back with a dossier and are in a node again. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.timestamps import format_time

ASSET_ENTRY_KINDS = ("parts.seen", "part.replaced", "part.returned", "transition", "effect.intent")
INVENTORY = "inventory"
DOSSIER, DRIVE = "dossier", "nvme"


@dataclass(frozen=True, slots=True)
class InstalledPart:
    """A part with a serial number: what it is, and what is written on it."""

    kind: str
    serial: str


@dataclass(frozen=True, slots=True)
class AssetReading:
    """What one look at a node tells: the serial number of the node by who says it, and the piece at each place."""

    node: str
    serials_by_source: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, InstalledPart] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeAssets:
    """What the ledger knows of one node: the last piece seen at each place, and the node's serial number.

    `told` is what each source said last. `behind` are the sources that may yet follow the last replacement. `away`: the
    node was sent back with a dossier; `again` are the places, and the sources, that are to be told anew since it came
    back. `seen` and `last` are the ids of the last look and of the last replacement.
    """

    serial: str = ""
    parts: Mapping[str, InstalledPart] = field(default_factory=dict)
    serials_by_source: Mapping[str, str] = field(default_factory=dict)
    lagging_sources: frozenset[str] = frozenset()
    is_sent_back: bool = False
    unconfirmed: frozenset[str] = frozenset()
    last_reading_id: str = ""
    last_replacement_id: str = ""


@dataclass(frozen=True, slots=True)
class SentBackPart:
    """A part that was sent back with a dossier: from where, when, and for which faults."""

    effect: str
    kind: str
    serial: str
    node: str
    place: str
    at: str
    faults: tuple[str, ...]


def project_node_assets(entries: Iterable[LedgerEntry]) -> NodeAssets:
    """Return what one node's entries (those of `ASSET_ENTRY_KINDS`) tell of its serial numbers."""
    shelf = NodeAssets()
    for entry in entries:
        shelf = _apply_entry(shelf, entry)
    return shelf


def find_sent_back_parts(entries: Iterable[LedgerEntry]) -> dict[str, SentBackPart]:
    """Return the parts that were sent back, by serial number, the last time of each; from entries of any nodes."""
    found: dict[str, SentBackPart] = {}
    for entry in entries:
        if entry.kind == "effect.intent" and entry.body["action"] == DOSSIER:
            for one in entry.body.get("before", {}).get("suspects", ()):
                faults = tuple(one["faults"])
                found[one["serial"]] = SentBackPart(
                    entry.body["effect"], one["kind"], one["serial"], entry.node, one["place"], entry.at, faults
                )
    return found


def make_asset_entries(shelf: NodeAssets, look: AssetReading, at: datetime) -> list[LedgerEntry]:
    """Return what a look adds to the ledger: nothing where it shows what is known. Looks that tell less add nothing."""
    found: list[LedgerEntry] = []
    body = {"parts": _find_new_parts(shelf, look), "node": _find_new_serials(shelf, look.serials_by_source)}
    if any(body.values()):
        ident = derive_id("parts.seen", look.node, shelf.last_reading_id, json.dumps(body, sort_keys=True))
        found.append(LedgerEntry(ident, format_time(at), "parts.seen", look.node, body))
    if change := _replacement(shelf, look.serials_by_source):
        old, new, source = change
        ident = derive_id("part.replaced", look.node, old, new, shelf.last_replacement_id)
        change_body = {"old_serial": old, "new_serial": new, "who": source}
        found.append(LedgerEntry(ident, format_time(at), "part.replaced", look.node, change_body))
    return found


def make_returned_entries(entry: LedgerEntry, sent: Mapping[str, SentBackPart], at: datetime) -> Iterator[LedgerEntry]:
    """Yield one line for each part among what was newly seen that had been sent back."""
    seen = [(place, one["kind"], one["serial"]) for place, one in entry.body["parts"].items()]
    seen += [("", "node", serial) for serial in dict.fromkeys(entry.body["node"].values())]
    for place, kind, serial in seen:
        if (known := sent.get(serial)) and known.kind == kind:
            body = {"serial": serial, "kind": kind, "place": place, "from": known.node, "from_place": known.place}
            body |= {"sent_at": known.at, "faults": list(known.faults)}
            ident = derive_id("part.returned", known.effect, entry.node, place, serial)
            yield LedgerEntry(ident, format_time(at), "part.returned", entry.node, body)


def map_part_holders(entries: Iterable[LedgerEntry]) -> dict[str, tuple[str, str]]:
    """Return node and place where each part was last seen, by serial number; from `parts.seen` of any nodes."""
    found: dict[str, tuple[str, str]] = {}
    for entry in entries:
        update_part_holders(found, entry)
    return found


def update_part_holders(holders: dict[str, tuple[str, str]], entry: LedgerEntry) -> None:
    """Bring `map_part_holders` one line further."""
    for place, one in entry.body["parts"].items() if entry.kind == "parts.seen" else ():
        if holders.get(one.get("was", "")) == (entry.node, place):
            del holders[one["was"]]
        holders[one["serial"]] = (entry.node, place)


def make_removed_entries(
    entry: LedgerEntry, holders: Mapping[str, tuple[str, str]], at: datetime
) -> Iterator[LedgerEntry]:
    """Yield one line for each part that was newly seen here and is known to have been in another node."""
    for place, one in entry.body["parts"].items():
        node, from_place = holders.get(one["serial"], (entry.node, place))
        if node != entry.node:
            gone = {from_place: {"serial": one["serial"], "to": entry.node, "to_place": place}}
            ident = derive_id("parts.seen", "gone", entry.id, place)
            yield LedgerEntry(ident, format_time(at), "parts.seen", node, {"parts": {}, "node": {}, "gone": gone})


def _find_new_parts(shelf: NodeAssets, look: AssetReading) -> dict[str, dict[str, str]]:
    """Return the places that hold something new, or that are to be told anew."""
    named_anew = _drive_serials(shelf.parts) == _drive_serials(look.parts)
    found: dict[str, dict[str, str]] = {}
    for place, piece in look.parts.items():
        before = shelf.parts.get(place)
        same = piece == before or (piece.kind == DRIVE and named_anew)
        if not same or (place in shelf.unconfirmed and not shelf.is_sent_back):
            was = {"was": before.serial} if before and not same else {}
            found[place] = {"kind": piece.kind, "serial": piece.serial, **was}
    return found


def _drive_serials(pieces: Mapping[str, InstalledPart]) -> set[str]:
    """Return the serial numbers of the drives, which the kernel may call otherwise after each boot."""
    return {piece.serial for piece in pieces.values() if piece.kind == DRIVE}


def _find_new_serials(shelf: NodeAssets, told: Mapping[str, str]) -> dict[str, str]:
    again = frozenset() if shelf.is_sent_back else shelf.unconfirmed
    return {
        name: serial
        for name, serial in told.items()
        if shelf.serials_by_source.get(name) != serial or f"by {name}" in again
    }


def _replacement(shelf: NodeAssets, told: Mapping[str, str]) -> tuple[str, str, str] | None:
    """Return old and new serial number and who says so, where another node stands here than before.

    A source that only follows the last replacement tells of none; neither does an inventory that comes to say what
    the hardware says.
    """
    for source, serial in told.items():
        before = shelf.serials_by_source.get(source)
        if not before or before == serial or source in shelf.lagging_sources:
            continue
        read = (
            {one for name, one in shelf.serials_by_source.items() if name != INVENTORY}
            if source == INVENTORY
            else set()
        )
        if serial not in {shelf.serial, *read}:
            return before, serial, source
    return None


def _apply_entry(shelf: NodeAssets, entry: LedgerEntry) -> NodeAssets:
    body = entry.body
    match entry.kind:
        case "parts.seen":
            return _apply_reading(shelf, entry)
        case "part.replaced":
            behind = frozenset(name for name, one in shelf.serials_by_source.items() if one != body["new_serial"])
            return replace(shelf, serial=body["new_serial"], lagging_sources=behind, last_replacement_id=entry.id)
        case "effect.intent" if body["action"] == DOSSIER:
            return replace(shelf, is_sent_back=True)
        case "transition" if shelf.is_sent_back:
            again = frozenset((*shelf.parts, *(f"by {name}" for name in shelf.serials_by_source if name != INVENTORY)))
            return replace(shelf, is_sent_back=False, unconfirmed=again)
    return shelf


def _apply_reading(shelf: NodeAssets, entry: LedgerEntry) -> NodeAssets:
    pieces = {place: InstalledPart(one["kind"], one["serial"]) for place, one in entry.body["parts"].items()}
    told: dict[str, str] = entry.body["node"]
    moved = {piece.serial for piece in pieces.values()} | {one["serial"] for one in entry.body.get("gone", {}).values()}
    left = {place: piece for place, piece in shelf.parts.items() if piece.serial not in moved}
    followed = {name for name, serial in told.items() if shelf.serials_by_source.get(name) not in (None, serial)}
    return replace(
        shelf,
        serial=shelf.serial or told.get(INVENTORY) or next(iter(told.values()), ""),
        parts={**left, **pieces},
        serials_by_source={**shelf.serials_by_source, **told},
        lagging_sources=shelf.lagging_sources - followed,
        unconfirmed=shelf.unconfirmed - {*pieces, *(f"by {name}" for name in told)},
        last_reading_id=entry.id,
    )


def list_serial_stays(entries: Sequence[LedgerEntry], serial: str) -> list[dict[str, Any]]:
    """Return where a serial number was, oldest first: node, place, kind, since, until ("" for still there).

    `entries` are those of `parts.seen` and `part.replaced`, of all nodes.
    """
    found: list[dict[str, Any]] = []
    for entry in entries:
        for place, kind in _find_places(entry, serial):
            last = found[-1] if found else None
            if last and not last["until"] and (last["node"], last["place"]) == (entry.node, place):
                continue
            if last and not last["until"]:
                last["until"] = entry.at
            found.append({"node": entry.node, "place": place, "kind": kind, "since": entry.at, "until": ""})
        if found and not found[-1]["until"] and _ends_stay(entry, found[-1], serial):
            found[-1]["until"] = entry.at
    return found


def _find_places(entry: LedgerEntry, serial: str) -> Iterator[tuple[str, str]]:
    if entry.kind == "part.replaced":
        yield from [("", "node")] if entry.body["new_serial"] == serial else []
        return
    for place, one in entry.body["parts"].items():
        if one["serial"] == serial:
            yield place, one["kind"]
    if serial in entry.body["node"].values():
        yield "", "node"


def _ends_stay(entry: LedgerEntry, stay: Mapping[str, Any], serial: str) -> bool:
    """Whether an entry puts something else in the place of a stay."""
    if entry.node != stay["node"]:
        return False
    if entry.kind == "part.replaced":
        return stay["kind"] == "node" and bool(entry.body["new_serial"] != serial)
    there = entry.body["parts"].get(stay["place"])
    return bool(there) and there["serial"] != serial


def find_returned_parts(entries: Iterable[LedgerEntry]) -> list[LedgerEntry]:
    """Return, of one node's entries, the `part.returned` of parts that are there still."""
    every = list(entries)
    shelf, found = project_node_assets(every), {}
    for entry in every:
        if entry.kind == "part.returned":
            found[(entry.body["place"], entry.body["serial"])] = entry
    numbers = {shelf.serial, *shelf.serials_by_source.values()}
    there = {(place, piece.serial) for place, piece in shelf.parts.items()} | {("", number) for number in numbers}
    return [entry for place, entry in found.items() if place in there]


def describe_returned_part(entry: LedgerEntry) -> str:
    """Return one `part.returned` in one line for people."""
    body = entry.body
    where = f"{body['from']} {body['from_place']}".strip()
    what = f"{body['place']} ({body['kind']} {body['serial']})" if body["place"] else f"this node ({body['serial']})"
    faults = f" for {', '.join(body['faults'])}" if body["faults"] else ""
    return f"{what} was sent back from {where} on {body['sent_at'][:10]}{faults}"
