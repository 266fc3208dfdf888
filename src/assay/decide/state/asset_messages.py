"""The texts of entries about serial numbers, setups and photos, one line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from assay.model.entries.asset_entries import PartReplacedEntry, PartsSeenEntry, PhotosTakenEntry, SetupSeenEntry
from assay.model.entries.entry_content import EntryContent
from assay.model.text.text_lists import format_count, format_list

SOURCE_NAMES = {"inventory": "the inventory", "bmc": "its BMC", "dmi": "its firmware"}


def _format_photos(taken: PhotosTakenEntry, _: str) -> str:
    files = format_list([photo.file for photo in taken.photos], 6)
    return f"{format_count(len(taken.photos), 'photo')} for the dossier, added by {taken.who}: {files}"


def _format_seen_parts(seen: PartsSeenEntry, _: str) -> str:
    """Return each changed part, the node's serial number, and the number of new parts."""
    parts = seen.parts.items()
    changed = [f"{place} is {part.serial}, was {part.was}" for place, part in parts if part.was is not None]
    gone = [f"{part.serial} of {place} is in {part.to_node} {part.to_place} now" for place, part in seen.gone.items()]
    sources: dict[str, list[str]] = {}
    for source, serial in seen.node_serials.items():
        sources.setdefault(serial, []).append(SOURCE_NAMES.get(source, source))
    numbers = [f"serial number {serial}, by {' and '.join(names)}" for serial, names in sources.items()]
    new = [f"{place} {part.serial}" for place, part in parts if part.was is None]
    owner = "its" if len(new) == 1 else "their"
    first = [f"{format_count(len(new), 'part')} with {owner} serial numbers ({format_list(new, 3)})"] if new else []
    return "; ".join([*changed, *gone, *numbers, *first])


def _format_setup(seen: SetupSeenEntry, _: str) -> str:
    """Return where the node stands, and the versions that changed; models only as a number."""
    versions = [f"{name} {version}" for name, version in seen.versions.items()]
    models = [f"{format_count(len(seen.models), 'part')} by model"] if seen.models else []
    return "; ".join(
        [f"{seen.spec} in {seen.rack} u{seen.u}", *([format_list(versions, 4)] if versions else []), *models]
    )


def _format_replaced_node(replaced: PartReplacedEntry, _: str) -> str:
    serials = f"{replaced.new_serial}, was {replaced.old_serial}"
    source = SOURCE_NAMES.get(replaced.who, replaced.who)
    return f"another node stands in this place: {serials}, by {source}; repairs are counted anew"


ASSET_FORMATTERS: Mapping[type[EntryContent], Callable[[Any, str], str]] = {
    PhotosTakenEntry: _format_photos,
    PartsSeenEntry: _format_seen_parts,
    SetupSeenEntry: _format_setup,
    PartReplacedEntry: _format_replaced_node,
}
