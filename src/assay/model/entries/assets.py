"""Entries about hardware: serial numbers seen, replaced and returned, and a node's setup."""

from __future__ import annotations

from collections.abc import Mapping

from assay.model.entries.entry_content import EntryContent
from assay.model.facts import fact, shown


@fact
class SeenPart:
    """A part at a place: what it is, its serial number, and the serial number there before (None: none was known).

    `uuid`: of a GPU, "" if it was not read.
    """

    kind: str
    serial: str
    was: str | None = shown(omit_stored=True, default=None)
    uuid: str = shown(omit_stored=True, default="")


@fact
class GonePart:
    """A part that left a place: its serial number, and the node and place where it is now."""

    serial: str
    to_node: str = shown("to")
    to_place: str


@fact
class PartsSeenEntry(EntryContent):
    """What changed of the serial numbers of a node. Empty mappings where nothing changed.

    `parts` maps a place to the part that was not there before, `gone` a place to a part that was seen elsewhere, and
    `node_serials` who reads the node's own serial number (inventory, bmc, dmi) to that number.
    """

    kind = "parts.seen"
    parts: Mapping[str, SeenPart]
    node_serials: Mapping[str, str] = shown("node")
    gone: Mapping[str, GonePart] = shown(omit_stored=True, default_factory=dict)


@fact
class SetupSeenEntry(EntryContent):
    """What changed of a node's setup, with the place where it stands and what it must be.

    `rack` is `SITE/RACK`, `u` its lowest rack unit, `spec` its NodeSpec, `batch` the delivery that it came with, ""
    where nobody declared one. `versions` maps a component of the node (driver, bios, bmc, kernel) or the place of a
    part to the version that runs there, `models` the place of a part to its model: only those that changed.
    """

    kind = "setup.seen"
    rack: str
    u: int
    spec: str
    batch: str = shown(missing="")
    versions: Mapping[str, str] = shown(missing={})
    models: Mapping[str, str] = shown(missing={})


@fact
class PartReplacedEntry(EntryContent):
    """Another node stands in this place: its serial number, the former one, and who read it (inventory, bmc, dmi)."""

    kind = "part.replaced"
    old_serial: str = shown(missing="")
    new_serial: str = shown(missing="")
    who: str = shown(missing="")


@fact
class PartReturnedEntry(EntryContent):
    """A part that was sent back with a dossier was seen in a node again. `place` is "" for the node itself."""

    kind = "part.returned"
    serial: str
    part_kind: str = shown("kind")
    place: str
    from_node: str = shown("from")
    from_place: str
    sent_at: str
    faults: tuple[str, ...]
