"""Tells the ledger of serial numbers that are new in their places, of nodes that were replaced, and of parts come back.

A place inherits the place's history, and a new node in it none of the old one's: its ladder and its repairs begin
anew, and the hardware's faults have gone with the old one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property

from assay.controller.desk import Desk
from assay.controller.lock import told_by_one
from assay.ledger.texts import batches
from assay.lifecycle.classify import Cleared
from assay.lifecycle.fold import fold
from assay.lifecycle.journal import cleared
from assay.lifecycle.sightings import parts_of
from assay.lifecycle.story import Story
from assay.lifecycle.whereabouts import (
    INVENTORY,
    KINDS,
    Look,
    Piece,
    Sent,
    Shelf,
    hold,
    holders_in,
    news,
    recognised,
    sent_in,
    shelf_of,
    taken_from,
)
from assay.model.entry import Entry
from assay.model.evidence import Evidence
from assay.observe.serials import node_serials, parts_in, serial_of

TOGETHER = 200
"""Nodes whose history is asked for in one question, and whose news are one transaction."""


def note_parts(desk: Desk, seen: Mapping[str, Evidence]) -> None:
    """Append what these looks add to what is known of serial numbers. Noting the same twice appends nothing."""
    memory = _Memory(desk)
    for names in batches([name for name in seen if name in desk.fleet.nodes], TOGETHER):
        looks = [look_of(desk, name, seen[name]) for name in names]
        with told_by_one(desk.home):
            desk.ledger.append(*_noted(desk, memory, looks))


def look_of(desk: Desk, name: str, evidence: Evidence) -> Look:
    """Return what the inventory and a look say of a node's serial numbers."""
    node = desk.fleet.nodes[name]
    inventory = serial_of(node.serial)
    told = {**({INVENTORY: inventory} if inventory else {}), **node_serials(evidence)}
    parts = parts_in(evidence, parts_of(desk.fleet.spec_of(name)))
    return Look(name, told, {part.place: Piece(part.kind, part.serial) for part in parts})


class _Memory:
    """What is known of all nodes' parts, looked up when the first change asks for it."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    @cached_property
    def sent(self) -> dict[str, Sent]:
        """Return the parts that were ever sent back, by serial number."""
        return sent_in(self._desk.ledger.entries(kinds=["effect.intent"]))

    @cached_property
    def holders(self) -> dict[str, tuple[str, str]]:
        """Return where each part was last seen, by serial number."""
        return holders_in(self._desk.ledger.entries(kinds=["parts.seen"]))


def _noted(desk: Desk, memory: _Memory, looks: Sequence[Look]) -> list[Entry]:
    """Return what looks add to the ledger, the later ones to what the earlier ones add as well."""
    told, noted = desk.ledger.entries_by_node([look.node for look in looks], KINDS), list[Entry]()
    for look in looks:
        for entry in _entries(desk, memory, look, shelf_of(told[look.node])):
            noted.append(entry)
            if entry.node in told:
                told[entry.node].append(entry)
    return noted


def _entries(desk: Desk, memory: _Memory, look: Look, shelf: Shelf) -> Iterator[Entry]:
    now = desk.clock.now()
    for entry in news(shelf, look, now):
        yield entry
        if entry.kind == "part.replaced":
            story = fold(desk.ledger.entries(look.node)).get(look.node)
            yield from _gone_with(story, entry, now) if story else []
            continue
        yield from recognised(entry, memory.sent, now)
        yield from (one for one in taken_from(entry, memory.holders, now) if not _still_there(desk, one))
        hold(memory.holders, entry)


def _gone_with(story: Story, entry: Entry, at: datetime) -> list[Entry]:
    """Return the ends of the hardware's faults that went with the old node."""
    because = f"gone with the node {entry.body['old_serial']}, which {entry.body['new_serial']} replaces"
    ours = [known for known in story.faults if known.open and known.blame == "hardware"]
    return [cleared(story.node, Cleared(known.id, because), at) for known in ours]


def _still_there(desk: Desk, gone: Entry) -> bool:
    """Whether the other node reads that serial number as well: then it names no single part."""
    evidence = desk.evidence.latest(gone.node) if gone.node in desk.fleet.nodes else None
    if evidence is None:
        return False
    there = look_of(desk, gone.node, evidence).pieces
    return any(
        (piece := there.get(place)) and piece.serial == one["serial"] for place, one in gone.body["gone"].items()
    )
