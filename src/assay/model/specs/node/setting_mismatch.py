"""One declared setting of a node that reads otherwise, or that cannot be read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.model.reading import parse_reading


@dataclass(frozen=True, slots=True)
class SettingMismatch:
    """A setting by its path in the node spec (`bios.QuietBoot`), with the wanted and the seen value as texts.

    A value that cannot be read is seen as `(KIND: REASON)`, which equals no value.
    """

    name: str
    wanted: str
    seen: str

    @property
    def is_unread(self) -> bool:
        """Whether there is no value: the reading failed, is unsupported or absent."""
        return self.seen.startswith("(")


def format_setting_mismatches(mismatches: Iterable[SettingMismatch]) -> str:
    """Return mismatches as one line of text."""
    return ", ".join(f"{one.name} is {one.seen}, expected {one.wanted}" for one in mismatches)


def format_setting_diff(header: str, mismatches: Sequence[SettingMismatch]) -> dict[str, str]:
    """Return mismatches as a difference that Ansible shows with --diff."""
    return {
        "header": header,
        "before": "".join(f"{one.name}: {one.seen}\n" for one in mismatches),
        "after": "".join(f"{one.name}: {one.wanted}\n" for one in mismatches),
    }


def format_reading(tree: Any, *path: str) -> str:
    """Return the reading at a path of a tree as text; `(KIND: REASON)` if it has no value, `absent` if it is missing.

    Redfish's and JSON's booleans are `true` and `false`; the items of a list are separated by blanks.
    """
    for step in path:
        if isinstance(tree, Mapping) and step in tree:
            tree = tree[step]
        elif parse_reading(tree) is None:
            return "absent"
    reading = parse_reading(tree)
    if reading is None:
        return "(failed: it is no reading)"
    if reading.kind != "value":
        return f"({reading.kind}: {reading.reason})"
    if isinstance(reading.value, bool):
        return str(reading.value).lower()
    return " ".join(map(str, reading.value)) if isinstance(reading.value, list) else str(reading.value)
