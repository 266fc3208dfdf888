"""All readings of a tree, in a form in which NVML's and nvidia-smi's can be compared: they give other reasons."""

from __future__ import annotations

from typing import Any

from assay.model.reading import parse_reading


def list_values(tree: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """Return all values by path, and of the other readings the kind."""
    if reading := parse_reading(tree):
        return {path: tree["value"] if reading.kind == "value" else reading.kind}
    return {key: leaf for name, branch in tree.items() for key, leaf in list_values(branch, (*path, name)).items()}
