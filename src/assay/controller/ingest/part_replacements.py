"""Tells the ledger of serial numbers that are new in their places, of nodes that were replaced, and of parts come back.

A place inherits the place's history, and a new node in it none of the old one's: its ladder and its repairs begin
anew, and the hardware's faults have gone with the old one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property

from assay.controller.context import ControllerContext
from assay.controller.controller_locks import hold_fault_lock
from assay.ledger.interned_texts import split_batches
from assay.lifecycle.asset_history import (
    ASSET_ENTRY_KINDS,
    INVENTORY,
    AssetReading,
    InstalledPart,
    NodeAssets,
    SentBackPart,
    find_sent_back_parts,
    make_asset_entries,
    make_removed_entries,
    make_returned_entries,
    map_part_holders,
    project_node_assets,
    update_part_holders,
)
from assay.lifecycle.faults.detection import FaultClearance
from assay.lifecycle.faults.sightings import map_parts_by_pci
from assay.lifecycle.ledger_entries import make_cleared_entry
from assay.lifecycle.node_state import NodeState
from assay.lifecycle.node_state_projection import project_node_states
from assay.model.evidence import EvidenceDocument
from assay.model.ledger_entry import LedgerEntry
from assay.observe.serial_numbers import clean_serial, find_node_serials, find_part_serials

NODES_PER_TRANSACTION = 200
"""Nodes whose history is asked for in one question, and whose news are one transaction."""


def record_parts(desk: ControllerContext, seen: Mapping[str, EvidenceDocument]) -> None:
    """Append what these looks add to what is known of serial numbers. Noting the same twice appends nothing."""
    memory = _PartIndex(desk)
    for names in split_batches([name for name in seen if name in desk.fleet.nodes], NODES_PER_TRANSACTION):
        looks = [read_node_serials(desk, name, seen[name]) for name in names]
        with hold_fault_lock(desk.home):
            desk.ledger.append(*_make_entries(desk, memory, looks))


def read_node_serials(desk: ControllerContext, name: str, evidence: EvidenceDocument) -> AssetReading:
    """Return what the inventory and a look say of a node's serial numbers."""
    node = desk.fleet.nodes[name]
    inventory = clean_serial(node.serial)
    told = {**({INVENTORY: inventory} if inventory else {}), **find_node_serials(evidence)}
    parts = find_part_serials(evidence, map_parts_by_pci(desk.fleet.spec_of(name)))
    return AssetReading(name, told, {part.place: InstalledPart(part.kind, part.serial) for part in parts})


class _PartIndex:
    """What is known of all nodes' parts, looked up when the first change asks for it."""

    def __init__(self, desk: ControllerContext) -> None:
        self._desk = desk

    @cached_property
    def sent(self) -> dict[str, SentBackPart]:
        """Return the parts that were ever sent back, by serial number."""
        return find_sent_back_parts(self._desk.ledger.entries(kinds=["effect.intent"]))

    @cached_property
    def holders(self) -> dict[str, tuple[str, str]]:
        """Return where each part was last seen, by serial number."""
        return map_part_holders(self._desk.ledger.entries(kinds=["parts.seen"]))


def _make_entries(desk: ControllerContext, memory: _PartIndex, looks: Sequence[AssetReading]) -> list[LedgerEntry]:
    """Return what looks add to the ledger, the later ones to what the earlier ones add as well."""
    told, noted = desk.ledger.entries_by_node([look.node for look in looks], ASSET_ENTRY_KINDS), list[LedgerEntry]()
    for look in looks:
        for entry in _make_node_entries(desk, memory, look, project_node_assets(told[look.node])):
            noted.append(entry)
            if entry.node in told:
                told[entry.node].append(entry)
    return noted


def _make_node_entries(
    desk: ControllerContext, memory: _PartIndex, look: AssetReading, shelf: NodeAssets
) -> Iterator[LedgerEntry]:
    now = desk.clock.now()
    for entry in make_asset_entries(shelf, look, now):
        yield entry
        if entry.kind == "part.replaced":
            story = project_node_states(desk.ledger.entries(look.node)).get(look.node)
            yield from _clear_hardware_faults(story, entry, now) if story else []
            continue
        yield from make_returned_entries(entry, memory.sent, now)
        yield from (one for one in make_removed_entries(entry, memory.holders, now) if not _is_still_read(desk, one))
        update_part_holders(memory.holders, entry)


def _clear_hardware_faults(story: NodeState, entry: LedgerEntry, at: datetime) -> list[LedgerEntry]:
    """Return the ends of the hardware's faults that went with the old node."""
    because = f"gone with the node {entry.body['old_serial']}, which {entry.body['new_serial']} replaces"
    ours = [known for known in story.faults if known.is_open and known.blame == "hardware"]
    return [make_cleared_entry(story.node, FaultClearance(known.id, because), at) for known in ours]


def _is_still_read(desk: ControllerContext, gone: LedgerEntry) -> bool:
    """Whether the other node reads that serial number as well: then it names no single part."""
    evidence = desk.evidence.latest(gone.node) if gone.node in desk.fleet.nodes else None
    if evidence is None:
        return False
    there = read_node_serials(desk, gone.node, evidence).parts
    return any(
        (piece := there.get(place)) and piece.serial == one["serial"] for place, one in gone.body["gone"].items()
    )
