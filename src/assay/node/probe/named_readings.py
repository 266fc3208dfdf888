"""The areas that read what the caller names. Their readers are imported only where something is named."""

from __future__ import annotations

from functools import partial
from typing import Any

from assay.model.reading import ReadingTree, absent
from assay.node.probe.node_access import NodeRoot, TimedQuestion

ADAPTERS_S = 6.0  # mstconfig takes seconds for an adapter; all are asked at once
UNIT_SETTINGS_S = 3.0

NamedArea = partial[Any] | TimedQuestion | ReadingTree


def ask_files(root: NodeRoot, paths: list[str]) -> NamedArea:
    """Return the area `files`: the SHA-256 and the mode of each."""
    if not paths:
        return absent("the caller names no file")
    from assay.node.probe.chosen_files import read_chosen_files

    return partial(read_chosen_files, root, paths)


def ask_unit_settings(names: list[str]) -> NamedArea:
    """Return the area `unit_settings`, for names such as `unit/Setting`."""
    if not names:
        return absent("the caller names no setting of a unit")
    from assay.node.probe.unit_settings import read_unit_settings

    return TimedQuestion(UNIT_SETTINGS_S, partial(read_unit_settings, names))


def ask_adapter_settings(root: NodeRoot, adapters: str) -> NamedArea:
    """Return the area `adapter_settings`, for `PLACE=NAME+NAME,…`."""
    if not adapters:
        return absent("the caller names no adapter")
    from assay.node.probe.devices.adapter_settings import read_adapter_settings

    return TimedQuestion(ADAPTERS_S, partial(read_adapter_settings, root, adapters))


def read_wiped_drives(root: NodeRoot, markers: dict[str, str]) -> Any:
    """Return the branch `drive_wipe`. `markers` is what a wipe wrote, by serial number."""
    from assay.node.probe.devices.drive_wipe import read_drive_wipe

    return read_drive_wipe(root, markers)
