"""Parts that were sent back with a dossier and are in a node again. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from assay.lifecycle.whereabouts import shelf_of
from assay.model.entry import Entry


def returned_in(entries: Iterable[Entry]) -> list[Entry]:
    """Return, of one node's entries, the `part.returned` of parts that are there still."""
    every = list(entries)
    shelf, found = shelf_of(every), {}
    for entry in every:
        if entry.kind == "part.returned":
            found[(entry.body["place"], entry.body["serial"])] = entry
    numbers = {shelf.serial, *shelf.told.values()}
    there = {(place, piece.serial) for place, piece in shelf.pieces.items()} | {("", number) for number in numbers}
    return [entry for place, entry in found.items() if place in there]


def told(entry: Entry) -> str:
    """Return one `part.returned` in one line for people."""
    body = entry.body
    where = f"{body['from']} {body['from_place']}".strip()
    what = f"{body['place']} ({body['kind']} {body['serial']})" if body["place"] else f"this node ({body['serial']})"
    faults = f" for {', '.join(body['faults'])}" if body["faults"] else ""
    return f"{what} was sent back from {where} on {body['sent_at'][:10]}{faults}"
