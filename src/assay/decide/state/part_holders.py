"""Who held which place of a node, from when to when: the intervals to which the node's measurements belong. Pure.

A new interval begins with another part, new versions, another rack, and after a repair by people. A reading that is
missing changes nothing: a lost GPU has no version, and its node no new setup.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple

from assay.decide.state.asset_history import ASSET_ENTRY_KINDS, InstalledPart, NodeAssets, apply_asset_entry
from assay.model.entries.assets import PartsSeenEntry, SetupSeenEntry
from assay.model.entries.node_entries import CertifiedEntry
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.timestamps import format_time

NODE_COMPONENTS = ("driver", "bios", "bmc", "kernel")


@dataclass(frozen=True, slots=True)
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
    setup = NodeSetup()
    for entry in entries:
        setup = apply_setup_entry(setup, entry)
    return setup


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
