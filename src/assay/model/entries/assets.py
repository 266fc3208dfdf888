"""Entries about hardware: serial numbers seen, replaced and returned, a node's setup, and the photos of a dossier."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.model.entries.entry_content import EntryContent, stored_as, stored_list


@dataclass(frozen=True, slots=True)
class SeenPart:
    """A part at a place: what it is, its serial number, and the serial number there before (None: none was known)."""

    kind: str
    serial: str
    was: str | None = None

    def as_json(self) -> dict[str, str]:
        """Return plain JSON data."""
        return {"kind": self.kind, "serial": self.serial, **({"was": self.was} if self.was is not None else {})}


@dataclass(frozen=True, slots=True)
class GonePart:
    """A part that left a place: its serial number, and the node and place where it is now."""

    serial: str
    to_node: str
    to_place: str

    def as_json(self) -> dict[str, str]:
        """Return plain JSON data."""
        return {"serial": self.serial, "to": self.to_node, "to_place": self.to_place}


def _parse_parts(parts: Mapping[str, Mapping[str, str]]) -> dict[str, SeenPart]:
    return {place: SeenPart(part["kind"], part["serial"], part.get("was")) for place, part in parts.items()}


def _parse_gone(parts: Mapping[str, Mapping[str, str]]) -> dict[str, GonePart]:
    return {place: GonePart(part["serial"], part["to"], part["to_place"]) for place, part in parts.items()}


def _encode_places(parts: Mapping[str, SeenPart] | Mapping[str, GonePart]) -> dict[str, dict[str, str]]:
    return {place: part.as_json() for place, part in parts.items()}


@dataclass(frozen=True, slots=True)
class PartsSeenEntry(EntryContent):
    """What changed of the serial numbers of a node. Empty mappings where nothing changed.

    `parts` maps a place to the part that was not there before, `gone` a place to a part that was seen elsewhere, and
    `node_serials` who reads the node's own serial number (inventory, bmc, dmi) to that number.
    """

    kind = "parts.seen"
    parts: Mapping[str, SeenPart] = field(metadata=stored_as(parse=_parse_parts, encode=_encode_places))
    node_serials: Mapping[str, str] = field(metadata=stored_as("node"))
    gone: Mapping[str, GonePart] = field(
        default_factory=dict, metadata=stored_as(missing={}, omit_empty=True, parse=_parse_gone, encode=_encode_places)
    )


@dataclass(frozen=True, slots=True)
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
    batch: str = field(metadata=stored_as(missing=""))
    versions: Mapping[str, str] = field(metadata=stored_as(missing={}))
    models: Mapping[str, str] = field(metadata=stored_as(missing={}))


@dataclass(frozen=True, slots=True)
class PartReplacedEntry(EntryContent):
    """Another node stands in this place: its serial number, the former one, and who read it (inventory, bmc, dmi)."""

    kind = "part.replaced"
    old_serial: str = field(metadata=stored_as(missing=""))
    new_serial: str = field(metadata=stored_as(missing=""))
    who: str = field(metadata=stored_as(missing=""))


@dataclass(frozen=True, slots=True)
class PartReturnedEntry(EntryContent):
    """A part that was sent back with a dossier was seen in a node again. `place` is "" for the node itself."""

    kind = "part.returned"
    serial: str
    part_kind: str = field(metadata=stored_as("kind"))
    place: str
    from_node: str = field(metadata=stored_as("from"))
    from_place: str
    sent_at: str
    faults: tuple[str, ...] = field(metadata=stored_list())


@dataclass(frozen=True, slots=True)
class PhotoFile:
    """One photo of a dossier by its file name, the sha256 of its content, and its size in bytes."""

    file: str
    sha256: str
    bytes: int


def _parse_photos(photos: Iterable[Mapping[str, Any]]) -> tuple[PhotoFile, ...]:
    return tuple(PhotoFile(photo["file"], photo.get("sha256", ""), photo.get("bytes", 0)) for photo in photos)


def _encode_photos(photos: Iterable[PhotoFile]) -> list[dict[str, Any]]:
    return [{"file": photo.file, "sha256": photo.sha256, "bytes": photo.bytes} for photo in photos]


@dataclass(frozen=True, slots=True)
class PhotosTakenEntry(EntryContent):
    """Photos were added to the dossier of effect `effect`, by whom."""

    kind = "photos.taken"
    effect: str
    who: str
    photos: tuple[PhotoFile, ...] = field(metadata=stored_as(parse=_parse_photos, encode=_encode_photos))
