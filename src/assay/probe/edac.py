"""Memory errors that the memory controllers corrected, or could not, since boot (EDAC), by module."""

from __future__ import annotations

from functools import partial

from assay.model.reading import absent
from assay.probe.files import Root, unread
from assay.probe.lazy import Lazy

CONTROLLERS = "/sys/devices/system/edac/mc"


def read_edac(root: Root) -> Lazy:
    """Return the `memory.edac` branch by controller; `unplaced` are errors of no known module."""
    try:
        names = [name for name in root.names(CONTROLLERS) if name.startswith("mc") and name[2:].isdecimal()]
    except OSError as error:
        return unread(CONTROLLERS, error)
    none = absent(f"{CONTROLLERS} has no controller: no EDAC driver took the memory controllers")
    return {name: _controller(root, f"{CONTROLLERS}/{name}") for name in names} or none


def _controller(root: Root, folder: str) -> Lazy:
    return {
        "unplaced": {
            "corrected": root.later(f"{folder}/ce_noinfo_count", int),
            "uncorrected": root.later(f"{folder}/ue_noinfo_count", int),
        },
        "dimms": partial(_modules, root, folder),
    }


def _modules(root: Root, folder: str) -> Lazy:
    try:
        names = [name for name in root.names(folder) if name.rstrip("0123456789") in ("dimm", "rank")]
    except OSError as error:
        return unread(folder, error)
    return {name: _module(root, f"{folder}/{name}") for name in names} or absent(f"{folder} has no module")


def _module(root: Root, folder: str) -> Lazy:
    return {
        "label": root.later(f"{folder}/dimm_label"),
        "corrected": root.later(f"{folder}/dimm_ce_count", int),
        "uncorrected": root.later(f"{folder}/dimm_ue_count", int),
    }
