"""Tracks serial numbers: which part is in which place of which node, since when, and where it was before. Pure.

It uses three kinds of ledger entries. `parts.seen` records what changed at the places of a node. `part.replaced`
records that another node took this one's place. `part.returned` records that a part which went back with a dossier is
in a node again.

Measurements of a node belong to intervals by who held a place. A new one begins with another part, new versions,
another rack, and after a repair by people. A reading that is missing changes nothing: a lost GPU has no version, and
its node no new setup.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from functools import reduce
from operator import attrgetter
from typing import Any, NamedTuple

from assay.model.entries.assets import (
    GonePart,
    PartReplacedEntry,
    PartReturnedEntry,
    PartsSeenEntry,
    SeenPart,
    SetupSeenEntry,
)
from assay.model.entries.effects import EffectIntentEntry
from assay.model.entries.node_entries import CertifiedEntry
from assay.model.evidence import GpuIdentity
from assay.model.facts import frozen
from assay.model.ledger_entry import LedgerEntry, Projection, derive_id
from assay.model.timestamps import format_time

ASSET_ENTRY_KINDS = ("parts.seen", "part.replaced", "part.returned", "transition", "effect.intent")
INVENTORY = "inventory"
PartPlaces = dict[str, tuple[str, str]]
DOSSIER = "dossier"
DRIVE = "nvme"
GPU = "gpu"


@frozen
class InstalledPart:
    """A part with a serial number: what it is (gpu, nvme …), and the number; of a GPU also the UUID."""

    kind: str
    serial: str
    uuid: str = field(default="", compare=False)

    def is_new_gpu(self, known: GpuIdentity) -> bool:
        """Whether this is a GPU, and not yet known by both its serial number and its UUID."""
        return self.kind == GPU and (self.serial != known[0] or self.uuid not in ("", known[1]))


@frozen
class AssetReading:
    """One reading of a node's parts: the node's serial number by source, and the part at each place."""

    node: str
    serials_by_source: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, InstalledPart] = field(default_factory=dict)


@frozen
class NodeAssets:
    """The assets of one node in the ledger: its serial number, and the last part seen at each place.

    `serials_by_source` is the last number of each source. `lagging_sources` may not have followed the last replacement
    yet. `is_sent_back`: the node went back with a dossier. `unconfirmed` are the places, and the sources as `by NAME`,
    that must be recorded again because the node came back.
    """

    serial: str = ""
    parts: Mapping[str, InstalledPart] = field(default_factory=dict)
    serials_by_source: Mapping[str, str] = field(default_factory=dict)
    lagging_sources: frozenset[str] = frozenset()
    is_sent_back: bool = False
    unconfirmed: frozenset[str] = frozenset()
    last_reading_id: str = ""
    last_replacement_id: str = ""


@frozen
class SentBackPart:
    """A part that went back with a dossier (effect id `effect`): from where, when, and for which faults."""

    effect: str
    kind: str
    serial: str
    node: str
    place: str
    at: str
    faults: tuple[str, ...]


def project_node_assets(entries: Iterable[LedgerEntry]) -> NodeAssets:
    """Return the assets of one node from its entries of `ASSET_ENTRY_KINDS`."""
    return reduce(apply_asset_entry, entries, NodeAssets())


def apply_asset_entry(assets: NodeAssets, entry: LedgerEntry) -> NodeAssets:
    """Return the assets of a node after one more of its entries."""
    match entry.kind:
        case "parts.seen":
            return _apply_seen_parts(assets, entry)
        case "part.replaced":
            new = PartReplacedEntry.read(entry).new_serial
            lagging = frozenset(source for source, serial in assets.serials_by_source.items() if serial != new)
            return replace(assets, serial=new, lagging_sources=lagging, last_replacement_id=entry.id)
        case "effect.intent" if EffectIntentEntry.read(entry).action == DOSSIER:
            return replace(assets, is_sent_back=True)
        case "transition" if assets.is_sent_back:
            sources = (f"by {source}" for source in assets.serials_by_source if source != INVENTORY)
            return replace(assets, is_sent_back=False, unconfirmed=frozenset((*assets.parts, *sources)))
    return assets


def _apply_seen_parts(assets: NodeAssets, entry: LedgerEntry) -> NodeAssets:
    seen = PartsSeenEntry.read(entry)
    parts = {place: InstalledPart(part.kind, part.serial) for place, part in seen.parts.items()}
    serials = seen.node_serials
    moved = {part.serial for part in parts.values()} | {part.serial for part in seen.gone.values()}
    unmoved = {place: part for place, part in assets.parts.items() if part.serial not in moved}
    before = assets.serials_by_source
    changed = {source for source, serial in serials.items() if before.get(source) not in (None, serial)}
    return replace(
        assets,
        serial=assets.serial or serials.get(INVENTORY) or next(iter(serials.values()), ""),
        parts={**unmoved, **parts},
        serials_by_source={**assets.serials_by_source, **serials},
        lagging_sources=assets.lagging_sources - changed,
        unconfirmed=assets.unconfirmed - {*parts, *(f"by {source}" for source in serials)},
        last_reading_id=entry.id,
    )


def make_asset_entries(assets: NodeAssets, reading: AssetReading, at: datetime) -> list[LedgerEntry]:
    """Return the entries that a reading adds: none if it shows only known parts, or fewer."""
    entries: list[LedgerEntry] = []
    seen = PartsSeenEntry(_find_new_parts(assets, reading), _find_new_serials(assets, reading.serials_by_source))
    if seen.parts or seen.node_serials:
        body = json.dumps(seen.to_body(), sort_keys=True)
        ident = derive_id("parts.seen", reading.node, assets.last_reading_id, body)
        entries.append(seen.make_entry(ident, format_time(at), reading.node))
    if replaced := _find_replacement(assets, reading.serials_by_source):
        words = ("part.replaced", reading.node, replaced.old_serial, replaced.new_serial, assets.last_replacement_id)
        entries.append(replaced.make_entry(derive_id(*words), format_time(at), reading.node))
    return entries


def _find_new_parts(assets: NodeAssets, reading: AssetReading) -> dict[str, SeenPart]:
    """Return the places whose part differs from before, or must be recorded again."""
    same_drives = _drive_serials(assets.parts) == _drive_serials(reading.parts)
    new_parts: dict[str, SeenPart] = {}
    for place, part in reading.parts.items():
        before = assets.parts.get(place)
        same = part == before or (part.kind == DRIVE and same_drives)
        if not same or (place in assets.unconfirmed and not assets.is_sent_back):
            was = before.serial if before and not same else None
            new_parts[place] = SeenPart(part.kind, part.serial, was, part.uuid)
    return new_parts


def _drive_serials(parts: Mapping[str, InstalledPart]) -> set[str]:
    """Return the serial numbers of the drives. After a boot, the kernel may give the same drives other names."""
    return {part.serial for part in parts.values() if part.kind == DRIVE}


def _find_new_serials(assets: NodeAssets, serials: Mapping[str, str]) -> dict[str, str]:
    unconfirmed = frozenset() if assets.is_sent_back else assets.unconfirmed
    return {
        source: serial
        for source, serial in serials.items()
        if assets.serials_by_source.get(source) != serial or f"by {source}" in unconfirmed
    }


def _find_replacement(assets: NodeAssets, serials: Mapping[str, str]) -> PartReplacedEntry | None:
    """Return the replacement of the node, if another node is in its place now.

    A source that only follows the last replacement shows no new one. Neither does an inventory that now agrees with the
    hardware.
    """
    for source, serial in serials.items():
        before = assets.serials_by_source.get(source)
        if not before or before == serial or source in assets.lagging_sources:
            continue
        known = {assets.serial}
        if source == INVENTORY:
            known |= {number for name, number in assets.serials_by_source.items() if name != INVENTORY}
        if serial not in known:
            return PartReplacedEntry(before, serial, source)
    return None


def _add_sent_back_parts(sent_back: dict[str, SentBackPart], entry: LedgerEntry) -> dict[str, SentBackPart]:
    intent = EffectIntentEntry.read(entry)
    for part in intent.before.get("suspects", ()) if intent.action == DOSSIER else ():
        words = (part["kind"], part["serial"], entry.node, part["place"], entry.at, tuple(part["faults"]))
        sent_back[part["serial"]] = SentBackPart(intent.effect, *words)
    return sent_back


SENT_BACK_PARTS = Projection[dict[str, SentBackPart]]((EffectIntentEntry.kind,), dict, _add_sent_back_parts, dict)
"""The parts that went back, by serial number, the last time of each; from entries of any nodes."""


def make_returned_entries(
    entry: LedgerEntry, sent_back: Mapping[str, SentBackPart], at: datetime
) -> Iterator[LedgerEntry]:
    """Yield an entry for each part that a `parts.seen` entry shows and that went back before."""
    content = PartsSeenEntry.read(entry)
    seen = [(place, part.kind, part.serial) for place, part in content.parts.items()]
    seen += [("", "node", serial) for serial in dict.fromkeys(content.node_serials.values())]
    for place, kind, serial in seen:
        if (known := sent_back.get(serial)) and known.kind == kind:
            returned = PartReturnedEntry(serial, kind, place, known.node, known.place, known.at, known.faults)
            ident = derive_id("part.returned", known.effect, entry.node, place, serial)
            yield returned.make_entry(ident, format_time(at), entry.node)


def _add_seen_parts(holders: PartPlaces, entry: LedgerEntry) -> PartPlaces:
    for place, part in PartsSeenEntry.read(entry).parts.items():
        if part.was is not None and holders.get(part.was) == (entry.node, place):
            del holders[part.was]
        holders[part.serial] = (entry.node, place)
    return holders


PART_HOLDERS = Projection[PartPlaces]((PartsSeenEntry.kind,), dict, _add_seen_parts, dict)
"""The last node and place of each part, by serial number; from entries of any nodes."""


def make_removed_entries(
    entry: LedgerEntry, holders: Mapping[str, tuple[str, str]], at: datetime
) -> Iterator[LedgerEntry]:
    """Yield an entry for each part that a `parts.seen` entry shows here and that was in another node before."""
    for place, part in PartsSeenEntry.read(entry).parts.items():
        node, from_place = holders.get(part.serial, (entry.node, place))
        if node != entry.node:
            gone = PartsSeenEntry({}, {}, {from_place: GonePart(part.serial, entry.node, place)})
            yield gone.make_entry(derive_id("parts.seen", "gone", entry.id, place), format_time(at), node)


def list_serial_stays(entries: Sequence[LedgerEntry], serial: str) -> list[dict[str, Any]]:
    """Return the stays of a serial number, oldest first: node, place, kind, since, until ("" if it is still there).

    `entries` are those of `parts.seen` and `part.replaced`, of all nodes.
    """
    stays: list[dict[str, Any]] = []
    for entry in entries:
        for place, kind in _find_places(entry, serial):
            last = stays[-1] if stays else None
            if last and not last["until"] and (last["node"], last["place"]) == (entry.node, place):
                continue
            if last and not last["until"]:
                last["until"] = entry.at
            stays.append({"node": entry.node, "place": place, "kind": kind, "since": entry.at, "until": ""})
        if stays and not stays[-1]["until"] and _ends_stay(entry, stays[-1], serial):
            stays[-1]["until"] = entry.at
    return stays


def _find_places(entry: LedgerEntry, serial: str) -> list[tuple[str, str]]:
    """Return place and kind of each part of this serial number in an entry; the place of a node is ""."""
    if entry.kind == PartReplacedEntry.kind:
        return [("", "node")] if PartReplacedEntry.read(entry).new_serial == serial else []
    seen = PartsSeenEntry.read(entry)
    places = [(place, part.kind) for place, part in seen.parts.items() if part.serial == serial]
    return [*places, ("", "node")] if serial in seen.node_serials.values() else places


def _ends_stay(entry: LedgerEntry, stay: Mapping[str, Any], serial: str) -> bool:
    """Whether an entry shows another part in the place of a stay."""
    if entry.node != stay["node"]:
        return False
    if entry.kind == PartReplacedEntry.kind:
        return stay["kind"] == "node" and PartReplacedEntry.read(entry).new_serial != serial
    part = PartsSeenEntry.read(entry).parts.get(stay["place"])
    return part is not None and part.serial != serial


def find_returned_parts(entries: Iterable[LedgerEntry]) -> list[LedgerEntry]:
    """Return the `part.returned` entries of one node for parts that are still in the node."""
    every = list(entries)
    assets, returns = project_node_assets(every), dict[tuple[str, str], LedgerEntry]()
    for entry in every:
        if entry.kind == PartReturnedEntry.kind:
            returned = PartReturnedEntry.read(entry)
            returns[(returned.place, returned.serial)] = entry
    installed = {(place, part.serial) for place, part in assets.parts.items()}
    installed |= {("", serial) for serial in (assets.serial, *assets.serials_by_source.values())}
    return [entry for place_and_serial, entry in returns.items() if place_and_serial in installed]


NODES_WITH_RETURNED_PARTS = Projection(
    (PartReturnedEntry.kind,), frozenset[str], lambda nodes, entry: nodes | {entry.node}
)
"""The nodes in which a part ever was that had gone back before."""


def describe_returned_part(entry: LedgerEntry) -> str:
    """Return one `part.returned` in one line for people."""
    part = PartReturnedEntry.read(entry)
    where = f"{part.from_node} {part.from_place}".strip()
    subject = f"{part.place} ({part.part_kind} {part.serial})" if part.place else f"this node ({part.serial})"
    faults = f" for {', '.join(part.faults)}" if part.faults else ""
    return f"{subject} was sent back from {where} on {part.sent_at[:10]}{faults}"


NODE_COMPONENTS = ("driver", "bios", "bmc", "kernel")


@frozen
class NodeSetup:
    """The setup of one node, see `SetupSeenEntry`, with all versions and models. `entry` is its last entry."""

    rack: str = ""
    u: int = 0
    spec: str = ""
    batch: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    entry: str = ""

    def find_firmware(self, place: str) -> str:
        """Return the versions that work on a part, in words: its own, and those of the node."""
        parts = [place] if place and place in self.versions else []
        named = [f"{name} {self.versions[name]}" for name in NODE_COMPONENTS if name in self.versions]
        return ", ".join([*(self.versions[part] for part in parts), *named])


def project_node_setup(entries: Iterable[LedgerEntry]) -> NodeSetup:
    """Return the setup of one node from its `setup.seen` entries; entries of other kinds say nothing."""
    return reduce(apply_setup_entry, entries, NodeSetup())


def apply_setup_entry(setup: NodeSetup, entry: LedgerEntry) -> NodeSetup:
    """Return the setup of a node after one more of its entries."""
    if entry.kind != SetupSeenEntry.kind:
        return setup
    seen = SetupSeenEntry.read(entry)
    versions, models = {**setup.versions, **seen.versions}, {**setup.models, **seen.models}
    return NodeSetup(seen.rack, seen.u, seen.spec, seen.batch, versions, models, entry.id)


def make_setup_entry(known: NodeSetup, seen: NodeSetup, node: str, at: datetime) -> LedgerEntry | None:
    """Return the entry for a setup that was read, None where it shows nothing new."""
    versions = {name: text for name, text in seen.versions.items() if known.versions.get(name) != text}
    models = {place: text for place, text in seen.models.items() if known.models.get(place) != text}
    place = (seen.rack, seen.u, seen.spec, seen.batch)
    if not versions and not models and place == (known.rack, known.u, known.spec, known.batch):
        return None
    content = SetupSeenEntry(*place, versions, models)
    ident = derive_id(content.kind, node, known.entry, json.dumps(content.to_body(), sort_keys=True))
    return content.make_entry(ident, format_time(at), node)


HOLDER_ENTRY_KINDS = (*ASSET_ENTRY_KINDS, SetupSeenEntry.kind, CertifiedEntry.kind)
NODE_KIND = "node"
_TRAITS = attrgetter("kind", "serial", "sku", "firmware", "rack", "position")


class PartHolder(NamedTuple):
    """A part at a place of a node. `place` "" is the node itself. Times are ISO 8601 UTC; `until` "": until now.

    `sku` is its model, or the NodeSpec of a node. `position` is the place within the node, and a node's in its rack.
    `firmware` names all versions that work on it, `driver` is one of them. `batch` is the delivery that first brought
    the part, "" where that is not known.
    """

    node: str
    place: str
    kind: str
    serial: str
    sku: str
    batch: str
    firmware: str
    rack: str
    position: str
    since: str
    until: str = ""
    driver: str = ""


def list_part_holders(node: str, entries: Iterable[LedgerEntry]) -> list[PartHolder]:
    """Return the holders of one node's places, from its entries of `HOLDER_ENTRY_KINDS`, in the order of their ends."""
    assets, setup = NodeAssets(), NodeSetup()
    gone = set[str]()
    present = dict[str, PartHolder]()
    ended = list[PartHolder]()
    for entry in entries:
        assets, setup = apply_asset_entry(assets, entry), apply_setup_entry(setup, entry)
        gone = _follow_gone_parts(gone, entry)
        held = {
            holder.place: holder
            for holder in _describe_parts(node, assets, setup, entry.at)
            if holder.place not in gone
        }
        for place in [*present]:
            # Another interval begins where a trait differs; a delivery that is declared later begins none.
            now = held.get(place)
            if entry.kind == CertifiedEntry.kind or now is None or _TRAITS(now) != _TRAITS(present[place]):
                ended.append(present.pop(place)._replace(until=entry.at))
        present = {place: present.get(place, holder)._replace(batch=holder.batch) for place, holder in held.items()}
    return _name_batches([*(holder for holder in ended if holder.until > holder.since), *present.values()])


def _follow_gone_parts(gone: set[str], entry: LedgerEntry) -> set[str]:
    """Return the places whose part was last seen in another node."""
    if entry.kind != PartsSeenEntry.kind:
        return gone
    seen = PartsSeenEntry.read(entry)
    return (gone - seen.parts.keys()) | seen.gone.keys()


def _describe_parts(node: str, assets: NodeAssets, setup: NodeSetup, at: str) -> Iterator[PartHolder]:
    """Yield what holds each place now; nothing while the node's setup was never read."""
    if not setup.entry:
        return
    parts: Mapping[str, InstalledPart] = {"": InstalledPart(NODE_KIND, assets.serial), **assets.parts}
    of_node, driver = setup.find_firmware(""), setup.versions.get("driver", "")
    for place, part in parts.items():
        sku = setup.models.get(place, "") if place else setup.spec
        position = place or f"u{setup.u}"
        firmware = setup.find_firmware(place) if place in setup.versions else of_node
        yield PartHolder(
            node, place, part.kind, part.serial, sku, setup.batch, firmware, setup.rack, position, at, "", driver
        )


def _name_batches(holders: list[PartHolder]) -> list[PartHolder]:
    """Keep the node's delivery for itself and for the first part of each place: later ones come from elsewhere."""
    first: dict[str, str] = {}
    for holder in sorted(holders, key=attrgetter("since")):
        first.setdefault(holder.place, holder.serial)
    return [
        holder if not holder.place or first[holder.place] == holder.serial else holder._replace(batch="")
        for holder in holders
    ]
