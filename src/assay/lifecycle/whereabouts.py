"""Which serial number was where, and when: a place keeps its history, a part takes its own along. Pure.

The ledger says it in three kinds of entries, each written only when something has changed:

- `parts.seen`: what sits at the places of a node, and who reads which serial number of the node itself,
- `part.replaced`: another node stands in this one's place,
- `part.returned`: a part that was sent back with a dossier is there again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from assay.lifecycle.when import written
from assay.model.entry import Entry, derived_id

KINDS = ("parts.seen", "part.replaced", "part.returned", "transition", "effect.intent")
INVENTORY = "inventory"
DOSSIER, DRIVE = "dossier", "nvme"


@dataclass(frozen=True, slots=True)
class Piece:
    """A part with a serial number: what it is, and what is written on it."""

    kind: str
    serial: str


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at a node tells: the serial number of the node by who says it, and the piece at each place."""

    node: str
    told: Mapping[str, str] = field(default_factory=dict)
    pieces: Mapping[str, Piece] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shelf:
    """What the ledger knows of one node: the last piece seen at each place, and the node's serial number.

    `told` is what each source said last. `behind` are the sources that may yet follow the last replacement. `away`: the
    node was sent back with a dossier; `again` are the places, and the sources, that are to be told anew since it came
    back. `seen` and `last` are the ids of the last look and of the last replacement.
    """

    serial: str = ""
    pieces: Mapping[str, Piece] = field(default_factory=dict)
    told: Mapping[str, str] = field(default_factory=dict)
    behind: frozenset[str] = frozenset()
    away: bool = False
    again: frozenset[str] = frozenset()
    seen: str = ""
    last: str = ""


@dataclass(frozen=True, slots=True)
class Sent:
    """A part that was sent back with a dossier: from where, when, and for which faults."""

    effect: str
    kind: str
    serial: str
    node: str
    place: str
    at: str
    faults: tuple[str, ...]


def shelf_of(entries: Iterable[Entry]) -> Shelf:
    """Return what one node's entries (those of `KINDS`) tell of its serial numbers."""
    shelf = Shelf()
    for entry in entries:
        shelf = _further(shelf, entry)
    return shelf


def sent_in(entries: Iterable[Entry]) -> dict[str, Sent]:
    """Return the parts that were sent back, by serial number, the last time of each; from entries of any nodes."""
    found: dict[str, Sent] = {}
    for entry in entries:
        if entry.kind == "effect.intent" and entry.body["action"] == DOSSIER:
            for one in entry.body.get("before", {}).get("suspects", ()):
                faults = tuple(one["faults"])
                found[one["serial"]] = Sent(
                    entry.body["effect"], one["kind"], one["serial"], entry.node, one["place"], entry.at, faults
                )
    return found


def news(shelf: Shelf, look: Look, at: datetime) -> list[Entry]:
    """Return what a look adds to the ledger: nothing where it shows what is known. Looks that tell less add nothing."""
    found: list[Entry] = []
    body = {"parts": _new_pieces(shelf, look), "node": _newly_told(shelf, look.told)}
    if any(body.values()):
        ident = derived_id("parts.seen", look.node, shelf.seen, json.dumps(body, sort_keys=True))
        found.append(Entry(ident, written(at), "parts.seen", look.node, body))
    if change := _replacement(shelf, look.told):
        old, new, source = change
        ident = derived_id("part.replaced", look.node, old, new, shelf.last)
        change_body = {"old_serial": old, "new_serial": new, "who": source}
        found.append(Entry(ident, written(at), "part.replaced", look.node, change_body))
    return found


def recognised(entry: Entry, sent: Mapping[str, Sent], at: datetime) -> Iterator[Entry]:
    """Yield one line for each part among what was newly seen that had been sent back."""
    seen = [(place, one["kind"], one["serial"]) for place, one in entry.body["parts"].items()]
    seen += [("", "node", serial) for serial in dict.fromkeys(entry.body["node"].values())]
    for place, kind, serial in seen:
        if (known := sent.get(serial)) and known.kind == kind:
            body = {"serial": serial, "kind": kind, "place": place, "from": known.node, "from_place": known.place}
            body |= {"sent_at": known.at, "faults": list(known.faults)}
            ident = derived_id("part.returned", known.effect, entry.node, place, serial)
            yield Entry(ident, written(at), "part.returned", entry.node, body)


def holders_in(entries: Iterable[Entry]) -> dict[str, tuple[str, str]]:
    """Return node and place where each part was last seen, by serial number; from `parts.seen` of any nodes."""
    found: dict[str, tuple[str, str]] = {}
    for entry in entries:
        hold(found, entry)
    return found


def hold(holders: dict[str, tuple[str, str]], entry: Entry) -> None:
    """Bring `holders_in` one line further."""
    for place, one in entry.body["parts"].items() if entry.kind == "parts.seen" else ():
        if holders.get(one.get("was", "")) == (entry.node, place):
            del holders[one["was"]]
        holders[one["serial"]] = (entry.node, place)


def taken_from(entry: Entry, holders: Mapping[str, tuple[str, str]], at: datetime) -> Iterator[Entry]:
    """Yield one line for each part that was newly seen here and is known to have been in another node."""
    for place, one in entry.body["parts"].items():
        node, from_place = holders.get(one["serial"], (entry.node, place))
        if node != entry.node:
            gone = {from_place: {"serial": one["serial"], "to": entry.node, "to_place": place}}
            ident = derived_id("parts.seen", "gone", entry.id, place)
            yield Entry(ident, written(at), "parts.seen", node, {"parts": {}, "node": {}, "gone": gone})


def _new_pieces(shelf: Shelf, look: Look) -> dict[str, dict[str, str]]:
    """Return the places that hold something new, or that are to be told anew."""
    named_anew = _drives(shelf.pieces) == _drives(look.pieces)
    found: dict[str, dict[str, str]] = {}
    for place, piece in look.pieces.items():
        before = shelf.pieces.get(place)
        same = piece == before or (piece.kind == DRIVE and named_anew)
        if not same or (place in shelf.again and not shelf.away):
            was = {"was": before.serial} if before and not same else {}
            found[place] = {"kind": piece.kind, "serial": piece.serial, **was}
    return found


def _drives(pieces: Mapping[str, Piece]) -> set[str]:
    """Return the serial numbers of the drives, which the kernel may call otherwise after each boot."""
    return {piece.serial for piece in pieces.values() if piece.kind == DRIVE}


def _newly_told(shelf: Shelf, told: Mapping[str, str]) -> dict[str, str]:
    again = frozenset() if shelf.away else shelf.again
    return {name: serial for name, serial in told.items() if shelf.told.get(name) != serial or f"by {name}" in again}


def _replacement(shelf: Shelf, told: Mapping[str, str]) -> tuple[str, str, str] | None:
    """Return old and new serial number and who says so, where another node stands here than before.

    A source that only follows the last replacement tells of none; neither does an inventory that comes to say what
    the hardware says.
    """
    for source, serial in told.items():
        before = shelf.told.get(source)
        if not before or before == serial or source in shelf.behind:
            continue
        read = {one for name, one in shelf.told.items() if name != INVENTORY} if source == INVENTORY else set()
        if serial not in {shelf.serial, *read}:
            return before, serial, source
    return None


def _further(shelf: Shelf, entry: Entry) -> Shelf:
    body = entry.body
    match entry.kind:
        case "parts.seen":
            return _seen(shelf, entry)
        case "part.replaced":
            behind = frozenset(name for name, one in shelf.told.items() if one != body["new_serial"])
            return replace(shelf, serial=body["new_serial"], behind=behind, last=entry.id)
        case "effect.intent" if body["action"] == DOSSIER:
            return replace(shelf, away=True)
        case "transition" if shelf.away:
            again = frozenset((*shelf.pieces, *(f"by {name}" for name in shelf.told if name != INVENTORY)))
            return replace(shelf, away=False, again=again)
    return shelf


def _seen(shelf: Shelf, entry: Entry) -> Shelf:
    pieces = {place: Piece(one["kind"], one["serial"]) for place, one in entry.body["parts"].items()}
    told: dict[str, str] = entry.body["node"]
    moved = {piece.serial for piece in pieces.values()} | {one["serial"] for one in entry.body.get("gone", {}).values()}
    left = {place: piece for place, piece in shelf.pieces.items() if piece.serial not in moved}
    followed = {name for name, serial in told.items() if shelf.told.get(name) not in (None, serial)}
    return replace(
        shelf,
        serial=shelf.serial or told.get(INVENTORY) or next(iter(told.values()), ""),
        pieces={**left, **pieces},
        told={**shelf.told, **told},
        behind=shelf.behind - followed,
        again=shelf.again - {*pieces, *(f"by {name}" for name in told)},
        seen=entry.id,
    )


def stays_of(entries: Sequence[Entry], serial: str) -> list[dict[str, Any]]:
    """Return where a serial number was, oldest first: node, place, kind, since, until ("" for still there).

    `entries` are those of `parts.seen` and `part.replaced`, of all nodes.
    """
    found: list[dict[str, Any]] = []
    for entry in entries:
        for place, kind in _places_of(entry, serial):
            last = found[-1] if found else None
            if last and not last["until"] and (last["node"], last["place"]) == (entry.node, place):
                continue
            if last and not last["until"]:
                last["until"] = entry.at
            found.append({"node": entry.node, "place": place, "kind": kind, "since": entry.at, "until": ""})
        if found and not found[-1]["until"] and _leaves(entry, found[-1], serial):
            found[-1]["until"] = entry.at
    return found


def _places_of(entry: Entry, serial: str) -> Iterator[tuple[str, str]]:
    if entry.kind == "part.replaced":
        yield from [("", "node")] if entry.body["new_serial"] == serial else []
        return
    for place, one in entry.body["parts"].items():
        if one["serial"] == serial:
            yield place, one["kind"]
    if serial in entry.body["node"].values():
        yield "", "node"


def _leaves(entry: Entry, stay: Mapping[str, Any], serial: str) -> bool:
    """Whether an entry puts something else in the place of a stay."""
    if entry.node != stay["node"]:
        return False
    if entry.kind == "part.replaced":
        return stay["kind"] == "node" and bool(entry.body["new_serial"] != serial)
    there = entry.body["parts"].get(stay["place"])
    return bool(there) and there["serial"] != serial
