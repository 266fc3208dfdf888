"""Records serial numbers that are new in their places, replaced nodes, parts that come back, and changed setups.

Evidence of another machine tells nothing of a node's parts. A node that is replaced starts with its place's history,
but without the old node's hardware faults, ladder and repairs. A setup is place, spec and delivery as declared, models
and versions as the node's evidence has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from assay.act.loop.context import ControllerContext
from assay.act.loop.projections import read_node_states
from assay.decide.faults.recovery import make_clearance
from assay.decide.state.asset_history import (
    ASSET_ENTRY_KINDS,
    INVENTORY,
    PART_HOLDERS,
    SENT_BACK_PARTS,
    AssetReading,
    InstalledPart,
    NodeAssets,
    NodeSetup,
    PartPlaces,
    SentBackPart,
    make_asset_entries,
    make_removed_entries,
    make_returned_entries,
    make_setup_entry,
    project_node_assets,
    project_node_setup,
)
from assay.decide.state.decision_and_fault_entries import make_cleared_entry
from assay.decide.state.node_projection import project_node_states
from assay.decide.state.node_state import NodeState
from assay.ledger.ledger_reader import read_projection
from assay.ledger.newest.interned_texts import split_batches
from assay.model.entries.assets import PartReplacedEntry, PartsSeenEntry, SetupSeenEntry
from assay.model.evidence import EvidenceDocument, clean_serial
from assay.model.faults.sightings import map_parts_by_pci
from assay.model.ledger_entry import LedgerEntry
from assay.observe.evidence_contents import find_node_serials, find_part_serials

if TYPE_CHECKING:
    from assay.model.fleet import Fleet


COMPONENT_READINGS = {
    "driver": ("probe", "gpu", "driver"),
    "bios": ("bmc", "system", "bios_version"),
    "bmc": ("bmc", "manager", "version"),
    "kernel": ("probe", "host", "kernel"),
}
"""Where the evidence has the version of each component of a node."""


class SetupReader:
    """Reads the setups of the nodes of a fleet."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def read(self, name: str, evidence: EvidenceDocument) -> NodeSetup:
        """Return the setup of a node. What the evidence does not say is missing."""
        node = self._fleet.nodes[name]
        readings = {component: evidence.read(*path) for component, path in COMPONENT_READINGS.items()}
        versions = {component: str(reading.value) for component, reading in readings.items() if reading.kind == "value"}
        parts = find_part_serials(evidence, map_parts_by_pci(self._fleet.spec_of(node.name)))
        versions |= {part.place: part.firmware for part in parts if part.firmware}
        models = {part.place: part.model for part in parts if part.model}
        batch = self._deliveries.get(node.serial, "")
        return NodeSetup("/".join(node.rack_place), node.u, node.spec, batch, versions, models)

    @cached_property
    def _deliveries(self) -> dict[str, str]:
        """The name of the delivery of each machine, by its serial number."""
        deliveries = self._fleet.deliveries.values()
        return {machine.serial_number: delivery.name for delivery in deliveries for machine in delivery.machines}


NODES_PER_TRANSACTION = 200


def record_parts(context: ControllerContext, evidence: Mapping[str, EvidenceDocument]) -> None:
    """Append what newly collected evidence, by node, adds to the known serial numbers. Again, it appends nothing."""
    index, setups = _PartIndex(context), SetupReader(context.fleet)
    for batch in split_batches([name for name in evidence if name in context.fleet.nodes], NODES_PER_TRANSACTION):
        readings, seen = list[AssetReading](), dict[str, NodeSetup]()
        for name in batch:
            document = evidence[name]
            if not document.stranger:
                readings.append(read_node_serials(context, name, document))
                seen[name] = setups.read(name, document)
        with context.hold_fault_lock():
            known = context.ledger.entries_by_node(list(seen), (*ASSET_ENTRY_KINDS, SetupSeenEntry.kind))
            changed = [
                make_setup_entry(project_node_setup(known[name]), setup, name, context.clock.now())
                for name, setup in seen.items()
            ]
            parts = _make_entries(context, index, readings, known)
            context.ledger.append(*parts, *(entry for entry in changed if entry))


def read_node_serials(context: ControllerContext, name: str, evidence: EvidenceDocument) -> AssetReading:
    """Return the serial numbers of a node by the inventory and by its evidence."""
    inventory = clean_serial(context.fleet.nodes[name].serial)
    serials = {**({INVENTORY: inventory} if inventory else {}), **find_node_serials(evidence)}
    parts = find_part_serials(evidence, map_parts_by_pci(context.fleet.spec_of(name)))
    return AssetReading(name, serials, {part.place: InstalledPart(part.kind, part.serial, part.uuid) for part in parts})


class _PartIndex:
    """The known parts of all nodes, as of the first change that needs them."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context

    @cached_property
    def sent(self) -> dict[str, SentBackPart]:
        """The parts that were ever sent back, by serial number."""
        return read_projection(self._context.ledger, SENT_BACK_PARTS)

    @cached_property
    def holders(self) -> PartPlaces:
        """Where each part was last seen, by serial number; with what this reading finds."""
        return read_projection(self._context.ledger, PART_HOLDERS).copy()


def _make_entries(
    context: ControllerContext, index: _PartIndex, readings: Sequence[AssetReading], known: dict[str, list[LedgerEntry]]
) -> list[LedgerEntry]:
    """Return the entries for readings; later ones count what earlier ones add. `known`: entries by node."""
    entries: list[LedgerEntry] = []
    states = read_node_states(context.ledger)
    for reading in readings:
        assets, state = project_node_assets(known[reading.node]), states.get(reading.node)
        if state:  # what the name had may be of another machine
            new = {place for place, part in reading.parts.items() if part.is_new_gpu(state.gpus.get(place, ("", "")))}
            assets = replace(assets, unconfirmed=assets.unconfirmed | new)
        for entry in _make_node_entries(context, index, reading, assets):
            entries.append(entry)
            if entry.node in known:
                known[entry.node].append(entry)
    return entries


def _make_node_entries(
    context: ControllerContext, index: _PartIndex, reading: AssetReading, assets: NodeAssets
) -> Iterator[LedgerEntry]:
    now = context.clock.now()
    for entry in make_asset_entries(assets, reading, now):
        yield entry
        if entry.kind == "part.replaced":
            node_state = project_node_states(context.ledger.entries(reading.node)).get(reading.node)
            yield from _clear_hardware_faults(node_state, entry, now) if node_state else []
            continue
        yield from make_returned_entries(entry, index.sent, now)
        removed = make_removed_entries(entry, index.holders, now)
        yield from (entry for entry in removed if not _is_still_read(context, entry))
        PART_HOLDERS.step(index.holders, entry)


def _clear_hardware_faults(node_state: NodeState, entry: LedgerEntry, at: datetime) -> list[LedgerEntry]:
    """Return the ends of hardware faults that left with the old node."""
    replaced = PartReplacedEntry.read(entry)
    because = f"gone with the node {replaced.old_serial}, which {replaced.new_serial} replaces"
    faults = [fault for fault in node_state.faults if fault.is_open and fault.blame == "hardware"]
    return [make_cleared_entry(node_state.node, make_clearance(fault, because), at) for fault in faults]


def _is_still_read(context: ControllerContext, removed: LedgerEntry) -> bool:
    """Whether the other node reads that serial number as well: then it identifies no single part."""
    evidence = context.evidence.latest(removed.node) if removed.node in context.fleet.nodes else None
    if evidence is None:
        return False
    parts = read_node_serials(context, removed.node, evidence).parts
    gone = PartsSeenEntry.read(removed).gone
    return any((part := parts.get(place)) and part.serial == holder.serial for place, holder in gone.items())
