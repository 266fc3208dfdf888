"""Tracks the setup of nodes: rack, spec and delivery, and the models and versions of their parts. Pure.

A reading that is missing changes nothing: a lost GPU has no version, and its node no new setup.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from assay.model.entries.asset_entries import SetupSeenEntry
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
